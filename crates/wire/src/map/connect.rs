//! Connecting and authentication: `map/connect`, `map/initialize`, `map/authenticate`, `map/auth/…`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent::Agent;
use super::capabilities::Capabilities;
use super::lenient::some_object;

/// The params of `map/connect`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectParams {
    /// The version of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Value>,
    /// `client`, `agent`, `gateway` or `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant_type: Option<String>,
    /// The id that the participant wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Switches that it turns off; see [`Capabilities::narrowed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Map<String, Value>>,
    /// The token of a session to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_token: Option<String>,
    /// Agents to take over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_agents: Option<Vec<String>>,
    /// What happens to its agents when the connection is lost.
    #[serde(deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub disconnect_policy: Option<DisconnectPolicy>,
    /// Credentials.
    #[serde(deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub auth: Option<Credentials>,
}

/// What happens to a session's agents when its connection is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisconnectPolicy {
    /// `unregister`, `orphan` or `grace-period`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_behavior: Option<String>,
    /// How long they are kept, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_ms: Option<u64>,
    /// Whether others hear that the participant disconnected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_subscribers: Option<bool>,
}

/// Credentials. The documentation names the secret `credential`, the SDK's factories send `token`, its gateways
/// `credentials`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Credentials {
    /// `bearer`, `api-key`, `token` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// The same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl Credentials {
    /// The secret, under any of its names.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        [&self.credential, &self.credentials, &self.token].into_iter().find_map(Option::as_deref)
    }
}

/// The result of `map/connect` without credentials, where they are required.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthRequiredResult {
    /// The version of the protocol.
    pub protocol_version: u32,
    /// The server.
    pub system_info: SystemInfo,
    /// How to authenticate.
    pub auth_required: AuthRequired,
}

/// How to authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRequired {
    /// The methods.
    pub methods: Vec<String>,
    /// Always true.
    pub required: bool,
    /// The realm.
    pub realm: String,
}

/// The result of `map/connect`, of `map/session/load`, and of `map/authenticate` after a `map/connect` that had to wait for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectResult {
    /// The version of the protocol.
    pub protocol_version: u32,
    /// The session.
    pub session_id: String,
    /// The participant.
    pub participant_id: String,
    /// What it may do.
    pub capabilities: Capabilities,
    /// The server.
    pub system_info: SystemInfo,
    /// The authenticated caller.
    pub principal: Option<Principal>,
    /// The token to resume the session with.
    pub resume_token: String,
    /// True if the session was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnected: Option<bool>,
    /// The agents of a session that was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned_agents: Option<Vec<String>>,
    /// The entries of these, or of the agents that were asked for and taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaimed_agents: Option<Vec<Agent>>,
    /// True in the result of `map/session/load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<bool>,
    /// True in the result of `map/authenticate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The name by which other systems know it: the realm.
    pub system_id: String,
}

/// The authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// The name on its token.
    pub id: String,
    /// When the token expires, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// The result of `map/initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The version of the protocol.
    pub protocol_version: String,
    /// `full` or `acp-compat`.
    pub mode: String,
    /// The server.
    pub server_info: SystemInfo,
    /// What it offers in this mode.
    pub capabilities: ServerCapabilities,
    /// The agent of the session.
    pub agent_id: String,
}

/// What the server offers in the mode of a draft session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Event streams.
    pub streaming: bool,
    /// Scopes.
    pub scopes: bool,
    /// Tasks.
    pub tasks: bool,
    /// Roles.
    pub roles: bool,
    /// Environments.
    pub environments: bool,
    /// Other systems.
    pub federation: bool,
    /// Replay of events.
    pub replay: bool,
    /// How messages may be delivered.
    pub delivery_semantics: Vec<String>,
    /// Maximum number of subscriptions.
    pub max_subscriptions: usize,
    /// Maximum size of a frame, in bytes.
    pub max_message_size: usize,
    /// Conversations.
    pub mail: MailEnabled,
}

/// Whether the server has conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailEnabled {
    /// Whether it has.
    pub enabled: bool,
}

/// The result of `map/authenticate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuthenticateResult {
    /// Authenticated, and the `map/connect` that had to wait is done.
    Connected(Box<ConnectResult>),
    /// Not authenticated. Before the next variant, which would take it for a result without a principal.
    Refused(AuthRefused),
    /// Authenticated.
    Accepted(Box<Authenticated>),
}

/// The result of `map/authenticate` without a `map/connect` before it. The members of the session are there if it has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authenticated {
    /// Always true.
    pub success: bool,
    /// The authenticated caller.
    pub principal: Option<Principal>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// What it may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// The token to resume the session with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_token: Option<String>,
}

/// The result of `map/authenticate` and `map/auth/refresh` with credentials that do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRefused {
    /// Always false.
    pub success: bool,
    /// Why.
    pub error: AuthError,
}

/// Why credentials do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthError {
    /// `auth_required`, `invalid_credentials`, `expired`, `method_not_supported` or `internal`.
    pub code: String,
    /// A description.
    pub message: String,
}

/// The result of `map/auth/refresh`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefreshResult {
    /// Always true.
    pub success: bool,
    /// The token that counts now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// When it expires, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The authenticated caller.
    pub principal: Option<Principal>,
}

/// The params of the notification `map/auth/expiring`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthExpiring {
    /// When the token expires, in Unix milliseconds.
    pub expires_at: i64,
    /// The time until then.
    pub expires_in_ms: i64,
}

/// The params of the notification `map/auth/revoked`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRevoked {
    /// `expired` or `revoked`.
    pub reason: String,
}
