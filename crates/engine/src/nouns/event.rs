//! Events: the lines of a realm's history, and who may read each.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::{
    Agent, AgentId, AgentKind, Caller, ContactState, Conversation, ConversationId, DeliveryState, Json,
    Message, Millis, Participant, Reservation, Scope, ScopeId, Seq, Task, TaskId, TaskStatus, Thread, Turn,
    TurnId,
};

/// What happened. Stored with the event; a snapshot where the thing itself may change later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Fact {
    /// An agent entered the address book.
    #[serde(rename = "agent.registered")]
    AgentRegistered {
        agent: AgentId,
        #[serde(default = "agent")]
        sort: AgentKind,
        name: Option<String>,
        role: Option<String>,
        owner: Option<AgentId>,
        #[serde(default = "registered")]
        state: String,
        /// The whole entry, as far as everybody may know it who may know of the agent. Not told of those who are only there to
        /// be connected, nor in older lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<Box<Agent>>,
    },
    /// An agent's entry changed; `changes` holds the new values of the fields that did.
    #[serde(rename = "agent.updated")]
    AgentUpdated { agent: AgentId, changes: Json },
    /// An agent does something else now.
    #[serde(rename = "agent.state")]
    AgentState { agent: AgentId, previous: String, current: String },
    /// Whoever stood behind an agent is gone, and the agent stays.
    #[serde(rename = "agent.orphaned")]
    AgentOrphaned { agent: AgentId, previous: Option<AgentId> },
    /// An agent left.
    #[serde(rename = "agent.unregistered")]
    AgentUnregistered {
        agent: AgentId,
        #[serde(default = "agent")]
        sort: AgentKind,
        reason: Option<String>,
    },
    /// A letter was accepted; the letter itself is the event's message.
    #[serde(rename = "message.sent")]
    MessageSent,
    /// A letter reached one recipient.
    #[serde(rename = "message.delivered")]
    MessageDelivered { agent: AgentId },
    /// A recipient looked at a letter.
    #[serde(rename = "message.read")]
    MessageRead { agent: AgentId },
    /// A recipient acknowledged a letter.
    #[serde(rename = "message.acked")]
    MessageAcked { agent: AgentId, response: Option<String> },
    /// A letter's time ran out before it was handed to a recipient.
    #[serde(rename = "message.expired")]
    MessageExpired { agent: AgentId },
    /// A letter could not be handed over.
    #[serde(rename = "message.failed")]
    MessageFailed { agent: AgentId, reason: String },
    /// A conversation was opened.
    #[serde(rename = "conversation.created")]
    ConversationCreated { conversation: Box<Conversation> },
    /// A conversation ended.
    #[serde(rename = "conversation.closed")]
    ConversationClosed { conversation: ConversationId, by: AgentId, reason: Option<String> },
    /// A closed conversation goes on.
    #[serde(rename = "conversation.reopened")]
    ConversationReopened { conversation: ConversationId, by: AgentId },
    /// Somebody takes part now.
    #[serde(rename = "participant.joined")]
    ParticipantJoined { participant: Box<Participant> },
    /// Somebody no longer takes part.
    #[serde(rename = "participant.left")]
    ParticipantLeft { conversation: ConversationId, agent: AgentId, reason: Option<String> },
    /// Something was said; the turn itself is the event's turn.
    #[serde(rename = "turn.added")]
    TurnAdded { conversation: ConversationId },
    /// A thread was opened.
    #[serde(rename = "thread.created")]
    ThreadCreated { thread: Box<Thread> },
    /// A summary was made.
    #[serde(rename = "summary.generated")]
    SummaryGenerated { conversation: ConversationId, text: String },
    /// A scope was made.
    #[serde(rename = "scope.created")]
    ScopeCreated { scope: Box<Scope> },
    /// A scope is gone.
    #[serde(rename = "scope.deleted")]
    ScopeDeleted { scope: ScopeId, name: Option<String> },
    /// An agent joined a scope.
    #[serde(rename = "scope.joined")]
    ScopeJoined { scope: ScopeId, agent: AgentId },
    /// An agent left a scope.
    #[serde(rename = "scope.left")]
    ScopeLeft { scope: ScopeId, agent: AgentId },
    /// A task was made.
    #[serde(rename = "task.created")]
    TaskCreated { task: Box<Task> },
    /// A task has someone to do it.
    #[serde(rename = "task.assigned")]
    TaskAssigned { task: TaskId, agent: AgentId },
    /// A task moved on.
    #[serde(rename = "task.status")]
    TaskStatusChanged { task: TaskId, previous: TaskStatus, current: TaskStatus },
    /// A task ended well.
    #[serde(rename = "task.completed")]
    TaskCompleted { task: TaskId, result: Option<Json> },
    /// A reservation was taken.
    #[serde(rename = "reservation.made")]
    ReservationMade { reservation: Box<Reservation> },
    /// A reservation was prolonged.
    #[serde(rename = "reservation.renewed")]
    ReservationRenewed { reservation: Box<Reservation> },
    /// A reservation was given back.
    #[serde(rename = "reservation.released")]
    ReservationReleased { reservation: Box<Reservation> },
    /// A reservation lapsed.
    #[serde(rename = "reservation.expired")]
    ReservationExpired { reservation: Box<Reservation> },
    /// Two reservations overlap.
    #[serde(rename = "reservation.conflict")]
    ReservationConflict {
        asked: Seq,
        asked_by: AgentId,
        held: Seq,
        held_by: AgentId,
        path: String,
        held_path: String,
    },
    /// Two agents stand differently with each other now.
    #[serde(rename = "contact.changed")]
    ContactChanged { from: AgentId, to: AgentId, state: Option<ContactState> },
    /// Something only a door knows of, told in its own words.
    #[serde(rename = "announced")]
    Announced { word: String, data: Json, to: Option<Vec<AgentId>> },
    /// A key to the office was made.
    #[serde(rename = "token.created")]
    TokenCreated { token: String, name: String },
    /// A key to the office no longer works.
    #[serde(rename = "token.revoked")]
    TokenRevoked { token: String },
    /// A neighbour was added or changed.
    #[serde(rename = "peer.changed")]
    PeerChanged { peer: String, reachable: bool },
    /// A neighbour is gone.
    #[serde(rename = "peer.removed")]
    PeerRemoved { peer: String },
    /// The realm's rules changed.
    #[serde(rename = "rules.changed")]
    RulesChanged,
}

