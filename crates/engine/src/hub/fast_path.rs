//! The fast lane's memory: who has letters on the slow road, and whom an address reached a moment ago.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::nouns::{Address, AgentId, Caller, Event, Rights};

/// Resolved addresses kept; beyond these all are forgotten and looked up again.
const REMEMBERED: usize = 4_096;

/// Whom addresses reached, and in which epoch.
type Reached = (u64, Arc<[AgentId]>);

#[derive(Debug)]
pub(crate) struct FastPath {
    /// Letters of each sender that are waiting for the writer. While there are any, a faster one would overtake them.
    waiting: Mutex<HashMap<AgentId, usize>>,
    /// Rises with every change to who is who and who is reached by what.
    epoch: AtomicU64,
    reached: Mutex<HashMap<String, Reached>>,
}

impl Default for FastPath {
    fn default() -> Self {
        // Each opening of a realm has epochs of its own, so that nothing remembered from before it counts.
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let epoch = AtomicU64::new(OPENED.fetch_add(1, Ordering::Relaxed) << 40);
        Self { waiting: Mutex::default(), epoch, reached: Mutex::default() }
    }
}

impl FastPath {
    /// A letter of this sender takes the slow road.
    pub(crate) fn set_out(&self, sender: &AgentId) {
        *lock(&self.waiting).entry(sender.clone()).or_default() += 1;
    }

    /// A letter of this sender has come to the end of the slow road.
    pub(crate) fn arrived(&self, sender: &AgentId) {
        let mut waiting = lock(&self.waiting);
        if let Some(count) = waiting.get_mut(sender) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(sender);
            }
        }
    }

    /// Whether no letter of this sender is on the slow road.
    pub(crate) fn is_clear(&self, sender: &AgentId) -> bool {
        !lock(&self.waiting).contains_key(sender)
    }

    /// Forgets who is reached if something happened that may have changed it.
    pub(crate) fn note(&self, events: &[Arc<Event>]) {
        let matters = |event: &Arc<Event>| {
            let kind = event.fact.kind();
            ["agent.", "scope.", "contact.", "rules.", "token."].iter().any(|family| kind.starts_with(family))
        };
        if events.iter().any(matters) {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The present epoch, to be taken before the books are asked.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whom these addresses reached, if that still holds.
    pub(crate) fn recall(&self, key: &str) -> Option<Arc<[AgentId]>> {
        let reached = lock(&self.reached);
        reached.get(key).filter(|(epoch, _)| *epoch == self.epoch()).map(|(_, agents)| agents.clone())
    }

    /// Remembers whom addresses reached in an epoch.
    pub(crate) fn remember(&self, key: String, epoch: u64, agents: Arc<[AgentId]>) {
        let mut reached = lock(&self.reached);
        if reached.len() >= REMEMBERED {
            reached.clear();
        }
        reached.insert(key, (epoch, agents));
    }

    /// What a resolution depends on besides the books.
    pub(crate) fn key(caller: &Caller, to: &[Address]) -> String {
        // Most letters go to one agent. Names have no control characters, so they cannot run into each other.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
