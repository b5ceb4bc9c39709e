//! Subjects of system messages, as the reference's clients expect them.

/// A task has ended.
pub const TASK_COMPLETE: &str = "::task_complete::";
/// A task failed.
pub const TASK_ERROR: &str = "::task_error::";
/// A task exceeded its time limit.
pub const TASK_TIMEOUT: &str = "::task_timeout::";
/// A task was cancelled.
pub const CANCELLED: &str = "::run_loop_cancelled::";
/// The call to an agent failed.
pub const AGENT_ERROR: &str = "::agent_error::";
/// A tool was called with invalid arguments.
pub const TOOL_CALL_ERROR: &str = "::tool_call_error::";
/// An action cannot be called.
pub const ACTION_ERROR: &str = "::action_error::";
/// An action has finished.
pub const ACTION_COMPLETE: &str = "::action_complete::";
/// The result of a breakpoint tool has arrived.
pub const ACTION_COMPLETE_BROADCAST: &str = "::action_complete_broadcast::";
/// The recipient does not exist, or the sender may not write to it.
pub const INVALID_RECIPIENT: &str = "::invalid_recipient::";
/// An agent sent a response to a user; it must complete the task instead.
pub const IMPROPER_RESPONSE: &str = "::improper_response_to_user::";
/// The task reached its step limit.
pub const MAXIMUM_STEPS: &str = "::maximum_steps_reached::";
/// The task waits for the result of a breakpoint tool from the user.
pub const BREAKPOINT: &str = "::breakpoint_tool_call::";
/// The output of the help tool.
pub const HELP: &str = "::help::";
/// A message could not be delivered to another swarm.
pub const ROUTER_ERROR: &str = "::router_error::";
