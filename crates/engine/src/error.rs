//! Errors: a refusal is the caller's to correct, a fault is the server's.

use thiserror::Error;

use crate::nouns::{AgentId, ConversationId, IdError, JsonError, Millis, ScopeId, TaskId};

/// Why a verb was not carried out. Carries data for programs and a text for people; each door maps the
/// [class](Refusal::class) once and overrides the refusals that its protocol names itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// No such agent, or none that the caller may see.
    #[error("there is no agent {agent}{}", near_names(.near))]
    NoSuchAgent {
        /// The requested name.
        agent: String,
        /// Similar names that the caller may see.
        near: Vec<AgentId>,
    },
    /// The name is in use.
    #[error("the name {agent} is taken")]
    AgentExists {
        /// The name.
        agent: AgentId,
    },
    /// The name is not allowed for an agent.
    #[error("{name:?} cannot be an agent's name: {why}; choose another")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The name is easily mistaken for one that is in use.
    #[error("the name {agent} looks like one that is taken; choose another")]
    LooksTaken {
        /// The name.
        agent: AgentId,
    },
    /// The agent is suspended or unregistered.
    #[error("{agent} is {state} and cannot do that")]
    WrongState {
        /// The agent.
        agent: AgentId,
        /// The state.
        state: String,
    },
    /// An agent cannot be its own ancestor.
    #[error("{agent} cannot be placed below itself")]
    CircularParent {
        /// The agent.
        agent: AgentId,
    },
    /// The caller may see the thing but not do this to it.
    #[error("not allowed: {need}")]
    NotAllowed {
        /// The missing right.
        need: &'static str,
    },
    /// The recipient accepts messages from contacts only; a contact request is now pending.
    #[error("{agent} accepts messages from contacts only; a contact request is pending")]
    ConsentPending {
        /// The recipient.
        agent: AgentId,
    },
    /// The recipient has blocked the sender, or accepts no contact requests.
    #[error("{agent} does not accept messages from you")]
    ConsentBlocked {
        /// The recipient.
        agent: AgentId,
    },
    /// The agent has too many unanswered contact requests.
    #[error("{agent} has too many unanswered contact requests")]
    TooManyRequests {
        /// The agent.
        agent: AgentId,
    },
    /// No such contact request or contact.
    #[error("there is no contact between {from} and {to}")]
    NoSuchContact {
        /// The agent that asked.
        from: AgentId,
        /// The agent that answers.
        to: AgentId,
    },
    /// The sender is visible to fewer agents than the broadcast addresses.
    #[error("your privacy tier does not allow this broadcast")]
    PrivacyMismatch,
    /// The message has no recipients.
    #[error("the address has no recipients")]
    NoRecipients,
    /// Too many recipients, addresses, paths, …
    #[error("too many {what}: at most {limit}")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Too many reservations, in force or in one call.
    #[error("too many {what}: at most {limit}")]
    TooManyReservations {
        /// Which reservations are counted.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Too many participants, in a conversation or added at once.
    #[error("too many {what}: at most {limit}")]
    TooManyParticipants {
        /// Which participants are counted.
        what: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// Too many bytes.
    #[error("{what} is too large: {got} bytes, at most {limit}")]
    TooLarge {
        /// What is measured.
        what: &'static str,
        /// How many bytes are allowed.
        limit: usize,
        /// How many bytes were given.
        got: usize,
    },
    /// The command would occupy the writer or a reader for too long.
    #[error("{what} takes too much work; {instead}")]
    TooMuchWork {
        /// The expensive part.
        what: &'static str,
        /// A cheaper alternative.
        instead: &'static str,
    },
    /// The account or the realm has reached its storage limit.
    #[error("{whose} has stored {limit} bytes, which is all it may; the operator can raise the rule {rule}")]
    QuotaExceeded {
        /// The account or realm.
        whose: String,
        /// How many bytes are allowed.
        limit: u64,
        /// The realm's rule that sets the limit.
        rule: &'static str,
    },
    /// The rest of the disk is kept for the operator.
    #[error("the disk is nearly full ({free} bytes are free); the operator has to make room")]
    DiskNearlyFull {
        /// Free bytes.
        free: u64,
    },
    /// JSON that other clients could not read.
    #[error("{field}: {why}")]
    BadJson {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: JsonError,
    },
    /// The idempotency or single-use key was used before, with other content.
    #[error("the key {key} was used for other content")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// No such message, or none that the caller may see.
    #[error("there is no such message")]
    NoSuchMessage,
    /// No such conversation, or none that the caller may see.
    #[error("there is no conversation {conversation}")]
    NoSuchConversation {
        /// The requested name.
        conversation: ConversationId,
    },
    /// The name is in use.
    #[error("the conversation {conversation} exists already")]
    ConversationExists {
        /// The name.
        conversation: ConversationId,
    },
    /// The conversation is closed.
    #[error("the conversation {conversation} is closed")]
    ConversationClosed {
        /// The conversation.
        conversation: ConversationId,
    },
    /// The caller is not a participant.
    #[error("you are not a participant of {conversation}")]
    NotAParticipant {
        /// The conversation.
        conversation: ConversationId,
    },
    /// The caller is a participant but lacks a permission.
    #[error("your part in {conversation} does not allow that: {need}")]
    ParticipantMayNot {
        /// The conversation.
        conversation: ConversationId,
        /// The missing permission.
        need: &'static str,
    },
    /// The agent is a participant already.
    #[error("{agent} takes part already")]
    AlreadyJoined {
        /// The agent.
        agent: AgentId,
    },
    /// The agent is not a participant.
    #[error("{agent} does not take part")]
    NoSuchParticipant {
        /// The agent.
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
        /// The maximum depth.
        limit: u32,
    },
    /// No such scope, or none that the caller may see.
    #[error("there is no scope {scope}")]
    NoSuchScope {
        /// The requested name.
        scope: ScopeId,
    },
    /// The name is in use.
    #[error("the scope {scope} exists already")]
    ScopeExists {
        /// The name.
        scope: ScopeId,
    },
    /// The scope has child scopes.
    #[error("the scope {scope} has scopes below it")]
    ScopeNotEmpty {
        /// The scope.
        scope: ScopeId,
    },
    /// No such task, or none that the caller may see.
    #[error("there is no task {task}")]
    NoSuchTask {
        /// The requested name.
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
        /// The task.
        task: TaskId,
    },
    /// The caller has no such reservation.
    #[error("there is no such reservation")]
    NoSuchReservation,
    /// The reservation's key was used for another reservation.
    #[error("the reservation {key} exists with other content")]
    ReservationExists {
        /// The key.
        key: String,
    },
    /// A path that is not relative, or a pattern that cannot be parsed.
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
        /// The requested name.
        peer: String,
    },
    /// A malformed identifier.
    #[error(transparent)]
    BadId(#[from] IdError),
    /// A value that its field does not allow.
    #[error("{field}: {why}")]
    BadValue {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The expiry lies in the past.
    #[error("it expired at {at}")]
    AlreadyExpired {
        /// The expiry.
        at: Millis,
    },
    /// A search query that cannot be parsed.
    #[error("the search cannot read this query: {why}")]
    BadQuery {
        /// What is wrong with it.
        why: String,
    },
    /// A cursor of another event log, or one past its end.
    #[error("this cursor is not from this event log")]
    StaleCursor,
    /// The read used up its time or its bytes and was stopped.
    #[error("this asks for too much at once: {hint}")]
    TooCostly {
        /// A cheaper alternative.
        hint: &'static str,
    },
    /// The queue is full; the caller can try again.
    #[error("the server is busy; try again in a moment")]
    Busy,
}

/// What kind of refusal it is: as much as a protocol without a name of its own for it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalClass {
    /// What was named does not exist, or the caller may not see it.
    NotFound,
    /// The caller lacks a right, a permission or the recipient's consent.
    Forbidden,
    /// The present state does not allow it: a name is taken, a conversation is closed, a key was used.
    Conflict,
    /// The request itself is wrong and will never succeed.
    Invalid,
    /// The request asks for more items, depth or work than a limit allows.
    OverLimit,
    /// The request has too many bytes.
    TooLarge,
    /// Too many requests; later ones may succeed.
    RateLimited,
    /// No storage is left for the caller.
    StorageFull,
    /// The server cannot do it now; the caller can try again.
    Busy,
}

/// Gives each refusal its word and its class.
macro_rules! classify {
    ($($refusal:pat => $word:literal, $class:ident;)*) => {
        impl Refusal {
            /// Every word that [`Refusal::word`] returns.
            pub const WORDS: &[&str] = &[$($word),*];

            /// The refusal in one word, the same in every answer, log and metric.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self {
                    $($refusal => $word,)*
                }
            }

            /// The kind of refusal.
            #[must_use]
            pub fn class(&self) -> RefusalClass {
                match self {
                    $($refusal => RefusalClass::$class,)*
                }
            }
        }
    };
}

