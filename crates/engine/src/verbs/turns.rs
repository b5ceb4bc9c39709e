//! What is said in a conversation: turns, and the threads that branch off them.

use std::sync::Arc;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::conversations::{self, check_open, own_part, readable, require};
use super::mail::{ConversationRef, JoinMode};
use super::{Decided, Write};
use crate::commit::NewTurn;
use crate::error::Refusal;
use crate::nouns::{
    Agent, AgentId, Audience, Body, ContentType, Conversation, ConversationId, Fact, Json, Message,
    Permissions, Seq, Sight, Standing, Summary, Thread, ThreadId, Turn, TurnId, TurnSource, TurnVisibility,
};
use crate::sight;
use crate::store::{one, rows};

/// Records a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Say {
    /// In which conversation.
    pub conversation: ConversationId,
    /// In which thread of it.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    /// What it contains.
    pub content_type: String,
    /// What is said.
    pub content: Json,
    /// Which turn it answers.
    #[serde(default)]
    pub in_reply_to: Option<TurnId>,
    /// Who may read it; everyone if not said.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// The turn that opens a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstTurn {
    /// What it contains.
    pub content_type: String,
    /// What is said.
    pub content: Json,
    /// Who may read it; everyone if not said.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
}

impl FirstTurn {
    /// Refuses what could not be recorded among those who will take part.
    pub(super) fn check(&self, takes_part: impl Fn(&AgentId) -> bool) -> Decided<()> {
        check_content_type(&self.content_type)?;
        let Some(TurnVisibility::Agents(agents)) = &self.visibility else { return Ok(()) };
        match agents.iter().find(|agent| !takes_part(agent)) {
            Some(agent) => Err(Refusal::NoSuchParticipant { agent: agent.clone() }.into()),
            None => Ok(()),
        }
    }
}

impl Say {
    /// Whether every participant may read it and it refers to nothing else.
    pub(crate) fn is_plain(&self) -> bool {
        self.thread.is_none()
            && self.in_reply_to.is_none()
            && matches!(self.visibility, None | Some(TurnVisibility::All))
    }

    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Turn> {
        // What is remembered has been found to allow it.
        let cached = to.cache.borrow_mut().conversation_for(self).map(|cached| cached.conversation.seq);
        if let Some(talk) = cached {
            check_content_type(&self.content_type)?;
            let turn = self.turn(to, self.conversation.clone());
            return record_plain(to, self, talk, turn);
        }
        let mut conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        require(to, &conversation, |may| may.can_send, "canSend")?;
        check_not_suspended(to)?;
        check_content_type(&self.content_type)?;
        check_visibility(to, &conversation, self.visibility.as_ref())?;
        if let Some(thread) = self.thread {
            thread_in(to, &conversation, thread)?;
        }
        if let Some(turn) = self.in_reply_to {
            turn_in(to, &conversation, turn)?;
        }
        if let Ok(part) = own_part(to, &conversation) {
            conversations::accept(to, &part)?;
        }
        let turn = self.turn(to, conversation.id.clone());
        record(to, &mut conversation, turn, None)
    }

    fn turn(&self, to: &mut Write<'_>, conversation: ConversationId) -> Turn {
        Turn {
            seq: to.next_seq(),
            id: TurnId(to.fresh_id()),
            conversation,
            thread: self.thread,
            author: to.caller.agent.clone(),
            content_type: self.content_type.clone(),
            content: self.content.clone(),
            in_reply_to: self.in_reply_to,
            visibility: self.visibility.clone().unwrap_or(TurnVisibility::All),
            source: TurnSource::Explicit,
            meta: self.meta.clone(),
            at: to.now,
        }
    }
}

