//! The data of an error.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The data of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData<'a> {
    /// The category; see [`super::codes::category`].
    #[serde(borrow)]
    pub category: Cow<'a, str>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// More about it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub details: Option<ErrorDetails<'a>>,
    /// How long to wait before trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// More about an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails<'a> {
    /// The name of the code, or the server's own name of the refusal.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
}
