//! Messages and payloads as this program writes them. [`Payload`](super::Payload) parses those of any client.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An envelope without its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnvelopeDraft {
    /// The protocol version.
    pub v: Cow<'static, str>,
    /// The message's id.
    pub id: String,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The sending time, in Unix seconds.
    pub timestamp: i64,
    /// Single-use key against replays.
    pub nonce: String,
    /// The payload.
    pub payload: Value,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

/// An envelope with its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedEnvelope {
    /// What was signed.
    #[serde(flatten)]
    pub envelope: EnvelopeDraft,
    /// The signature.
    pub signature: String,
}

/// A payload of content without members of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentPayload {
    /// The payload's type.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The content: text in most cases.
    pub content: Value,
}

/// `context:mailbox`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxPayload {
    /// `context:mailbox`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The id by which it is acknowledged.
    pub message_id: String,
    /// The subject.
    pub subject: String,
    /// The body, as Markdown.
    pub body_md: String,
    /// Whether the sender asks for an acknowledgement.
    pub ack_required: bool,
    /// `low`, `normal`, `high` or `urgent`.
    pub priority: Cow<'static, str>,
    /// The kind that another protocol gave it.
    #[serde(default, rename = "kind", skip_serializing_if = "Option::is_none")]
    pub foreign_kind: Option<String>,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ts: Option<String>,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

impl MailboxPayload {
    /// The type on the wire.
    pub const KIND: &str = "context:mailbox";
}

/// `context:mailbox_ack`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckPayload {
    /// `context:mailbox_ack`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The id of the acknowledged message.
    pub message_id: String,
    /// When it was acknowledged.
    pub ack_ts: String,
    /// An answer in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl AckPayload {
    /// The type on the wire.
    pub const KIND: &str = "context:mailbox_ack";
}

/// `context:file_reservation`; which members are present depends on the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationPayload {
    /// `context:file_reservation`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The reservation's id, unique for its owner.
    pub reservation_id: String,
    /// The scope of the paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Whether others may not edit them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// `active`, `renewed`, `released` or `expired`.
    pub status: Cow<'static, str>,
    /// For how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    /// When it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_ts: Option<String>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ts: Option<String>,
    /// When it was released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_ts: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

impl ReservationPayload {
    /// The type on the wire.
    pub const KIND: &str = "context:file_reservation";
}
