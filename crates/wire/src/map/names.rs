//! Event names: the SDK's, the draft's, and the aliases that filters accept.

use std::collections::HashMap;
use std::iter::repeat;
use std::sync::LazyLock;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $sdk:literal, $draft:literal $(, $alias:literal)*;)+) => {
        /// An event type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventName {
            $($(#[$doc])* $name,)+
        }

        impl EventName {
            /// All event types.
            pub const ALL: &'static [EventName] = &[$(EventName::$name),+];

            /// The SDK's name.
            #[must_use]
            pub fn sdk(self) -> &'static str {
                match self { $(Self::$name => $sdk),+ }
            }

            /// The draft's name.
            #[must_use]
            pub fn draft(self) -> &'static str {
                match self { $(Self::$name => $draft),+ }
            }

            /// Every name that a filter may use.
            fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$sdk, $draft $(, $alias)*]),+ }
            }
        }
    };
}

events! {
    /// An agent registered.
    AgentRegistered = "agent_registered", "agent.registered";
    /// An agent unregistered.
    AgentUnregistered = "agent_unregistered", "agent.unregistered";
    /// An agent's state changed.
    AgentState = "agent_state_changed", "agent.state";
    /// An agent's name, metadata or other properties changed.
    AgentUpdated = "agent_updated", "agent.updated", "agent.metadata.changed", "agent_metadata_changed";
    /// An agent's environment changed.
    AgentEnvironment = "agent_environment_changed", "agent.updated";
    /// An agent's connection closed; the agent stays registered.
    AgentOrphaned = "agent_orphaned", "agent.orphaned";
    /// An agent's permissions, or the senders that it accepts, changed.
    AgentPermissions = "permissions_agent_updated", "agent.updated";
    /// A participant's permissions changed.
    ClientPermissions = "permissions_client_updated", "permissions.client.updated";
    /// A participant connected.
    ParticipantConnected = "participant_connected", "participant.connected", "session.connected";
    /// A participant disconnected.
    ParticipantDisconnected = "participant_disconnected", "participant.disconnected", "session.disconnected";
    /// A message was accepted.
    MessageSent = "message_sent", "message", "message.sent";
    /// A message was delivered to a recipient.
    MessageDelivered = "message_delivered", "message.ack", "message.delivered";
    /// A recipient acknowledged a message.
    MessageAcked = "message_acknowledged", "message.acknowledged";
    /// A message could not be delivered.
    MessageFailed = "message_failed", "message.failed";
    /// A message's time to live ended before delivery. On the wire it is a failed message.
    MessageExpired = "message_failed", "message.failed", "message_expired", "message.expired";
    /// A scope was created.
    ScopeCreated = "scope_created", "scope.created";
    /// A scope was deleted.
    ScopeDeleted = "scope_deleted", "scope.deleted";
    /// An agent joined a scope.
    ScopeJoined = "scope_member_joined", "scope.member.added", "scope.agent.joined", "scope.joined";
    /// An agent left a scope.
    ScopeLeft = "scope_member_left", "scope.member.removed", "scope.agent.left", "scope.left";
    /// A task was created.
    TaskCreated = "task.created", "task.created";
    /// A task was assigned.
    TaskAssigned = "task.assigned", "task.assigned";
    /// A task's status changed.
    TaskStatus = "task.status", "task.status", "task.status.changed";
    /// A task was completed.
    TaskCompleted = "task.completed", "task.completed";
    /// A conversation was created.
    MailCreated = "mail.created", "mail.created";
    /// A conversation was closed.
    MailClosed = "mail.closed", "mail.closed";
    /// A closed conversation was reopened.
    MailReopened = "mail.reopened", "mail.reopened";
    /// A participant joined a conversation.
    MailJoined = "mail.participant.joined", "mail.participant.joined";
    /// A participant left a conversation.
    MailLeft = "mail.participant.left", "mail.participant.left";
    /// A turn was added to a conversation.
    MailTurn = "mail.turn.added", "mail.turn.added";
    /// A turn's status changed.
    MailTurnUpdated = "mail.turn.updated", "mail.turn.updated";
    /// A thread was created.
    MailThread = "mail.thread.created", "mail.thread.created";
    /// A summary was generated.
    MailSummary = "mail.summary.generated", "mail.summary.generated";
    /// A federated system connected.
    FederationConnected = "federation_connected", "federation.connected";
    /// A federated system disconnected.
    FederationDisconnected = "federation_disconnected", "federation.disconnected";
    /// The server's periodic heartbeat.
    Heartbeat = "system.heartbeat", "system.heartbeat";
    /// The server's load.
    Capacity = "system.capacity", "system.capacity";
    /// A subscription skipped events because its subscriber was too slow.
    Overflow = "subscription.overflow", "subscription.overflow";
}

