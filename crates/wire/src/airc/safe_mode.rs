//! Safe Mode, `/api/…`: messages as the published clients read them, and the health report.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message. Several members appear under two names, because clients look for both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlatMessage {
    /// The message's id.
    pub id: String,
    /// The sender.
    pub from: String,
    /// The recipient.
    pub to: String,
    /// The text.
    pub text: String,
    /// The text.
    pub body: String,
    /// The payload's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The payload; null for plain text, because clients take any payload for structured content.
    pub payload: Option<Value>,
    /// The thread it belongs to, as written.
    pub thread_id: Option<Value>,
    /// The message that it answers, as written.
    pub reply_to: Option<Value>,
    /// When it was accepted, in Unix seconds.
    pub timestamp: i64,
    /// When it was accepted.
    pub created_at: String,
    /// When it was accepted.
    #[serde(rename = "createdAt")]
    pub created_at_camel: String,
    /// Its number in the event log.
    pub seq: i64,
    /// Whether the recipient has read it.
    pub read: bool,
    /// Its signature, as written.
    pub signature: Option<Value>,
    /// Its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
}

/// `GET /api/messages?user=`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlatInbox {
    /// Always true.
    pub success: bool,
    /// The caller.
    pub user: String,
    /// How many messages there are on this page.
    pub count: usize,
    /// How many messages are unread in all.
    pub unread: i64,
    /// One entry for each correspondent.
    pub threads: Vec<FlatThread>,
    /// The unread messages of the page.
    pub inbox: Vec<FlatMessage>,
    /// All messages of the page.
    pub messages: Vec<FlatMessage>,
}

/// The exchange with one correspondent, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlatThread {
    /// Both handles.
    pub id: String,
    /// The correspondent.
    pub with: String,
    /// How many of its messages on the page are unread.
    pub unread: u64,
    /// The latest message.
    pub last_message: FlatMessage,
    /// When that was accepted.
    pub updated_at: String,
}

/// `GET /api/messages?user=&with=`: the latest messages of two agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlatExchange {
    /// Always true.
    pub success: bool,
    /// The caller.
    pub user: String,
    /// How many messages there are.
    pub count: usize,
    /// The messages.
    pub messages: Vec<FlatMessage>,
}

/// `GET /api/health`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Whether the server works.
    pub success: bool,
    /// `healthy` or `unhealthy`.
    pub status: Cow<'static, str>,
    /// The server's version.
    pub version: Cow<'static, str>,
    /// `AIRC`.
    pub protocol: Cow<'static, str>,
    /// The version of the protocol.
    pub protocol_version: Cow<'static, str>,
    /// Whether Safe Mode is offered to the caller.
    pub safe_mode: bool,
    /// What is wrong.
    pub reason: Option<String>,
}

/// What an unsigned message said beyond its text; kept with the message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnsignedMembers {
    /// The sender's id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The recipient, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The thread it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Its payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}
