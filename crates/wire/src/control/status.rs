//! The server's figures, limits and rules.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The answer of `/x-posthaste/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The realm of the call.
    pub realm: String,
    /// The name of the realm's event log: another name means that positions in it are not comparable.
    pub history: String,
    /// Seconds since the server started.
    pub uptime: f64,
    /// Registered agents.
    pub agents: i64,
    /// Events in the event log.
    pub events: i64,
    /// Active conversations.
    pub active_conversations: i64,
    /// Tasks that are not finished.
    pub open_tasks: i64,
    /// Active reservations.
    pub reservations: i64,
    /// Size of the database.
    pub bytes: i64,
    /// Commands that wait for the writer.
    pub queue: u64,
    /// Unfinished tasks of the hosted swarm in memory.
    pub live_tasks: u64,
    /// Limits of the process and of the realm.
    pub limits: Limits,
}

/// Limits of the process and of the realm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Bytes of one message: subject, body, envelope and metadata together.
    pub message_bytes: u64,
    /// Addresses in one message.
    pub addresses: u64,
    /// Bytes of any other text.
    pub text_bytes: u64,
    /// Bytes of the entry of an agent, scope, contact or reservation.
    pub entry_bytes: u64,
    /// Commands that wait for the writer.
    pub queue_commands: u64,
    /// Bytes that wait for the writer.
    pub queue_bytes: u64,
    /// Commands of one caller that wait for the writer.
    pub share_commands: u64,
    /// Commands in one transaction.
    pub batch_commands: u64,
    /// How long a transaction stays open for further commands, in milliseconds.
    pub batch_open_ms: u64,
    /// Rows of one page.
    pub page: u64,
    /// Bytes of one page.
    pub page_bytes: u64,
    /// Bytes that all reads of one request may return together.
    pub answer_bytes: u64,
    /// CPU time of the reads of one request, in milliseconds.
    pub read_cpu_ms: u64,
    /// Database connections that one caller may use at once.
    pub share_readers: u64,
    /// Patterns of all subscriptions of one caller.
    pub share_patterns: u64,
    /// Queued commands of one caller that may take long.
    pub share_broad: u64,
    /// Words, phrases and prefixes in one search.
    pub search_phrases: u64,
    /// Matches that one search reads.
    pub search_rows: u64,
    /// Events that one replay reads.
    pub replay_rows: u64,
    /// Events in memory for subscribers.
    pub live_events: u64,
    /// Messages in memory for one connected agent.
    #[serde(rename = "slot_letters")]
    pub slot_messages: u64,
    /// Bytes of messages in memory for one connected agent.
    pub slot_bytes: u64,
    /// Bytes of messages in memory for all connected agents of a realm.
    pub slots_bytes: u64,
    /// Realms that are open at once.
    pub open_realms: u64,
    /// The realm's rules.
    pub rules: Rules,
}

/// Rules to change, and nothing to change none: any members of [`Rules`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RulesParams(pub Map<String, Value>);

/// A realm's rules: limits that are kept in its database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Threads inside threads.
    pub thread_depth: u32,
    /// Active reservations of one agent in one scope.
    pub reservations_per_scope: u32,
    /// Longest remaining lifetime of a reservation, in days.
    pub reservation_days: u32,
    /// Path patterns in one reservation.
    pub paths_per_reservation: u32,
    /// Bytes of one path pattern.
    pub path_bytes: u32,
    /// Wildcards in one path pattern.
    pub path_wildcards: u32,
    /// Active paths in one scope, of all agents together.
    pub paths_per_scope: u32,
    /// Active paths of one agent in all scopes.
    pub paths_per_agent: u32,
    /// Work of comparing the paths of one command.
    pub glob_steps: u64,
    /// Conflicts that one command reports.
    pub conflicts: u32,
    /// Recipients of one message.
    pub recipients: u32,
    /// Groups in the addresses of one message.
    pub groups: u32,
    /// Active agents of one owner that is not an administrator.
    pub agents_per_owner: u32,
    /// Scopes created by one owner that is not an administrator.
    pub scopes_per_owner: u32,
    /// Scopes that one agent may be a member of.
    pub scopes_per_agent: u32,
    /// Participants or members that one command changes.
    pub changes_per_command: u32,
    /// Agents and scopes listed in the bounds of one agent.
    pub bounds_names: u32,
    /// Participants of one conversation.
    pub participants: u32,
    /// Unanswered contact requests to one agent.
    pub pending_contacts: u32,
    /// Bytes of stored mail of one owner's agents together; 0 is no limit.
    pub mail_bytes_per_sender: u64,
    /// Bytes of stored mail of the realm; 0 is no limit.
    pub mail_bytes_per_realm: u64,
    /// Rows that one sweep changes.
    pub sweep_rows: u32,
    /// The agents that an agent may write to in runs, where that is limited.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reach: BTreeMap<String, BTreeSet<String>>,
}