/// Records the first turn of a conversation that is being opened.
pub(super) fn record_first(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    first: &FirstTurn,
) -> Decided<Turn> {
    let turn = Turn {
        seq: to.next_seq(),
        id: TurnId(to.fresh_id()),
        conversation: conversation.id.clone(),
        thread: None,
        author: to.caller.agent.clone(),
        content_type: first.content_type.clone(),
        content: first.content.clone(),
        in_reply_to: None,
        visibility: first.visibility.clone().unwrap_or(TurnVisibility::All),
        source: TurnSource::Explicit,
        meta: None,
        at: to.now,
    };
    record(to, conversation, turn, None)
}

/// Where in a conversation a letter will be recorded.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) conversation: Conversation,
    pub(super) thread: Option<ThreadId>,
    reply_to: Option<TurnId>,
    visibility: TurnVisibility,
}

/// The spot that a letter asks for, if the ordinary rules let its sender speak there. A sender that was added by another
/// and has neither joined nor spoken has not agreed to be read by everyone there: only the letter's parties read its turn.
pub(super) fn find_spot<'r>(
    to: &Write<'_>,
    sender: &'r Agent,
    recipients: impl Iterator<Item = &'r AgentId>,
    within: &ConversationRef,
) -> Decided<Spot> {
    let conversation = readable(to, &within.conversation)?;
    check_open(&conversation)?;
    let part = own_part(to, &conversation)?;
    if !part.permissions.can_send {
        let need = "canSend";
        return Err(Refusal::ParticipantMayNot { conversation: conversation.id, need }.into());
    }
    debug_assert_eq!(part.agent, sender.id, "a letter is recorded for its sender");
    let spot = spot(to, conversation, within)?;
    match part.standing {
        Standing::Invited => for_parties(to, spot, sender, recipients),
        Standing::Full | Standing::Guest => Ok(spot),
    }
}

/// The spot for a letter under a conversation's name, in a conversation that is opened, or opened again, if need be. Only
/// sender and recipients read its turn, and not the conversation's opener; a sender without a part in the conversation
/// does not enter it by knowing its name. Where the name is a label, recipients take part only if the sender may invite:
/// otherwise the opener could find out who writes to whom under that name.
pub(super) fn gather<'r>(
    to: &mut Write<'_>,
    sender: &'r Agent,
    recipients: impl Iterator<Item = &'r AgentId> + Clone,
    within: &ConversationRef,
    kind: &str,
    subject: Option<&str>,
) -> Decided<Spot> {
    let admin = to.caller.rights.admin;
    let is_meant = matches!(within.join, JoinMode::Open { .. });
    let (mut conversation, may_invite) = match rows::conversation_by_id(to.db, &within.conversation)? {
        Some(conversation) => {
            let part = rows::participant_of(to.db, &conversation.id, &sender.id)?;
            let put_out = conversations::was_put_out(to, &conversation.id, &sender.id)?;
            let may_invite = match part {
                _ if admin => true,
                Some(part) if !put_out && part.permissions.can_send => {
                    if conversation.status.is_closed() {
                        conversations::check_standing(&conversation, &part)?;
                    }
                    is_meant || part.permissions.can_invite
                }
                Some(_) if !put_out => {
                    let need = "canSend";
                    return Err(Refusal::ParticipantMayNot { conversation: conversation.id, need }.into());
                }
                _ => return Err(Refusal::NotAParticipant { conversation: conversation.id }.into()),
            };
            (conversations::reopen(to, conversation)?, may_invite)
        }
        None => {
            let subject = subject.map(str::to_owned);
            let id = within.conversation.clone();
            (conversations::open(to, id, kind, subject, Audience::Parties, |_| {})?, true)
        }
    };
    let opener = conversation.created_by == sender.id;
    let mut coming = Vec::new();
    for agent in std::iter::once(&sender.id).chain(recipients.clone()) {
        let own = *agent == sender.id;
        if !own && !may_invite {
            continue;
        }
        let before = rows::participant_of(to.db, &conversation.id, agent)?;
        if before.as_ref().is_none_or(|part| part.left_at.is_some()) {
            coming.push((agent, before));
        }
    }
    conversations::check_entries(to, coming.len())?;
    for (agent, before) in coming {
        let own = *agent == sender.id;
        match before {
            // Who was put out gets the letter, but a letter alone does not bring it back in.
            Some(_) if conversations::was_put_out(to, &conversation.id, agent)? => {}
            // Coming back does not widen what one was allowed before.
            Some(part) => {
                let standing = if own { part.standing } else { Standing::Invited };
                conversations::enter(to, &mut conversation, agent, &part.role, part.permissions, standing)?;
            }
            None => {
                let role = if own && opener { "initiator" } else { "assistant" };
                let standing = if own { Standing::Full } else { Standing::Invited };
                let permissions = Permissions::for_role(role);
                conversations::enter(to, &mut conversation, agent, role, permissions, standing)?;
            }
        }
    }
    let spot = match within.join {
        JoinMode::PartiesOnly { .. } => {
            Spot { conversation, thread: None, reply_to: None, visibility: TurnVisibility::All }
        }
        _ => spot(to, conversation, within)?,
    };
    for_parties(to, spot, sender, recipients)
}

