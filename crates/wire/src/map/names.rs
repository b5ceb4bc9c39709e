//! The names of events, in the SDK's spelling, in the draft's, and as filters may write them.

use std::collections::HashMap;
use std::iter::repeat;
use std::sync::LazyLock;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $sdk:literal, $draft:literal $(, $alias:literal)*;)+) => {
        /// What an event is called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventName {
            $($(#[$doc])* $name,)+
        }

        impl EventName {
            /// Every event.
            pub const ALL: &'static [EventName] = &[$(EventName::$name),+];

            /// The SDK's spelling.
            #[must_use]
            pub fn sdk(self) -> &'static str {
                match self { $(Self::$name => $sdk),+ }
            }

            /// The draft's spelling.
            #[must_use]
            pub fn draft(self) -> &'static str {
                match self { $(Self::$name => $draft),+ }
            }

            /// Every spelling that a filter may use.
            fn spellings(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$sdk, $draft $(, $alias)*]),+ }
            }
        }
    };
}

events! {
    /// An agent entered the address book.
    AgentRegistered = "agent_registered", "agent.registered";
    /// An agent left it.
    AgentUnregistered = "agent_unregistered", "agent.unregistered";
    /// An agent does something else now.
    AgentState = "agent_state_changed", "agent.state";
    /// An agent's entry changed.
    AgentUpdated = "agent_updated", "agent.updated", "agent.metadata.changed", "agent_metadata_changed";
    /// An agent's surroundings changed.
    AgentEnvironment = "agent_environment_changed", "agent.updated";
    /// An agent's connection is gone; the agent stays.
    AgentOrphaned = "agent_orphaned", "agent.orphaned";
    /// What an agent may do, or takes from whom, changed.
    AgentPermissions = "permissions_agent_updated", "agent.updated";
    /// What a participant may do changed.
    ClientPermissions = "permissions_client_updated", "permissions.client.updated";
    /// Somebody connected.
    ParticipantConnected = "participant_connected", "participant.connected", "session.connected";
    /// Somebody is gone.
    ParticipantDisconnected = "participant_disconnected", "participant.disconnected", "session.disconnected";
    /// A message was accepted.
    MessageSent = "message_sent", "message", "message.sent";
    /// A message reached a recipient.
    MessageDelivered = "message_delivered", "message.ack", "message.delivered";
    /// A recipient said that it has dealt with a message.
    MessageAcked = "message_acknowledged", "message.acknowledged";
    /// A message could not be handed over.
    MessageFailed = "message_failed", "message.failed";
    /// A message was overtaken by its time to live, which is one way to fail.
    MessageExpired = "message_failed", "message.failed", "message_expired", "message.expired";
    /// A scope was made.
    ScopeCreated = "scope_created", "scope.created";
    /// A scope is gone.
    ScopeDeleted = "scope_deleted", "scope.deleted";
    /// An agent joined a scope.
    ScopeJoined = "scope_member_joined", "scope.member.added", "scope.agent.joined", "scope.joined";
    /// An agent left a scope.
    ScopeLeft = "scope_member_left", "scope.member.removed", "scope.agent.left", "scope.left";
    /// A task was made.
    TaskCreated = "task.created", "task.created";
    /// A task has someone to do it.
    TaskAssigned = "task.assigned", "task.assigned";
    /// A task moved on.
    TaskStatus = "task.status", "task.status", "task.status.changed";
    /// A task ended well.
    TaskCompleted = "task.completed", "task.completed";
    /// A conversation was opened.
    MailCreated = "mail.created", "mail.created";
    /// A conversation ended.
    MailClosed = "mail.closed", "mail.closed";
    /// A closed conversation goes on.
    MailReopened = "mail.reopened", "mail.reopened";
    /// Somebody takes part now.
    MailJoined = "mail.participant.joined", "mail.participant.joined";
    /// Somebody no longer takes part.
    MailLeft = "mail.participant.left", "mail.participant.left";
    /// Something was said.
    MailTurn = "mail.turn.added", "mail.turn.added";
    /// What was said has another status now.
    MailTurnUpdated = "mail.turn.updated", "mail.turn.updated";
    /// A thread was opened.
    MailThread = "mail.thread.created", "mail.thread.created";
    /// A summary was made.
    MailSummary = "mail.summary.generated", "mail.summary.generated";
    /// Another system is connected.
    FederationConnected = "federation_connected", "federation.connected";
    /// Another system is gone.
    FederationDisconnected = "federation_disconnected", "federation.disconnected";
    /// The office is alive.
    Heartbeat = "system.heartbeat", "system.heartbeat";
    /// How full the office is.
    Capacity = "system.capacity", "system.capacity";
    /// A subscriber was passed over.
    Overflow = "subscription.overflow", "subscription.overflow";
}

impl EventName {
    /// Whether the event belongs to mail.
    #[must_use]
    pub fn is_mail(self) -> bool {
        self.sdk().starts_with("mail.")
    }

