//! Events: the entries of a realm's event log, and who may see each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Agent, AgentId, AgentKind, Caller, ContactState, Conversation, ConversationId, DeliveryState, Json,
    Message, Millis, Participant, Reservation, Scope, ScopeId, Seq, Task, TaskId, TaskStatus, Thread, Turn,
    TurnId,
};

/// What happened. Stored with the event; contains a snapshot where the thing itself may change later.
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
        /// The whole entry, as far as it is visible to callers that may see the agent. Not set for agents that exist
        /// only to be connected, nor in older events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<Box<Agent>>,
    },
    /// An agent's entry changed; `changes` holds the new values of the fields that did.
    #[serde(rename = "agent.updated")]
    AgentUpdated { agent: AgentId, changes: Json },
    /// An agent's state changed.
    #[serde(rename = "agent.state")]
    AgentState { agent: AgentId, previous: String, current: String },
    /// An agent's owner or parent is gone, and the agent stays.
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
    /// A message was accepted; it is the event's message.
    #[serde(rename = "message.sent")]
    MessageSent,
    /// A message was delivered to one recipient.
    #[serde(rename = "message.delivered")]
    MessageDelivered { agent: AgentId },
    /// A recipient read a message.
    #[serde(rename = "message.read")]
    MessageRead { agent: AgentId },
    /// A recipient acknowledged a message.
    #[serde(rename = "message.acked")]
    MessageAcked { agent: AgentId, response: Option<String> },
    /// A message expired before it was delivered to a recipient.
    #[serde(rename = "message.expired")]
    MessageExpired { agent: AgentId },
    /// A message could not be delivered.
    #[serde(rename = "message.failed")]
    MessageFailed { agent: AgentId, reason: String },
    /// A conversation was opened.
    #[serde(rename = "conversation.created")]
    ConversationCreated { conversation: Box<Conversation> },
    /// A conversation ended.
    #[serde(rename = "conversation.closed")]
    ConversationClosed { conversation: ConversationId, by: AgentId, reason: Option<String> },
    /// A closed conversation was reopened.
    #[serde(rename = "conversation.reopened")]
    ConversationReopened { conversation: ConversationId, by: AgentId },
    /// An agent became a participant.
    #[serde(rename = "participant.joined")]
    ParticipantJoined { participant: Box<Participant> },
    /// A participant left or was removed.
    #[serde(rename = "participant.left")]
    ParticipantLeft { conversation: ConversationId, agent: AgentId, reason: Option<String> },
    /// A turn was recorded; it is the event's turn.
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
    /// A scope was deleted.
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
    /// A task was assigned to an agent.
    #[serde(rename = "task.assigned")]
    TaskAssigned { task: TaskId, agent: AgentId },
    /// A task's status changed.
    #[serde(rename = "task.status")]
    TaskStatusChanged { task: TaskId, previous: TaskStatus, current: TaskStatus },
    /// A task was completed.
    #[serde(rename = "task.completed")]
    TaskCompleted { task: TaskId, result: Option<Json> },
    /// A reservation was made.
    #[serde(rename = "reservation.made")]
    ReservationMade { reservation: Box<Reservation> },
    /// A reservation was prolonged.
    #[serde(rename = "reservation.renewed")]
    ReservationRenewed { reservation: Box<Reservation> },
    /// A reservation was released.
    #[serde(rename = "reservation.released")]
    ReservationReleased { reservation: Box<Reservation> },
    /// A reservation expired.
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
    /// The contact state between two agents changed.
    #[serde(rename = "contact.changed")]
    ContactChanged { from: AgentId, to: AgentId, state: Option<ContactState> },
    /// An event that only a door interprets, in its own format.
    #[serde(rename = "announced")]
    Announced { word: String, data: Json, to: Option<Vec<AgentId>> },
    /// A token was created.
    #[serde(rename = "token.created")]
    TokenCreated { token: String, name: String },
    /// A token was revoked.
    #[serde(rename = "token.revoked")]
    TokenRevoked { token: String },
    /// A peer was added or changed.
    #[serde(rename = "peer.changed")]
    PeerChanged { peer: String, reachable: bool },
    /// A peer was removed.
    #[serde(rename = "peer.removed")]
    PeerRemoved { peer: String },
    /// The realm's rules changed.
    #[serde(rename = "rules.changed")]
    RulesChanged,
}

/// Default for older events, which do not have the field.
fn agent() -> AgentKind {
    AgentKind::Agent
}

/// The initial state unless the agent gives another one; older events do not have it.
fn registered() -> String {
    Agent::REGISTERED.to_owned()
}

impl Fact {
    /// The kind of the fact, by which filters select it.
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

    /// The conversation that the fact is about, if any.
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

    /// The agent that the fact is about, where that is not the one that acted.
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

/// Who may see an event. Administrators always may; strangers never. Lists are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All members of the realm.
    Everyone,
    /// These agents.
    Agents(Arc<[AgentId]>),
    /// These agents, and callers that may observe unless they are in `except`.
    Observed {
        /// The agents concerned.
        agents: Arc<[AgentId]>,
        /// Agents that may not see it although they may observe.
        except: Arc<[AgentId]>,
    },
    /// These agents, and those of the members that may observe.
    Among {
        /// The agents concerned.
        agents: Arc<[AgentId]>,
        /// Agents that see it if they may observe.
        members: Arc<[AgentId]>,
    },
    /// Administrators only.
    Admins,
    /// Too many to list: the database is queried for each subscriber.
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

    /// Whether the caller may see it; `None` if that needs the database.
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

/// A recipient of a message, and the state of the delivery.
pub type Reached = (AgentId, DeliveryState);

/// One entry of the event log. Shared by all subscribers.
#[derive(Debug)]
pub struct Event {
    /// Its number; without gaps.
    pub seq: Seq,
    /// When it happened; never earlier than the event before.
    pub at: Millis,
    /// The agent that caused it.
    pub actor: AgentId,
    /// The earlier event that led to it.
    pub cause: Option<Seq>,
    /// What happened.
    pub fact: Fact,
    /// The message that it is about.
    pub message: Option<Arc<Message>>,
    /// The turn that it is about.
    pub turn: Option<Arc<Turn>>,
    /// Who may see it.
    pub sight: Sight,
    /// For a message that was just sent: its recipients without blind copies, and the states of their deliveries.
    /// `None` for an event that was read from the database.
    pub reached: Option<Box<[Reached]>>,
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

    /// The agent that the event comes from: a message's sender, the agent whose entry changed, else the actor.
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

    /// The turn's id, if the event is about one.
    #[must_use]
    pub fn turn_id(&self) -> Option<TurnId> {
        self.turn.as_ref().map(|turn| turn.id)
    }
}
