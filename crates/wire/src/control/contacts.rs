//! Contacts: consent between two agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Timestamp;

/// What one agent has decided about another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContactState {
    /// Requested, not answered.
    Pending,
    /// May send messages.
    Accepted,
    /// May neither send nor request.
    Blocked,
}

/// Lists an agent's contacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactsParams {
    /// The agent; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// An agent's contacts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContactsResult {
    /// One entry per direction.
    pub contacts: Vec<Contact>,
}

/// Whether one agent may send to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Contact {
    /// The agent that wants to send.
    pub from: String,
    /// The agent that decides.
    pub to: String,
    /// What was decided.
    pub state: ContactState,
    /// The reason given with the request.
    pub reason: Option<String>,
    /// When the decision expires.
    pub expires_at: Option<Timestamp>,
    /// When it was first requested.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Requests, accepts, blocks or ends a contact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactParams {
    /// The agent that does so; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The other agent.
    pub other: String,
    /// A reason, for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A contact that was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContactEndResult {
    /// The other agent.
    pub ended: String,
}
