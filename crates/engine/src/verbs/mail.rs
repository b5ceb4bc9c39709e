//! Sending messages.

mod delivered;
mod sender;

pub use delivered::RecordDelivered;
pub(super) use sender::{Sender, is_foreign};

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::agents::Entrance;
use super::recipients::{self, Found, Recipient};
use super::{Decide, Decided, Stop, Write, deliveries, seen_keys, turns};
use crate::commit::NewDelivery;
use crate::error::Refusal;
use crate::nouns::{
    Address, AgentId, AgentKind, Audience, Body, Caller, ConversationId, DeliveryState, Json, Message,
    MessageId, Millis, Priority, RealmName, RecipientKind, TaskId, ThreadId, TurnId, TurnVisibility,
};
use crate::sight;
use crate::stamp::Stamp;
use crate::store::{all, message_key, one, rows};
use crate::views::View;

/// Sends a message from the caller to the agents that the addresses resolve to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendMessage {
    /// The main recipients.
    pub to: Vec<Address>,
    /// Recipients of copies.
    #[serde(default)]
    pub cc: Vec<Address>,
    /// Recipients of copies that no other recipient sees.
    #[serde(default)]
    pub bcc: Vec<Address>,
    /// The kind of message; empty for plain mail.
    #[serde(default)]
    pub kind: String,
    /// Its subject.
    #[serde(default)]
    pub subject: Option<String>,
    /// Its body.
    pub body: Body,
    /// Its priority.
    pub priority: Priority,
    /// Whether each recipient is asked to acknowledge it.
    #[serde(default)]
    pub ack_required: bool,
    /// When it expires. It is not delivered after that.
    #[serde(default)]
    pub expires_at: Option<Millis>,
    /// Connects a question and its answers.
    #[serde(default)]
    pub correlation: Option<String>,
    /// The conversation it is part of.
    #[serde(default)]
    pub within: Option<ConversationRef>,
    /// The message it answers.
    #[serde(default)]
    pub in_reply_to: Option<MessageId>,
    /// The task it belongs to.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// The sender's idempotency key: the same content under the same key is sent once.
    #[serde(default)]
    pub key: Option<String>,
    /// A signed envelope, stored verbatim.
    #[serde(default)]
    pub envelope: Option<String>,
    /// Data of the door that has no other field.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Which other callers may see it besides sender and recipients.
    pub audience: Audience,
    /// Whether empty groups are allowed. Otherwise a message without recipients is refused.
    #[serde(default)]
    pub allow_no_recipients: bool,
    /// Whether named agents that take no messages from the sender are passed over, if there are other recipients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pass_over: bool,
    /// Further named agents that the door knows to receive no messages at present: a failed delivery is reported for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_receiving: Vec<AgentId>,
}

/// The place of a message in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationRef {
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    /// The turn it replies to.
    #[serde(default)]
    pub reply_to: Option<TurnId>,
    /// Which participants may read the turn.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
    /// What happens if the conversation does not exist, or the sender takes no part in it.
    pub join: JoinMode,
}

/// How a message is recorded in its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinMode {
    /// It is recorded if the ordinary rules allow it, and sent under the conversation's name in any case.
    IfAllowed,
    /// The sender means exactly this conversation. It is opened if necessary, recipients become participants, and only
    /// sender and recipients may read the turn.
    Open {
        /// The conversation's kind, if it has to be opened.
        kind: String,
    },
    /// Like [`JoinMode::NameOnly`], and the message is sent unrecorded for any reason for which it cannot be recorded.
    PartiesOnly {
        /// The conversation's kind, if it has to be opened.
        kind: String,
    },
    /// Like [`JoinMode::Open`], but the name is a label that every sender may use: recipients become participants only if
    /// the sender may invite, and the message of a sender that takes no part is sent under the name unrecorded.
    NameOnly {
        /// The conversation's kind, if it has to be opened.
        kind: String,
    },
}

