//! What can go wrong: a refusal is the caller's to mend, a fault is ours.

use thiserror::Error;

use crate::nouns::{AgentId, ConversationId, IdError, JsonError, Millis, ScopeId, TaskId};

/// Why a verb was not carried out although the office is well. Data, not prose: each door maps it once.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody of that name, or nobody the caller may know of.
    #[error("there is no agent {agent}{}", near_names(.near))]
    NoSuchAgent {
        /// The name that was asked for.
        agent: String,
        /// Names like it that the caller may see.
        near: Vec<AgentId>,
    },
    /// The name is in use.
    #[error("the name {agent} is taken")]
    AgentExists {
        /// The name.
        agent: AgentId,
    },
    /// The name is one that an agent cannot have.
    #[error("{name:?} cannot be an agent's name: {why}; choose another")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name is easily taken for one that is in use.
    #[error("the name {agent} looks like one that is taken; choose another")]
    LooksTaken {
        /// The name.
        agent: AgentId,
    },
    /// The agent is suspended or has left.
    #[error("{agent} is {state} and cannot do that")]
    WrongState {
        /// Whose state.
        agent: AgentId,
        /// The state.
        state: String,
    },
    /// An agent cannot be its own ancestor.
    #[error("{agent} cannot be placed below itself")]
    CircularParent {
        /// Which agent.
        agent: AgentId,
    },
    /// The caller may see the thing but not do this to it.
    #[error("not allowed: {need}")]
    NotAllowed {
        /// What would be needed.
        need: &'static str,
    },
    /// The recipient takes letters from its contacts only; a request is pending now.
    #[error("{agent} takes letters from contacts only; a request is waiting for an answer")]
    ConsentPending {
        /// The recipient.
        agent: AgentId,
    },
    /// The recipient has blocked the sender, or takes no requests.
    #[error("{agent} does not take letters from you")]
    ConsentBlocked {
        /// The recipient.
        agent: AgentId,
    },
    /// Somebody has too many unanswered requests.
    #[error("{agent} has too many unanswered contact requests")]
    TooManyRequests {
        /// Who.
        agent: AgentId,
    },
    /// No such contact to answer or to end.
    #[error("there is no contact between {from} and {to}")]
    NoSuchContact {
        /// Who asked.
        from: AgentId,
        /// Who answers.
        to: AgentId,
    },
    /// The sender shows itself to fewer people than it wants to reach.
    #[error("your privacy tier does not allow this broadcast")]
    PrivacyMismatch,
    /// The letter would reach nobody.
    #[error("the address reaches nobody")]
    NoRecipients,
    /// Too many recipients, participants, paths, …
    #[error("too many {what}: at most {limit}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Too many bytes.
    #[error("{what} is too large: {got} bytes, at most {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How many bytes are allowed.
        limit: usize,
        /// How many there were.
        got: usize,
    },
    /// The command would keep the writer or a reader for too long.
    #[error("{what} takes too much work; {instead}")]
    TooMuchWork {
        /// What.
        what: &'static str,
        /// What can be asked for instead.
        instead: &'static str,
    },
    /// The account, or the realm, has stored as much as it may.
    #[error("{whose} has stored {limit} bytes, which is all it may; the operator can raise the rule {rule}")]
    QuotaExceeded {
        /// Whose quota.
        whose: String,
        /// How many bytes are allowed.
        limit: u64,
        /// The realm's rule that says so.
        rule: &'static str,
    },
    /// Little is left on the disk, and kept for the operator.
    #[error("the disk is nearly full ({free} bytes are free); the operator has to make room")]
    DiskNearlyFull {
        /// Bytes that are free.
        free: u64,
    },
    /// JSON that could not be shown to its readers again.
    #[error("{field}: {why}")]
    BadJson {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: JsonError,
    },
    /// The same key came with other content.
    #[error("the key {key} was used for other content")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// No such letter in the caller's mail.
    #[error("there is no such message")]
    NoSuchMessage,
    /// No such conversation, or none the caller may know of.
    #[error("there is no conversation {conversation}")]
    NoSuchConversation {
        /// The name that was asked for.
        conversation: ConversationId,
    },
    /// The name is in use.
    #[error("the conversation {conversation} exists already")]
    ConversationExists {
        /// The name.
        conversation: ConversationId,
    },
    /// The conversation has ended.
    #[error("the conversation {conversation} is closed")]
    ConversationClosed {
        /// Which.
        conversation: ConversationId,
    },
    /// The caller does not take part.
    #[error("you are not a participant of {conversation}")]
    NotAParticipant {
        /// Of which conversation.
        conversation: ConversationId,
    },
    /// The caller takes part but lacks a permission.
    #[error("your part in {conversation} does not allow that: {need}")]
    ParticipantMayNot {
        /// In which conversation.
        conversation: ConversationId,
        /// Which permission is missing.
        need: &'static str,
    },
    /// The agent takes part already.
    #[error("{agent} takes part already")]
    AlreadyJoined {
        /// Who.
        agent: AgentId,
    },
    /// The agent does not take part.
    #[error("{agent} does not take part")]
    NoSuchParticipant {
        /// Who.
        agent: AgentId,
    },
    /// No such turn in the conversation.
    #[error("there is no such turn")]
    NoSuchTurn,
    /// No such thread in the conversation.
    #[error("there is no such thread")]
    NoSuchThread,
    /// Neither a well-known content type nor one that starts with `x-`.
    #[error("{content_type:?} is not a content type: text, data, event, reference or x-…")]
    BadContentType {
        /// What was given.
        content_type: String,
    },
    /// Threads are nested too deeply.
    #[error("threads nest at most {limit} deep")]
    ThreadTooDeep {
        /// How deep they may be.
        limit: u32,
    },
    /// No such scope, or none the caller may know of.
    #[error("there is no scope {scope}")]
    NoSuchScope {
        /// The name that was asked for.
        scope: ScopeId,
    },
    /// The name is in use.
    #[error("the scope {scope} exists already")]
    ScopeExists {
        /// The name.
        scope: ScopeId,
    },
    /// The scope has scopes below it.
    #[error("the scope {scope} has scopes below it")]
    ScopeNotEmpty {
        /// Which.
        scope: ScopeId,
    },
    /// No such task, or none the caller may know of.
    #[error("there is no task {task}")]
    NoSuchTask {
        /// The name that was asked for.
        task: TaskId,
    },
    /// The name is in use.
    #[error("the task {task} exists already")]
    TaskExists {
        /// The name.
        task: TaskId,
    },
    /// The task has ended.
    #[error("the task {task} has ended")]
    TaskEnded {
        /// Which.
        task: TaskId,
    },
    /// No such reservation of the caller's.
    #[error("there is no such reservation")]
    NoSuchReservation,
    /// The reservation's key was used for something else.
    #[error("the reservation {key} exists with other content")]
    ReservationExists {
        /// The key.
        key: String,
    },
    /// A path that is not relative, or a pattern that cannot be read.
    #[error("bad path {path:?}: {why}")]
    BadPath {
        /// What was given.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// No such token.
    #[error("there is no such token")]
    NoSuchToken,
    /// No such peer.
    #[error("there is no peer {peer}")]
    NoSuchPeer {
        /// The name that was asked for.
        peer: String,
    },
    /// A name that is not a name.
    #[error(transparent)]
    BadId(#[from] IdError),
    /// A value that makes no sense where it stands.
    #[error("{field}: {why}")]
    BadValue {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The message's time ran out before it was sent.
    #[error("it expired at {at}")]
    AlreadyExpired {
        /// When.
        at: Millis,
    },
    /// A query that the search cannot read.
    #[error("the search cannot read this query: {why}")]
    BadQuery {
        /// What is wrong with it.
        why: String,
    },
    /// A cursor of another history, or one that lies in the future.
    #[error("this cursor is not from this history")]
    StaleCursor,
    /// The read was stopped because it had used up its time or its bytes.
    #[error("this asks for too much at once: {hint}")]
    TooCostly {
        /// What the caller can do instead.
        hint: &'static str,
    },
    /// The office has more to do than it can; try again.
    #[error("the office is busy; try again in a moment")]
    Busy,
}

impl Refusal {
    /// The refusal in one word, the same in every answer, log and metric.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoSuchAgent { .. } => "no_such_agent",
            Self::AgentExists { .. } => "agent_exists",
            Self::BadName { .. } => "bad_name",
            Self::LooksTaken { .. } => "looks_taken",
            Self::WrongState { .. } => "wrong_state",
            Self::CircularParent { .. } => "circular_parent",
            Self::NotAllowed { .. } => "not_allowed",
            Self::ConsentPending { .. } => "consent_pending",
            Self::ConsentBlocked { .. } => "consent_blocked",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::NoSuchContact { .. } => "no_such_contact",
            Self::PrivacyMismatch => "privacy_mismatch",
            Self::NoRecipients => "no_recipients",
            Self::TooMany { .. } => "too_many",
            Self::TooLarge { .. } => "too_large",
            Self::TooMuchWork { .. } => "too_much_work",
            Self::QuotaExceeded { .. } => "quota_exceeded",
            Self::DiskNearlyFull { .. } => "disk_nearly_full",
            Self::BadJson { .. } => "bad_json",
            Self::KeyReused { .. } => "key_reused",
            Self::NoSuchMessage => "no_such_message",
            Self::NoSuchConversation { .. } => "no_such_conversation",
            Self::ConversationExists { .. } => "conversation_exists",
            Self::ConversationClosed { .. } => "conversation_closed",
            Self::NotAParticipant { .. } => "not_a_participant",
            Self::ParticipantMayNot { .. } => "participant_may_not",
            Self::AlreadyJoined { .. } => "already_joined",
            Self::NoSuchParticipant { .. } => "no_such_participant",
            Self::NoSuchTurn => "no_such_turn",
            Self::NoSuchThread => "no_such_thread",
            Self::BadContentType { .. } => "bad_content_type",
            Self::ThreadTooDeep { .. } => "thread_too_deep",
            Self::NoSuchScope { .. } => "no_such_scope",
            Self::ScopeExists { .. } => "scope_exists",
            Self::ScopeNotEmpty { .. } => "scope_not_empty",
            Self::NoSuchTask { .. } => "no_such_task",
            Self::TaskExists { .. } => "task_exists",
            Self::TaskEnded { .. } => "task_ended",
            Self::NoSuchReservation => "no_such_reservation",
            Self::ReservationExists { .. } => "reservation_exists",
            Self::BadPath { .. } => "bad_path",
            Self::NoSuchToken => "no_such_token",
            Self::NoSuchPeer { .. } => "no_such_peer",
            Self::BadId(_) => "bad_id",
            Self::BadValue { .. } => "bad_value",
            Self::AlreadyExpired { .. } => "already_expired",
            Self::BadQuery { .. } => "bad_query",
            Self::StaleCursor => "stale_cursor",
            Self::TooCostly { .. } => "too_costly",
            Self::Busy => "busy",
        }
    }
}

