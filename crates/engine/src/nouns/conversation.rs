//! Conversations, their participants, turns and threads.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, AgentKind, Audience, ConversationId, Json, MessageId, Millis, Seq, ThreadId, TurnId};

coded! {
    /// The status of a conversation.
    ConversationStatus {
        /// Going on.
        Active = "active",
        /// Resting.
        Paused = "paused",
        /// Ended successfully.
        Completed = "completed",
        /// Ended without success.
        Failed = "failed",
        /// Put away.
        Archived = "archived",
    }
}

impl ConversationStatus {
    /// Whether no more turns may be added.
    #[must_use]
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Archived)
    }
}

coded! {
    /// How much of the turns before it joined a participant may read.
    HistoryAccess {
        /// Nothing.
        None = "none",
        /// Turns since it joined.
        FromJoin = "from-join",
        /// Everything.
        Full = "full",
    }
}

coded! {
    /// How a participant came into a conversation, which decides what it may do beyond its permissions.
    Standing {
        /// Opened the conversation, or was invited and has joined or recorded a turn since.
        Full = "full",
        /// Was added by another participant and has neither joined nor recorded a turn: its messages in the
        /// conversation are recorded for their sender and recipients only.
        Invited = "invited",
        /// Joined without an invitation, because it may observe: it may record turns, but not close or reopen the
        /// conversation, or change its task.
        Guest = "guest",
    }
}

impl Standing {
    /// Whether it is the default, which is not serialised.
    #[must_use]
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }

    fn full() -> Self {
        Self::Full
    }
}

/// What a participant may do in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// How far back it may read.
    pub history: HistoryAccess,
    /// May see turns marked as internal.
    pub can_see_internal: bool,
}

impl Permissions {
    /// Default permissions of a role.
    #[must_use]
    pub fn for_role(role: &str) -> Self {
        let leads = matches!(role, "initiator" | "moderator");
        Self {
            can_send: true,
            can_observe: true,
            can_invite: leads,
            can_remove: leads,
            can_create_threads: true,
            history: HistoryAccess::Full,
            can_see_internal: false,
        }
    }

    /// These permissions, overridden by the given ones.
    #[must_use]
    pub fn patched(self, patch: &PermissionsPatch) -> Self {
        Self {
            can_send: patch.can_send.unwrap_or(self.can_send),
            can_observe: patch.can_observe.unwrap_or(self.can_observe),
            can_invite: patch.can_invite.unwrap_or(self.can_invite),
            can_remove: patch.can_remove.unwrap_or(self.can_remove),
            can_create_threads: patch.can_create_threads.unwrap_or(self.can_create_threads),
            history: patch.history.unwrap_or(self.history),
            can_see_internal: patch.can_see_internal.unwrap_or(self.can_see_internal),
        }
    }
}

/// Permissions as a caller gives them: only those that differ from the role's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PermissionsPatch {
    /// May record turns.
    pub can_send: Option<bool>,
    /// May read turns.
    pub can_observe: Option<bool>,
    /// May add participants.
    pub can_invite: Option<bool>,
    /// May remove participants.
    pub can_remove: Option<bool>,
    /// May open threads.
    pub can_create_threads: Option<bool>,
    /// How far back it may read.
    pub history: Option<HistoryAccess>,
    /// May see turns marked as internal.
    pub can_see_internal: Option<bool>,
}

/// A conversation: participants, turns and threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// Its purpose: `multi-agent`, `agent-task`, `thread`, …
    pub kind: String,
    /// Where it is in its life.
    pub status: ConversationStatus,
    /// Its subject.
    pub subject: Option<String>,
    /// The conversation that it was opened from.
    pub parent: Option<ConversationId>,
    /// The turn that it was opened from.
    pub parent_turn: Option<TurnId>,
    /// The agent that opened it.
    pub created_by: AgentId,
    /// Whether members of the realm may read it without participating.
    pub audience: Audience,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// Number of current participants.
    pub participant_count: i64,
    /// Number of turns.
    pub turn_count: i64,
    /// Number of threads.
    pub thread_count: i64,
    /// When it was opened.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// When it was closed.
    pub closed_at: Option<Millis>,
    /// Its seq in the event log.
    pub seq: Seq,
}

/// One agent's participation in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent.
    pub agent: AgentId,
    /// What kind of agent it is.
    pub kind: AgentKind,
    /// Its role.
    pub role: String,
    /// What it may do.
    pub permissions: Permissions,
    /// When it joined.
    pub joined_at: Millis,
    /// When it left.
    pub left_at: Option<Millis>,
    /// The seq at which it joined; older turns are "before it joined".
    pub joined: Seq,
    /// How it joined.
    #[serde(default = "Standing::full", skip_serializing_if = "Standing::is_full")]
    pub standing: Standing,
}

/// Who may read a turn. The author always may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnVisibility {
    /// All readers of the conversation.
    All,
    /// These agents.
    Agents(Vec<AgentId>),
    /// Participants in these roles.
    Roles(Vec<String>),
    /// Participants that may see internal turns.
    Internal,
    /// Only the author.
    Private,
}

/// How a turn was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSource {
    /// Recorded by a verb of its author.
    Explicit,
    /// A message that was sent within the conversation.
    Intercepted(MessageId),
}

/// The content type of a turn: one of the well-known types, or one that starts with `x-`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentType(String);

impl ContentType {
    /// The well-known types.
    pub const KNOWN: [&'static str; 4] = ["text", "data", "event", "reference"];

    /// Keeps a type if it is well known or an extension.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let extension = text.strip_prefix("x-").is_some_and(|rest| !rest.is_empty());
        (text.len() <= 128 && (extension || Self::KNOWN.contains(&text))).then(|| Self(text.to_owned()))
    }

    /// The type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One contribution to a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its seq in the event log.
    pub seq: Seq,
    /// Its id.
    pub id: TurnId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread, if it belongs to one.
    pub thread: Option<ThreadId>,
    /// Its author.
    pub author: AgentId,
    /// Its content type.
    pub content_type: String,
    /// Its content.
    pub content: Json,
    /// The turn it answers.
    pub in_reply_to: Option<TurnId>,
    /// Who may read it.
    pub visibility: TurnVisibility,
    /// How it was recorded.
    pub source: TurnSource,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// When it was recorded.
    pub at: Millis,
}

/// A discussion within a conversation that starts from one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread it branched off from.
    pub parent: Option<ThreadId>,
    /// The turn it starts from.
    pub root: TurnId,
    /// Its subject.
    pub subject: Option<String>,
    /// Nesting depth, itself included.
    pub depth: u32,
    /// Turns recorded in it; the root is not one of them.
    pub turn_count: i64,
    /// Number of authors in it.
    pub participant_count: i64,
    /// The agent that opened it.
    pub created_by: AgentId,
    /// When it was opened.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// Its seq in the event log.
    pub seq: Seq,
}

/// The summary of a conversation, made from its own sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// A few sentences.
    pub text: String,
    /// The main points.
    pub key_points: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// Questions without an answer.
    pub open_questions: Vec<String>,
    /// What is to be done, and whether it is done.
    pub actions: Vec<(String, bool)>,
    /// The authors.
    pub participants: Vec<String>,
    /// Mentioned names, and how often.
    pub mentions: Vec<(String, usize)>,
    /// Number of contributions that it is based on.
    pub lines: usize,
}
