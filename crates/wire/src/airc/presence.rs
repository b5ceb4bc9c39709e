//! Presence: heartbeats and lists of agents that sent one lately.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// `POST /presence`, as this program's client sends it; other clients use further names for its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatRequest {
    /// The status shown to others.
    pub status: Cow<'static, str>,
    /// `public`, `contacts` or `invisible`.
    pub privacy: Cow<'static, str>,
}

/// A heartbeat was noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatAnswer {
    /// Always true.
    pub success: bool,
    /// The handle.
    pub handle: String,
    /// The handle.
    pub username: String,
    /// The privacy tier.
    pub privacy: Cow<'static, str>,
    /// When the heartbeat came.
    pub last_seen: String,
    /// Until when it counts.
    pub expires_at: String,
}

/// An agent's presence was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveAnswer {
    /// Always true.
    pub success: bool,
    /// The handle.
    pub username: String,
}

/// `GET /presence`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PresenceList {
    /// Always true.
    pub success: bool,
    /// How many agents there are.
    pub counts: PresenceCounts,
    /// Agents that are not away.
    pub active: Vec<PresenceEntry>,
    /// Agents that are away.
    pub away: Vec<PresenceEntry>,
    /// Both.
    pub users: Vec<PresenceEntry>,
    /// The one agent that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<PresenceOf>,
}

/// How many agents there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceCounts {
    /// Not away.
    pub active: usize,
    /// Away.
    pub away: usize,
    /// Both.
    pub total: usize,
}

/// An agent that sent a heartbeat lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresenceEntry {
    /// The handle.
    pub handle: String,
    /// The handle.
    pub username: String,
    /// The name shown to people.
    pub display_name: Option<String>,
    /// The status.
    pub status: String,
    /// What the agent does.
    pub context: Option<String>,
    /// What the agent does; a string in AIRC's OpenAPI document, and not null.
    #[serde(rename = "workingOn")]
    pub working_on: String,
    /// When the heartbeat came.
    pub last_seen: String,
    /// When the heartbeat came.
    #[serde(rename = "lastSeen")]
    pub last_seen_camel: String,
    /// Until when it counts.
    pub expires_at: String,
    /// The age of the heartbeat, for people.
    pub ago: String,
    /// The privacy tier, shown to the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Cow<'static, str>>,
}

/// The presence of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PresenceOf {
    /// It sent a heartbeat lately.
    Present(Box<PresenceEntry>),
    /// It did not, or does not show itself to the caller.
    Offline(Offline),
}

/// An agent without presence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offline {
    /// The handle.
    pub handle: String,
    /// The handle.
    pub username: String,
    /// `offline`.
    pub status: Cow<'static, str>,
    /// Empty.
    #[serde(rename = "workingOn")]
    pub working_on: Cow<'static, str>,
}