fn near_names(near: &[AgentId]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = near.iter().map(AgentId::as_str).collect();
    format!("; did you mean {}?", names.join(", "))
}

/// What broke on our side. The cause is logged where it happens; a caller sees the kind.
#[derive(Clone, Debug, Error)]
pub enum Fault {
    /// A write failed or the database was found damaged; the realm is read-only until the server is restarted.
    #[error("the realm is read-only: {reason}")]
    Poisoned {
        /// What failed.
        reason: String,
    },
    /// The books cannot be read or opened.
    #[error("the db cannot be used: {reason}")]
    Database {
        /// What failed.
        reason: String,
    },
    /// The files hold less than was acknowledged: opening them would go on as if that had never been.
    #[error(
        "{path} has lost what was acknowledged: {found}. Restore a backup, or run `posthaste doctor --accept-loss` \
         to go on with what is left (the damaged files are kept beside it)"
    )]
    Lost {
        /// Which file.
        path: String,
        /// What was found.
        found: String,
    },
    /// The database was written by a newer program.
    #[error("the database has version {found}, this program knows versions up to {known}")]
    NewerDatabase {
        /// The version of the database.
        found: i64,
        /// The version that this program writes.
        known: i64,
    },
    /// The database has a layout from before the first release.
    #[error(
        "the database was written by a build before the first release (its version {found}), and this program cannot \
         read it; keep the file, and export it with that build if its content is needed"
    )]
    UnreleasedDatabase {
        /// The version that build gave it.
        found: i64,
    },
    /// Another process has the data directory.
    #[error("the data directory {directory} is in use by process {holder}")]
    Locked {
        /// Which directory.
        directory: String,
        /// The holder's process id, as it wrote it down.
        holder: String,
    },
    /// A command met something that cannot be; it was left out and the rest went on.
    #[error("a command failed inside the office: {reason}")]
    Internal {
        /// What failed.
        reason: String,
    },
    /// The office is closing.
    #[error("the office is closing")]
    Closing,
}

impl Fault {
    /// Whether the realm takes no writes because its disk was full. The reason is SQLite's own sentence.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Poisoned { reason } | Self::Database { reason } if reason.contains("disk is full"))
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database { reason: error.to_string() }
    }
}

/// What a verb or view answers when it does not answer.
#[derive(Clone, Debug, Error)]
pub enum EngineError {
    /// The caller's to mend.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Ours to mend.
    #[error(transparent)]
    Failed(#[from] Fault),
}

impl From<rusqlite::Error> for EngineError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl EngineError {
    /// The refusal, if it is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Failed(_) => None,
        }
    }
}
