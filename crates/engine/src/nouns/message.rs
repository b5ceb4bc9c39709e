//! Messages and their deliveries.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{Address, AgentId, ConversationId, Json, MessageId, Millis, Seq, TaskId, ThreadId};

/// How pressing a letter is; smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// Now.
    pub const URGENT: Self = Self(1);
    /// Soon.
    pub const HIGH: Self = Self(2);
    /// In turn.
    pub const NORMAL: Self = Self(3);
    /// When there is time.
    pub const LOW: Self = Self(4);
    /// When there is nothing else.
    pub const BULK: Self = Self(5);
    /// The five tiers, most pressing first.
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

/// What a letter says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Prose.
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
    /// Who may look at a letter besides its sender and recipients.
    Audience {
        /// Nobody.
        Parties = "parties",
        /// Callers that may observe the realm and are members of all scopes that the letter is addressed to. Letters get
        /// it from such a scope; for anything else it is the same as nobody.
        Members = "members",
        /// Callers that may observe the realm.
        Observers = "observers",
    }
}

/// One piece of mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place in the realm's history.
    pub seq: Seq,
    /// Its name for ever.
    pub id: MessageId,
    /// Who sent it.
    pub from: AgentId,
    /// How it was aimed, as the sender put it.
    pub to: Vec<Address>,
    /// What kind of letter it is, in the sender's words; empty for plain mail.
    pub kind: String,
    /// Its heading.
    pub subject: Option<String>,
    /// What it says.
    pub body: Body,
    /// How pressing it is.
    pub priority: Priority,
    /// Whether the sender wants each recipient to acknowledge it.
    pub ack_required: bool,
    /// When it stops being worth delivering.
    pub expires_at: Option<Millis>,
    /// Ties a question and its answers together.
    pub correlation: Option<String>,
    /// The conversation it belongs to.
    pub conversation: Option<ConversationId>,
    /// The thread within that conversation.
    pub thread: Option<ThreadId>,
    /// The letter it answers.
    pub in_reply_to: Option<MessageId>,
    /// The task it serves.
    pub task: Option<TaskId>,
    /// The sender's own name for it: sending the same content under the same key again changes nothing.
    pub key: Option<String>,
    /// A signed envelope, verbatim, for recipients who verify it themselves.
    pub envelope: Option<String>,
    /// What a door cannot express in the fields above.
    pub meta: Option<Json>,
    /// Who may look at it.
    pub audience: Audience,
    /// The door it came by.
    pub via: String,
    /// When it was accepted.
    pub at: Millis,
}

coded! {
    /// In which way a recipient was named.
    RecipientKind {
        /// Addressed.
        To = "to",
        /// Copied in, for all to see.
        Cc = "cc",
        /// Copied in, seen by nobody else.
        Bcc = "bcc",
    }
}

/// How far a letter has come on its way to one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Kept for the recipient.
    Queued = 0,
    /// Handed over.
    Delivered = 1,
    /// Looked at.
    Read = 2,
    /// Acknowledged.
    Acked = 3,
    /// Overtaken by its expiry before it was handed over.
    Expired = 4,
    /// Given up.
    Failed = 5,
}

impl DeliveryState {
    /// The state's word.
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

    /// Whether the recipient has not looked at it yet and still may.
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
    /// In which way the recipient was named.
    pub copy: RecipientKind,
    /// How far it has come.
    pub state: DeliveryState,
    /// When it was handed over.
    pub delivered_at: Option<Millis>,
    /// When the recipient first looked at it.
    pub read_at: Option<Millis>,
    /// When the recipient acknowledged it.
    pub acked_at: Option<Millis>,
    /// What the recipient said when acknowledging, or why delivery failed.
    pub note: Option<String>,
}
