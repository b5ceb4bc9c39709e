//! Events: the notification `map/event`, its envelope, and what an event says.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use super::event_data::*;
use super::message::{Message, Receipt};
use super::turn::Turn;

/// The params of `map/event`: one event for one subscription. `E` is the [`Event`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventParams<'a, E = Box<RawValue>> {
    /// The subscription.
    #[serde(borrow)]
    pub subscription_id: Cow<'a, str>,
    /// Number of the event in the subscription, starting at 1, without gaps.
    pub sequence_number: u64,
    /// The same number, under the draft's name.
    pub sequence: u64,
    /// The id of the event.
    #[serde(borrow)]
    pub event_id: Cow<'a, str>,
    /// When it happened, in Unix milliseconds.
    pub timestamp: i64,
    /// The id of the event that led to it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<[Cow<'a, str>; 1]>,
    /// The event.
    pub event: E,
}

/// One event in the result of `map/replay`. `E` is the [`Event`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedEvent<'a, E = Box<RawValue>> {
    /// The id of the event.
    #[serde(borrow)]
    pub event_id: Cow<'a, str>,
    /// When it happened, in Unix milliseconds.
    pub timestamp: i64,
    /// The id of the event that led to it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<[Cow<'a, str>; 1]>,
    /// The event.
    pub event: E,
}

/// The params of ACP's `session/update` that carries an event. `E` is the [`EventParams`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate<'a, E> {
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The update.
    #[serde(borrow)]
    pub update: EventUpdate<'a, E>,
}

/// An event as an update of an ACP session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventUpdate<'a, E> {
    /// Always `_map/event`.
    #[serde(borrow)]
    pub session_update: Cow<'a, str>,
    /// The event.
    pub event: E,
}

/// An event. `D` is its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event<'a, D = Box<RawValue>> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Its type.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// When it happened, in Unix milliseconds.
    pub timestamp: i64,
    /// The agent that it comes from, or `posthaste`.
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    /// The members that the draft has on the event itself.
    #[serde(borrow, flatten)]
    pub members: Option<DraftMembers<'a>>,
    /// What it says.
    pub data: D,
    /// The id of the event that led to it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<[Cow<'a, str>; 1]>,
}

/// The members that the draft has on the event itself. Reading yields `Other` for every event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DraftMembers<'a> {
    /// Of a message that was sent.
    #[serde(skip_deserializing)]
    Sent {
        /// The message.
        envelope: Message<'a>,
        /// The state of its deliveries.
        receipts: Vec<Receipt<'a>>,
    },
    /// Of a message that was delivered, acknowledged, expired or given up.
    #[serde(skip_deserializing, rename_all = "camelCase")]
    Outcome {
        /// The message.
        message_id: String,
        /// The recipient.
        agent_id: Cow<'a, str>,
        /// Why it was not delivered.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<OutcomeError<'a>>,
    },
    /// Of an agent whose state changed.
    #[serde(skip_deserializing, rename_all = "camelCase")]
    State {
        /// The agent.
        agent_id: Cow<'a, str>,
        /// Its state before.
        previous: Cow<'a, str>,
        /// Its state now.
        current: Cow<'a, str>,
    },
    /// Of a turn that was recorded.
    #[serde(skip_deserializing)]
    Turn(TurnData<'a>),
    /// The members of the data that are not [reserved](DraftMembers::RESERVED).
    Other(Map<String, Value>),
}

impl DraftMembers<'_> {
    /// Members that every event has, so that those of its data with the same name stay in the data.
    pub const RESERVED: [&'static str; 6] = ["id", "type", "timestamp", "source", "data", "causedBy"];
}

/// Why a message was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeError<'a> {
    /// The error code.
    pub code: i64,
    /// A description.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// What an event says.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is described at its struct")]
pub enum EventData<'a> {
    Message(MessageData<'a>),
    Turn(TurnData<'a>),
    AgentRegistered(AgentRegistered<'a>),
    AgentOrphaned(AgentOrphaned<'a>),
    AgentUnregistered(AgentUnregistered<'a>),
    AgentState(AgentState<'a>),
    AgentPermissions(AgentPermissions<'a>),
    AgentUpdated(AgentUpdated<'a>),
    ConversationCreated(ConversationCreated<'a>),
    ConversationClosed(ConversationClosed<'a>),
    ConversationReopened(ConversationReopened<'a>),
    ParticipantJoined(ParticipantJoined<'a>),
    ParticipantLeft(ParticipantLeft<'a>),
    ThreadCreated(ThreadCreated<'a>),
    SummaryGenerated(SummaryGenerated<'a>),
    ScopeCreated(ScopeCreated<'a>),
    ScopeDeleted(ScopeDeleted<'a>),
    ScopeMember(ScopeMember<'a>),
    TaskCreated(TaskCreated<'a>),
    TaskAssigned(TaskAssigned<'a>),
    TaskStatus(TaskStatus<'a>),
    TaskCompleted(TaskCompleted<'a>),
    /// An event of another kind.
    Other(Value),
}

/// Data of events about a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageData<'a> {
    /// The message.
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    /// Its sender.
    #[serde(borrow)]
    pub from: Cow<'a, str>,
    /// The recipient, of a message that was delivered or acknowledged.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub delivered_to: Option<[Cow<'a, str>; 1]>,
    /// The same recipient.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// The address of a message that was sent; the recipient of one that expired or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Cow<'a, RawValue>>,
    /// Why it was not delivered.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// When it was sent, in Unix milliseconds.
    pub timestamp: i64,
    /// Its priority.
    #[serde(borrow)]
    pub priority: Cow<'a, str>,
    /// Its correlation id.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// Its payload.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::lenient::present")]
    pub payload: Option<Cow<'a, RawValue>>,
    /// The whole message.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message<'a>>,
}

/// Data of a turn that was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnData<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The turn.
    #[serde(borrow)]
    pub turn: Turn<'a>,
}
