//! Sessions: `map/session/…`, `map/disconnect`, `map/shutdown` and `map/permissions/update`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::capabilities::Capabilities;

/// A session. The members after `closed_at` are in the result of `map/session/info` only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// When it began, in Unix milliseconds.
    pub created_at: i64,
    /// When it lost its connection, or now.
    pub last_active_at: i64,
    /// When it lost its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<i64>,
    /// Its participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// `client`, `agent`, `gateway` or `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participant_type: Option<String>,
    /// Its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
}

/// The params of `map/disconnect`, `map/shutdown`, `map/session/load` and `map/session/close`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionParams {
    /// The session to load or close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether `map/shutdown` unregisters the agents below the session's own, too.
    pub cascade: bool,
}

/// The result of `map/disconnect`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisconnectResult {
    /// The session.
    pub session: SessionInfo,
    /// The token to resume it with.
    pub resume_token: String,
    /// Always true.
    pub acknowledged: bool,
    /// Always true.
    pub success: bool,
}

/// The result of `map/shutdown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownResult {
    /// Always true.
    pub acknowledged: bool,
    /// Always true.
    pub success: bool,
    /// The session.
    pub session: SessionInfo,
}

/// The result of `map/session/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListResult {
    /// The sessions of the caller's principal.
    pub sessions: Vec<SessionInfo>,
}

/// The result of `map/session/load` for the session at hand, and for one that has a connection. For any other the result is
/// a [`super::connect::ConnectResult`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    /// The session.
    pub session_id: String,
    /// Whether the connection has it now.
    pub restored: bool,
}

/// The result of `map/session/close`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseResult {
    /// The session.
    pub session: SessionInfo,
    /// Always true.
    pub closed: bool,
    /// Always true.
    pub success: bool,
}

/// The result of `map/session/info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoResult {
    /// The session.
    pub session: SessionInfo,
}

/// The params of `map/permissions/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionParams {
    /// The participant, its session, or one of its agents.
    pub client_id: String,
    /// Groups of switches; see [`Capabilities::changed`].
    pub permissions: Map<String, Value>,
}

/// The result of `map/permissions/update`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionResult {
    /// Always true.
    pub success: bool,
    /// All switches of the participant.
    pub effective_permissions: Capabilities,
}

/// Data of the event of a participant whose switches changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsUpdated {
    /// The participant.
    pub client_id: String,
    /// The switches that were set.
    pub changes: Map<String, Value>,
    /// All its switches.
    pub effective_permissions: Capabilities,
    /// The participant that set them.
    pub updated_by: String,
}

/// Data of the events of a participant that connected or disconnected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParticipantData {
    /// The participant.
    pub participant_id: String,
    /// `client`, `agent`, `gateway` or `system`.
    pub participant_type: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if it resumed its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<bool>,
}