    /// The event of that spelling, whichever vocabulary it is of.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        static KNOWN: LazyLock<HashMap<String, EventName>> = LazyLock::new(|| {
            let spelled =
                EventName::ALL.iter().rev().flat_map(|name| name.spellings().iter().zip(repeat(*name)));
            spelled.map(|(spelling, name)| (normal(spelling), name)).collect()
        });
        KNOWN.get(&normal(text)).copied()
    }
}

/// What a filter says about event names: one name, the names that start alike, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    start: String,
    open: bool,
    /// As it was written.
    written: String,
}

impl Pattern {
    /// Reads a pattern; `_` and `.` are one, a `*` at the end stands for the rest.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let written = text.trim().to_owned();
        let text = normal(text);
        match text.strip_suffix('*') {
            Some(start) => Self { start: start.to_owned(), open: true, written },
            None => Self { start: text, open: false, written },
        }
    }

    /// Whether the pattern names this event in any of its spellings.
    #[must_use]
    pub fn matches(&self, name: EventName) -> bool {
        name.spellings().iter().any(|known| self.fits(&normal(known)))
    }

    /// How the pattern spells an event that it names. A pattern with `*` says nothing about that.
    #[must_use]
    pub fn spelling(&self, name: EventName) -> Option<&str> {
        (!self.open && self.matches(name)).then_some(&self.written)
    }

    /// Whether the pattern names an event of our own, which only those get who ask for it.
    #[must_use]
    pub fn matches_extension(&self, name: &str) -> bool {
        self.start.starts_with("x-") && self.fits(&normal(name))
    }

    /// The events that one of these patterns names. Patterns are read once, events come by the thousand.
    #[must_use]
    pub fn names(patterns: &[Self]) -> NameSet {
        let named =
            EventName::ALL.iter().filter(|name| patterns.iter().any(|pattern| pattern.matches(**name)));
        NameSet(named.fold(0, |set, name| set | NameSet::bit(*name)))
    }

    fn fits(&self, name: &str) -> bool {
        if self.open {
            // `scope.*` is for what is below scope, and for `scope` itself should there be such an event.
            name.starts_with(&self.start) || Some(name) == self.start.strip_suffix('.')
        } else {
            name == self.start
        }
    }
}

/// Some of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameSet(u64);

impl NameSet {
    /// Whether the event is one of them.
    #[must_use]
    pub fn contains(self, name: EventName) -> bool {
        self.0 & Self::bit(name) != 0
    }

    fn bit(name: EventName) -> u64 {
        const { assert!(EventName::ALL.len() <= 64, "a set has 64 places") };
        1 << name as u32
    }
}

fn normal(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('_', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_the_synonyms_are_one_event() {
        for (text, name) in [
            ("agent_registered", EventName::AgentRegistered),
            ("agent.registered", EventName::AgentRegistered),
            ("agent.state", EventName::AgentState),
            ("agent_state_changed", EventName::AgentState),
            ("agent.state.changed", EventName::AgentState),
            ("scope.member.added", EventName::ScopeJoined),
            ("scope_member_joined", EventName::ScopeJoined),
            ("message", EventName::MessageSent),
            ("message.ack", EventName::MessageDelivered),
            ("mail.turn.added", EventName::MailTurn),
            ("message.expired", EventName::MessageExpired),
            ("agent_environment_changed", EventName::AgentEnvironment),
        ] {
            assert_eq!(EventName::parse(text), Some(name), "{text}");
            assert!(Pattern::new(text).matches(name), "{text}");
            let set = Pattern::names(&[Pattern::new(text)]);
            for other in EventName::ALL {
                assert_eq!(set.contains(*other), *other == name, "{text}: {other:?}");
            }
        }
        assert_eq!(EventName::parse("agent.flew"), None);
    }

    #[test]
    fn whoever_asks_for_failures_or_changes_gets_the_special_ones_as_well() {
        for (text, names) in [
            ("message.failed", [EventName::MessageFailed, EventName::MessageExpired].as_slice()),
            (
                "agent.updated",
                &[EventName::AgentUpdated, EventName::AgentEnvironment, EventName::AgentPermissions],
            ),
        ] {
            assert_eq!(EventName::parse(text), names.first().copied());
            let set = Pattern::names(&[Pattern::new(text)]);
            for name in EventName::ALL {
                assert_eq!(set.contains(*name), names.contains(name), "{text}: {name:?}");
            }
        }
    }

    #[test]
    fn wildcards_take_what_is_below() {
        let of = |pattern: &str| {
            let pattern = Pattern::new(pattern);
            EventName::ALL.iter().filter(|name| pattern.matches(**name)).count()
        };
        assert_eq!(of("*"), EventName::ALL.len());
        assert_eq!(of("task.*"), 4);
        assert_eq!(of("task_*"), 4);
        assert_eq!(of("scope.member.*"), 2);
        assert_eq!(of("nothing.*"), 0);
        assert!(Pattern::new("message.*").matches(EventName::MessageSent));
        assert!(!Pattern::new("mail.*").matches(EventName::MessageSent));
    }

    #[test]
    fn our_own_events_are_only_for_those_who_name_them() {
        assert!(!Pattern::new("*").matches_extension("x-posthaste.reservation.made"));
        assert!(Pattern::new("x-posthaste.*").matches_extension("x-posthaste.reservation.made"));
    }
}
