//! Task events: their names, as the reference's clients expect them, and their `extra_data`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::MailMessage;

/// A message was delivered to a recipient.
pub const NEW_MESSAGE: &str = "new_message";
/// An agent called a tool.
pub const TOOL_CALL: &str = "tool_call";
/// An agent completed the task.
pub const TASK_COMPLETE_CALL: &str = "task_complete_call";
/// An agent completed a task that was already complete.
pub const TASK_COMPLETE_DUPLICATE: &str = "task_complete_call_duplicate";
/// An agent waits for a message.
pub const AWAIT_MESSAGE: &str = "await_message";
/// An agent ignored a broadcast.
pub const BROADCAST_IGNORED: &str = "broadcast_ignored";
/// An agent called the help tool.
pub const HELP_CALLED: &str = "help_called";
/// An action starts.
pub const ACTION_CALL: &str = "action_call";
/// An action has finished.
pub const ACTION_COMPLETE: &str = "action_complete";
/// An action cannot be called.
pub const ACTION_ERROR: &str = "action_error";
/// An agent called a breakpoint tool.
pub const BREAKPOINT: &str = "breakpoint_tool_call";
/// The result of a breakpoint tool has arrived.
pub const BREAKPOINT_COMPLETE: &str = "breakpoint_action_complete";
/// The call to an agent failed.
pub const AGENT_ERROR: &str = "agent_error";
/// The task failed. It may be the last event of the stream.
pub const TASK_ERROR: &str = "task_error";
/// The task has ended; the last event of the stream.
pub const TASK_COMPLETE: &str = "task_complete";
/// A message was sent to another swarm.
pub const INTERSWARM_SENT: &str = "interswarm_message_sent";
/// A message arrived from another swarm.
pub const INTERSWARM_RECEIVED: &str = "interswarm_message_received";
/// A message could not be delivered to another swarm.
pub const INTERSWARM_ERROR: &str = "interswarm_message_error";
/// Sent when the stream was idle for a while.
pub const PING: &str = "ping";

/// [`TOOL_CALL`], [`BREAKPOINT`] and [`ACTION_CALL`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCalled {
    /// The tool.
    pub tool_name: String,
    /// Its arguments.
    pub tool_args: Value,
    /// The call's id.
    pub tool_call_id: String,
}

/// [`TASK_COMPLETE_CALL`] and [`TASK_COMPLETE_DUPLICATE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNamed {
    /// The call's id.
    pub tool_call_id: String,
}

/// [`AWAIT_MESSAGE`] and [`BROADCAST_IGNORED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Why, if the agent said so.
    pub reason: Option<String>,
}

/// [`HELP_CALLED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDetails {}

/// [`ACTION_ERROR`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRefused {
    /// The tool.
    pub tool_name: String,
    /// The call's id.
    pub tool_call_id: String,
}

/// [`ACTION_COMPLETE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionEnded {
    /// The action.
    pub tool_name: String,
    /// The call's id.
    pub tool_call_id: String,
    /// The result, with `SUCCESS: ` or `ERROR: ` before it.
    pub result: String,
}

/// [`BREAKPOINT_COMPLETE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointEnded {
    /// The call's id.
    pub tool_call_id: String,
    /// The result.
    pub result: String,
}

/// [`AGENT_ERROR`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFailed {
    /// The agent.
    pub agent: String,
    /// Why it could not be called.
    pub error: String,
}

/// [`TASK_ERROR`], when the server ends a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailed {
    /// Why.
    pub error: String,
}

/// [`INTERSWARM_ERROR`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryFailed {
    /// The swarm that was not reached.
    pub swarm: String,
    /// Why.
    pub error: String,
}

/// [`INTERSWARM_RECEIVED`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterswarmReceived {
    /// The sending swarm.
    pub source_swarm: String,
    /// The message's id there.
    pub message_id: String,
}

/// [`NEW_MESSAGE`] and [`INTERSWARM_SENT`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSent {
    /// The message.
    pub full_message: MailMessage,
    /// For [`INTERSWARM_SENT`]: whether it only tells the other swarm that the task has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<bool>,
}

/// [`TASK_COMPLETE`] and [`TASK_ERROR`] at the end of a turn of the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnded {
    /// The subject of the message that ended it.
    pub subject: String,
}
