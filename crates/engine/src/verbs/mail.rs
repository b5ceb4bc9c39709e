//! Sending: the verb that every door has.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::recipients::{self, Found, Recipient};
use super::{Decide, Decided, Stop, Write, agents, deliveries, turns};
use crate::commit::NewDelivery;
use crate::error::Refusal;
use crate::nouns::{
    Address, Agent, AgentId, AgentKind, Audience, Body, Caller, ContactPolicy, ConversationId, DeliveryState,
    Fact, Json, Message, MessageId, Millis, Priority, Privacy, RealmName, RecipientKind, TaskId, ThreadId,
    Turn, TurnId, TurnVisibility, Visibility,
};
use crate::sight;
use crate::store::{all, one, rows};
use crate::views::View;

/// Sends a letter from the caller to everyone the addresses reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendMessage {
    /// Whom it is for.
    pub to: Vec<Address>,
    /// Who gets a copy, for all to see.
    #[serde(default)]
    pub cc: Vec<Address>,
    /// Who gets a copy that nobody else sees.
    #[serde(default)]
    pub bcc: Vec<Address>,
    /// What kind of letter it is; empty for plain mail.
    #[serde(default)]
    pub kind: String,
    /// Its heading.
    #[serde(default)]
    pub subject: Option<String>,
    /// What it says.
    pub body: Body,
    /// How pressing it is.
    pub priority: Priority,
    /// Whether each recipient is asked to acknowledge it.
    #[serde(default)]
    pub ack_required: bool,
    /// When it stops being worth delivering.
    #[serde(default)]
    pub expires_at: Option<Millis>,
    /// Ties a question and its answers together.
    #[serde(default)]
    pub correlation: Option<String>,
    /// The conversation it is part of.
    #[serde(default)]
    pub within: Option<ConversationRef>,
    /// The letter it answers.
    #[serde(default)]
    pub in_reply_to: Option<MessageId>,
    /// The task it serves.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// The sender's own name for it: the same content under the same key is sent once.
    #[serde(default)]
    pub key: Option<String>,
    /// A signed envelope, kept verbatim.
    #[serde(default)]
    pub envelope: Option<String>,
    /// What a door cannot express otherwise.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Who may look at it besides sender and recipients.
    pub audience: Audience,
    /// Whether a group that is empty is fine. A letter to nobody is a mistake otherwise.
    #[serde(default)]
    pub to_nobody: bool,
    /// Whether those who are named and take no letters from the sender are passed over, as long as somebody is reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pass_over: bool,
    /// Those who are named besides and get no letters at present, as the door knows: how it fared with them is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_receiving: Vec<AgentId>,
    /// Those who have it already: it was handed to them before it came here, and is for nobody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<AgentId>,
}

/// A letter's place in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationRef {
    /// Which conversation.
    pub conversation: ConversationId,
    /// Which thread of it.
    #[serde(default)]
    pub thread: Option<ThreadId>,
    /// Which turn it answers.
    #[serde(default)]
    pub reply_to: Option<TurnId>,
    /// Who may read the turn.
    #[serde(default)]
    pub visibility: Option<TurnVisibility>,
    /// What happens if the conversation is not there, or the sender has no part in it.
    pub join: JoinMode,
}

/// How a letter gets into its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinMode {
    /// It is recorded if the ordinary rules allow it; the letter goes out under the conversation's name in any case.
    IfAllowed,
    /// The sender means this very conversation. It is opened if need be, recipients take part from then on, and the turn
    /// is for the eyes of sender and recipients only.
    Open {
        /// What the conversation is for, if it has to be opened.
        kind: String,
    },
    /// Like [`JoinMode::NameOnly`], and the letter goes out unrecorded for whatever reason it may not be recorded.
    PartiesOnly {
        /// What the conversation is for, if it has to be opened.
        kind: String,
    },
    /// Like [`JoinMode::Open`], but the name is a label that every sender may use: recipients take part only if the sender
    /// may invite, and a sender without a part in the conversation sends its letter under the name unrecorded.
    NameOnly {
        /// What the conversation is for, if it has to be opened.
        kind: String,
    },
}

