//! Reading: pages of messages, and what is answered to acknowledging and removing one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// `GET /messages/inbox`: a page of messages, each as its sender signed it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessagePage {
    /// Always true.
    pub success: bool,
    /// The messages: envelopes with a `delivery` member.
    pub messages: Vec<Box<RawValue>>,
    /// How many there are.
    pub count: usize,
    /// The cursor of the next page, if there is one.
    #[serde(rename = "nextCursor")]
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    #[serde(rename = "hasMore")]
    pub has_more: bool,
    /// Where to continue later, whether or not there is more now.
    pub cursor: Option<String>,
}

/// What the registry knows about a message. For messages of other protocols it includes what their payload may have no
/// member for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The message's number in the event log.
    pub seq: i64,
    /// When it was accepted.
    pub received_at: String,
    /// Whether the recipient has read it.
    pub read: bool,
    /// Whether the recipient has acknowledged it.
    pub acked: bool,
    /// The recipient.
    pub to: String,
    /// The message's id.
    pub id: String,
    /// The protocol that it came by, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Its priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Cow<'static, str>>,
    /// Whether its sender asks for an acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_required: Option<bool>,
    /// Its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
}

/// An envelope for a message that came without one: in Safe Mode, or by another protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnsignedEnvelope {
    /// The protocol version.
    pub v: Cow<'static, str>,
    /// The message's id.
    pub id: String,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// When it was accepted, in Unix seconds.
    pub timestamp: i64,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its payload.
    pub payload: Value,
    /// What the registry knows about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
}

/// `POST /messages/{id}/ack`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAnswer {
    /// Always true.
    pub success: bool,
    /// The message's id, as asked for.
    pub id: String,
    /// `read`.
    pub status: Cow<'static, str>,
    /// When it was read.
    pub read_at: Option<String>,
}

/// `DELETE /messages/{id}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedAnswer {
    /// Always true.
    pub success: bool,
    /// The message's id, as asked for.
    pub id: String,
    /// `deleted`.
    pub status: Cow<'static, str>,
}
