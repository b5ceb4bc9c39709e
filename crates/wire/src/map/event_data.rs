//! What each kind of event says, apart from events about messages and turns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::Agent;
use super::conversation::Participant;
use super::lenient::present;
use super::permissions::PermissionOverrides;
use super::scope::Scope;
use super::task::Task;
use super::turn::Thread;

/// Data of an agent that was registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRegistered<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The participant that owns it.
    #[serde(borrow)]
    pub owner_id: Option<Cow<'a, str>>,
    /// Its entry.
    #[serde(borrow)]
    pub agent: AgentEntry<'a>,
    /// Its display name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// Its role.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
}

/// The entry of a registered agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentEntry<'a> {
    /// The whole entry.
    Full(Box<Agent>),
    /// What old events store of it.
    Short(#[serde(borrow)] AgentStub<'a>),
}

/// The entry of an agent in an old event, which stores only these members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStub<'a> {
    /// The agent.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The participant that owns it.
    #[serde(borrow)]
    pub owner_id: Option<Cow<'a, str>>,
    /// Its state.
    #[serde(borrow)]
    pub state: Cow<'a, str>,
    /// Its display name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// Its role.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
}

/// Data of an agent whose owner or parent is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentOrphaned<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The owner before.
    #[serde(borrow)]
    pub previous_owner: Option<Cow<'a, str>>,
}

/// Data of an agent that left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentUnregistered<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// Data of an agent whose state changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// Its state before.
    #[serde(borrow)]
    pub previous_state: Cow<'a, str>,
    /// Its state now.
    #[serde(borrow)]
    pub new_state: Cow<'a, str>,
}

/// Data of an agent whose permissions changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPermissions<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The overrides that changed.
    pub changes: PermissionOverrides,
    /// All overrides in force.
    pub effective_permissions: PermissionOverrides,
    /// The agent that changed them.
    #[serde(borrow)]
    pub updated_by: Cow<'a, str>,
}

/// Data of an agent whose entry changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentUpdated<'a> {
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// New values of the members that changed.
    pub changes: Map<String, Value>,
    /// The agent that changed them.
    #[serde(borrow)]
    pub updated_by: Cow<'a, str>,
}

/// Data of a conversation that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationCreated<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// Its purpose.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The agent that opened it.
    #[serde(borrow)]
    pub created_by: Cow<'a, str>,
    /// Its subject.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Cow<'a, str>>,
}

/// Data of a conversation that was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationClosed<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The agent that closed it.
    #[serde(borrow)]
    pub closed_by: Cow<'a, str>,
    /// Why.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

/// Data of a conversation that was reopened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationReopened<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The agent that reopened it.
    #[serde(borrow)]
    pub reopened_by: Cow<'a, str>,
}

/// Data of a participant that joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantJoined<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The participant.
    pub participant: Participant,
}

/// Data of a participant that left or was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantLeft<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The participant.
    #[serde(borrow)]
    pub participant_id: Cow<'a, str>,
    /// Why.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

/// Data of a thread that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadCreated<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The thread.
    pub thread: Thread,
}

/// Data of a summary that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryGenerated<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// Its text.
    #[serde(borrow)]
    pub summary: Cow<'a, str>,
}

/// Data of a scope that was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeCreated<'a> {
    /// The scope.
    #[serde(borrow)]
    pub scope_id: Cow<'a, str>,
    /// Its entry.
    pub scope: Scope,
    /// Its display name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
}

/// Data of a scope that was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeDeleted<'a> {
    /// The scope.
    #[serde(borrow)]
    pub scope_id: Cow<'a, str>,
    /// Its display name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
}

/// Data of an agent that joined or left a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeMember<'a> {
    /// The scope.
    #[serde(borrow)]
    pub scope_id: Cow<'a, str>,
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
}

/// Data of a task that was created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCreated<'a> {
    /// The task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// Its entry.
    pub task: Task,
}

/// Data of a task that was assigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAssigned<'a> {
    /// The task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// The agent.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
}

/// Data of a task whose status changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus<'a> {
    /// The task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// Its status before.
    #[serde(borrow)]
    pub previous: Cow<'a, str>,
    /// Its status now.
    #[serde(borrow)]
    pub current: Cow<'a, str>,
}

/// Data of a task that was completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskCompleted<'a> {
    /// The task.
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub result: Option<Value>,
}

/// Data of the event that says that a subscription skipped events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverflowData<'a> {
    /// Number of events.
    pub events_dropped: u64,
    /// The first of them.
    #[serde(borrow)]
    pub oldest_dropped: Cow<'a, str>,
    /// The last of them.
    #[serde(borrow)]
    pub newest_dropped: Cow<'a, str>,
    /// Always `reduce_filter_scope`.
    #[serde(borrow)]
    pub recommendation: Cow<'a, str>,
}

/// Data of the heartbeat that a subscription may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatData {
    /// The server's clock, in Unix milliseconds.
    pub server_time: i64,
}

/// Data of the event that says how full the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityData {
    /// Number of registered agents.
    pub agents: i64,
    /// Maximum number of recipients of a message.
    pub max_agents: u32,
}
