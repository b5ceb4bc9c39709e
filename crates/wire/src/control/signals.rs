//! Nudges and hooks beside the mail directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_false;

/// Nudges an agent of the mail directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NudgeParams {
    /// The sender; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The agent.
    pub to: String,
    /// The type of signal: `health_check`, `stall_warning`, `priority_change`, `abort`, `sync_request` or
    /// `nudge_response`.
    #[serde(default = "health_check", rename = "type")]
    pub kind: String,
    /// A text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether the sender requests a response.
    #[serde(default, skip_serializing_if = "is_false")]
    pub requires_response: bool,
}

fn health_check() -> String {
    "health_check".to_owned()
}

/// A nudge that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NudgeResult {
    /// The sender.
    pub from: String,
    /// The type of signal.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    pub message: String,
    /// When it was written.
    pub timestamp: String,
    /// Whether the sender requests a response.
    pub requires_response: bool,
    /// The agent.
    pub to: String,
}

/// What agents of the mail directory are to work on: the caller's own hook, or all for an administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HooksResult {
    /// The hooks.
    pub hooks: Vec<Hook>,
}

/// The work that is assigned to an agent of the mail directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// The agent.
    pub agent: String,
    /// `empty`, `pending`, `active` or `completed`.
    pub status: String,
    /// The id of the work item.
    pub bead_id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// When it was assigned, as the file has it.
    pub assigned_at: Option<String>,
    /// When the agent was last active, as the file has it.
    pub last_activity: Option<String>,
}
