//! The `_meta` member of requests and results.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lifecycle::Implementation;

/// The member that says of which revision a request is.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member that says what the client can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The params of any request, as far as they concern the protocol itself.
#[derive(Debug, Default, Deserialize)]
pub struct AnyParams {
    /// What the request says of itself.
    #[serde(default, rename = "_meta")]
    pub meta: Option<RequestMeta>,
}

/// What a request says of itself. Members of the wrong type count as missing.
#[derive(Debug, Default, Deserialize)]
pub struct RequestMeta {
    /// The token under which the client wants to hear of progress.
    #[serde(default, rename = "progressToken")]
    pub progress_token: Option<Value>,
    /// The revision of the request.
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<Value>,
    /// What the client can do.
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<Value>,
}

impl AnyParams {
    /// Reads params. Those that are no object, or have a `_meta` of another form, say nothing.
    #[must_use]
    pub fn read(params: Option<&RawValue>) -> RequestMeta {
        let Some(params) = params.filter(|params| params.get().contains("\"_meta\"")) else {
            return RequestMeta::default();
        };
        serde_json::from_str::<Self>(params.get()).ok().and_then(|params| params.meta).unwrap_or_default()
    }
}

impl RequestMeta {
    /// The revision that the request names.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.protocol_version.as_ref().and_then(Value::as_str)
    }

    /// The token for progress: a text or an integer.
    #[must_use]
    pub fn progress_token(&self) -> Option<&Value> {
        self.progress_token.as_ref().filter(|token| token.is_string() || token.is_i64() || token.is_u64())
    }

    /// Members that requests of revisions without sessions must have, and that this one has not.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let version = self.revision().is_none().then_some(PROTOCOL_VERSION);
        let capabilities = self.client_capabilities.as_ref().is_some_and(Value::is_object);
        version.into_iter().chain((!capabilities).then_some(CLIENT_CAPABILITIES)).collect()
    }
}

/// The `_meta` of a `server/discover` result.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ServerMeta {
    /// The server's name and version.
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    pub server_info: Implementation,
}

/// The `_meta` of notifications on a `subscriptions/listen` stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SubscriptionMeta {
    /// The id of the request that opened the stream.
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub subscription_id: Box<RawValue>,
}
