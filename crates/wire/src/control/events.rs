//! The event log, in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Message, PageSize, Seq, Timestamp, Turn};

/// Reads the event log after a position, or before one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// The last event that the caller knows; the end of the log if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// The latest events before this one, instead of the earliest after another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
    /// Only events of these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Only events that concern these agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Only events of this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// How long to wait for the first event if there is none yet, in milliseconds; at most 25,000.
    #[serde(default)]
    pub wait: u64,
    /// Events of one page, at most 500.
    #[serde(default)]
    pub limit: PageSize,
}

/// A page of the event log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventsResult {
    /// The events, in order.
    pub events: Vec<Event>,
    /// All events between the start and this position were looked at: `after` (or `before`) of the next page.
    pub cursor: Seq,
    /// Whether the end of the log (backwards, its beginning) was reached.
    pub end: bool,
    /// The server's time.
    pub now: Timestamp,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its position in the event log.
    pub seq: Seq,
    /// When it happened.
    pub at: Timestamp,
    /// What happened: `message.sent`, `agent.registered`, …
    pub kind: String,
    /// The agent that did it.
    pub actor: String,
    /// The event that it follows from, if any.
    pub cause: Option<Seq>,
    /// What happened, as the event log has it: an object whose member `kind` says which members it has.
    pub fact: Value,
    /// The message that it is about.
    pub message: Option<Message>,
    /// The turn that it is about.
    pub turn: Option<Turn>,
}
