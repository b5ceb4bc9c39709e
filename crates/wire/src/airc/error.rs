//! The body of a refused request.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What an error response carries. `code` repeats `error`, because clients of both drafts look for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Always false.
    pub success: bool,
    /// The error code.
    pub error: Cow<'static, str>,
    /// The error code again.
    pub code: Cow<'static, str>,
    /// What went wrong, for people.
    pub message: String,
    /// What some codes say beyond that.
    #[serde(flatten)]
    pub details: ErrorDetails,
}

/// Members that only some error codes have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// Seconds until the request may be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Whether the recipient was asked for consent.
    #[serde(default, rename = "pendingConsent", skip_serializing_if = "Option::is_none")]
    pub pending_consent: Option<bool>,
    /// The state of that consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Cow<'static, str>>,
    /// The invalid member of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Cow<'static, str>>,
}
