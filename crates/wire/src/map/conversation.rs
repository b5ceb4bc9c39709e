//! Conversations and their participants: `mail/create`, `mail/get`, `mail/list`, `mail/join` and the like.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::{object, object_or_default, or_default, some_object, some_objects};
use super::turn::{Thread, Turn};

/// A conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// Its purpose, such as `multi-agent`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `active`, `paused`, `completed`, `failed` or `archived`.
    pub status: String,
    /// Number of current participants.
    pub participant_count: i64,
    /// When it was opened, in Unix milliseconds.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// The agent that opened it.
    pub created_by: String,
    /// Metadata.
    pub metadata: Value,
    /// Its subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The conversation that it was opened from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_conversation_id: Option<String>,
    /// The turn that it was opened from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<String>,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<i64>,
}

/// A participant of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Participant {
    /// The agent.
    pub id: String,
    /// The conversation.
    pub conversation_id: String,
    /// `agent`, `user` or `system`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// Its role in the conversation.
    pub role: String,
    /// When it joined, in Unix milliseconds.
    pub joined_at: i64,
    /// What it may do.
    pub permissions: Permissions,
    /// When it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<i64>,
}

/// What a participant may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permissions {
    /// May record turns.
    pub can_send: bool,
    /// May read turns.
    pub can_observe: bool,
    /// May add participants.
    pub can_invite: bool,
    /// May remove participants.
    pub can_remove: bool,
    /// May open threads.
    pub can_create_threads: bool,
    /// How far back it may read: `none`, `from-join` or `full`.
    pub history_access: Cow<'static, str>,
    /// May see internal turns.
    pub can_see_internal: bool,
}

/// Permissions that differ from those of the role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsPatch {
    /// May record turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_send: Option<bool>,
    /// May read turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_observe: Option<bool>,
    /// May add participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_invite: Option<bool>,
    /// May remove participants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_remove: Option<bool>,
    /// May open threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_create_threads: Option<bool>,
    /// How far back it may read: `none`, `from-join` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_access: Option<String>,
    /// May see internal turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_see_internal: Option<bool>,
}

/// An agent that is to participate in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitee {
    /// The agent.
    pub id: String,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Permissions that differ from those of the role.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionsPatch>,
}

/// The params of `mail/create`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateParams {
    /// The purpose: `user-session`, `agent-task`, `multi-agent` or `mixed`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The conversation that it is opened from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_conversation_id: Option<String>,
    /// The turn that it is opened from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_turn_id: Option<String>,
    /// The participants besides the caller.
    #[serde(deserialize_with = "some_objects", skip_serializing_if = "Option::is_none")]
    pub initial_participants: Option<Vec<Invitee>>,
    /// The first turn.
    #[serde(deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub initial_turn: Option<InitialTurn>,
    /// Metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The first turn of a new conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitialTurn {
    /// The content type.
    pub content_type: String,
    /// The content.
    pub content: Value,
    /// A [`super::TurnVisibility`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Value>,
}

/// The result of `mail/create`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateResult<'a> {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller as a participant.
    pub participant: Participant,
    /// The first turn.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub initial_turn: Option<Turn<'a>>,
}

/// The params of `mail/close`, `mail/reopen`, `mail/leave` and `mail/presence`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationParams {
    /// The conversation.
    pub conversation_id: String,
    /// Why it is closed or left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of `mail/close` and `mail/reopen`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationResult {
    /// The conversation after the change.
    pub conversation: Conversation,
}

/// The params of `mail/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {
    /// The conversation.
    pub conversation_id: String,
    /// What to return besides the conversation.
    #[serde(default, deserialize_with = "object_or_default")]
    pub include: Include,
}

/// What `mail/get` returns besides the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Include {
    /// Its participants.
    #[serde(deserialize_with = "or_default")]
    pub participants: bool,
    /// Its threads.
    #[serde(deserialize_with = "or_default")]
    pub threads: bool,
    /// Its latest turns: their number, or true for ten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent_turns: Option<Value>,
    /// Its statistics.
    #[serde(deserialize_with = "or_default")]
    pub stats: bool,
}

/// The result of `mail/get`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetResult<'a> {
    /// The conversation.
    pub conversation: Conversation,
    /// Its participants, in the order in which they joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<Vec<Participant>>,
    /// Its threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<Thread>>,
    /// Its latest turns, newest first.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub recent_turns: Option<Vec<Turn<'a>>>,
    /// Its statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
}

/// Statistics of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Number of turns.
    pub total_turns: i64,
    /// Number of turns per content type.
    pub turns_by_content_type: Map<String, Value>,
    /// Number of current participants.
    pub active_participants: i64,
    /// Number of threads.
    pub thread_count: i64,
}

/// The params of `mail/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListParams {
    /// Which conversations.
    #[serde(deserialize_with = "object_or_default")]
    pub filter: ListFilter,
    /// The page size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// The `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A filter of conversations; all members that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListFilter {
    /// Their purpose.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Words>,
    /// Their status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Words>,
    /// A participant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant_id: Option<String>,
    /// Opened after this time, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_after: Option<i64>,
    /// Opened before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<i64>,
    /// Opened from this conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_conversation_id: Option<String>,
}

/// One word or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Words {
    /// All words; none if the member is absent.
    #[must_use]
    pub fn list(given: Option<Self>) -> Vec<String> {
        match given {
            None => Vec::new(),
            Some(Self::One(word)) => vec![word],
            Some(Self::Many(words)) => words,
        }
    }
}

/// The result of `mail/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListResult {
    /// The conversations of this page.
    pub conversations: Vec<Conversation>,
    /// Whether another page follows.
    pub has_more: bool,
    /// Where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The result of `mail/presence`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresenceResult {
    /// The conversation.
    pub conversation_id: String,
    /// Its participants.
    pub participants: Vec<Presence>,
}

/// Whether a participant is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    /// The participant.
    pub participant_id: String,
    /// `online` or `offline`.
    pub presence: Cow<'static, str>,
}

/// The params of `mail/join`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinParams {
    /// The conversation.
    pub conversation_id: String,
    /// The role to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Which earlier turns to return.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
}

/// Which earlier turns `mail/join` returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatchUp {
    /// Turns after this turn or time; `recent` and `beginning` are allowed too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// Maximum number of turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Value>,
    /// Whether to return a summary.
    #[serde(deserialize_with = "or_default")]
    pub include_summary: bool,
}

/// The result of `mail/join`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinResult<'a> {
    /// The conversation.
    pub conversation: Conversation,
    /// The caller as a participant.
    pub participant: Participant,
    /// Earlier turns, oldest first.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Turn<'a>>>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_cursor: Option<String>,
    /// A summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The result of `mail/leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveResult {
    /// Always true.
    pub success: bool,
    /// When, in Unix milliseconds.
    pub left_at: Option<i64>,
}

/// The params of `mail/invite`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InviteParams {
    /// The conversation.
    pub conversation_id: String,
    /// The new participant.
    #[serde(deserialize_with = "object")]
    pub participant: Invitee,
    /// A message to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The payload of the message that an invited agent receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// Always `mail.invitation`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The conversation.
    pub conversation_id: String,
    /// What the inviting agent wrote.
    pub message: String,
}

/// The result of `mail/invite`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteResult {
    /// Always true.
    pub invited: bool,
    /// The new participant.
    pub participant: Participant,
    /// Always false: invited agents participate at once.
    pub pending: bool,
}
