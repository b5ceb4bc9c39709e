//! Full-text search over messages and turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PageSize, Seq, is_false};

/// Searches messages and turns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// Words, `"phrases"` and `prefix*`es.
    pub query: String,
    /// The agent whose view is searched; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only what this agent wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only what belongs to this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Newest first, instead of best first.
    #[serde(default, skip_serializing_if = "is_false")]
    pub newest: bool,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
    /// Matches of one page.
    #[serde(default)]
    pub limit: PageSize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// The matches.
    pub hits: Vec<Hit>,
    /// Whether there may be more.
    pub partial: bool,
    /// `before` of the next page, if there is one; only newest first.
    pub next: Option<Seq>,
}

/// A message or turn that matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// Its position in the event log.
    pub seq: Seq,
    /// The id of the message, if it is one.
    pub message: Option<String>,
    /// The id of the turn, if it is one.
    pub turn: Option<String>,
    /// The sender or author.
    pub from: Option<String>,
    /// The subject of the message.
    pub subject: Option<String>,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
    /// The text around the match.
    pub snippet: String,
}