/// The same spot, for the eyes of a letter's sender and recipients, as far as they take part.
fn for_parties<'r>(
    to: &Write<'_>,
    spot: Spot,
    sender: &'r Agent,
    recipients: impl Iterator<Item = &'r AgentId>,
) -> Decided<Spot> {
    let mut parties = Vec::new();
    let mut seen = HashSet::new();
    for agent in std::iter::once(&sender.id).chain(recipients) {
        if seen.insert(agent) && conversations::takes_part(to, &spot.conversation.id, agent)? {
            parties.push(agent.clone());
        }
    }
    let visibility = match &spot.visibility {
        TurnVisibility::Private => TurnVisibility::Private,
        TurnVisibility::Agents(chosen) => {
            let chosen: HashSet<&AgentId> = chosen.iter().collect();
            parties.retain(|agent| chosen.contains(agent));
            TurnVisibility::Agents(parties)
        }
        TurnVisibility::All | TurnVisibility::Roles(_) | TurnVisibility::Internal => {
            TurnVisibility::Agents(parties)
        }
    };
    Ok(Spot { visibility, ..spot })
}

/// The spot in a conversation that a letter names, which must be there.
fn spot(to: &Write<'_>, conversation: Conversation, within: &ConversationRef) -> Decided<Spot> {
    check_visibility(to, &conversation, within.visibility.as_ref())?;
    if let Some(thread) = within.thread {
        thread_in(to, &conversation, thread)?;
    }
    if let Some(turn) = within.reply_to {
        turn_in(to, &conversation, turn)?;
    }
    Ok(Spot {
        conversation,
        thread: within.thread,
        reply_to: within.reply_to,
        visibility: within.visibility.clone().unwrap_or(TurnVisibility::All),
    })
}

/// Refuses agents that were told to pause. Who is not in the address book cannot have been.
fn check_not_suspended(to: &Write<'_>) -> Decided<()> {
    match rows::active_agent(to.db, &to.caller.agent)? {
        Some(agent) if agent.is_suspended() => {
            Err(Refusal::WrongState { agent: agent.id, state: agent.state }.into())
        }
        _ => Ok(()),
    }
}

/// Records a letter as a turn. The turn keeps no copy of the text.
pub(super) fn record_letter(
    to: &mut Write<'_>,
    sender: &Agent,
    spot: Spot,
    letter: &Arc<Message>,
) -> Decided<Turn> {
    let Spot { mut conversation, thread, reply_to, visibility } = spot;
    let (content_type, content) = match &letter.body {
        Body::Json(json) => ("data", json.clone()),
        Body::Text(text) => ("text", rows::text_content(text)),
    };
    let turn = Turn {
        seq: to.next_seq(),
        id: TurnId(to.fresh_id()),
        conversation: conversation.id.clone(),
        thread,
        author: sender.id.clone(),
        content_type: content_type.to_owned(),
        content,
        in_reply_to: reply_to,
        visibility,
        source: TurnSource::Intercepted(letter.id),
        meta: None,
        at: to.now,
    };
    record(to, &mut conversation, turn, Some(letter.seq))
}