/// What older books do not say.
fn agent() -> AgentKind {
    AgentKind::Agent
}

/// The state that agents begin with unless they say otherwise; older lines of history do not tell it.
fn registered() -> String {
    Agent::REGISTERED.to_owned()
}

impl Fact {
    /// The fact's word, by which filters choose it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::AgentRegistered { .. } => "agent.registered",
            Self::AgentUpdated { .. } => "agent.updated",
            Self::AgentState { .. } => "agent.state",
            Self::AgentOrphaned { .. } => "agent.orphaned",
            Self::AgentUnregistered { .. } => "agent.unregistered",
            Self::MessageSent => "message.sent",
            Self::MessageDelivered { .. } => "message.delivered",
            Self::MessageRead { .. } => "message.read",
            Self::MessageAcked { .. } => "message.acked",
            Self::MessageExpired { .. } => "message.expired",
            Self::MessageFailed { .. } => "message.failed",
            Self::ConversationCreated { .. } => "conversation.created",
            Self::ConversationClosed { .. } => "conversation.closed",
            Self::ConversationReopened { .. } => "conversation.reopened",
            Self::ParticipantJoined { .. } => "participant.joined",
            Self::ParticipantLeft { .. } => "participant.left",
            Self::TurnAdded { .. } => "turn.added",
            Self::ThreadCreated { .. } => "thread.created",
            Self::SummaryGenerated { .. } => "summary.generated",
            Self::ScopeCreated { .. } => "scope.created",
            Self::ScopeDeleted { .. } => "scope.deleted",
            Self::ScopeJoined { .. } => "scope.joined",
            Self::ScopeLeft { .. } => "scope.left",
            Self::TaskCreated { .. } => "task.created",
            Self::TaskAssigned { .. } => "task.assigned",
            Self::TaskStatusChanged { .. } => "task.status",
            Self::TaskCompleted { .. } => "task.completed",
            Self::ReservationMade { .. } => "reservation.made",
            Self::ReservationRenewed { .. } => "reservation.renewed",
            Self::ReservationReleased { .. } => "reservation.released",
            Self::ReservationExpired { .. } => "reservation.expired",
            Self::ReservationConflict { .. } => "reservation.conflict",
            Self::ContactChanged { .. } => "contact.changed",
            Self::Announced { .. } => "announced",
            Self::TokenCreated { .. } => "token.created",
            Self::TokenRevoked { .. } => "token.revoked",
            Self::PeerChanged { .. } => "peer.changed",
            Self::PeerRemoved { .. } => "peer.removed",
            Self::RulesChanged => "rules.changed",
        }
    }

    /// The conversation the fact is about, if it is about one.
    #[must_use]
    pub fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::ConversationCreated { conversation } => Some(&conversation.id),
            Self::ConversationClosed { conversation, .. }
            | Self::ConversationReopened { conversation, .. }
            | Self::ParticipantLeft { conversation, .. }
            | Self::TurnAdded { conversation }
            | Self::SummaryGenerated { conversation, .. } => Some(conversation),
            Self::ParticipantJoined { participant } => Some(&participant.conversation),
            Self::ThreadCreated { thread } => Some(&thread.conversation),
            Self::TaskCreated { task } => Some(&task.id),
            Self::TaskAssigned { task, .. }
            | Self::TaskStatusChanged { task, .. }
            | Self::TaskCompleted { task, .. } => Some(task),
            _ => None,
        }
    }

    /// The agent the fact is about, where that is not the one who acted.
    #[must_use]
    pub fn about(&self) -> Option<&AgentId> {
        match self {
            Self::AgentRegistered { agent, .. }
            | Self::AgentUpdated { agent, .. }
            | Self::AgentState { agent, .. }
            | Self::AgentOrphaned { agent, .. }
            | Self::AgentUnregistered { agent, .. }
            | Self::MessageDelivered { agent }
            | Self::MessageRead { agent }
            | Self::MessageAcked { agent, .. }
            | Self::MessageExpired { agent }
            | Self::MessageFailed { agent, .. }
            | Self::ParticipantLeft { agent, .. }
            | Self::ScopeJoined { agent, .. }
            | Self::ScopeLeft { agent, .. }
            | Self::TaskAssigned { agent, .. } => Some(agent),
            Self::ParticipantJoined { participant } => Some(&participant.agent),
            _ => None,
        }
    }
}

