//! What this door stores with agents, messages, turns and tasks, as JSON that only it reads back.

use posthaste_engine::nouns::Json;
use serde::Serialize;
use serde_json::Value;

/// An agent's entry.
#[derive(Serialize)]
pub(super) struct AgentMeta<'a> {
    pub(super) program: &'a str,
    pub(super) model: &'a str,
    pub(super) attachments_policy: &'a str,
    /// Where the agent works, so that the guard of that directory recognises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) directory: Option<String>,
}

/// The member of [`AgentMeta`] that says where the agent works.
pub(super) const DIRECTORY: &str = "directory";

/// The word by which an agent's policy was set, added to its entry.
#[derive(Serialize)]
pub(super) struct PolicyMeta<'a> {
    pub(super) contact_policy: &'a str,
}

/// What a message carries besides its text.
#[derive(Serialize)]
pub(super) struct MessageMeta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<Value>,
}

/// The content of a turn.
#[derive(Serialize)]
pub(super) struct TurnContent<'a> {
    pub(super) text: &'a str,
}

/// The result of a task.
#[derive(Serialize)]
pub(super) struct TaskResult<'a> {
    pub(super) finish_message: &'a str,
}

/// A value as the engine stores it.
pub(super) fn json<T: Serialize>(value: &T) -> Json {
    Json::from_value(&serde_json::to_value(value).unwrap_or_default())
}
