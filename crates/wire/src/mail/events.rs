//! Names of task events, as the reference's clients expect them.

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