/// Who may see an event. Those who run the office always may; strangers never. Lists are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Everybody in the realm.
    Everyone,
    /// These agents.
    Agents(Arc<[AgentId]>),
    /// These agents, and callers that may observe unless they are among the exceptions.
    Observed {
        /// Those it concerns.
        agents: Arc<[AgentId]>,
        /// Those who may not look although they may observe.
        except: Arc<[AgentId]>,
    },
    /// These agents, and those of the members that may observe.
    Among {
        /// Those it concerns.
        agents: Arc<[AgentId]>,
        /// Those who may look if they may observe.
        members: Arc<[AgentId]>,
    },
    /// Only those who run the office.
    Admins,
    /// Too many to list: the books are asked for each listener.
    Ask,
}

impl Sight {
    /// Sorts and shares a list of agents.
    #[must_use]
    pub fn list(mut agents: Vec<AgentId>) -> Arc<[AgentId]> {
        agents.sort_unstable();
        agents.dedup();
        agents.into()
    }

    /// Whether the caller may see it, where that can be told without the books.
    #[must_use]
    pub fn admits(&self, caller: &Caller) -> Option<bool> {
        if caller.rights.admin {
            return Some(true);
        }
        if !caller.rights.member {
            return Some(false);
        }
        let among = |agents: &[AgentId]| agents.binary_search(&caller.agent).is_ok();
        match self {
            Self::Everyone => Some(true),
            Self::Agents(agents) => Some(among(agents)),
            Self::Observed { agents, except } => {
                Some(among(agents) || (caller.rights.observe && !among(except)))
            }
            Self::Among { agents, members } => {
                Some(among(agents) || (caller.rights.observe && among(members)))
            }
            Self::Admins => Some(false),
            Self::Ask => None,
        }
    }
}

/// Somebody whom a letter is for, and how far it has come.
pub type Reached = (AgentId, DeliveryState);

/// How many ways of writing an event down are remembered with it.
pub const RENDER_SLOTS: usize = 8;

/// One line of the realm's history. Shared by everyone who listens.
#[derive(Debug)]
pub struct Event {
    /// Its place; no gaps.
    pub seq: Seq,
    /// When it happened; never earlier than the line before.
    pub at: Millis,
    /// Who caused it.
    pub actor: AgentId,
    /// The earlier event that led to it.
    pub cause: Option<Seq>,
    /// What happened.
    pub fact: Fact,
    /// The letter it is about.
    pub message: Option<Arc<Message>>,
    /// The turn it is about.
    pub turn: Option<Arc<Turn>>,
    /// Who may see it.
    pub sight: Sight,
    /// Of a letter that was sent just now: whom it is for, blind copies left out, and how far it had come. A line that was
    /// read from the books does not know.
    pub reached: Option<Box<[Reached]>>,
    /// Its forms on the wire, each made by the first listener that needs it. The engine does not look inside.
    pub rendered: [OnceLock<Arc<str>>; RENDER_SLOTS],
}

impl Event {
    /// About how many bytes it takes, in memory and in an answer.
    #[must_use]
    pub fn weight(&self) -> usize {
        let message = self.message.as_ref().map_or(0, |message| {
            message.body.as_str().len()
                + message.envelope.as_ref().map_or(0, String::len)
                + message.meta.as_ref().map_or(0, |meta| meta.as_str().len())
        });
        let turn = self.turn.as_ref().map_or(0, |turn| turn.content.as_str().len());
        512 + message + turn
    }

    /// The event as text in one of the doors' forms, made once however many listen.
    pub fn render(&self, slot: usize, make: impl FnOnce(&Self) -> String) -> Arc<str> {
        match self.rendered.get(slot) {
            Some(cell) => cell.get_or_init(|| Arc::from(make(self))).clone(),
            None => Arc::from(make(self)),
        }
    }

    /// Whose doing or whose fate it is: a letter's sender, the agent whose entry changed, else whoever acted.
    #[must_use]
    pub fn source(&self) -> &AgentId {
        match (&self.message, &self.fact) {
            (Some(message), _) => &message.from,
            (
                None,
                Fact::AgentRegistered { agent, .. }
                | Fact::AgentUpdated { agent, .. }
                | Fact::AgentState { agent, .. }
                | Fact::AgentOrphaned { agent, .. }
                | Fact::AgentUnregistered { agent, .. }
                | Fact::ScopeJoined { agent, .. }
                | Fact::ScopeLeft { agent, .. },
            ) => agent,
            _ => &self.actor,
        }
    }

    /// The turn's name, if the event is about one.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        self.turn.as_ref().map(|turn| turn.id)
    }
}
