//! Messages, inboxes, threads, and the start of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PlacedProject, Project, RegisteredAgent, Reserved};

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Message {
    pub id: i64,
    pub project_id: i64,
    pub sender_id: i64,
    pub thread_id: Option<String>,
    pub topic: Option<String>,
    pub subject: String,
    pub importance: String,
    pub ack_required: bool,
    pub created_ts: String,
    pub attachments: Vec<Value>,
    pub from: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_md: Option<String>,
}

/// A message as its recipient sees it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct InboxMessage {
    #[serde(flatten)]
    pub message: Message,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<String>,
}

/// A message as its sender sees it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SentMessage {
    #[serde(flatten)]
    pub message: Message,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
}

/// A message with its recipients and those that acknowledged it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TrackedMessage {
    #[serde(flatten)]
    pub sent: SentMessage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledgements: Option<Vec<Acknowledgement>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Acknowledgement {
    pub agent: String,
    pub acknowledged_at: String,
    pub response: Option<String>,
}

/// `send_message`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SendReceipt {
    pub deliveries: [Delivery; 1],
    pub count: u32,
    pub attachments: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_sender: Option<bool>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Delivery {
    pub project: String,
    pub payload: SentMessage,
}

/// `reply_message`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reply {
    #[serde(flatten)]
    pub message: SentMessage,
    pub reply_to: i64,
    pub deliveries: [Delivery; 1],
    pub count: u32,
}

/// `mark_message_read`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReadMessage {
    pub message_id: i64,
    pub read: bool,
    pub read_at: Option<String>,
}

/// `acknowledge_message` and `acknowledge_broadcast`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AcknowledgedMessage {
    pub message_id: i64,
    pub acknowledged: bool,
    pub acknowledged_at: Option<String>,
    pub read_at: Option<String>,
}

/// `wait_for_mail` and `await_message`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Waited {
    pub count: usize,
    pub messages: Vec<InboxMessage>,
    pub timed_out: bool,
    pub cursor: Option<i64>,
}

/// A row of `search_messages`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SearchHit {
    pub id: i64,
    pub subject: String,
    pub importance: String,
    /// 0 or 1.
    pub ack_required: i32,
    pub created_ts: String,
    pub thread_id: Option<String>,
    pub from: String,
    pub snippet: String,
}

/// `summarize_thread` for one thread.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ThreadAnswer {
    pub thread_id: String,
    pub summary: ThreadSummary,
    /// Absent where several threads are summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<ExampleMessage>>,
    /// Said again for `macro_prepare_thread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_messages: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ThreadSummary {
    pub participants: Vec<String>,
    pub key_points: Vec<String>,
    pub action_items: Vec<String>,
    pub decisions: Vec<String>,
    pub open_questions: Vec<String>,
    pub total_messages: usize,
    pub open_actions: usize,
    pub done_actions: usize,
    pub mentions: Vec<Mention>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Mention {
    pub name: String,
    pub count: usize,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ExampleMessage {
    pub id: i64,
    pub subject: String,
    pub from: String,
    pub created_ts: String,
}

/// `summarize_thread` for several threads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ThreadSummaries {
    pub threads: Vec<ThreadAnswer>,
    pub aggregate: SummaryAggregate,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SummaryAggregate {
    pub top_mentions: Vec<Mention>,
    pub action_items: Vec<String>,
    pub key_points: Vec<String>,
}

/// `macro_start_session`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Session {
    pub project: PlacedProject,
    pub agent: RegisteredAgent,
    pub registration_token: String,
    pub file_reservations: Reserved,
    pub inbox: Vec<InboxMessage>,
}

/// `macro_prepare_thread`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PreparedThread {
    pub project: Project,
    pub agent: RegisteredAgent,
    pub thread: ThreadAnswer,
    pub inbox: Vec<InboxMessage>,
}

/// A row of `resource://mailbox/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum MailboxMessage {
    Received(InboxMessage),
    Sent(TrackedMessage),
}

/// `resource://inbox/…`, `outbox`, `mailbox` and the views.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Mailbox<M> {
    pub project: String,
    pub agent: String,
    pub count: usize,
    pub messages: Vec<M>,
}

/// `resource://thread/…`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ThreadMessages {
    pub project: String,
    pub thread_id: String,
    pub messages: Vec<TrackedMessage>,
}
