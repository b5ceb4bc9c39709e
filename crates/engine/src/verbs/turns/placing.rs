//! Where a message goes in a conversation. Deciding finds the place, or what must be opened and who must enter first; the
//! result is written before the message, and the message's turn after it.

use std::collections::HashSet;
use std::sync::Arc;

use super::{check_visibility_of, record, thread_in, turn_read_by};
use crate::error::Refusal;
use crate::nouns::{
    Agent, AgentId, Audience, Body, Conversation, ConversationId, Message, Participant, Permissions,
    Standing, ThreadId, Turn, TurnId, TurnSource, TurnVisibility,
};
use crate::sight::{self, Reader};
use crate::store::rows;
use crate::verbs::conversations::{self, check_open, readable};
use crate::verbs::mail::{ConversationRef, JoinMode};
use crate::verbs::{Decide, Decided, Write};

/// The sender and the open recipients of a message.
pub(in crate::verbs) struct Parties<'p> {
    pub(in crate::verbs) sender: &'p Agent,
    /// All recipients but those of blind copies.
    pub(in crate::verbs) recipients: Vec<&'p AgentId>,
    /// Names that pass to a new holder with this message: the former holder's part in conversations ends.
    pub(in crate::verbs) new_holders: &'p [AgentId],
}

impl<'p> Parties<'p> {
    /// An agent's part in a conversation, present or past, as it is when the message is written.
    pub(in crate::verbs) fn part_of(
        &self,
        to: &Decide<'_>,
        conversation: &ConversationId,
        agent: &AgentId,
    ) -> rusqlite::Result<Option<Participant>> {
        if self.new_holders.contains(agent) {
            return Ok(None);
        }
        rows::participant_of(to.db, conversation, agent)
    }

    fn was_removed(
        &self,
        to: &Decide<'_>,
        conversation: &ConversationId,
        agent: &AgentId,
    ) -> rusqlite::Result<bool> {
        Ok(!self.new_holders.contains(agent) && conversations::was_removed(to, conversation, agent)?)
    }

    /// How many take part when the message is written.
    fn present_in(&self, to: &Decide<'_>, conversation: &Conversation) -> rusqlite::Result<i64> {
        let mut present = conversation.participant_count;
        for agent in self.new_holders {
            present -= i64::from(conversations::takes_part(to, &conversation.id, agent)?);
        }
        Ok(present)
    }

    /// Sender and open recipients, each once.
    fn all(&self) -> impl Iterator<Item = &'p AgentId> {
        let mut seen = HashSet::new();
        std::iter::once(&self.sender.id)
            .chain(self.recipients.iter().copied())
            .filter(move |agent| seen.insert(*agent))
    }
}

/// The place of a message in a conversation.
#[derive(Debug)]
pub(in crate::verbs) struct Place {
    conversation: PlannedConversation,
    entries: Vec<Entry>,
    thread: Option<ThreadId>,
    reply_to: Option<TurnId>,
    visibility: TurnVisibility,
    /// Whether names pass to new holders first, which changes the conversation's counters.
    is_stale: bool,
}

#[derive(Debug)]
enum PlannedConversation {
    New {
        id: ConversationId,
        kind: String,
        subject: Option<String>,
    },
    /// Reopened if it is closed.
    Existing(Box<Conversation>),
}

/// An agent that becomes a participant with the message.
#[derive(Debug)]
struct Entry {
    agent: AgentId,
    role: String,
    permissions: Permissions,
    standing: Standing,
}

impl Place {
    /// Opens or reopens the conversation and enters participants, as decided.
    pub(in crate::verbs) fn prepare(self, to: &mut Write<'_>) -> rusqlite::Result<Spot> {
        let Self { conversation, entries, thread, reply_to, visibility, is_stale } = self;
        let mut conversation = match conversation {
            PlannedConversation::New { id, kind, subject } => {
                conversations::open(to, id, &kind, subject, Audience::Parties, |_| {})?
            }
            PlannedConversation::Existing(mut known) => {
                if is_stale && let Some(now) = rows::conversation_by_id(to.db, &known.id)? {
                    *known = now;
                }
                conversations::reopen(to, *known)?
            }
        };
        for Entry { agent, role, permissions, standing } in entries {
            conversations::enter(to, &mut conversation, &agent, &role, permissions, standing)?;
        }
        Ok(Spot { conversation, thread, reply_to, visibility })
    }
}

/// A place whose conversation is open and whose participants are there.
#[derive(Debug)]
pub(in crate::verbs) struct Spot {
    pub(in crate::verbs) conversation: Conversation,
    pub(in crate::verbs) thread: Option<ThreadId>,
    reply_to: Option<TurnId>,
    visibility: TurnVisibility,
}

