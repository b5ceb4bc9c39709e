//! Names that the reference's clients look for: subjects of system messages, and events of a task.

/// Subjects of messages that the system sends.
pub mod subjects {
    /// A task has ended.
    pub const TASK_COMPLETE: &str = "::task_complete::";
    /// A task cannot go on.
    pub const TASK_ERROR: &str = "::task_error::";
    /// A task took too long.
    pub const TASK_TIMEOUT: &str = "::task_timeout::";
    /// A task was taken back.
    pub const CANCELLED: &str = "::run_loop_cancelled::";
    /// An agent could not be asked.
    pub const AGENT_ERROR: &str = "::agent_error::";
    /// A tool was called wrongly.
    pub const TOOL_CALL_ERROR: &str = "::tool_call_error::";
    /// An action cannot be called.
    pub const ACTION_ERROR: &str = "::action_error::";
    /// An action has been carried out.
    pub const ACTION_COMPLETE: &str = "::action_complete::";
    /// A breakpoint's result has come.
    pub const ACTION_COMPLETE_BROADCAST: &str = "::action_complete_broadcast::";
    /// There is no such recipient, or it may not be written to.
    pub const INVALID_RECIPIENT: &str = "::invalid_recipient::";
    /// Users are answered by completing the task.
    pub const IMPROPER_RESPONSE: &str = "::improper_response_to_user::";
    /// The limit of steps is reached.
    pub const MAXIMUM_STEPS: &str = "::maximum_steps_reached::";
    /// The task waits for a tool's result from outside.
    pub const BREAKPOINT: &str = "::breakpoint_tool_call::";
    /// What the help tool says.
    pub const HELP: &str = "::help::";
    /// A message did not reach another swarm.
    pub const ROUTER_ERROR: &str = "::router_error::";
}

/// Names of events.
pub mod events {
    /// A message was handed to a recipient.
    pub const NEW_MESSAGE: &str = "new_message";
    /// An agent called a tool.
    pub const TOOL_CALL: &str = "tool_call";
    /// An agent completed the task.
    pub const TASK_COMPLETE_CALL: &str = "task_complete_call";
    /// An agent completed it again.
    pub const TASK_COMPLETE_DUPLICATE: &str = "task_complete_call_duplicate";
    /// An agent waits.
    pub const AWAIT_MESSAGE: &str = "await_message";
    /// An agent ignored a broadcast.
    pub const BROADCAST_IGNORED: &str = "broadcast_ignored";
    /// An agent asked for help.
    pub const HELP_CALLED: &str = "help_called";
    /// An action starts.
    pub const ACTION_CALL: &str = "action_call";
    /// An action has ended.
    pub const ACTION_COMPLETE: &str = "action_complete";
    /// An action cannot be called.
    pub const ACTION_ERROR: &str = "action_error";
    /// A breakpoint tool was called.
    pub const BREAKPOINT: &str = "breakpoint_tool_call";
    /// Its result has come.
    pub const BREAKPOINT_COMPLETE: &str = "breakpoint_action_complete";
    /// An agent could not be asked.
    pub const AGENT_ERROR: &str = "agent_error";
    /// The task failed; also the last event of its stream.
    pub const TASK_ERROR: &str = "task_error";
    /// The task has ended; the last event of a stream.
    pub const TASK_COMPLETE: &str = "task_complete";
    /// A message left for another swarm.
    pub const INTERSWARM_SENT: &str = "interswarm_message_sent";
    /// A message came from another swarm.
    pub const INTERSWARM_RECEIVED: &str = "interswarm_message_received";
    /// A message did not reach another swarm.
    pub const INTERSWARM_ERROR: &str = "interswarm_message_error";
    /// Nothing happened for a while.
    pub const PING: &str = "ping";
}