impl SendMessage {
    /// A plain text message with defaults for everything else.
    #[must_use]
    pub fn text(to: Vec<Address>, text: impl Into<String>) -> Self {
        Self {
            to,
            cc: Vec::new(),
            bcc: Vec::new(),
            kind: String::new(),
            subject: None,
            body: Body::Text(text.into()),
            priority: Priority::NORMAL,
            ack_required: false,
            expires_at: None,
            correlation: None,
            within: None,
            in_reply_to: None,
            task: None,
            key: None,
            envelope: None,
            meta: None,
            audience: Audience::Parties,
            allow_no_recipients: false,
            pass_over: false,
            not_receiving: Vec::new(),
        }
    }
}

/// The result of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReceipt {
    /// The message as it was accepted.
    pub message: Arc<Message>,
    /// The state of each delivery.
    pub receipts: Vec<Receipt>,
    /// Agents that were named and passed over.
    pub refused: Vec<AgentId>,
    /// The turn that records it.
    pub turn: Option<TurnId>,
    /// Why no turn records it although a conversation was named.
    pub unrecorded: Option<Refusal>,
    /// Whether the message was sent before under the same key.
    pub repeated: bool,
}

/// One recipient of a message, and the state of its delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The recipient.
    pub agent: AgentId,
    /// In which list it was named.
    pub copy: RecipientKind,
    /// Queued, or delivered if a connected recipient has received it.
    pub state: DeliveryState,
}

