//! The handshake, what replaces it in revisions without sessions, and what those add to results.

use serde::{Deserialize, Serialize};

use super::meta::ServerMeta;

/// Params of `initialize`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The revision that the client would like to speak.
    pub protocol_version: String,
    /// What the client can do. The server asks nothing of clients, so it is not looked into.
    pub capabilities: serde_json::Map<String, serde_json::Value>,
    /// The client's name and version.
    pub client_info: Implementation,
}

/// A program's name and version.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Implementation {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// Result of `initialize`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The revision that the session speaks.
    pub protocol_version: String,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// The server's name and version.
    pub server_info: Implementation,
    /// How the server is meant to be used.
    pub instructions: String,
}

/// Result of `server/discover`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// Always complete.
    pub result_type: ResultType,
    /// The revisions that the server speaks, oldest first.
    pub supported_versions: Vec<String>,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// How the server is meant to be used.
    pub instructions: String,
    /// How long the result may be kept.
    #[serde(flatten)]
    pub cache: CacheHints,
    /// The server's name and version.
    #[serde(rename = "_meta")]
    pub meta: ServerMeta,
}

/// What the server offers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct ServerCapabilities {
    /// Prompts.
    pub prompts: NoOptions,
    /// Resources.
    pub resources: ResourceOptions,
    /// Tools.
    pub tools: NoOptions,
}

/// A capability without options.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct NoOptions {}

/// Options of the resources.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ResourceOptions {
    /// Whether clients can subscribe to them.
    pub subscribe: bool,
}

impl Default for ResourceOptions {
    fn default() -> Self {
        Self { subscribe: true }
    }
}

/// The result of requests that are answered with nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Empty {}

/// Whether a result is final, which revisions without sessions say of each.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultType {
    /// It is.
    #[default]
    Complete,
}

/// A result as revisions without sessions have it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Complete<R> {
    /// Always complete.
    pub result_type: ResultType,
    /// How long it may be kept, for lists and resources.
    #[serde(flatten)]
    pub cache: Option<CacheHints>,
    /// The result itself.
    #[serde(flatten)]
    pub result: R,
}

/// How long a client may keep a result.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheHints {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// For whom.
    pub cache_scope: CacheScope,
}

/// For whom a kept result is good.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheScope {
    /// The token that asked.
    #[default]
    Private,
}

/// Result of `completion/complete`: nothing is completed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
}

/// Suggestions for an argument.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Completion {
    /// The values.
    pub values: Vec<String>,
}