impl SendMessage {
    /// A plain letter in prose; everything else as usual.
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
            to_nobody: false,
            pass_over: false,
            not_receiving: Vec::new(),
            handed: Vec::new(),
        }
    }
}

/// What sending gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReceipt {
    /// The letter as it was accepted.
    pub message: Arc<Message>,
    /// How it stands with each recipient.
    pub receipts: Vec<Receipt>,
    /// Those who were named and passed over.
    pub refused: Vec<AgentId>,
    /// The turn that was recorded for it.
    pub turn: Option<TurnId>,
    /// Why no turn was recorded although a conversation was named.
    pub unrecorded: Option<Refusal>,
    /// Whether this is the answer to an earlier sending under the same key.
    pub repeated: bool,
}

/// One recipient of a letter, and how far the letter has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Who.
    pub agent: AgentId,
    /// In which way it was named.
    pub copy: RecipientKind,
    /// Queued, or delivered when a connected recipient has it in hand.
    pub state: DeliveryState,
}

impl SendMessage {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<SendReceipt> {
        to.require_member()?;
        if !self.handed.is_empty() {
            return self.note_handed(to);
        }
        let sender = sender(to)?;
        if is_guest(to, &sender.id)? {
            // Carried in by the server, but with the sight and the consent of a stranger to this realm.
            let guest = Caller::member(sender.id.clone(), &to.caller.via);
            return to.acting_as(&guest, |to| self.send(to, &sender));
        }
        self.send(to, &sender)
    }

