//! Every limit of the engine, with the reason. Doors report them and render the refusal when one is reached.

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
    /// Active reservations of one agent in one scope; prevents hoarding.
    pub reservations_per_scope: u32,
    /// Longest remaining lifetime of a reservation, in days; a reservation that is needed for longer is renewed.
    pub reservation_days: u32,
    /// Path patterns in one reservation; each is compared with every other in the scope.
    pub paths_per_reservation: u32,
    /// The longest path pattern that can be reserved, in bytes.
    pub path_bytes: u32,
    /// Wildcards `*` and `**` in one path pattern: comparing two patterns costs most where both have many.
    pub path_wildcards: u32,
    /// Active paths in one scope, of all agents together: each new path is compared with them. The agents of one owner
    /// may have half of them.
    pub paths_per_scope: u32,
    /// Active paths of one agent in all scopes: releasing all of them is one command.
    pub paths_per_agent: u32,
    /// Work that comparing the paths of one command may take, in steps of a few nanoseconds.
    pub glob_steps: u64,
    /// Conflicts that one command reports; each is an event.
    pub conflicts: u32,
    /// Recipients of one message, after groups are resolved.
    pub recipients: u32,
    /// Groups (a role, a scope, everyone, …) in the addresses of one message: the members of each are looked up.
    pub groups: u32,
    /// Active agents of one owner that is not an administrator: each is looked up for a message to everyone.
    pub agents_per_owner: u32,
    /// Scopes created by one owner that is not an administrator.
    pub scopes_per_owner: u32,
    /// Scopes that one agent may be a member of.
    pub scopes_per_agent: u32,
    /// Participants that one command adds to conversations, and members that one command removes from scopes.
    pub changes_per_command: u32,
    /// Agents and scopes listed in the bounds of one agent.
    pub bounds_names: u32,
    /// Participants of one conversation.
    pub participants: u32,
    /// Unanswered contact requests that one agent may have received.
    pub pending_contacts: u32,
    /// Bytes of stored mail of one owner's agents together, unless the owner is an administrator; 0 is no limit. Mail
    /// is kept forever, so this protects the disk.
    pub mail_bytes_per_sender: u64,
    /// Bytes of stored mail of the realm beyond which only administrators may send; 0 is no limit.
    pub mail_bytes_per_realm: u64,
    /// Rows that one sweep changes; the rest waits for the next sweep, so that a sweep never delays mail for long.
    pub sweep_rows: u32,
    /// Whom an agent may write to in runs, where that is limited. Its other mail is not.
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

/// Limits of the running process: they decide whether a command is accepted at all, never what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A message's subject, body, envelope and meta together, in bytes. Larger content belongs in a file.
    pub message_bytes: usize,
    /// Addresses in one message, before groups are resolved.
    pub addresses: usize,
    /// Any other text of a verb (names, descriptions, reasons, meta).
    pub text_bytes: usize,
    /// The entry of an agent, a scope, a contact or a reservation, all its text together.
    pub entry_bytes: usize,
    /// Commands waiting for the writer.
    pub queue_commands: usize,
    /// Bytes waiting for the writer, so that a full queue of large messages fits in memory.
    pub queue_bytes: usize,
    /// How long a caller waits for room in the queue before it gets `Busy`.
    pub queue_wait: Duration,
    /// How long a command may wait until the writer starts it, from the time of the request. After that it is removed
    /// from the queue and its caller gets `Busy`.
    pub answer_wait: Duration,
    /// Commands that one token may have queued or in the writer's batch: enough for one commit to serve many, few enough that a
    /// flood leaves the processors to others between two commits.
    pub share_commands: usize,
    /// Commands in one transaction.
    pub batch_commands: usize,
    /// How long a transaction stays open for commands: a command waits this long and a commit behind those of other callers.
    pub batch_open: Duration,
    /// Rows on one page of any list.
    pub page: usize,
    /// Bytes on one page of any list. A page of large messages ends early and says where the next one starts.
    pub page_bytes: usize,
    /// Bytes that all reads of one request may return together, so that a batch of pages fits in memory.
    pub answer_bytes: usize,
    /// CPU time of one read, and of all reads of one request. Most take well under a millisecond.
    pub read_cpu: Duration,
    /// Wall-clock time of one read, for a busy machine or a slow disk.
    pub read_wall: Duration,
    /// CPU time of a read by the operator, whose statistics and searches may read everything.
    pub long_read_cpu: Duration,
    /// Wall-clock time of a read by the operator.
    pub long_read_wall: Duration,
    /// Reader connections that one caller may hold at once, for doors that identify callers.
    pub share_readers: usize,
    /// Queued commands of one caller that may take long (to groups, with many paths or participants): each may occupy
    /// the writer for some tens of milliseconds, and other callers wait behind all of them.
    pub share_broad: usize,
    /// Patterns of all live subscriptions of one caller, for doors that identify callers: each is compared with every
    /// event.
    pub share_patterns: usize,
    /// Words, phrases and prefixes in one search; the cost of a match grows with their number.
    pub search_phrases: usize,
    /// The writer is reported as stuck if one batch takes this long, the readers if all are busy for this long.
    pub stuck_after: Duration,
    /// Matches that one search reads before it reports that there may be more.
    pub search_rows: usize,
    /// Events that one replay reads before it returns a cursor.
    pub replay_rows: usize,
    /// Events kept in memory for feeds; a feed that is further behind reads the database.
    pub live_events: usize,
    /// Messages queued in memory for one connected agent; the rest waits in the database.
    pub mailbox_messages: usize,
    /// Bytes of messages queued in memory for one connected agent, if there is more than one message. Agents that do
    /// not read must not fill the memory; the rest waits in the database.
    pub mailbox_bytes: usize,
    /// The same for all connected agents of a realm together.
    pub all_mailboxes_bytes: usize,
    /// Bytes on the disk that only administrators may use; by default a fiftieth of the disk, from 64 MiB to 1 GiB.
    pub disk_reserve: Option<u64>,
    /// Reader connections per realm.
    pub readers: usize,
    /// How long an unused realm stays open.
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
            share_commands: 64,
            batch_commands: 1_024,
            batch_open: Duration::from_millis(2),
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
            mailbox_messages: 256,
            mailbox_bytes: 1 << 20,
            all_mailboxes_bytes: 64 << 20,
            disk_reserve: None,
            readers: 4,
            realm_idle: Duration::from_secs(300),
            open_realms: 256,
        }
    }
}