classify! {
    Self::NoSuchAgent { .. } => "no_such_agent", NotFound;
    Self::AgentExists { .. } => "agent_exists", Conflict;
    Self::BadName { .. } => "bad_name", Invalid;
    Self::LooksTaken { .. } => "looks_taken", Conflict;
    Self::WrongState { .. } => "wrong_state", Conflict;
    Self::CircularParent { .. } => "circular_parent", Invalid;
    Self::NotAllowed { .. } => "not_allowed", Forbidden;
    Self::ConsentPending { .. } => "consent_pending", Forbidden;
    Self::ConsentBlocked { .. } => "consent_blocked", Forbidden;
    Self::TooManyRequests { .. } => "too_many_requests", RateLimited;
    Self::NoSuchContact { .. } => "no_such_contact", NotFound;
    Self::PrivacyMismatch => "privacy_mismatch", Forbidden;
    Self::NoRecipients => "no_recipients", Invalid;
    Self::TooMany { .. } => "too_many", OverLimit;
    Self::TooManyReservations { .. } => "too_many", OverLimit;
    Self::TooManyParticipants { .. } => "too_many", OverLimit;
    Self::TooLarge { .. } => "too_large", TooLarge;
    Self::TooMuchWork { .. } => "too_much_work", OverLimit;
    Self::QuotaExceeded { .. } => "quota_exceeded", StorageFull;
    Self::DiskNearlyFull { .. } => "disk_nearly_full", StorageFull;
    Self::BadJson { .. } => "bad_json", Invalid;
    Self::KeyReused { .. } => "key_reused", Conflict;
    Self::NoSuchMessage => "no_such_message", NotFound;
    Self::NoSuchConversation { .. } => "no_such_conversation", NotFound;
    Self::ConversationExists { .. } => "conversation_exists", Conflict;
    Self::ConversationClosed { .. } => "conversation_closed", Conflict;
    Self::NotAParticipant { .. } => "not_a_participant", Forbidden;
    Self::ParticipantMayNot { .. } => "participant_may_not", Forbidden;
    Self::AlreadyJoined { .. } => "already_joined", Conflict;
    Self::NoSuchParticipant { .. } => "no_such_participant", NotFound;
    Self::NoSuchTurn => "no_such_turn", NotFound;
    Self::NoSuchThread => "no_such_thread", NotFound;
    Self::BadContentType { .. } => "bad_content_type", Invalid;
    Self::ThreadTooDeep { .. } => "thread_too_deep", OverLimit;
    Self::NoSuchScope { .. } => "no_such_scope", NotFound;
    Self::ScopeExists { .. } => "scope_exists", Conflict;
    Self::ScopeNotEmpty { .. } => "scope_not_empty", Conflict;
    Self::NoSuchTask { .. } => "no_such_task", NotFound;
    Self::TaskExists { .. } => "task_exists", Conflict;
    Self::TaskEnded { .. } => "task_ended", Conflict;
    Self::NoSuchReservation => "no_such_reservation", NotFound;
    Self::ReservationExists { .. } => "reservation_exists", Conflict;
    Self::BadPath { .. } => "bad_path", Invalid;
    Self::NoSuchToken => "no_such_token", NotFound;
    Self::NoSuchPeer { .. } => "no_such_peer", NotFound;
    Self::BadId(_) => "bad_id", Invalid;
    Self::BadValue { .. } => "bad_value", Invalid;
    Self::AlreadyExpired { .. } => "already_expired", Invalid;
    Self::BadQuery { .. } => "bad_query", Invalid;
    Self::StaleCursor => "stale_cursor", Invalid;
    Self::TooCostly { .. } => "too_costly", Busy;
    Self::Busy => "busy", Busy;
}

