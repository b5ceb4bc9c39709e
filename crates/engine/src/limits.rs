//! Every limit of the engine, with the reason. Doors report them and answer in their own form when one is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::nouns::AgentId;

/// Limits that decide outcomes. They are kept in the database and change only by a verb, so that the same commands give
/// the same database everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Threads inside threads; deeper nesting is unreadable.
    pub thread_depth: u32,
    /// Active reservations of one agent in one scope; more is hoarding.
    pub reservations_per_scope: u32,
    /// Days that a reservation may last from now on; one that is needed for longer is renewed.
    pub reservation_days: u32,
    /// Path patterns in one reservation; each is compared with every other in the scope.
    pub paths_per_reservation: u32,
    /// The longest path pattern that can be reserved, in bytes.
    pub path_bytes: u32,
    /// Wildcards `*` and `**` in one path pattern: comparing two patterns costs most where both have many.
    pub path_wildcards: u32,
    /// Paths in force in one scope, of all agents together: each new one is compared with them. One owner's agents may
    /// have half of them.
    pub paths_per_scope: u32,
    /// Paths in force of one agent in all scopes: giving all back is one command.
    pub paths_per_agent: u32,
    /// Work that comparing the paths of one command may take, in steps of a few nanoseconds.
    pub glob_steps: u64,
    /// Conflicts that one command reports; each is an event.
    pub conflicts: u32,
    /// Recipients of one message, after groups are resolved.
    pub recipients: u32,
    /// Groups (a role, a scope, everyone, …) that one message is addressed to: each has its members looked at.
    pub groups: u32,
    /// Agents that one owner may have in force, unless it runs the realm: what is sent to everyone is looked up for each.
    pub agents_per_owner: u32,
    /// Scopes that one owner may have made, unless it runs the realm.
    pub scopes_per_owner: u32,
    /// Scopes that one agent may be a member of.
    pub scopes_per_agent: u32,
    /// Participants that one command brings in, and members that one command puts out of scopes.
    pub changes_per_command: u32,
    /// Agents and scopes that the bounds of one agent name.
    pub bounds_names: u32,
    /// Participants of one conversation.
    pub participants: u32,
    /// Unanswered contact requests that one agent may have received.
    pub pending_contacts: u32,
    /// Bytes of mail that one owner's agents together may have stored, unless it runs the realm; 0 is no limit. Mail is kept
    /// for good, so this is about what a disk holds.
    pub mail_bytes_per_sender: u64,
    /// Bytes of mail that the realm may have stored before it takes no more of plain callers; 0 is no limit.
    pub mail_bytes_per_realm: u64,
    /// Rows that one sweep changes; the rest waits for the next, so that a sweep never holds up mail.
    pub sweep_rows: u32,
    /// Whom an agent may write to in tasks that the office moves along, where that is limited. Its other mail is not.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reach: BTreeMap<AgentId, BTreeSet<AgentId>>,
}

impl Rules {
    /// All rules as the database keeps them.
    pub(crate) fn to_json(&self) -> String {
        // Plain data with text keys: writing it as JSON cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads rules from the database. Commands may leave rules out, which means the default; the database may not,
    /// because another program may have another default.
    pub(crate) fn from_json(text: &str) -> Result<Self, String> {
        let rules: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let given: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let all: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&rules.to_json()).map_err(|error| error.to_string())?;
        if let Some(missing) = all.keys().find(|rule| !given.contains_key(*rule)) {
            return Err(format!("the rule `{missing}` is missing"));
        }
        match given.keys().find(|rule| !all.contains_key(*rule) && *rule != "reach") {
            Some(unknown) => Err(format!("the rule `{unknown}` is not known to this program")),
            None => Ok(rules),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            thread_depth: 10,
            reservations_per_scope: 10,
            reservation_days: 30,
            paths_per_reservation: 100,
            path_bytes: 256,
            path_wildcards: 8,
            paths_per_scope: 5_000,
            paths_per_agent: 10_000,
            glob_steps: 30_000_000,
            conflicts: 1_000,
            recipients: 20_000,
            groups: 16,
            agents_per_owner: 10_000,
            scopes_per_owner: 1_000,
            scopes_per_agent: 1_000,
            changes_per_command: 2_000,
            bounds_names: 256,
            participants: 10_000,
            pending_contacts: 100,
            mail_bytes_per_sender: 8 << 30,
            mail_bytes_per_realm: 64 << 30,
            sweep_rows: 1_000,
            reach: BTreeMap::new(),
        }
    }
}

