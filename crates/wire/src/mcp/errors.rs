//! Error codes that MCP adds to JSON-RPC's, and the data of errors.

use serde::{Deserialize, Serialize};

use super::revision::Revision;

/// The token is missing or not good.
pub const UNAUTHORIZED: i64 = -32_001;
/// The resource is not there. Revisions without sessions say invalid params instead.
pub const RESOURCE_NOT_FOUND: i64 = -32_002;
/// A header contradicts the request.
pub const HEADER_MISMATCH: i64 = -32_020;
/// The request is of a revision that the server does not speak.
pub const UNSUPPORTED_VERSION: i64 = -32_022;

/// Data of an error about a resource.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ResourceErrorData {
    /// The resource's address.
    pub uri: String,
}

/// Data of [`UNSUPPORTED_VERSION`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VersionErrorData {
    /// The revision of the request.
    pub requested: String,
    /// Those that the server speaks.
    pub supported: Vec<String>,
}

impl VersionErrorData {
    /// For a request of this revision.
    #[must_use]
    pub fn new(requested: &str) -> Self {
        Self { requested: requested.to_owned(), supported: Revision::known_dates() }
    }
}

/// The structured content of a tool call that failed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ToolFailure {
    /// What went wrong.
    pub error: ToolError,
}

/// What went wrong in a tool.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ToolError {
    /// A code to branch on.
    pub code: String,
    /// Words to act on.
    pub message: String,
    /// What else helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<NearestNames>,
}

/// Names that may have been meant.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NearestNames {
    /// The nearest first.
    pub nearest: Vec<String>,
}
