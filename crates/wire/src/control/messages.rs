//! Messages: sending, reading and acknowledging them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{FileData, FileLink, Millis, PageSize, Seq, Timestamp, is_false};

/// Sends a message.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// The sender; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Addresses: `ann`, `ann@realm`, `scope:team`, `role:reviewer`, `role:reviewer@team`, `parent`, `children`, `all`, … An
    /// agent whose name looks like one of the others is written `agent:NAME`.
    pub to: Vec<String>,
    /// Addresses of agents that are copied in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<String>,
    /// Addresses of agents that are copied in, unseen by other recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<String>,
    /// The kind of message; empty for plain mail.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Plain text if it is a string, else any JSON.
    #[schemars(with = "Value")]
    pub body: Box<RawValue>,
    /// 1 (urgent) to 5; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Whether each recipient is asked to acknowledge it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ack_required: bool,
    /// When it stops being worth delivering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
    /// The conversation that it belongs to, which is opened if need be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The message that it answers: an id, the beginning of one, or a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// An idempotency key: the same message under the same key is sent once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<FileData>,
}

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SendResult {
    /// Its id.
    pub id: String,
    /// Its number: its position in the event log.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Timestamp,
    /// One entry per recipient.
    pub receipts: Vec<Receipt>,
    /// Whether it was sent before under the same key.
    pub repeated: bool,
}

/// One recipient of a message that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The recipient.
    pub agent: String,
    /// How it was addressed.
    pub copy: RecipientKind,
    /// `queued`, or `delivered` if it is connected and has the message.
    pub state: DeliveryState,
}

/// How a recipient was addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    /// Addressed.
    To,
    /// Copied in.
    Cc,
    /// Copied in, unseen by other recipients.
    Bcc,
}

/// The state of a message's delivery to one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waits for the recipient.
    Queued,
    /// Delivered.
    Delivered,
    /// Read by the recipient.
    Read,
    /// Acknowledged by the recipient.
    Acked,
    /// Expired before it was delivered.
    Expired,
    /// Given up.
    Failed,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// Its number: its position in the event log.
    pub seq: Seq,
    /// The sender.
    pub from: String,
    /// The addresses, as the sender gave them: `{"agent": "b"}`, `{"role": {"role": "tester", "within": null}}`, `"all"`, …
    pub to: Vec<Value>,
    /// The kind of message; empty for plain mail.
    pub kind: String,
    /// Its subject.
    pub subject: Option<String>,
    /// Plain text if it is a string, else any JSON.
    pub body: Value,
    /// 1 (urgent) to 5.
    pub priority: u8,
    /// Whether each recipient is asked to acknowledge it.
    pub ack_required: bool,
    /// When it stops being worth delivering.
    pub expires_at: Option<Timestamp>,
    /// The conversation that it belongs to.
    pub conversation: Option<String>,
    /// The id of the message that it answers.
    pub in_reply_to: Option<String>,
    /// The sender's idempotency key.
    pub key: Option<String>,
    /// The door by which it was sent.
    pub door: String,
    /// When it was accepted.
    pub at: Timestamp,
    /// Its files.
    pub attachments: Vec<FileLink>,
}

/// A message's delivery to one recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The recipient.
    pub agent: String,
    /// How it was addressed.
    pub copy: RecipientKind,
    /// The state of the delivery.
    pub state: DeliveryState,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When the recipient first read it.
    pub read_at: Option<Timestamp>,
    /// When the recipient acknowledged it.
    pub acked_at: Option<Timestamp>,
    /// The recipient's note on acknowledging, or why delivery failed.
    pub note: Option<String>,
}

/// Lists an agent's mail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboxParams {
    /// The agent; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only unread messages.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unread: bool,
    /// Only messages of these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Only messages since this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
    /// Only messages after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Seq>,
    /// Only messages before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
    /// The order.
    #[serde(default)]
    pub order: InboxOrder,
    /// Messages of one page.
    #[serde(default)]
    pub limit: PageSize,
}

/// The order of a list of mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboxOrder {
    /// Newest first.
    #[default]
    Newest,
    /// Oldest first.
    Oldest,
    /// Most urgent first.
    Priority,
}

/// A page of an agent's mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxResult {
    /// The messages.
    pub messages: Vec<InboxMessage>,
    /// The number to give as `before` (or, oldest first, `after`) for the next page, if there is one.
    pub next: Option<Seq>,
}

/// A message in a recipient's mail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboxMessage {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// Its delivery to the recipient.
    pub delivery: Delivery,
}

/// Marks a message as read, or acknowledges it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkParams {
    /// The recipient; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The message: an id, the beginning of one, or a number.
    pub message: String,
    /// A note to the sender, on acknowledging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

/// Reads one message. This does not mark it as read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageParams {
    /// The agent that reads it; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The message: an id, the beginning of one, or a number.
    pub message: String,
}

/// A message with its deliveries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageResult {
    /// The message.
    #[serde(flatten)]
    pub message: Message,
    /// The deliveries that the reader may see.
    pub deliveries: Vec<Delivery>,
}