/// Records a turn in a conversation that is remembered.
fn record_plain(to: &mut Write<'_>, say: &Say, talk: Seq, turn: Turn) -> Decided<Turn> {
    let turn = insert(to, talk, turn, None)?;
    let now = to.now;
    let sight = match to.cache.borrow_mut().conversation_for(say) {
        Some(talk) => {
            talk.count(&turn.content_type, now);
            talk.sight(&turn.author)
        }
        None => Sight::Ask,
    };
    tell_added(to, turn, sight)
}

fn tell_added(to: &mut Write<'_>, turn: Arc<Turn>, sight: Sight) -> Decided<Turn> {
    to.emit_turn(Fact::TurnAdded { conversation: turn.conversation.clone() }, turn.clone(), sight)?;
    Ok(Arc::unwrap_or_clone(turn))
}

/// Writes a turn's own row, into the conversation that began at that place in the history.
fn insert(to: &mut Write<'_>, talk: Seq, turn: Turn, letter: Option<Seq>) -> rusqlite::Result<Arc<Turn>> {
    let turn = Arc::new(turn);
    to.insert_turn(NewTurn { turn: turn.clone(), conversation_seq: talk, message: letter })?;
    Ok(turn)
}

fn record(
    to: &mut Write<'_>,
    conversation: &mut Conversation,
    turn: Turn,
    letter: Option<Seq>,
) -> Decided<Turn> {
    let turn = insert(to, conversation.seq, turn, letter)?;
    let sql = "INSERT INTO turn_types(conversation, content_type, turns) VALUES(?1, ?2, 1)
               ON CONFLICT DO UPDATE SET turns = turns + 1";
    to.exec(sql, (&turn.conversation, &turn.content_type))?;
    if let Some(thread) = turn.thread {
        let sql = "INSERT INTO thread_authors(thread, agent) VALUES(?1, ?2) ON CONFLICT DO NOTHING";
        let new_author = to.exec(sql, (thread, &turn.author))? > 0;
        let sql =
            "UPDATE threads SET turn_count = turn_count + 1, participant_count = participant_count + ?2,
                       updated_at = ?3 WHERE id = ?1";
        to.exec(sql, (thread, new_author, to.now))?;
    }
    conversation.turn_count += 1;
    conversations::touch(to, conversation)?;
    let sight = sight::of_turn(to.db, conversation, &turn)?;
    tell_added(to, turn, sight)
}

/// Opens a thread from a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenThread {
    /// In which conversation.
    pub conversation: ConversationId,
    /// The turn it starts from.
    pub root: TurnId,
    /// The thread it branches off from.
    #[serde(default)]
    pub parent: Option<ThreadId>,
    /// Its heading.
    #[serde(default)]
    pub subject: Option<String>,
}

impl OpenThread {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Thread> {
        let mut conversation = readable(to, &self.conversation)?;
        check_open(&conversation)?;
        require(to, &conversation, |may| may.can_create_threads, "canCreateThreads")?;
        let depth = match self.parent {
            Some(parent) => thread_in(to, &conversation, parent)?.depth + 1,
            None => 1,
        };
        if depth > to.rules.thread_depth {
            return Err(Refusal::ThreadTooDeep { limit: to.rules.thread_depth }.into());
        }
        turn_in(to, &conversation, self.root)?;
        let thread = Thread {
            id: ThreadId(to.fresh_id()),
            conversation: conversation.id.clone(),
            parent: self.parent,
            root: self.root,
            subject: self.subject.clone(),
            depth,
            turn_count: 0,
            participant_count: 0,
            created_by: to.caller.agent.clone(),
            created_at: to.now,
            updated_at: to.now,
            seq: to.next_seq(),
        };
        let sql = "INSERT INTO threads(id, conversation, parent, root, subject, depth, turn_count, participant_count,
                       created_by, created_at, updated_at, seq) VALUES(?1,?2,?3,?4,?5,?6,0,0,?7,?8,?8,?9)";
        let params = (
            thread.id,
            &thread.conversation,
            thread.parent,
            thread.root,
            &thread.subject,
            thread.depth,
            &thread.created_by,
            thread.created_at,
            thread.seq,
        );
        to.exec(sql, params)?;
        conversation.thread_count += 1;
        conversations::touch(to, &mut conversation)?;
        let sight = sight::of_conversation(to.db, &conversation)?;
        to.emit(Fact::ThreadCreated { thread: Box::new(thread.clone()) }, sight)?;
        Ok(thread)
    }
}