    fn send(&self, to: &mut Write<'_>, sender: &Agent) -> Decided<SendReceipt> {
        if let Some(earlier) = self.earlier(to)? {
            return Ok(earlier);
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
        let Found { recipients, mut refused } = recipients::resolve(to, sender, lists, self.pass_over)?;
        let unwilling = refused.len();
        let reached: HashSet<&AgentId> = match self.not_receiving.is_empty() {
            true => HashSet::new(),
            false => recipients.iter().map(|recipient| &recipient.agent).collect(),
        };
        for agent in &self.not_receiving {
            if !reached.contains(agent) && !refused.contains(agent) {
                refused.push(to.known_agent(agent)?.id);
            }
        }
        if recipients.is_empty() && !self.to_nobody {
            return Err(Refusal::NoRecipients.into());
        }
        // A gathering conversation may refuse (closed, not ours to enter), so it comes before the first row.
        let place = self.place(to, sender, &recipients)?;
        let (message, receipts) = self.post(to, &recipients, &refused, &place)?;
        for (index, agent) in refused.iter().enumerate() {
            let why =
                if index < unwilling { "it takes no letters from the sender" } else { "it gets no letters" };
            deliveries::tell_refused(to, agent, why, message.clone())?;
        }
        let (turn, unrecorded) = match place {
            Place::None => (None, None),
            Place::Labelled(_, why) => (None, Some(why)),
            Place::In(spot) => (Some(spot.record(to, sender.id.clone(), &message)?), None),
        };
        let turn = turn.map(|turn: Turn| turn.id);
        Ok(SendReceipt { message, receipts, refused, turn, unrecorded, repeated: false })
    }

    /// Writes down a letter that its recipients have had since before it came here, whatever has changed meanwhile.
    fn note_handed(&self, to: &mut Write<'_>) -> Decided<SendReceipt> {
        let recipients: Vec<Recipient> = self
            .handed
            .iter()
            .map(|agent| Recipient { agent: agent.clone(), copy: RecipientKind::To, peer: None })
            .collect();
        let (message, receipts) = self.post(to, &recipients, &[], &Place::None)?;
        for receipt in &receipts {
            let fact = Fact::MessageDelivered { agent: receipt.agent.clone() };
            deliveries::tell_openly(to, fact, message.clone())?;
        }
        Ok(SendReceipt {
            message,
            receipts,
            refused: Vec::new(),
            turn: None,
            unrecorded: None,
            repeated: false,
        })
    }

    /// The answer to an earlier sending under the same key.
    fn earlier(&self, to: &Write<'_>) -> Decided<Option<SendReceipt>> {
        let Some(key) = &self.key else { return Ok(None) };
        let sql = "SELECT digest, message FROM message_keys WHERE sender = ?1 AND key = ?2";
        let found =
            one(to.db, sql, (&to.caller.agent, key), |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)))?;
        let Some((digest, seq)) = found else { return Ok(None) };
        if digest != self.digest() {
            return Err(Refusal::KeyReused { key: key.clone() }.into());
        }
        let message = rows::message_at(to.db, seq)?.ok_or(Refusal::NoSuchMessage)?;
        let sql = "SELECT agent, copy, state FROM deliveries WHERE message = ?1 ORDER BY agent";
        let receipts = all(to.db, sql, [seq], |row| {
            Ok(Receipt { agent: row.get(0)?, copy: row.get(1)?, state: row.get(2)? })
        })?;
        let turn = one(
            to.db,
            // A letter's turn comes right after the letter, so this does not walk the conversation.
            "SELECT id FROM turns INDEXED BY turns_by_conversation WHERE talk = (SELECT seq FROM conversations WHERE id = ?1) AND seq > ?2 AND message = ?2
             ORDER BY seq LIMIT 1",
            (&message.conversation, seq),
            |row| row.get(0),
        )?;
        let (message, refused) = (Arc::new(message), Vec::new());
        Ok(Some(SendReceipt { message, receipts, refused, turn, unrecorded: None, repeated: true }))
    }

    /// A fingerprint of what the letter says and to whom. Times and meta are left out: a retry may differ in them.
    fn digest(&self) -> Vec<u8> {
        let place = self.within.as_ref().map(|within| (&within.conversation, within.thread));
        let content = (
            (&self.to, &self.cc, &self.bcc),
            (&self.kind, &self.subject, &self.body, self.ack_required),
            (&self.correlation, place, self.in_reply_to, &self.task),
        );
        // Plain data without maps or floats: writing it as JSON cannot fail.
        Sha256::digest(serde_json::to_vec(&content).unwrap_or_default()).to_vec()
    }

    fn place(&self, to: &mut Write<'_>, sender: &Agent, recipients: &[Recipient]) -> Decided<Place> {
        let Some(within) = &self.within else { return Ok(Place::None) };
        check_reach(to, sender, recipients, within)?;
        let open = recipients.iter().filter(|r| r.copy != RecipientKind::Bcc).map(|r| &r.agent);
        let parties = turns::Parties { sender, recipients: open.collect(), new_holders: &[] };
        let spot = turns::find_place(to, &parties, within, self.subject.as_deref());
        match (spot, &within.join) {
            (Ok(place), _) => Ok(Place::In(Box::new(place.prepare(to)?))),
            // The letter goes out under the name that it gave, so that whoever answers it can give the same.
            (Err(Stop::Refused(why)), JoinMode::IfAllowed | JoinMode::PartiesOnly { .. }) => {
                Ok(Place::Labelled(within.conversation.clone(), why))
            }
            // The name is a label that every sender may use, also after another agent has taken it.
            (
                Err(Stop::Refused(
                    why @ (Refusal::NotAParticipant { .. } | Refusal::ParticipantMayNot { .. }),
                )),
                JoinMode::NameOnly { .. },
            ) => Ok(Place::Labelled(within.conversation.clone(), why)),
            (Err(halt), _) => Err(halt),
        }
    }

    fn post(
        &self,
        to: &mut Write<'_>,
        recipients: &[Recipient],
        refused: &[AgentId],
        place: &Place,
    ) -> Decided<(Arc<Message>, Vec<Receipt>)> {
        let (conversation, thread) = match place {
            Place::In(spot) => (Some(spot.conversation.id.clone()), spot.thread),
            Place::Labelled(conversation, _) => (Some(conversation.clone()), None),
            Place::None => (None, None),
        };
        let message = self.letter(to.caller, MessageId(to.fresh_id()), to.now);
        let addresses = self.to.iter().chain(&self.cc).chain(&self.bcc);
        let audience = sight::audience_of(to.db, self.audience, addresses)?;
        let message = Arc::new(Message { seq: to.next_seq(), conversation, thread, audience, ..message });
        insert(to, &message)?;
        if let Some(key) = &self.key {
            let sql = "INSERT INTO message_keys(sender, key, digest, message) VALUES(?1, ?2, ?3, ?4)";
            to.exec(sql, (&message.from, key, self.digest(), message.seq))?;
        }
        let mut receipts = Vec::with_capacity(recipients.len());
        let (state, delivered_at) = match self.handed.is_empty() {
            true => (DeliveryState::Queued, None),
            false => (DeliveryState::Delivered, Some(to.now)),
        };
        for Recipient { agent, copy, peer } in recipients {
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
        let parties = recipients.iter().map(|r| r.agent.clone()).collect();
        let sight = sight::of_message(to.db, &message, parties)?;
        let open = receipts.iter().filter(|receipt| receipt.copy != RecipientKind::Bcc);
        let passed_over = refused.iter().map(|agent| (agent.clone(), DeliveryState::Failed));
        let reached = open.map(|receipt| (receipt.agent.clone(), receipt.state)).chain(passed_over).collect();
        to.emit_sent(message.clone(), reached, sight)?;
        Ok((message, receipts))
    }
}