impl SendMessage {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<SendReceipt> + use<'v>> {
        to.require_member()?;
        let mut sender = Sender::of(to)?;
        let guest = sender.guest.take();
        let planned = match &guest {
            Some(guest) => self.plan(&to.acting_as(guest), &sender),
            None => self.plan(to, &sender),
        };
        let entrance = sender.entrance.take();
        let plan = match (planned, guest.clone()) {
            (Ok(plan), _) => plan,
            // What is recorded is recorded in the guest's name.
            (Err(Stop::Recorded(refusal, record)), Some(guest)) => {
                let record = move |to: &mut Write<'_>| to.acting_as(&guest, record);
                return Err(Stop::Recorded(refusal, Box::new(record)));
            }
            (Err(Stop::Recorded(refusal, record)), None) => {
                let entrances = entrance.into_iter().collect();
                return Err(recipients::record_with(refusal, entrances, record));
            }
            (Err(stop), _) => return Err(stop),
        };
        Ok(move |to: &mut Write<'_>| {
            if let Some(entrance) = entrance {
                entrance.write(to)?;
            }
            match &guest {
                Some(guest) => to.acting_as(guest, |to| self.write(to, plan)),
                None => self.write(to, plan),
            }
        })
    }

    fn plan(&self, to: &Decide<'_>, sender: &Sender) -> Decided<Plan> {
        if !sender.reuses_name()
            && let Some(earlier) = self.earlier(to)?
        {
            return Ok(Plan::Repeated(Box::new(earlier)));
        }
        if let Some(at) = self.expires_at
            && at <= to.clock()
        {
            return Err(Refusal::AlreadyExpired { at }.into());
        }
        if let Some(id) = self.in_reply_to {
            let answered = rows::message_by_id(to.db, id)?;
            match answered {
                Some(answered) if sight::sees_message(to.db, to.caller, &answered)? => {}
                _ => return Err(Refusal::NoSuchMessage.into()),
            }
        }
        let lists = [
            (&self.to[..], RecipientKind::To),
            (&self.cc[..], RecipientKind::Cc),
            (&self.bcc[..], RecipientKind::Bcc),
        ];
        let found = recipients::resolve(to, sender, lists, self.pass_over)?;
        let Found { recipients, mut refused, entrances } = found;
        let unwilling = refused.len();
        let reached: HashSet<&AgentId> = match self.not_receiving.is_empty() {
            true => HashSet::new(),
            false => recipients.iter().map(|recipient| &recipient.agent).collect(),
        };
        for agent in &self.not_receiving {
            if !reached.contains(agent) && !refused.contains(agent) {
                let entering = sender.entrance.iter().chain(&entrances).map(Entrance::agent);
                match entering.into_iter().find(|entering| entering.id == *agent) {
                    Some(entering) if sight::sees_agent(to.db, to.caller, entering)? => {}
                    _ => drop(to.known_agent(agent)?),
                }
                refused.push(agent.clone());
            }
        }
        if recipients.is_empty() && !self.allow_no_recipients {
            return Err(Refusal::NoRecipients.into());
        }
        let place = self.find_place(to, sender, &recipients, &entrances)?;
        Ok(Plan::Send(Box::new(Sending { entrances, recipients, refused, unwilling, place })))
    }

    /// The receipt of an earlier message under the same key.
    fn earlier(&self, to: &Decide<'_>) -> Decided<Option<SendReceipt>> {
        let Some(key) = &self.key else { return Ok(None) };
        let Some((digest, seq)) = message_key(to.db, &to.caller.agent, key)? else { return Ok(None) };
        if digest != self.digest() {
            return Err(Refusal::KeyReused { key: key.clone() }.into());
        }
        let message = rows::message_at(to.db, seq)?.ok_or(Refusal::NoSuchMessage)?;
        let sql = "SELECT agent, recipient_kind, state FROM deliveries WHERE message = ?1 ORDER BY agent";
        let receipts = all(to.db, sql, [seq], |row| {
            Ok(Receipt { agent: row.get(0)?, copy: row.get(1)?, state: row.get(2)? })
        })?;
        let turn = one(
            to.db,
            // A message's turn comes right after the message, so this does not scan the conversation.
            "SELECT id FROM turns INDEXED BY turns_by_conversation WHERE conversation_seq = (SELECT seq FROM conversations WHERE id = ?1) AND seq > ?2 AND message = ?2
             ORDER BY seq LIMIT 1",
            (&message.conversation, seq),
            |row| row.get(0),
        )?;
        let (message, refused) = (Arc::new(message), Vec::new());
        Ok(Some(SendReceipt { message, receipts, refused, turn, unrecorded: None, repeated: true }))
    }

    /// A digest of content and addresses. Times and meta are left out: a retry may differ in them.
    fn digest(&self) -> Vec<u8> {
        let place = self.within.as_ref().map(|within| (&within.conversation, within.thread));
        let content = (
            (&self.to, &self.cc, &self.bcc),
            (&self.kind, &self.subject, &self.body, self.ack_required),
            (&self.correlation, place, self.in_reply_to, &self.task),
        );
        // Plain data without maps or floats: serialising it cannot fail.
        Sha256::digest(serde_json::to_vec(&content).unwrap_or_default()).to_vec()
    }

    fn find_place(
        &self,
        to: &Decide<'_>,
        sender: &Sender,
        recipients: &[Recipient],
        entrances: &[Entrance],
    ) -> Decided<Place> {
        let Some(within) = &self.within else { return Ok(Place::None) };
        let entering = sender.entrance.iter().chain(entrances);
        let new_holders: Vec<AgentId> = entering
            .filter(|entrance| entrance.reuses_name())
            .map(|entrance| entrance.agent().id.clone())
            .collect();
        let open = recipients.iter().filter(|r| r.copy != RecipientKind::Bcc).map(|r| &r.agent);
        let parties =
            turns::Parties { sender: &sender.agent, recipients: open.collect(), new_holders: &new_holders };
        check_reach(to, &parties, recipients, &within.conversation)?;
        let found = turns::find_place(to, &parties, within, self.subject.as_deref());
        match (found, &within.join) {
            (Ok(place), _) => Ok(Place::In(Box::new(place))),
            // The message is sent under the name that it gave, so that a reply can give the same.
            (Err(Stop::Refused(why)), JoinMode::IfAllowed | JoinMode::PartiesOnly { .. }) => {
                Ok(Place::NameOnly(within.conversation.clone(), why))
            }
            // The name is a label that every sender may use, also after another agent has opened the conversation.
            (
                Err(Stop::Refused(
                    why @ (Refusal::NotAParticipant { .. } | Refusal::ParticipantMayNot { .. }),
                )),
                JoinMode::NameOnly { .. },
            ) => Ok(Place::NameOnly(within.conversation.clone(), why)),
            (Err(stop), _) => Err(stop),
        }
    }

    fn write(&self, to: &mut Write<'_>, plan: Plan) -> rusqlite::Result<SendReceipt> {
        let Sending { entrances, recipients, refused, unwilling, place } = match plan {
            Plan::Repeated(earlier) => return Ok(*earlier),
            Plan::Send(sending) => *sending,
        };
        for entrance in entrances {
            entrance.write(to)?;
        }
        let (spot, name, unrecorded) = match place {
            Place::None => (None, None, None),
            Place::NameOnly(name, why) => (None, Some(name), Some(why)),
            Place::In(place) => (Some(place.prepare(to)?), None, None),
        };
        let post = Post {
            recipients: &recipients,
            refused: &refused,
            state: DeliveryState::Queued,
            conversation: spot.as_ref().map(|spot| spot.conversation.id.clone()).or(name),
            thread: spot.as_ref().and_then(|spot| spot.thread),
        };
        let (message, receipts) = self.post(to, &post)?;
        for (index, agent) in refused.iter().enumerate() {
            let why = if index < unwilling {
                "it takes no messages from the sender"
            } else {
                "it gets no messages"
            };
            deliveries::emit_refused(to, agent, why, message.clone())?;
        }
        let turn = match spot {
            Some(spot) => Some(spot.record(to, message.from.clone(), &message)?.id),
            None => None,
        };
        Ok(SendReceipt { message, receipts, refused, turn, unrecorded, repeated: false })
    }

    /// Writes the message, its deliveries and its event.
    fn post(&self, to: &mut Write<'_>, post: &Post<'_>) -> rusqlite::Result<(Arc<Message>, Vec<Receipt>)> {
        let message = self.draft(to.caller, MessageId(to.fresh_id()), to.now);
        let addresses = self.to.iter().chain(&self.cc).chain(&self.bcc);
        let audience = sight::audience_of(to.db, self.audience, addresses)?;
        let (conversation, thread) = (post.conversation.clone(), post.thread);
        let message = Arc::new(Message { seq: to.next_seq(), conversation, thread, audience, ..message });
        to.insert_message(message.clone())?;
        if let Some(key) = &self.key {
            seen_keys::store_message_key(to, &message.from, key, self.digest(), message.seq)?;
        }
        let mut receipts = Vec::with_capacity(post.recipients.len());
        let state = post.state;
        let delivered_at = (state == DeliveryState::Delivered).then_some(to.now);
        for Recipient { agent, copy, peer } in post.recipients {
            to.insert_delivery(NewDelivery {
                message: message.clone(),
                agent: agent.clone(),
                kind: *copy,
                state,
                delivered_at,
            })?;
            if let Some(peer) = peer {
                let sql = "INSERT INTO outbound(peer, message, agent) VALUES(?1, ?2, ?3)";
                to.exec(sql, (peer, message.seq, agent))?;
            }
            receipts.push(Receipt { agent: agent.clone(), copy: *copy, state });
        }
        let parties = post.recipients.iter().map(|r| r.agent.clone()).collect();
        let sight = sight::of_message(to.db, &message, parties)?;
        let open = receipts.iter().filter(|receipt| receipt.copy != RecipientKind::Bcc);
        let passed_over = post.refused.iter().map(|agent| (agent.clone(), DeliveryState::Failed));
        let reached = open.map(|receipt| (receipt.agent.clone(), receipt.state)).chain(passed_over).collect();
        to.emit_sent(message.clone(), reached, sight)?;
        Ok((message, receipts))
    }
}