fn near_names(near: &[AgentId]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = near.iter().map(AgentId::as_str).collect();
    format!("; did you mean {}?", names.join(", "))
}

/// What failed in the server. The cause is logged where it happens; a caller sees the kind.
#[derive(Clone, Debug, Error)]
pub enum Fault {
    /// A write failed or the database was found damaged; the realm is read-only until the server is restarted.
    #[error("the realm is read-only: {reason}")]
    Poisoned {
        /// What failed.
        reason: String,
    },
    /// The database cannot be read or opened.
    #[error("the database cannot be used: {reason}")]
    Database {
        /// What failed.
        reason: String,
    },
    /// The files hold less than was acknowledged. They are not opened, because that would hide the loss.
    #[error(
        "{path} has lost what was acknowledged: {found}. Restore a backup, or run `posthaste doctor --accept-loss` \
         to go on with what is left (the damaged files are kept beside it)"
    )]
    Lost {
        /// The file.
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
    /// Another process uses the data directory.
    #[error("the data directory {directory} is in use by process {holder}")]
    Locked {
        /// The directory.
        directory: String,
        /// The process id in the lock file.
        holder: String,
    },
    /// A command failed unexpectedly; it was rolled back and the rest of its batch was committed.
    #[error("a command failed inside the server: {reason}")]
    Internal {
        /// What failed.
        reason: String,
    },
    /// The server is shutting down.
    #[error("the server is closing")]
    Closing,
}

impl Fault {
    /// Whether the realm is read-only because its disk was full. The reason is SQLite's own text.
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

/// Why a verb or view returned nothing.
#[derive(Clone, Debug, Error)]
pub enum EngineError {
    /// The caller's to correct.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The server's fault.
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
