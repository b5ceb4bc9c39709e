//! Projects, agents, the server's health, and the guard's commands.

use serde::{Deserialize, Serialize};

/// `health_check`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Health {
    pub status: String,
    pub reason: Option<String>,
    pub environment: String,
    pub version: String,
    pub http_host: Option<String>,
    pub http_port: Option<u16>,
    pub database_url: Option<String>,
    pub realm: String,
    pub limits: HealthLimits,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct HealthLimits {
    pub message_bytes: usize,
    pub page: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Project {
    pub id: i64,
    pub slug: String,
    pub human_key: String,
    pub created_at: String,
}

/// A project with the realm it is in, and how others get there if it is one of its own.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PlacedProject {
    #[serde(flatten)]
    pub project: Project,
    pub realm: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Profile {
    pub id: i64,
    pub name: String,
    pub program: String,
    pub model: String,
    pub task_description: String,
    pub inception_ts: String,
    pub last_active_ts: String,
    pub project_id: i64,
    pub attachments_policy: String,
}

/// `register_agent` and `create_agent_identity`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RegisteredAgent {
    #[serde(flatten)]
    pub profile: Profile,
    pub registration_token: String,
    pub shell: String,
}

/// `whois`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WhoisAnswer {
    #[serde(flatten)]
    pub profile: Profile,
    pub contact_policy: String,
    /// Always empty: mail is not kept in a repository.
    pub recent_commits: [String; 0],
}

/// A row of `list_agents`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ListedAgent {
    #[serde(flatten)]
    pub agent: ResourceAgent,
    pub kind: String,
    pub role: Option<String>,
    pub online: bool,
    pub contact_policy: String,
}

/// An agent as resources list it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ResourceAgent {
    #[serde(flatten)]
    pub profile: Profile,
    pub door: String,
}

/// `resource://agents/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AgentList {
    pub project: Project,
    pub agents: Vec<ResourceAgent>,
}

/// `resource://project/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ProjectAgents {
    #[serde(flatten)]
    pub project: Project,
    pub agents: Vec<ResourceAgent>,
}

/// `resource://identity/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct IdentityAnswer {
    pub path: String,
    pub project: Option<Project>,
    pub slug: Option<String>,
}

/// `deregister_agent`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DeregisteredAgent {
    pub agent: String,
    pub retired: bool,
    pub retired_at: Option<String>,
}

/// `install_precommit_guard`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GuardInstallation {
    pub installed: bool,
    pub hook: Option<String>,
    pub hooks: [String; 0],
    pub project: String,
    pub command: String,
    pub note: String,
}

/// `uninstall_precommit_guard`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GuardRemoval {
    pub removed: bool,
    pub hooks: [String; 0],
    pub command: String,
    pub note: String,
}
