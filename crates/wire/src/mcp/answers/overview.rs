//! Resources about the server and its tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `/health/liveness` and `/health/readiness`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Liveness {
    pub status: String,
}

/// `resource://config/environment`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Environment {
    pub environment: String,
    pub version: String,
    pub realm: String,
    pub tools: String,
    pub limits: EnvironmentLimits,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct EnvironmentLimits {
    pub message_bytes: usize,
    pub attachment_bytes: u64,
}

/// `resource://tooling/directory`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ToolDirectory {
    pub tools: Vec<ToolRow>,
    pub count: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ToolRow {
    pub name: String,
    pub summary: String,
    pub core: bool,
}

/// `resource://tooling/schemas`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ToolSchemas {
    pub tools: Map<String, Value>,
}

/// `resource://tooling/locks`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Locks {
    pub locks: [String; 0],
    pub summary: LocksSummary,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct LocksSummary {
    pub total: u32,
}

/// `resource://tooling/metrics`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Metrics {
    pub uptime_seconds: u64,
    pub agents: i64,
    pub events: i64,
    pub reservations: i64,
    pub open_tasks: i64,
    pub bytes: i64,
}

/// `resource://tooling/recent/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RecentEvents {
    pub project: String,
    pub window_seconds: i64,
    pub count: usize,
    pub entries: Vec<RecentEvent>,
    pub has_more: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RecentEvent {
    pub event: String,
    pub agent: String,
    pub timestamp: String,
}

/// `resource://tooling/capabilities/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Capabilities {
    pub project: String,
    pub agent: String,
    pub capabilities: Option<Value>,
    pub contact_policy: String,
}
