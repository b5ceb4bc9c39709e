//! Answers of the server about itself, its callers and other swarms.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::VERSION;

/// The body of every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// The error as text, where the reference's clients look for it.
    pub detail: String,
    /// The same with a code.
    pub error: ErrorCode,
}

/// An error with its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCode {
    /// The reason phrase of the status in snake case, such as `not_found`.
    pub code: String,
    /// The error as text.
    pub message: String,
}

/// `GET /`: what the server is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Always `mail`.
    pub name: String,
    /// The protocol version.
    pub version: String,
    /// The protocol version, where the reference expects it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The hosted swarm.
    pub swarm: CardSwarm,
    /// Always `running`.
    pub status: String,
    /// Seconds since the server started.
    pub uptime: f64,
}

impl Card {
    /// The card as the specification's document has it: the swarm's name only.
    #[must_use]
    pub fn by_document(swarm: &str, uptime: f64) -> Self {
        Self {
            name: "mail".to_owned(),
            version: VERSION.to_owned(),
            protocol_version: None,
            swarm: CardSwarm::Name(swarm.to_owned()),
            status: "running".to_owned(),
            uptime,
        }
    }

    /// The card as the reference's server has it.
    #[must_use]
    pub fn described(swarm: SwarmCard, uptime: f64) -> Self {
        let name = swarm.name.clone();
        let swarm = CardSwarm::Described(swarm);
        Self { protocol_version: Some(VERSION.to_owned()), swarm, ..Self::by_document(&name, uptime) }
    }
}

/// The swarm on a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CardSwarm {
    /// In the form of the specification's document.
    Name(String),
    /// In the form of the reference's server.
    Described(SwarmCard),
}

/// A swarm as its server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmCard {
    /// Its name.
    pub name: String,
    /// The version of its definition.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// The agent that users write to.
    pub entrypoint: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Whether it is listed to everyone.
    pub public: bool,
}

/// What a peer's card says, read leniently: members of another type count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCard {
    /// `protocol_version`, or else `version`; empty if it says neither.
    pub version: String,
    /// What the swarm is for.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Whether the swarm is public; false if the card does not say so.
    pub public: bool,
}

impl PeerCard {
    /// Reads a card.
    #[must_use]
    pub fn read(root: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let swarm = &root["swarm"];
        Self {
            version: text(&root["protocol_version"]).or(text(&root["version"])).unwrap_or_default(),
            description: text(&swarm["description"]).unwrap_or_default(),
            keywords: swarm["keywords"].as_array().into_iter().flatten().filter_map(text).collect(),
            public: swarm["public"].as_bool().unwrap_or(false),
        }
    }
}

/// `GET /health` and `POST /health`. AIRC shares the path: the members after `timestamp` and before `reason` are AIRC's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthAnswer {
    /// `healthy`, `unhealthy`, or the word that an administrator set.
    pub status: String,
    /// The hosted swarm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarm_name: Option<String>,
    /// The time of this check, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The version of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Always `AIRC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The version of AIRC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Whether AIRC's safe mode is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// Why the server is unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `GET /whoami`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhoAmI {
    /// The caller's name.
    pub id: String,
    /// `admin`, `user` or `agent`.
    pub role: String,
}

/// `GET /status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// The hosted swarm.
    pub swarm: SwarmStatus,
    /// Number of users with an instance.
    pub active_users: i64,
    /// Whether the caller has an instance.
    pub user_mail_ready: bool,
    /// Whether a task of the caller is running.
    pub user_task_running: bool,
}

/// Whether a swarm is hosted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmStatus {
    /// Its name, or the realm's if there is none.
    pub name: String,
    /// `ready` or `none`.
    pub status: String,
}

/// `GET /swarms`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SwarmList {
    /// The public swarms, the local one first.
    pub swarms: Vec<ListedSwarm>,
}

/// An entry of the list. The two kinds differ in the order of their members only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ListedSwarm {
    /// A registered swarm.
    Peer(PeerSwarm),
    /// The hosted swarm.
    Own(OwnSwarm),
}

/// The hosted swarm in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSwarm {
    /// Its name.
    pub swarm_name: String,
    /// The address by which the caller reached the server.
    pub base_url: String,
    /// The protocol version.
    pub version: String,
    /// The current time.
    pub last_seen: String,
    /// Always true.
    pub is_active: bool,
    /// What it is for.
    pub swarm_description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
}

/// A registered swarm in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerSwarm {
    /// Its name.
    pub swarm_name: String,
    /// Its address.
    pub base_url: String,
    /// The protocol version that it gave.
    pub version: String,
    /// Whether it answered the last health check.
    pub is_active: bool,
    /// What it is for.
    pub swarm_description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// When it last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// Metadata of its registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// `POST /swarms`, `GET /swarms/dump` and `POST /swarms/load`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwarmAnswer {
    /// What was done: `registered`, `dumped` or `success`.
    pub status: String,
    /// The swarm.
    pub swarm_name: String,
}

impl SwarmAnswer {
    /// An answer.
    #[must_use]
    pub fn new(status: &str, swarm_name: impl Into<String>) -> Self {
        Self { status: status.to_owned(), swarm_name: swarm_name.into() }
    }
}

/// `POST /interswarm/forward` and `POST /interswarm/back`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterswarmAnswer {
    /// The receiving swarm.
    pub swarm: String,
    /// The task.
    pub task_id: String,
    /// Always `success`.
    pub status: String,
    /// The instance that works on the task there, `role:id@swarm`.
    pub local_runner: String,
}

/// What a peer answered to an interswarm message, read leniently: members of another type count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerAnswer {
    /// The instance that works on the task there.
    pub local_runner: Option<String>,
    /// Why it was refused; empty if the answer does not say.
    pub detail: String,
}

impl PeerAnswer {
    /// Reads the body of an answer; a body that is not JSON says nothing.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Self { local_runner: text("local_runner"), detail: text("detail").unwrap_or_default() }
    }
}
