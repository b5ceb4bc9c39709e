//! Messages and their deliveries.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{Address, AgentId, ConversationId, Json, MessageId, Millis, Seq, TaskId, ThreadId};

/// The priority of a message; smaller is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// Handle immediately.
    pub const URGENT: Self = Self(1);
    /// Handle soon.
    pub const HIGH: Self = Self(2);
    /// Handle in order.
    pub const NORMAL: Self = Self(3);
    /// Handle when there is time.
    pub const LOW: Self = Self(4);
    /// Handle when there is nothing else to do.
    pub const BULK: Self = Self(5);
    /// The five tiers, most urgent first.
    pub const TIERS: [Self; 5] = [Self::URGENT, Self::HIGH, Self::NORMAL, Self::LOW, Self::BULK];

    /// The tier's number, 1 to 5.
    #[must_use]
    pub fn tier(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Priority {
    type Error = &'static str;
    fn try_from(tier: u8) -> Result<Self, Self::Error> {
        if (1..=5).contains(&tier) { Ok(Self(tier)) } else { Err("a priority tier is 1 to 5") }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> u8 {
        priority.0
    }
}

impl ToSql for Priority {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.0))
    }
}

impl FromSql for Priority {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let tier = u8::column_result(value)?;
        Self::try_from(tier).map_err(|_| FromSqlError::OutOfRange(tier.into()))
    }
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Plain text.
    Text(String),
    /// A JSON value, byte for byte as it came.
    Json(Json),
}

impl Body {
    /// The stored text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Json(json) => json.as_str(),
        }
    }
}

coded! {
    /// Who may see a message besides its sender and recipients.
    Audience {
        /// No other caller.
        Parties = "parties",
        /// Callers that may observe the realm and are members of all scopes that the message is addressed to. Messages
        /// get it from such a scope; for anything else it is the same as `Parties`.
        Members = "members",
        /// Callers that may observe the realm.
        Observers = "observers",
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its seq in the event log.
    pub seq: Seq,
    /// Its id.
    pub id: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The addresses, as the sender gave them.
    pub to: Vec<Address>,
    /// The kind of message, chosen by the sender; empty for plain mail.
    pub kind: String,
    /// Its subject.
    pub subject: Option<String>,
    /// Its content.
    pub body: Body,
    /// Its priority.
    pub priority: Priority,
    /// Whether the sender wants each recipient to acknowledge it.
    pub ack_required: bool,
    /// When it stops being worth delivering.
    pub expires_at: Option<Millis>,
    /// Connects a question with its answers.
    pub correlation: Option<String>,
    /// The conversation it belongs to.
    pub conversation: Option<ConversationId>,
    /// The thread within that conversation.
    pub thread: Option<ThreadId>,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// The task that it belongs to.
    pub task: Option<TaskId>,
    /// The sender's idempotency key: sending the same content under the same key again changes nothing.
    pub key: Option<String>,
    /// A signed envelope, verbatim, for recipients that verify it themselves.
    pub envelope: Option<String>,
    /// Data of the door that the fields above cannot express.
    pub meta: Option<Json>,
    /// Who may see it besides the parties.
    pub audience: Audience,
    /// The door by which it was sent.
    pub via: String,
    /// When it was accepted.
    pub at: Millis,
}

coded! {
    /// How a recipient was addressed.
    RecipientKind {
        /// Addressed.
        To = "to",
        /// Copied in, visible to all.
        Cc = "cc",
        /// Copied in, not visible to other recipients.
        Bcc = "bcc",
    }
}

/// The state of a message's delivery to one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waits for the recipient.
    Queued = 0,
    /// Delivered.
    Delivered = 1,
    /// Read by the recipient.
    Read = 2,
    /// Acknowledged by the recipient.
    Acked = 3,
    /// Expired before it was delivered.
    Expired = 4,
    /// Given up.
    Failed = 5,
}

impl DeliveryState {
    /// The state's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Acked => "acked",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }

    /// Whether the recipient has not read it yet and still may.
    #[must_use]
    pub fn is_unread(self) -> bool {
        matches!(self, Self::Queued | Self::Delivered)
    }
}

impl ToSql for DeliveryState {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(*self as u8))
    }
}

impl FromSql for DeliveryState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match i64::column_result(value)? {
            0 => Self::Queued,
            1 => Self::Delivered,
            2 => Self::Read,
            3 => Self::Acked,
            4 => Self::Expired,
            5 => Self::Failed,
            other => return Err(FromSqlError::OutOfRange(other)),
        })
    }
}

/// One message for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: Seq,
    /// The recipient.
    pub agent: AgentId,
    /// How the recipient was addressed.
    pub copy: RecipientKind,
    /// The state of the delivery.
    pub state: DeliveryState,
    /// When it was delivered.
    pub delivered_at: Option<Millis>,
    /// When the recipient first read it.
    pub read_at: Option<Millis>,
    /// When the recipient acknowledged it.
    pub acked_at: Option<Millis>,
    /// The recipient's note on acknowledging, or why delivery failed.
    pub note: Option<String>,
}
