//! Agents of the directory: the caller's own identity, entering, listing and removing agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PageSize, Timestamp, TokenRole, is_false};

/// What an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// A program that works.
    Agent,
    /// A person.
    User,
    /// A person who administers the server.
    Admin,
    /// A program that watches and asks.
    Client,
    /// A bridge to another server.
    Gateway,
    /// The server or a part of it.
    System,
}

/// Whose first message an agent accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContactPolicy {
    /// Any sender's.
    Open,
    /// Accepted contacts' only; the first message of another sender is refused and leaves a pending request.
    Contacts,
    /// Accepted contacts' only, and no requests either.
    Closed,
}

/// The caller's own identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoamiResult {
    /// The name on the caller's token.
    pub name: String,
    /// The role of the token.
    pub role: TokenRole,
    /// The realm of the call.
    pub realm: String,
}

/// Enters an agent into the directory, or changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterParams {
    /// The agent's id; the name on the caller's token if neither id nor name is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<AgentKind>,
    /// Its role, by which it can be addressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// An agent's entry in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its id, unique in the realm.
    pub id: String,
    /// What it is.
    pub kind: AgentKind,
    /// Its display name.
    pub name: Option<String>,
    /// Its role, by which it can be addressed.
    pub role: Option<String>,
    /// The agent that made it.
    pub parent: Option<String>,
    /// The caller that registered it and may change it.
    pub owner: Option<String>,
    /// Its state: `active`, `idle`, `suspended`, …
    pub state: String,
    /// The door by which it was registered; null for a mailbox without a holder.
    pub door: Option<String>,
    /// The scopes that it is a member of.
    pub scopes: Vec<String>,
    /// When it was first registered.
    pub created_at: Timestamp,
    /// When its entry last changed.
    pub updated_at: Timestamp,
}

/// An agent that was entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegisterResult {
    /// Its entry.
    #[serde(flatten)]
    pub agent: Agent,
    /// Whether it was in the directory before.
    pub resumed: bool,
}

/// Lists the agents that the caller may see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsParams {
    /// The last agent of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Agents of one page.
    #[serde(default)]
    pub limit: PageSize,
}

/// A page of the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentsResult {
    /// The agents, by id.
    pub agents: Vec<ListedAgent>,
    /// `after` of the next page, if there is one.
    pub next: Option<String>,
}

/// An agent's entry with what is known of its connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedAgent {
    /// Its entry.
    #[serde(flatten)]
    pub agent: Agent,
    /// Whether it is connected, as far as its privacy lets the caller know.
    pub connected: bool,
    /// The doors by which it is connected.
    pub connected_by: Vec<String>,
    /// When it was last heard of.
    pub last_seen: Option<Timestamp>,
}

/// Asks for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentParams {
    /// Its id.
    pub agent: String,
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResult {
    /// Its entry and connection.
    #[serde(flatten)]
    pub listed: ListedAgent,
    /// What it is for, in a sentence.
    pub description: Option<String>,
    /// Whose first message it accepts.
    pub contact_policy: ContactPolicy,
    /// Its unread messages; left out unless the caller may read its mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<i64>,
    /// Messages that were not delivered to it yet; left out unless the caller may read its mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i64>,
}

/// Removes an agent from the directory: for administrators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRemoveParams {
    /// Its id.
    pub agent: String,
    /// Also if it is connected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// An agent that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRemoveResult {
    /// Its id.
    pub agent: String,
    /// Always true.
    pub removed: bool,
    /// Whether it was connected.
    pub was_connected: bool,
    /// Messages that were not delivered to it.
    pub waiting: Option<i64>,
    /// The ids of the valid tokens that carry its name.
    pub tokens: Vec<String>,
}
