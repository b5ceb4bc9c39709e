//! Conversations: lists of them, and what was said in one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Message, PageSize, Seq, Timestamp, is_false};

/// The status of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConversationStatus {
    /// Going on.
    Active,
    /// Resting.
    Paused,
    /// Ended successfully.
    Completed,
    /// Ended without success.
    Failed,
    /// Put away.
    Archived,
}

/// Lists conversations, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationsParams {
    /// Only those of this agent; without it, all that the caller may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only active ones.
    #[serde(default, skip_serializing_if = "is_false")]
    pub active: bool,
    /// `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Seq>,
    /// Conversations of one page.
    #[serde(default)]
    pub limit: PageSize,
}

/// A page of conversations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationsResult {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// `cursor` of the next page, if there is one.
    pub next: Option<Seq>,
}

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// Its purpose: `multi-agent`, `agent-task`, `thread`, …
    pub kind: String,
    /// Its status.
    pub status: ConversationStatus,
    /// Its subject.
    pub subject: Option<String>,
    /// The agent that opened it.
    pub created_by: String,
    /// Number of current participants.
    pub participants: i64,
    /// Number of turns.
    pub turns: i64,
    /// Number of threads.
    pub threads: i64,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// Its position in the event log.
    pub seq: Seq,
}

/// Reads a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadParams {
    /// The agent that reads it; the caller if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The conversation's id; or a message's id, the beginning of one, or its number.
    pub id: String,
}

/// What was said in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadResult {
    /// The conversation's id.
    pub id: String,
    /// The conversation, if the caller may see it.
    pub conversation: Option<Conversation>,
    /// Messages and turns, in order.
    pub said: Vec<Said>,
    /// Whether there is more than is listed.
    pub more: bool,
}

/// A message or a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Said {
    /// A turn, which has the member `turn`.
    Turn(Turn),
    /// A message.
    Message(Message),
}

/// A turn of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Its id.
    pub turn: String,
    /// Its position in the event log.
    pub seq: Seq,
    /// Its author.
    pub from: String,
    /// The type of its content.
    pub content_type: String,
    /// Its content, any JSON.
    pub body: Value,
    /// The thread that it is in.
    pub thread: Option<String>,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The content of a turn that is plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextContent {
    /// The text.
    pub text: String,
}

/// A conversation as a file, as the page exports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationFile {
    /// The conversation, as the database has it.
    pub conversation: Value,
    /// Its turns, in order.
    pub turns: Vec<FileTurn>,
    /// Whether turns are missing because there are too many.
    pub cut: bool,
}

/// A turn in a conversation's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileTurn {
    /// Its id.
    pub id: String,
    /// Its position in the event log.
    pub seq: Seq,
    /// When it was recorded.
    pub at: Timestamp,
    /// Its author.
    pub author: String,
    /// The type of its content.
    pub content_type: String,
    /// Its content, any JSON.
    pub content: Value,
    /// The thread that it is in.
    pub thread: Option<String>,
    /// The turn that it answers.
    pub in_reply_to: Option<String>,
    /// Who may read it, as the database has it.
    pub visibility: Value,
    /// Whether it records a message.
    pub intercepted: bool,
    /// The message that it records.
    #[serde(rename = "letter")]
    pub message: Option<FileMessage>,
}

/// The message that a turn records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMessage {
    /// Its id.
    pub id: String,
    /// Its addresses.
    pub to: Vec<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// The kind of message; empty for plain mail.
    pub kind: String,
    /// 1 (urgent) to 5.
    pub priority: u8,
    /// The door by which it was sent.
    pub door: String,
}
