//! Conversations, their participants, turns and threads.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, AgentKind, Audience, ConversationId, Json, MessageId, Millis, Seq, ThreadId, TurnId};

coded! {
    /// Where a conversation is in its life.
    ConversationStatus {
        /// Going on.
        Active = "active",
        /// Resting.
        Paused = "paused",
        /// Ended well.
        Completed = "completed",
        /// Ended badly.
        Failed = "failed",
        /// Put away.
        Archived = "archived",
    }
}

impl ConversationStatus {
    /// Whether nothing may be added any more.
    #[must_use]
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Archived)
    }
}

coded! {
    /// How much of what was said before they came a participant may read.
    HistoryAccess {
        /// Nothing.
        None = "none",
        /// What was said since they joined.
        FromJoin = "from-join",
        /// Everything.
        Full = "full",
    }
}

coded! {
    /// How a participant came into a conversation, which decides what it may do beyond its permissions.
    Standing {
        /// Opened the conversation, or was invited and has joined or spoken since.
        Full = "full",
        /// Was added by another participant and has neither joined nor spoken: its messages under the conversation's name
        /// are recorded for their sender and recipients only.
        Invited = "invited",
        /// Joined without an invitation, because it may observe: it may speak, but not close or reopen the conversation, or
        /// change its task.
        Guest = "guest",
    }
}

impl Standing {
    /// Whether it is the usual one, which is not written out.
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
    /// May bring others in.
    pub can_invite: bool,
    /// May put others out.
    pub can_remove: bool,
    /// May open threads.
    pub can_create_threads: bool,
    /// How far back they may read.
    pub history: HistoryAccess,
    /// May see turns marked as internal.
    pub can_see_internal: bool,
}

impl Permissions {
    /// What a role may do unless told otherwise.
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

    /// These permissions with the given ones laid over them.
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

/// Permissions as a caller gives them: only what differs from the role's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PermissionsPatch {
    /// May record turns.
    pub can_send: Option<bool>,
    /// May read turns.
    pub can_observe: Option<bool>,
    /// May bring others in.
    pub can_invite: Option<bool>,
    /// May put others out.
    pub can_remove: Option<bool>,
    /// May open threads.
    pub can_create_threads: Option<bool>,
    /// How far back they may read.
    pub history: Option<HistoryAccess>,
    /// May see turns marked as internal.
    pub can_see_internal: Option<bool>,
}

/// Participants, turns and threads under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its name.
    pub id: ConversationId,
    /// What it is for: `multi-agent`, `agent-task`, `thread`, …
    pub kind: String,
    /// Where it is in its life.
    pub status: ConversationStatus,
    /// Its heading.
    pub subject: Option<String>,
    /// The conversation it came out of.
    pub parent: Option<ConversationId>,
    /// The turn it came out of.
    pub parent_turn: Option<TurnId>,
    /// Who opened it.
    pub created_by: AgentId,
    /// Whether members of the realm may read it without taking part.
    pub audience: Audience,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// Those who take part now.
    pub participant_count: i64,
    /// Turns recorded so far.
    pub turn_count: i64,
    /// Threads opened so far.
    pub thread_count: i64,
    /// When it was opened.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// When it ended.
    pub closed_at: Option<Millis>,
    /// Its place in the realm's history.
    pub seq: Seq,
}

/// One agent's part in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// The conversation.
    pub conversation: ConversationId,
    /// The agent.
    pub agent: AgentId,
    /// What sort of correspondent it is.
    pub kind: AgentKind,
    /// The part it plays.
    pub role: String,
    /// What it may do.
    pub permissions: Permissions,
    /// When it came.
    pub joined_at: Millis,
    /// When it left.
    pub left_at: Option<Millis>,
    /// Where in the history it came: what is older is "before it joined".
    pub joined: Seq,
    /// How it came.
    #[serde(default = "Standing::full", skip_serializing_if = "Standing::is_full")]
    pub standing: Standing,
}

/// Who may read a turn. The author always may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnVisibility {
    /// Everyone who may read the conversation.
    All,
    /// These agents.
    Agents(Vec<AgentId>),
    /// Participants in these roles.
    Roles(Vec<String>),
    /// Participants who may see internal turns.
    Internal,
    /// Nobody else.
    Private,
}

/// How a turn came to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSource {
    /// Somebody recorded it.
    Explicit,
    /// It is a letter that was sent within the conversation.
    Intercepted(MessageId),
}

/// What a turn contains: one of the well-known types, or one that starts with `x-`.
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
    /// Its place in the realm's history.
    pub seq: Seq,
    /// Its name.
    pub id: TurnId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread, if it was said in one.
    pub thread: Option<ThreadId>,
    /// Who said it.
    pub author: AgentId,
    /// What it contains.
    pub content_type: String,
    /// What was said.
    pub content: Json,
    /// The turn it answers.
    pub in_reply_to: Option<TurnId>,
    /// Who may read it.
    pub visibility: TurnVisibility,
    /// How it came to be recorded.
    pub source: TurnSource,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// When it was recorded.
    pub at: Millis,
}

/// A discussion within a conversation that starts from one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its name.
    pub id: ThreadId,
    /// The conversation.
    pub conversation: ConversationId,
    /// The thread it branched off from.
    pub parent: Option<ThreadId>,
    /// The turn it starts from.
    pub root: TurnId,
    /// Its heading.
    pub subject: Option<String>,
    /// How many threads it is nested in, itself included.
    pub depth: u32,
    /// Turns recorded in it; the root is not one of them.
    pub turn_count: i64,
    /// Those who have spoken in it.
    pub participant_count: i64,
    /// Who opened it.
    pub created_by: AgentId,
    /// When it was opened.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
    /// Its place in the realm's history.
    pub seq: Seq,
}

/// The gist of a conversation, made from its own sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// A few sentences.
    pub text: String,
    /// What mattered.
    pub key_points: Vec<String>,
    /// What was settled.
    pub decisions: Vec<String>,
    /// What nobody has answered.
    pub open_questions: Vec<String>,
    /// What is to be done, and whether it was.
    pub actions: Vec<(String, bool)>,
    /// Who took part.
    pub participants: Vec<String>,
    /// Who was mentioned, and how often.
    pub mentions: Vec<(String, usize)>,
    /// How many contributions it rests on.
    pub lines: usize,
}
