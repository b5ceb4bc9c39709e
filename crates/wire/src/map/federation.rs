//! Other systems: `map/federation/connect` and `map/federation/route`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::{object_or_default, some_object};

/// The params of `map/federation/connect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// The name of the other system.
    pub system_id: String,
    /// Its address: `ws://…` or `wss://…`.
    pub endpoint: String,
    /// Credentials for it, passed on in `map/connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Value>,
}

/// The params of the `map/connect` that the server sends to another system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayParams {
    /// The version of the protocol.
    pub protocol_version: u32,
    /// Always `gateway`.
    pub participant_type: String,
    /// The name of this system.
    pub name: String,
    /// Credentials, with the secret in `credential` too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Value>,
}

/// What the server reads in another system's answer to `map/connect`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayResult {
    /// How to authenticate, if it requires that.
    #[serde(deserialize_with = "super::lenient::present", skip_serializing_if = "Option::is_none")]
    pub auth_required: Option<Value>,
    /// The other system.
    pub system_info: Value,
    /// The session there.
    #[serde(deserialize_with = "super::lenient::present", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Value>,
}

/// The result of `map/federation/connect`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConnectResult {
    /// The other system requires authentication.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// Always false.
        connected: bool,
        /// What it said about that.
        auth_required: Value,
    },
    /// Connected.
    #[serde(rename_all = "camelCase")]
    Connected {
        /// Always true.
        connected: bool,
        /// The other system.
        system_info: Value,
        /// The session there.
        session_id: Option<Value>,
    },
}

/// Data of the events of a system that was connected or disconnected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemData {
    /// The system.
    pub system_id: String,
}

/// The params of `map/federation/route`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteParams {
    /// The system that the message is for.
    pub system_id: String,
    /// The message with its way so far.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Envelope>,
    /// The message alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// A message with its route so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The message.
    #[serde(default)]
    pub payload: Value,
    /// Its route.
    #[serde(default, deserialize_with = "object_or_default")]
    pub federation: Route,
}

/// The route of a message between systems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Route {
    /// The system that it comes from.
    pub source_system: Option<String>,
    /// The system that it is for.
    pub target_system: Option<String>,
    /// Number of systems it has passed.
    pub hop_count: u64,
    /// Maximum number of them.
    pub max_hops: Option<u64>,
    /// The systems it has passed.
    pub path: Vec<String>,
    /// When it was sent, in Unix milliseconds.
    pub origin_timestamp: Option<i64>,
    /// Its correlation id.
    pub correlation_id: Option<String>,
}

/// The result of `map/federation/route` for a message to this system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteResult {
    /// Always true.
    pub routed: bool,
    /// The message.
    pub message_id: String,
    /// The recipients that have it.
    pub delivered: Vec<String>,
}
