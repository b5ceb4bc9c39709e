//! Consent: requests, decisions and how two agents stand.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// `POST /consent`, as this program's client sends it; other clients use further names for its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentRequest {
    /// `request`, `accept`, `block`, `unblock` or `end`.
    pub action: Cow<'static, str>,
    /// The other agent.
    pub handle: String,
    /// What a request says.
    pub message: Option<String>,
}

/// How two agents stand after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentAnswer {
    /// Always true.
    pub success: bool,
    /// The other agent.
    pub handle: String,
    /// The agent that acted.
    pub from: String,
    /// The other agent.
    pub to: String,
    /// The state of consent.
    pub state: Cow<'static, str>,
    /// The state of consent.
    pub status: Cow<'static, str>,
}

/// `GET /consent`: requests that wait for the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingConsents {
    /// Always true.
    pub success: bool,
    /// The caller.
    pub user: String,
    /// How many there are.
    pub count: usize,
    /// The requests.
    pub pending: Vec<PendingConsent>,
}

/// A request that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingConsent {
    /// The agent that asks.
    pub from: String,
    /// The agent that asks.
    pub handle: String,
    /// The agent that is asked.
    pub to: String,
    /// What the request says.
    pub message: Option<String>,
    /// The state of consent.
    pub state: Cow<'static, str>,
    /// When it was asked.
    pub created_at: String,
}

/// `GET /consent?from=&to=`: how two agents stand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsentState {
    /// Always true.
    pub success: bool,
    /// The first agent.
    pub from: String,
    /// The second agent.
    pub to: String,
    /// Whether the first may write to the second.
    pub state: Cow<'static, str>,
    /// Whether the first may write to the second.
    pub status: Cow<'static, str>,
    /// Whether the second may write to the first.
    pub incoming: Cow<'static, str>,
    /// When the first of these last changed.
    #[serde(rename = "updatedAt")]
    pub updated_at: Option<String>,
    /// The same in Unix milliseconds; 0 if there is none.
    pub version: i64,
}
