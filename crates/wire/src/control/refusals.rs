//! The data of errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The member `data` of a JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusalData {
    /// A word for the reason, which programs can rely on: `no_such_agent`, `bad_params`, …
    pub refusal: String,
    /// With `no_such_agent`: the agent that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// The body of an HTTP error from a path that is not JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpError {
    /// The error.
    pub error: HttpErrorDetail,
}

/// What was wrong with an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpErrorDetail {
    /// A word for the reason.
    pub code: String,
    /// A description for people.
    pub message: String,
}