impl Spot {
    /// Records a message as a turn. The turn keeps no copy of the text.
    pub(in crate::verbs) fn record(
        self,
        to: &mut Write<'_>,
        author: AgentId,
        message: &Arc<Message>,
    ) -> rusqlite::Result<Turn> {
        let Self { mut conversation, thread, reply_to, visibility } = self;
        let (content_type, content) = match &message.body {
            Body::Json(json) => ("data", json.clone()),
            Body::Text(text) => ("text", rows::text_content(text)),
        };
        let turn = Turn {
            seq: to.next_seq(),
            id: TurnId(to.fresh_id()),
            conversation: conversation.id.clone(),
            thread,
            author,
            content_type: content_type.to_owned(),
            content,
            in_reply_to: reply_to,
            visibility,
            source: TurnSource::Intercepted(message.id),
            meta: None,
            at: to.now,
        };
        record(to, &mut conversation, turn, Some(message.seq))
    }
}

/// The place that a message asks for.
pub(in crate::verbs) fn find_place(
    to: &Decide<'_>,
    parties: &Parties<'_>,
    within: &ConversationRef,
    subject: Option<&str>,
) -> Decided<Place> {
    match &within.join {
        JoinMode::IfAllowed => find_allowed(to, parties, within),
        JoinMode::Open { kind } | JoinMode::PartiesOnly { kind } | JoinMode::NameOnly { kind } => {
            find_or_open(to, parties, within, kind, subject)
        }
    }
}

/// The place if the ordinary rules let the sender speak there. A sender that was added by another agent and has neither
/// joined nor spoken has not agreed to be read by all participants: only the message's parties read its turn.
fn find_allowed(to: &Decide<'_>, parties: &Parties<'_>, within: &ConversationRef) -> Decided<Place> {
    let conversation = readable(to, &within.conversation)?;
    check_open(&conversation)?;
    let part = parties
        .part_of(to, &conversation.id, &parties.sender.id)?
        .filter(|part| part.left_at.is_none())
        .ok_or_else(|| Refusal::NotAParticipant { conversation: conversation.id.clone() })?;
    if !part.permissions.can_send {
        let need = "canSend";
        return Err(Refusal::ParticipantMayNot { conversation: conversation.id, need }.into());
    }
    let reader = sight::reads_conversation(to.db, to.caller, &conversation)?;
    let conversation = PlannedConversation::Existing(Box::new(conversation));
    let place = Draft::new(conversation, Vec::new());
    place.check(to, parties, within, reader.as_ref())?;
    let given = within.visibility.clone().unwrap_or(TurnVisibility::All);
    let visibility = match part.standing {
        Standing::Invited => place.for_parties(to, parties, &given)?,
        Standing::Full | Standing::Guest => given,
    };
    Ok(place.at(parties, within.thread, within.reply_to, visibility))
}

/// The place under a conversation's name, in a conversation that is opened or reopened if necessary. Only sender and
/// recipients read the turn, not the conversation's creator; knowing the name does not make a sender a participant. Where
/// the name is a label, recipients enter only if the sender may invite: otherwise the creator could find out which agents
/// write to each other under that name.
fn find_or_open(
    to: &Decide<'_>,
    parties: &Parties<'_>,
    within: &ConversationRef,
    kind: &str,
    subject: Option<&str>,
) -> Decided<Place> {
    let sender = &parties.sender.id;
    let (conversation, may_invite) = match rows::conversation_by_id(to.db, &within.conversation)? {
        Some(conversation) => {
            let may_invite = check_sender(to, parties, within, &conversation)?;
            (PlannedConversation::Existing(Box::new(conversation)), may_invite)
        }
        None => {
            let (id, kind) = (within.conversation.clone(), kind.to_owned());
            (PlannedConversation::New { id, kind, subject: subject.map(str::to_owned) }, true)
        }
    };
    let (is_creator, present) = match &conversation {
        PlannedConversation::New { .. } => (true, 0),
        PlannedConversation::Existing(known) => (known.created_by == *sender, parties.present_in(to, known)?),
    };
    let mut coming = Vec::new();
    for agent in parties.all().filter(|agent| *agent == sender || may_invite) {
        let before = parties.part_of(to, &within.conversation, agent)?;
        if before.as_ref().is_none_or(|part| part.left_at.is_some()) {
            coming.push((agent, before));
        }
    }
    conversations::check_entries(to, coming.len())?;
    let (mut entries, mut returning) = (Vec::new(), None);
    for (agent, before) in coming {
        let own = agent == sender;
        let entry = match before {
            // An agent that was removed gets the message, but a message alone does not bring it back.
            Some(_) if parties.was_removed(to, &within.conversation, agent)? => continue,
            // Returning does not widen what the agent was permitted before.
            Some(part) => {
                let standing = if own { part.standing } else { Standing::Invited };
                let (role, permissions) = (part.role.clone(), part.permissions);
                if own {
                    returning = Some(part);
                }
                Entry { agent: agent.clone(), role, permissions, standing }
            }
            None => {
                let role = if own && is_creator { "initiator" } else { "assistant" };
                let standing = if own { Standing::Full } else { Standing::Invited };
                let (role, permissions) = (role.to_owned(), Permissions::for_role(role));
                Entry { agent: agent.clone(), role, permissions, standing }
            }
        };
        entries.push(entry);
    }
    conversations::check_participants(to, present, entries.len())?;
    let place = Draft::new(conversation, entries);
    let (thread, reply_to, given) = match within.join {
        JoinMode::PartiesOnly { .. } => (None, None, TurnVisibility::All),
        _ => {
            let reader = place.reader(to, returning)?;
            place.check(to, parties, within, reader.as_ref())?;
            (within.thread, within.reply_to, within.visibility.clone().unwrap_or(TurnVisibility::All))
        }
    };
    let visibility = place.for_parties(to, parties, &given)?;
    Ok(place.at(parties, thread, reply_to, visibility))
}