impl SendMessage {
    /// Whether applying it looks at no letter that is already there. (Whether somebody may answer is looked up where it
    /// has to be.)
    pub(crate) fn stands_alone(&self) -> bool {
        self.within.is_none() && self.in_reply_to.is_none() && self.key.is_none()
    }
}

/// What the fast lane asks of the verb before it is applied.
impl SendMessage {
    /// Whether the letter promises nothing beyond this moment, so that it may be handed over before it is written down.
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
            && self.handed.is_empty()
    }

    /// Whom the letter reaches as the books stand, all of them here; nothing if it would be refused or something would
    /// have to be written.
    pub(crate) fn preview(
        &self,
        view: &View<'_>,
        realm: &RealmName,
        caller: &Caller,
    ) -> Option<Vec<AgentId>> {
        // TRANSITION: until sender() and recipients::resolve() take &Decide. Then:
        // let (stamp, ids, cache) = (Stamp::new(), Cell::new(0), RefCell::default());
        // let rules = view.rules().ok()?;
        // let to = Decide::preview(view.db, realm, caller, view.now, &rules, (&stamp, &ids, &cache));
        // and the sender's and recipients' own rules; None where something would have to be written.
        let _ = (view, realm, caller);
        None
    }

    /// Whether it goes to a group, or to many.
    pub(crate) fn is_broad(&self) -> bool {
        let addresses = || self.to.iter().chain(&self.cc).chain(&self.bcc);
        addresses().nth(super::FEW_NAMES).is_some()
            || addresses().any(|address| match address {
                Address::Agent(_) | Address::Remote { .. } | Address::Parent => false,
                Address::Scope(_)
                | Address::Role { .. }
                | Address::Children { .. }
                | Address::Siblings
                | Address::Ancestors { .. }
                | Address::Descendants { .. }
                | Address::Kind(_)
                | Address::All
                | Address::Contacts
                | Address::Public => true,
            })
    }

    /// The letter as it will be written down, but for its place in the history and in a conversation.
    pub(crate) fn letter(&self, caller: &Caller, id: MessageId, at: Millis) -> Message {
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

/// Where in a conversation a letter goes.
enum Place {
    None,
    /// Under its name, but not in it.
    Labelled(ConversationId, Refusal),
    In(Box<turns::Spot>),
}

fn sender(to: &mut Write<'_>) -> Decided<Agent> {
    let id = &to.caller.agent;
    // The office, and agents of neighbours whose letters it carries in, have no entry in the address book.
    if to.caller.rights.admin && id.is_office() {
        return Ok(stand_in(id));
    }
    if is_guest(to, id)? {
        // It takes answers to what it wrote, and is otherwise an agent like any other.
        let (kind, contact_policy) = (AgentKind::Agent, ContactPolicy::Open);
        return Ok(Agent { kind, contact_policy, ..stand_in(id) });
    }
    // An administrator writes under any name; one that is new is entered with its first message, or not at all.
    let entered = match to.caller.rights.admin && rows::active_agent(to.db, id)?.is_none() {
        true => agents::enter_sender(to, id)?.map(|entrance| entrance.write(to)).transpose()?,
        false => None,
    };
    let sender = entered.map_or_else(|| to.acting_agent(), Ok)?;
    if sender.is_suspended() {
        return Err(Refusal::WrongState { agent: sender.id, state: sender.state }.into());
    }
    Ok(sender)
}

/// Whether the server carries in what a neighbour's agent wrote.
fn is_guest(to: &Write<'_>, id: &AgentId) -> rusqlite::Result<bool> {
    Ok(to.caller.rights.admin && is_foreign(to, id)?)
}

/// Whether a name is that of a neighbour's agent.
pub(super) fn is_foreign(to: &Decide<'_>, id: &AgentId) -> rusqlite::Result<bool> {
    let Some((_, realm)) = id.as_str().rsplit_once('@') else { return Ok(false) };
    Ok(one(to.db, "SELECT 1 FROM peers WHERE name = ?1", [realm], |_| Ok(()))?.is_some())
}

/// A sender without an entry in the address book.
fn stand_in(id: &AgentId) -> Agent {
    Agent {
        id: id.clone(),
        kind: AgentKind::System,
        name: None,
        description: None,
        role: None,
        parent: None,
        owner: None,
        state: Agent::IDLE.to_owned(),
        visibility: Visibility::Public,
        contact_policy: ContactPolicy::Closed,
        privacy: Privacy::Public,
        keys: None,
        capabilities: None,
        bounds: None,
        meta: None,
        via: String::new(),
        scopes: Vec::new(),
        created_at: 0,
        updated_at: 0,
        retired_at: None,
        born: 0,
    }
}

/// Refuses a letter that belongs to a run and is for somebody whom its sender may not write to there. People who take
/// part may be answered.
fn check_reach(
    to: &Write<'_>,
    sender: &Agent,
    recipients: &[Recipient],
    within: &ConversationRef,
) -> Decided<()> {
    let Some(reach) = to.rules.reach.get(&sender.id) else { return Ok(()) };
    let task = &within.conversation;
    if one(to.db, "SELECT 1 FROM runs WHERE task = ?1", [task], |_| Ok(()))?.is_none() {
        return Ok(());
    }
    for agent in recipients.iter().map(|recipient| &recipient.agent).filter(|agent| !reach.contains(*agent)) {
        let part = rows::participant_of(to.db, task, agent)?;
        if part.is_none_or(|part| part.kind == AgentKind::Agent) {
            let need = "a recipient that the sender may write to in this task";
            return Err(Refusal::NotAllowed { need }.into());
        }
    }
    Ok(())
}

/// Writes a letter's own row.
pub(super) fn insert(to: &mut Write<'_>, letter: &Arc<Message>) -> rusqlite::Result<()> {
    to.insert_message(letter.clone())
}