/// What was decided about a message.
enum Plan {
    /// It was sent before under the same key.
    Repeated(Box<SendReceipt>),
    Send(Box<Sending>),
}

/// A message that is about to be written.
struct Sending {
    entrances: Vec<Entrance>,
    recipients: Vec<Recipient>,
    /// Agents that were named and get nothing: first those that take no messages from the sender.
    refused: Vec<AgentId>,
    unwilling: usize,
    place: Place,
}

/// Where in a conversation a message goes.
enum Place {
    None,
    /// Under its name, but not in it.
    NameOnly(ConversationId, Refusal),
    In(Box<turns::Place>),
}

/// What of a message's rows does not depend on its content.
struct Post<'p> {
    recipients: &'p [Recipient],
    refused: &'p [AgentId],
    state: DeliveryState,
    conversation: Option<ConversationId>,
    thread: Option<ThreadId>,
}

impl SendMessage {
    /// Whether deciding it reads no message that is already there. (Where a reply may need no consent, that is looked up
    /// all the same.)
    pub(crate) fn stands_alone(&self) -> bool {
        self.within.is_none() && self.in_reply_to.is_none() && self.key.is_none()
    }

    /// Whether the message promises nothing beyond this moment, so that it may be delivered before it is stored.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.cc.is_empty()
            && self.bcc.is_empty()
            && !self.ack_required
            && self.expires_at.is_none()
            && self.within.is_none()
            && self.in_reply_to.is_none()
            && self.task.is_none()
            && self.key.is_none()
            && self.envelope.is_none()
            && self.not_receiving.is_empty()
    }

    /// The recipients that an ephemeral message has as the database is now, all of them in this realm. None if the message
    /// would be refused, or if anything besides the message would have to be written.
    pub(crate) fn preview(
        &self,
        view: &View<'_>,
        realm: &RealmName,
        caller: &Caller,
    ) -> Option<Vec<AgentId>> {
        let (stamp, ids, cache) = (Stamp::new(), Cell::new(0), RefCell::default());
        let rules = view.rules().ok()?;
        let to = Decide::preview(view.db, realm, caller, view.now, &rules, (&stamp, &ids, &cache));
        to.require_member().ok()?;
        let sender = Sender::of(&to).ok()?;
        if sender.entrance.is_some() || sender.guest.is_some() {
            return None;
        }
        let lists =
            [(&self.to[..], RecipientKind::To), (&[][..], RecipientKind::Cc), (&[][..], RecipientKind::Bcc)];
        let found = recipients::resolve(&to, &sender, lists, self.pass_over).ok()?;
        if !found.entrances.is_empty() || !found.refused.is_empty() {
            return None;
        }
        found.recipients.into_iter().map(|one| one.peer.is_none().then_some(one.agent)).collect()
    }

    /// Whether it is addressed to a group, or to many agents.
    pub(crate) fn is_broad(&self) -> bool {
        let addresses = || self.to.iter().chain(&self.cc).chain(&self.bcc);
        addresses().nth(super::FEW_NAMES).is_some() || addresses().any(Address::is_group)
    }

    /// The message as it will be stored, without its seq and its place in a conversation.
    pub(crate) fn draft(&self, caller: &Caller, id: MessageId, at: Millis) -> Message {
        Message {
            seq: crate::fast_path::NO_SEQ,
            id,
            from: caller.agent.clone(),
            to: self.to.iter().chain(&self.cc).cloned().collect(),
            kind: self.kind.clone(),
            subject: self.subject.clone(),
            body: self.body.clone(),
            priority: self.priority,
            ack_required: self.ack_required,
            expires_at: self.expires_at,
            correlation: self.correlation.clone(),
            conversation: None,
            thread: None,
            in_reply_to: self.in_reply_to,
            task: self.task.clone(),
            key: self.key.clone(),
            envelope: self.envelope.clone(),
            meta: self.meta.clone(),
            audience: self.audience,
            via: caller.via.clone(),
            at,
        }
    }
}

/// Refuses a message in a run to agents that its sender may not write to there. Participants that are people may be answered.
fn check_reach(
    to: &Decide<'_>,
    parties: &turns::Parties<'_>,
    recipients: &[Recipient],
    task: &TaskId,
) -> Decided<()> {
    let Some(reach) = to.rules.reach.get(&parties.sender.id) else { return Ok(()) };
    if one(to.db, "SELECT 1 FROM runs WHERE task = ?1", [task], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    for agent in recipients.iter().map(|recipient| &recipient.agent).filter(|agent| !reach.contains(*agent)) {
        let part = parties.part_of(to, task, agent)?;
        if part.is_none_or(|part| part.kind == AgentKind::Agent) {
            let need = "a recipient that the sender may write to in this task";
            return Err(Refusal::NotAllowed { need }.into());
        }
    }
    Ok(())
}
