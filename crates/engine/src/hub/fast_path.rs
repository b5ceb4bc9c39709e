//! State of the fast path: which senders have queued messages, the directory version, and recently resolved addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::nouns::{Address, AgentId, Caller, Event, Fact, Rights};
use crate::verbs::Outcome;
use crate::versioned::{VersionCounter, Versioned};

#[derive(Debug)]
pub(crate) struct FastPath {
    /// Queued messages by sender. While a sender has one, a message on the fast path would overtake it.
    waiting: Mutex<HashMap<AgentId, usize>>,
    /// Version of agents, tokens, scopes, contacts, peers and rules.
    directory: VersionCounter,
    /// Recipients by sender and addresses; see [`FastPath::key`].
    recipients: Versioned<String, Arc<[AgentId]>>,
}

impl Default for FastPath {
    fn default() -> Self {
        Self { waiting: Mutex::default(), directory: VersionCounter::new(), recipients: Versioned::default() }
    }
}

impl FastPath {
    /// A message of this sender was put into the writer's queue.
    pub(crate) fn set_out(&self, sender: &AgentId) {
        *lock(&self.waiting).entry(sender.clone()).or_default() += 1;
    }

    /// A queued message of this sender was committed or refused.
    pub(crate) fn arrived(&self, sender: &AgentId) {
        let mut waiting = lock(&self.waiting);
        if let Some(count) = waiting.get_mut(sender) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(sender);
            }
        }
    }

    /// Whether no message of this sender is queued.
    pub(crate) fn is_clear(&self, sender: &AgentId) -> bool {
        !lock(&self.waiting).contains_key(sender)
    }

    /// Increments the directory version if an event changed the directory. Runs before the batch is answered.
    pub(crate) fn note(&self, events: &[Arc<Event>]) {
        if events.iter().any(|event| changes_directory(&event.fact)) {
            self.directory.increment();
        }
    }

    /// The same for changes that emit no event: a resumed registration sets the door of an agent that had none, and a
    /// suspended agent can be held by another.
    pub(crate) fn note_outcome(&self, outcome: &Outcome) {
        let changed = match outcome {
            Outcome::Register(registered) => registered.resumed,
            Outcome::Update(agent) | Outcome::SetState(agent) => agent.is_suspended(),
            _ => false,
        };
        if changed {
            self.directory.increment();
        }
    }

    /// The present directory version, to be read before the database.
    pub(crate) fn directory_version(&self) -> u64 {
        self.directory.get()
    }

    /// Recipients of recently resolved addresses.
    pub(crate) fn recipients(&self) -> &Versioned<String, Arc<[AgentId]>> {
        &self.recipients
    }

    /// What the recipients of addresses depend on besides the database.
    pub(crate) fn key(caller: &Caller, to: &[Address]) -> String {
        // Most messages have one recipient. Names have no control characters, so the parts stay distinct.
        if let [Address::Agent(agent)] = to {
            let Rights { member, observe, admin } = caller.rights;
            let rights = char::from(b'0' + u8::from(member) + 2 * u8::from(observe) + 4 * u8::from(admin));
            let mut key = String::with_capacity(96);
            for part in [caller.agent.as_str(), "\n", &caller.via, "\n", agent.as_str()] {
                key.push_str(part);
            }
            key.push(rights);
            return key;
        }
        // Plain data without maps or floats: writing it as JSON cannot fail.
        serde_json::to_string(&(caller, to)).unwrap_or_default()
    }
}

/// Whether an event may change who a caller is, what it may see or whom an address means.
fn changes_directory(fact: &Fact) -> bool {
    match fact {
        Fact::AgentRegistered { .. }
        | Fact::AgentUpdated { .. }
        | Fact::AgentState { .. }
        | Fact::AgentOrphaned { .. }
        | Fact::AgentUnregistered { .. }
        | Fact::ScopeCreated { .. }
        | Fact::ScopeDeleted { .. }
        | Fact::ScopeJoined { .. }
        | Fact::ScopeLeft { .. }
        | Fact::ContactChanged { .. }
        | Fact::TokenCreated { .. }
        | Fact::TokenRevoked { .. }
        | Fact::PeerChanged { .. }
        | Fact::PeerRemoved { .. }
        | Fact::RulesChanged => true,
        Fact::MessageSent
        | Fact::MessageDelivered { .. }
        | Fact::MessageRead { .. }
        | Fact::MessageAcked { .. }
        | Fact::MessageExpired { .. }
        | Fact::MessageFailed { .. }
        | Fact::ConversationCreated { .. }
        | Fact::ConversationClosed { .. }
        | Fact::ConversationReopened { .. }
        | Fact::ParticipantJoined { .. }
        | Fact::ParticipantLeft { .. }
        | Fact::TurnAdded { .. }
        | Fact::ThreadCreated { .. }
        | Fact::SummaryGenerated { .. }
        | Fact::TaskCreated { .. }
        | Fact::TaskAssigned { .. }
        | Fact::TaskStatusChanged { .. }
        | Fact::TaskCompleted { .. }
        | Fact::ReservationMade { .. }
        | Fact::ReservationRenewed { .. }
        | Fact::ReservationReleased { .. }
        | Fact::ReservationExpired { .. }
        | Fact::ReservationConflict { .. }
        | Fact::Announced { .. } => false,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