/// Refuses a sender that may not write under the name of a conversation that is there. Returns whether its recipients enter.
fn check_sender(
    to: &Decide<'_>,
    parties: &Parties<'_>,
    within: &ConversationRef,
    conversation: &Conversation,
) -> Decided<bool> {
    let sender = &parties.sender.id;
    if to.caller.rights.admin {
        return Ok(true);
    }
    let part = match parties.part_of(to, &conversation.id, sender)? {
        Some(part) if !parties.was_removed(to, &conversation.id, sender)? => part,
        _ => return Err(Refusal::NotAParticipant { conversation: conversation.id.clone() }.into()),
    };
    if !part.permissions.can_send {
        let need = "canSend";
        return Err(Refusal::ParticipantMayNot { conversation: conversation.id.clone(), need }.into());
    }
    if conversation.status.is_closed() {
        conversations::check_standing(conversation, &part)?;
    }
    Ok(matches!(within.join, JoinMode::Open { .. }) || part.permissions.can_invite)
}

/// A place that is not checked yet.
struct Draft {
    conversation: PlannedConversation,
    entries: Vec<Entry>,
    entering: HashSet<AgentId>,
}

impl Draft {
    fn new(conversation: PlannedConversation, entries: Vec<Entry>) -> Self {
        let entering = entries.iter().map(|entry| entry.agent.clone()).collect();
        Self { conversation, entries, entering }
    }

    fn takes_part(&self, to: &Decide<'_>, parties: &Parties<'_>, agent: &AgentId) -> rusqlite::Result<bool> {
        if self.entering.contains(agent) {
            return Ok(true);
        }
        let PlannedConversation::Existing(known) = &self.conversation else { return Ok(false) };
        Ok(parties.part_of(to, &known.id, agent)?.is_some_and(|part| part.left_at.is_none()))
    }

    /// How the caller reads the conversation once it has entered.
    fn reader(&self, to: &Decide<'_>, returning: Option<Participant>) -> rusqlite::Result<Option<Reader>> {
        let PlannedConversation::Existing(known) = &self.conversation else { return Ok(None) };
        match returning.filter(|_| !to.caller.rights.admin) {
            Some(part) if !part.permissions.can_observe => Ok(None),
            Some(part) => {
                let part = Participant { left_at: None, joined: to.next_seq(), ..part };
                Ok(Some(Reader::Participant(Box::new(part))))
            }
            None => sight::reads_conversation(to.db, to.caller, known),
        }
    }

    /// Refuses a visibility, thread or turn that the conversation does not have.
    fn check(
        &self,
        to: &Decide<'_>,
        parties: &Parties<'_>,
        within: &ConversationRef,
        reader: Option<&Reader>,
    ) -> Decided<()> {
        check_visibility_of(to, within.visibility.as_ref(), |agent| self.takes_part(to, parties, agent))?;
        let id = &within.conversation;
        if let Some(thread) = within.thread {
            thread_in(to, id, thread)?;
        }
        if let Some(turn) = within.reply_to {
            turn_read_by(to, id, turn, reader)?;
        }
        Ok(())
    }

    /// A visibility narrowed to the message's parties, as far as they take part.
    fn for_parties(
        &self,
        to: &Decide<'_>,
        parties: &Parties<'_>,
        given: &TurnVisibility,
    ) -> rusqlite::Result<TurnVisibility> {
        let chosen: Option<HashSet<&AgentId>> = match given {
            TurnVisibility::Private => return Ok(TurnVisibility::Private),
            TurnVisibility::Agents(chosen) => Some(chosen.iter().collect()),
            TurnVisibility::All | TurnVisibility::Roles(_) | TurnVisibility::Internal => None,
        };
        let mut agents = Vec::new();
        for agent in parties.all() {
            if chosen.as_ref().is_none_or(|chosen| chosen.contains(agent))
                && self.takes_part(to, parties, agent)?
            {
                agents.push(agent.clone());
            }
        }
        Ok(TurnVisibility::Agents(agents))
    }

    fn at(
        self,
        parties: &Parties<'_>,
        thread: Option<ThreadId>,
        reply_to: Option<TurnId>,
        visibility: TurnVisibility,
    ) -> Place {
        let Self { conversation, entries, .. } = self;
        Place {
            conversation,
            entries,
            thread,
            reply_to,
            visibility,
            is_stale: !parties.new_holders.is_empty(),
        }
    }
}
