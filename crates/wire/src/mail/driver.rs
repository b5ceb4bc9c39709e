//! What programs and web hooks that answer for agents read and write: a turn as one JSON object, the reply as another.
//! Programs get one object per line and give the turn's id back.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::MailMessage;

/// A turn of an agent. Borrows what it can, because the inbox holds all messages of the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRequest<'a> {
    /// The turn's id; 0 for web hooks.
    pub id: u64,
    /// The agent.
    pub agent: Cow<'a, str>,
    /// The swarm.
    pub swarm: Cow<'a, str>,
    /// The swarm's entrypoint.
    pub boss: Cow<'a, str>,
    /// The task.
    pub task_id: Cow<'a, str>,
    /// Whether the agent may end the task.
    pub can_complete_tasks: bool,
    /// The agents that it may write to.
    pub comm_targets: Cow<'a, [String]>,
    /// The protocol's tools that it has.
    pub tools: Vec<Cow<'a, str>>,
    /// The actions that it may call.
    pub actions: Cow<'a, [String]>,
    /// The messages that it received in this task, oldest first; the last is the one to answer, unless `resumed`.
    pub inbox: Vec<Cow<'a, MailMessage>>,
    /// The results of its last actions.
    pub tool_results: Vec<ToolResult<'a>>,
    /// Whether it is called because of a tool's result, without a new message.
    pub resumed: bool,
    /// Whether it has to complete the task now.
    pub must_complete: bool,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult<'a> {
    /// The id of the call.
    pub call_id: Cow<'a, str>,
    /// The result.
    pub content: Cow<'a, str>,
}

/// A program's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedReply {
    /// The turn's id.
    pub id: u64,
    /// The reply.
    #[serde(flatten)]
    pub reply: TurnReply,
}

/// The id in a reply that cannot be parsed as a whole.
#[must_use]
pub fn reply_id(line: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(line).ok()?.get("id")?.as_u64()
}

/// A reply. Unknown fields are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnReply {
    /// The calls that the agent makes.
    #[serde(default)]
    pub calls: Vec<ReplyCall>,
    /// What it says besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why it could not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A call of a tool or an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyCall {
    /// The call's id; made up if absent or empty.
    #[serde(default, alias = "tool_call_id", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The tool.
    #[serde(alias = "tool_name", alias = "name")]
    pub tool: String,
    /// Its arguments: an object, or JSON as text.
    #[serde(default, alias = "tool_args", alias = "arguments")]
    pub args: Value,
}