/// Limits of the running process: they decide whether a command is taken at all, never what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A message's subject, body, envelope and meta together. What is bigger belongs in a file.
    pub message_bytes: usize,
    /// Addresses in one message, before groups are resolved.
    pub addresses: usize,
    /// Any other text a verb carries (names, descriptions, reasons, meta).
    pub text_bytes: usize,
    /// The entry of an agent, a scope, a contact or a reservation, all its text together.
    pub entry_bytes: usize,
    /// Commands waiting for the writer.
    pub queue_commands: usize,
    /// Bytes waiting for the writer, so that a full queue of large letters fits in memory.
    pub queue_bytes: usize,
    /// How long a caller waits for a place in the queue before it is told that the office is busy.
    pub queue_wait: Duration,
    /// How long a command waits before the writer takes it up, from the moment it was asked for. After that it is taken out
    /// of the queue, and its caller is told that the office is busy.
    pub answer_wait: Duration,
    /// Commands of one caller that wait for the writer or are in its hands, where the door knows one caller from another
    /// and others are about: enough for one sync to serve many, few enough that others need not wait long behind them.
    pub share_commands: usize,
    /// The same while nobody else is about: enough to keep the writer busy, few enough that whoever comes first stands
    /// behind milliseconds of work.
    pub share_alone: usize,
    /// Commands in one transaction.
    pub batch_commands: usize,
    /// Rows on one page of any list.
    pub page: usize,
    /// Bytes on one page of any list. A page of large messages ends early and says where the next one starts.
    pub page_bytes: usize,
    /// Bytes that all reads of one request may bring together, so that a batch of pages fits in memory.
    pub answer_bytes: usize,
    /// CPU time of one read, and of all reads of one request. Most take well under a millisecond.
    pub read_cpu: Duration,
    /// How long one read may take in all, on a machine that is busy or whose disk is slow.
    pub read_wall: Duration,
    /// The same two for the operator, whose statistics and searches may look at everything.
    pub long_read_cpu: Duration,
    /// See [`Limits::long_read_cpu`].
    pub long_read_wall: Duration,
    /// Readers that one caller may hold at once, where the door knows one caller from another.
    pub share_readers: usize,
    /// Commands of one caller on their way that may take long (to groups, of many paths or participants): each may hold the
    /// writer for some tens of milliseconds, and others stand behind all of them.
    pub share_broad: usize,
    /// Patterns of all live subscriptions of one caller, where the door knows one caller from another: each is compared with
    /// every event.
    pub share_patterns: usize,
    /// Words, phrases and prefixes in one search; the cost of a match grows with their number.
    pub search_phrases: usize,
    /// A writer that has been on one batch, or readers that have all been busy, for this time are reported as stuck.
    pub stuck_after: Duration,
    /// Matches that one search looks at before it says that there may be more.
    pub search_rows: usize,
    /// Events that one replay looks at before it hands back a cursor.
    pub replay_rows: usize,
    /// Events kept in memory for followers; who is further behind reads the books.
    pub live_events: usize,
    /// Letters that wait in memory for one connected agent; the rest waits in the books.
    pub slot_letters: usize,
    /// Bytes of messages that wait in memory for one connected agent, if there is more than one message. An agent that does
    /// not read, or many of them, must not fill the memory; the rest waits in the database.
    pub slot_bytes: usize,
    /// The same for all connected agents of a realm together.
    pub slots_bytes: usize,
    /// Bytes on the disk that plain callers leave free; a fiftieth of it, from 64 MiB to 1 GiB, if not said.
    pub disk_reserve: Option<u64>,
    /// Connections for reading.
    pub readers: usize,
    /// How long a realm that nobody uses stays open.
    pub realm_idle: Duration,
    /// Realms open at once.
    pub open_realms: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            addresses: 1_000,
            text_bytes: 64 << 10,
            entry_bytes: 64 << 10,
            queue_commands: 4_096,
            queue_bytes: 64 << 20,
            queue_wait: Duration::from_secs(5),
            answer_wait: Duration::from_secs(5),
            share_commands: 16,
            share_alone: 256,
            batch_commands: 1_024,
            page: 1_000,
            page_bytes: 4 << 20,
            answer_bytes: 16 << 20,
            read_cpu: Duration::from_millis(750),
            read_wall: Duration::from_secs(5),
            long_read_cpu: Duration::from_secs(10),
            long_read_wall: Duration::from_secs(30),
            share_readers: 2,
            share_broad: 2,
            share_patterns: 2_000,
            search_phrases: 16,
            stuck_after: Duration::from_secs(5),
            search_rows: 20_000,
            replay_rows: 50_000,
            live_events: 4_096,
            slot_letters: 256,
            slot_bytes: 1 << 20,
            slots_bytes: 64 << 20,
            disk_reserve: None,
            readers: 4,
            realm_idle: Duration::from_secs(300),
            open_realms: 256,
        }
    }
}
