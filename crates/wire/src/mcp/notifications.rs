//! Notifications in both directions, and subscriptions of revisions without sessions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::meta::SubscriptionMeta;

/// Params of `notifications/cancelled`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams {
    /// The id of the request that is not wanted any more.
    pub request_id: Box<RawValue>,
}

/// Params of `notifications/progress`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressParams {
    /// The token that the request carried.
    pub progress_token: Value,
    /// How much is done.
    pub progress: f64,
    /// Of how much.
    pub total: f64,
    /// The same in words.
    pub message: String,
}

/// Params of `notifications/resources/updated`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct UpdatedParams {
    /// The subscription, in revisions without sessions.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<SubscriptionMeta>,
    /// The resource's address.
    pub uri: String,
}

/// Params of `subscriptions/listen`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ListenParams {
    /// What the client wants to hear of.
    pub notifications: SubscriptionFilter,
}

/// What a stream tells of. The lists of tools, prompts and resources do not change, so only resources are read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionFilter {
    /// Addresses of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
}

/// Params of `notifications/subscriptions/acknowledged`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AcknowledgedParams {
    /// The subscription.
    #[serde(rename = "_meta")]
    pub meta: SubscriptionMeta,
    /// What the stream will tell of.
    pub notifications: SubscriptionFilter,
}
