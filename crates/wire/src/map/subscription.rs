//! Subscriptions and replays: `map/subscribe`, `map/unsubscribe`, `map/subscribe.ack`, `map/pause`, `map/resume` and
//! `map/replay`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::{object_or_default, or_default};

/// The params of `map/subscribe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscribeParams {
    /// A filter; see [`super::Spec`].
    #[serde(skip_serializing_if = "Value::is_null")]
    pub filter: Value,
    /// Event types or groups of them, in the draft's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<String>>,
    /// Options.
    #[serde(deserialize_with = "object_or_default")]
    pub options: SubscribeOptions,
    /// Where to start: after an event, or at a time.
    #[serde(
        alias = "startAfter",
        alias = "fromEventId",
        alias = "fromTimestamp",
        alias = "afterEventId",
        skip_serializing_if = "Option::is_none"
    )]
    pub replay_from: Option<Value>,
}

/// Options of subscriptions and replays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscribeOptions {
    /// False leaves out the payloads of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_message_payloads: Option<bool>,
    /// Whether to leave out events that the session caused.
    #[serde(deserialize_with = "or_default")]
    pub exclude_own_events: bool,
    /// Whether to start with the oldest event.
    #[serde(deserialize_with = "or_default")]
    pub include_history: bool,
    /// Number of events that may wait for an acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_size: Option<Value>,
    /// `at-least-once`, `at-most-once`, `exactly-once` or `best-effort`; all are served alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_mode: Option<String>,
    /// `none`, `per-agent`, `causal` or `total`; all are served alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordering: Option<String>,
    /// Maximum number of events of a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// Order of a replay: `chronological` or `asc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// The result of `map/subscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// The subscription.
    pub subscription_id: String,
}

/// The params of the methods that name a subscription. Only acknowledgements read more than its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionParams {
    /// The subscription.
    pub subscription_id: String,
    /// The number of the last event that was processed.
    #[serde(default, alias = "sequence", alias = "sequenceNumber", skip_serializing_if = "Option::is_none")]
    pub up_to_sequence: Option<u64>,
    /// The id of the last event that was processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

/// The result of `map/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsubscribeResult {
    /// The closed subscription.
    pub subscription: ClosedSubscription,
    /// Always true.
    pub unsubscribed: bool,
    /// Always true.
    pub success: bool,
}

/// A subscription that was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClosedSubscription {
    /// Its id.
    pub id: String,
    /// When it was closed, in Unix milliseconds.
    pub closed_at: i64,
}

/// The result of calls that return nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// Always true.
    pub success: bool,
}

/// The params of `map/replay`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplayParams {
    /// Events after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_event_id: Option<String>,
    /// Events from this time on, in Unix milliseconds.
    #[serde(alias = "from", skip_serializing_if = "Option::is_none")]
    pub from_timestamp: Option<Value>,
    /// Events up to this time.
    #[serde(alias = "to", skip_serializing_if = "Option::is_none")]
    pub to_timestamp: Option<Value>,
    /// A filter; see [`super::Spec`].
    #[serde(skip_serializing_if = "Value::is_null")]
    pub filter: Value,
    /// Event types or groups of them, in the draft's form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<Vec<String>>,
    /// Maximum number of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// Options.
    #[serde(deserialize_with = "object_or_default")]
    pub options: SubscribeOptions,
}

/// The result of `map/replay`. `E` is the [`super::event::ReplayedEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult<E> {
    /// The events, oldest first.
    pub events: Vec<E>,
    /// Whether more follow.
    pub has_more: bool,
}