impl EventName {
    /// Whether this is a mail event.
    #[must_use]
    pub fn is_mail(self) -> bool {
        self.sdk().starts_with("mail.")
    }

    /// Parses a name or alias of the draft or the SDK.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        static KNOWN: LazyLock<HashMap<String, EventName>> = LazyLock::new(|| {
            // In reverse order, so that the first of several events with one alias wins.
            let aliases =
                EventName::ALL.iter().rev().flat_map(|name| name.aliases().iter().zip(repeat(*name)));
            aliases.map(|(alias, name)| (normalized(alias), name)).collect()
        });
        KNOWN.get(&normalized(text)).copied()
    }
}

/// A pattern of event names in a filter: one name, or a prefix followed by `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The normalized name or prefix.
    prefix: String,
    has_star: bool,
    /// The pattern as the client wrote it, without surrounding white space.
    original: String,
}

impl Pattern {
    /// Parses a pattern; `_` equals `.`, and a final `*` matches any rest.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let original = text.trim().to_owned();
        let text = normalized(text);
        match text.strip_suffix('*') {
            Some(prefix) => Self { prefix: prefix.to_owned(), has_star: true, original },
            None => Self { prefix: text, has_star: false, original },
        }
    }

    /// Whether the pattern matches any name of this event.
    #[must_use]
    pub fn matches(&self, name: EventName) -> bool {
        name.aliases().iter().any(|known| self.matches_normalized(&normalized(known)))
    }

    /// The client's name for an event that the pattern names exactly; `None` for patterns with `*`.
    #[must_use]
    pub fn spelling(&self, name: EventName) -> Option<&str> {
        (!self.has_star && self.matches(name)).then_some(&self.original)
    }

    /// Whether the pattern matches one of our extension events, which subscribers get only if they name `x-` events.
    #[must_use]
    pub fn matches_extension(&self, name: &str) -> bool {
        self.prefix.starts_with("x-") && self.matches_normalized(&normalized(name))
    }

    /// The events that at least one of the patterns matches. Computed once, so that the check per event is one bit test.
    #[must_use]
    pub fn names(patterns: &[Self]) -> NameSet {
        let named =
            EventName::ALL.iter().filter(|name| patterns.iter().any(|pattern| pattern.matches(**name)));
        NameSet(named.fold(0, |set, name| set | NameSet::bit(*name)))
    }

    fn matches_normalized(&self, name: &str) -> bool {
        if self.has_star {
            // `scope.*` matches names below `scope`, and `scope` itself.
            name.starts_with(&self.prefix) || Some(name) == self.prefix.strip_suffix('.')
        } else {
            name == self.prefix
        }
    }
}

/// A set of event types, as a bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameSet(u64);

impl NameSet {
    /// Whether the event is in the set.
    #[must_use]
    pub fn contains(self, name: EventName) -> bool {
        self.0 & Self::bit(name) != 0
    }

    fn bit(name: EventName) -> u64 {
        const { assert!(EventName::ALL.len() <= 64, "a set has 64 bits") };
        1 << name as u32
    }
}

fn normalized(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('_', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_parses_to_its_event() {
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
    fn general_names_match_their_special_events_too() {
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
    fn wildcard_matches_names_below_the_prefix() {
        let matching = |pattern: &str| {
            let pattern = Pattern::new(pattern);
            EventName::ALL.iter().filter(|name| pattern.matches(**name)).count()
        };
        assert_eq!(matching("*"), EventName::ALL.len());
        assert_eq!(matching("task.*"), 4);
        assert_eq!(matching("task_*"), 4);
        assert_eq!(matching("scope.member.*"), 2);
        assert_eq!(matching("nothing.*"), 0);
        assert!(Pattern::new("message.*").matches(EventName::MessageSent));
        assert!(!Pattern::new("mail.*").matches(EventName::MessageSent));
    }

    #[test]
    fn extension_events_match_only_explicit_patterns() {
        assert!(!Pattern::new("*").matches_extension("x-posthaste.reservation.made"));
        assert!(Pattern::new("x-posthaste.*").matches_extension("x-posthaste.reservation.made"));
    }
}
