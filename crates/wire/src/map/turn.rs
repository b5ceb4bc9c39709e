//! Turns, threads and summaries of conversations: `mail/turn`, `mail/thread/…`, `mail/summary` and `mail/replay`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::lenient::{object_or_default, or_default, present};

/// A turn, with its content as its author wrote it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn<'a> {
    /// Its id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The author.
    #[serde(borrow)]
    pub participant: Cow<'a, str>,
    /// When it was recorded, in Unix milliseconds.
    pub timestamp: i64,
    /// The content type.
    #[serde(borrow)]
    pub content_type: Cow<'a, str>,
    /// The content.
    pub content: Cow<'a, RawValue>,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// How it was recorded.
    #[serde(borrow)]
    pub source: TurnSource<'a>,
    /// Who may read it.
    #[serde(borrow)]
    pub visibility: TurnVisibility<'a>,
    /// Always `complete`.
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub metadata: Option<Cow<'a, RawValue>>,
}

/// How a turn was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum TurnSource<'a> {
    /// By a call of its author.
    Explicit {
        /// Always `mail/turn`.
        #[serde(borrow)]
        method: Cow<'a, str>,
    },
    /// From a message that was sent within the conversation.
    #[serde(rename_all = "camelCase")]
    Intercepted {
        /// The message.
        #[serde(borrow)]
        message_id: Cow<'a, str>,
    },
}

/// Who may read a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum TurnVisibility<'a> {
    /// Everyone who may read the conversation.
    All,
    /// Its author.
    Private,
    /// Participants that may see internal turns.
    Internal,
    /// These participants.
    Participants {
        /// Their ids.
        #[serde(borrow)]
        ids: Vec<Cow<'a, str>>,
    },
    /// Participants in these roles.
    Role {
        /// The roles.
        #[serde(borrow)]
        roles: Vec<Cow<'a, str>>,
    },
}

/// [`TurnVisibility`] as clients write it, before its members are checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisibilityParams {
    /// `all`, `private`, `internal`, `participants` or `role`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The participants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// The roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
}

/// The params of `mail/turn`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnParams<'a> {
    /// The conversation.
    #[serde(borrow)]
    pub conversation_id: Cow<'a, str>,
    /// The content type.
    pub content_type: String,
    /// The content.
    #[serde(borrow)]
    pub content: &'a RawValue,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// Who may read it; see [`VisibilityParams`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Value>,
    /// Metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The result of `mail/turn`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnResult<'a> {
    /// The recorded turn.
    #[serde(borrow)]
    pub turn: Turn<'a>,
}

/// The params of `mail/turns/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnsParams {
    /// The conversation.
    pub conversation_id: String,
    /// Which turns.
    #[serde(default, deserialize_with = "object_or_default")]
    pub filter: TurnFilter,
    /// The page size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// `asc` or `desc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// A filter of turns; all members that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnFilter {
    /// Turns of this thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Turns with one of these content types.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
    /// Turns of this author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// Turns after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_turn_id: Option<String>,
    /// Turns before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_turn_id: Option<String>,
    /// Turns after this time, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_timestamp: Option<i64>,
    /// Turns before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_timestamp: Option<i64>,
}

/// The result of `mail/turns/list`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnsResult<'a> {
    /// The turns of this page.
    #[serde(borrow)]
    pub turns: Vec<Turn<'a>>,
    /// Whether another page follows.
    pub has_more: bool,
    /// Where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The params of `mail/replay`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailReplayParams {
    /// The conversation.
    pub conversation_id: String,
    /// Turns after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_turn_id: Option<String>,
    /// Turns after this time, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_timestamp: Option<i64>,
    /// Turns of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The page size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// Turns with one of these content types.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
}

/// The result of `mail/replay`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailReplayResult<'a> {
    /// The turns of this page.
    #[serde(borrow)]
    pub turns: Vec<Turn<'a>>,
    /// Whether another page follows.
    pub has_more: bool,
    /// Number of turns after the starting point, of any content type.
    pub missed_count: i64,
    /// Where the next page starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// Its id.
    pub id: String,
    /// The conversation.
    pub conversation_id: String,
    /// The turn that it branches from.
    pub root_turn_id: String,
    /// Number of turns.
    pub turn_count: i64,
    /// Number of authors.
    pub participant_count: i64,
    /// When it was opened, in Unix milliseconds.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// The agent that opened it.
    pub created_by: String,
    /// The thread that it branches from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<String>,
    /// Its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The params of `mail/thread/create`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadParams {
    /// The conversation.
    pub conversation_id: String,
    /// The turn that it branches from.
    pub root_turn_id: String,
    /// The subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The thread that it branches from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<String>,
}

/// The result of `mail/thread/create`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadResult {
    /// The new thread.
    pub thread: Thread,
}

/// The params of `mail/thread/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadsParams {
    /// The conversation.
    pub conversation_id: String,
    /// Threads that branch from this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<String>,
    /// The page size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// The `nextCursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The result of `mail/thread/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadsResult {
    /// The threads of this page.
    pub threads: Vec<Thread>,
    /// Whether another page follows.
    pub has_more: bool,
    /// Where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The params of `mail/summary`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryParams {
    /// The conversation.
    pub conversation_id: String,
    /// The part of it.
    #[serde(default, deserialize_with = "object_or_default")]
    pub scope: SummaryScope,
    /// Whether to ignore a stored summary.
    #[serde(default, deserialize_with = "or_default")]
    pub regenerate: bool,
    /// What to return besides the text.
    #[serde(default, deserialize_with = "object_or_default")]
    pub include: SummaryInclude,
}

/// A part of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryScope {
    /// The first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_turn_id: Option<String>,
    /// The last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_turn_id: Option<String>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

/// What `mail/summary` returns besides the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SummaryInclude {
    /// The main points.
    #[serde(deserialize_with = "or_default")]
    pub key_points: bool,
    /// What was decided.
    #[serde(deserialize_with = "or_default")]
    pub key_decisions: bool,
    /// Questions without an answer.
    #[serde(deserialize_with = "or_default")]
    pub open_questions: bool,
    /// The authors.
    #[serde(deserialize_with = "or_default")]
    pub participants: bool,
}

/// The result of `mail/summary`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryResult {
    /// The text.
    pub summary: String,
    /// Whether it was made for this call.
    pub generated: bool,
    /// When it was stored, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_at: Option<i64>,
    /// The main points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_points: Option<Vec<String>>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_decisions: Option<Vec<String>>,
    /// Questions without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_questions: Option<Vec<String>>,
    /// The authors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<Vec<String>>,
}