/// Keeps a summary that was made outside, so that it need not be made again until more is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepSummary {
    /// Of which conversation.
    pub conversation: ConversationId,
    /// Of which part of it, and for whose eyes.
    pub part: String,
    /// The summary.
    pub summary: Summary,
    /// The last turn it takes into account.
    pub up_to: Seq,
    /// Whether the summary holds only what everyone in the conversation may read, and may be announced.
    pub announce: bool,
}

impl KeepSummary {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<()> {
        let conversation = readable(to, &self.conversation)?;
        if !to.caller.rights.admin {
            own_part(to, &conversation)?;
        }
        let sql = "INSERT INTO summaries(conversation, part, summary, up_to, at) VALUES(?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET summary = ?3, up_to = ?4, at = ?5";
        let text = serde_json::to_string(&self.summary).unwrap_or_default();
        to.exec(sql, (&self.conversation, &self.part, text, self.up_to, to.now))?;
        if self.announce {
            let sight = sight::of_conversation(to.db, &conversation)?;
            let text = self.summary.text.clone();
            to.emit(Fact::SummaryGenerated { conversation: conversation.id, text }, sight)?;
        }
        Ok(())
    }
}

/// The turn, if it belongs to the conversation and the caller may read it.
pub(super) fn turn_in(to: &Write<'_>, conversation: &Conversation, id: TurnId) -> Decided<Turn> {
    let turn = rows::turn_by_id(to.db, id)?.filter(|turn| turn.conversation == conversation.id);
    let reader = sight::reads_conversation(to.db, to.caller, conversation)?;
    match (turn, reader) {
        // What was followed as it was said can be answered, even by those who may not look it up.
        (Some(turn), Some(reader)) if reader.reads(&turn) || reader.follows(&turn) => Ok(turn),
        _ => Err(Refusal::NoSuchTurn.into()),
    }
}

fn thread_in(to: &Write<'_>, conversation: &Conversation, id: ThreadId) -> Decided<Thread> {
    rows::thread_by_id(to.db, id)?
        .filter(|thread| thread.conversation == conversation.id)
        .ok_or_else(|| Refusal::NoSuchThread.into())
}

fn check_content_type(text: &str) -> Decided<()> {
    match ContentType::new(text) {
        Some(_) => Ok(()),
        None => Err(Refusal::BadContentType { content_type: text.chars().take(128).collect() }.into()),
    }
}

/// A turn for the eyes of certain agents names agents that take part.
fn check_visibility(
    to: &Write<'_>,
    conversation: &Conversation,
    given: Option<&TurnVisibility>,
) -> Decided<()> {
    let Some(TurnVisibility::Agents(agents)) = given else { return Ok(()) };
    if agents.len() > to.rules.participants as usize {
        let limit = to.rules.participants.into();
        return Err(Refusal::TooMany { what: "agents that a turn is for", limit }.into());
    }
    for agent in agents {
        let sql = "SELECT 1 FROM participants WHERE conversation = ?1 AND agent = ?2 AND left_at IS NULL";
        if one(to.db, sql, (&conversation.id, agent), |_| Ok(()))?.is_none() {
            return Err(Refusal::NoSuchParticipant { agent: agent.clone() }.into());
        }
    }
    Ok(())
}
