//! The session registry: sessions of each realm that are connected by this door or can be resumed. In memory only.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use posthaste_engine::nouns::{AgentId, RealmName};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::map::log_tag;

use super::federation::Link;
use super::session::Session;

/// The session registries of all realms.
#[derive(Debug, Default)]
pub(crate) struct SessionRegistries {
    registries: Mutex<HashMap<RealmName, Arc<SessionRegistry>>>,
}

/// The sessions of one realm.
#[derive(Debug, Default)]
pub(super) struct SessionRegistry {
    sessions: Mutex<Sessions>,
    history: OnceLock<u16>,
    links: Mutex<HashMap<String, Link>>,
    next_link: AtomicU64,
    swept: AtomicBool,
    /// Sessions that receive no messages, by id. Looked up for every message to a named agent, and usually empty.
    not_receiving: Mutex<HashMap<String, Arc<Session>>>,
    any_not_receiving: AtomicBool,
    /// Ids that connections are registering.
    claimed: Mutex<HashSet<AgentId>>,
}

/// Lets one connection at a time register an id: from the check that it is free until its deliveries are set up.
#[derive(Debug)]
pub(super) struct Claim {
    registry: Arc<SessionRegistry>,
    id: AgentId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.registry.claimed.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

#[derive(Debug, Default)]
struct Sessions {
    by_id: HashMap<String, Arc<Session>>,
    /// Session ids by participant.
    participants: HashMap<AgentId, String>,
}

impl SessionRegistries {
    pub(super) fn of(&self, realm: &RealmName) -> Arc<SessionRegistry> {
        let mut registries = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
        registries.entry(realm.clone()).or_default().clone()
    }
}

impl SessionRegistry {
    /// Whether this is the first connection since the server started.
    pub(super) fn is_new(&self) -> bool {
        !self.swept.swap(true, Ordering::AcqRel)
    }

    /// Keeps other connections from registering an id while the claim is held; `None` if another one has it.
    pub(super) fn claim(self: Arc<Self>, id: &AgentId) -> Option<Claim> {
        let is_first = self.claimed.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        is_first.then(|| Claim { registry: self, id: id.clone() })
    }

    pub(super) fn add(&self, session: Arc<Session>) {
        let mut sessions = self.lock();
        sessions.participants.insert(session.participant.clone(), session.id.clone());
        sessions.by_id.insert(session.id.clone(), session);
    }

    pub(super) fn remove(&self, session: &Session) {
        let mut sessions = self.lock();
        sessions.by_id.remove(&session.id);
        if sessions.participants.get(&session.participant) == Some(&session.id) {
            sessions.participants.remove(&session.participant);
        }
        drop(sessions);
        self.change_not_receiving(|not_receiving| drop(not_receiving.remove(&session.id)));
    }

    /// Updates whether a session receives messages, after it was added or its capabilities changed.
    pub(super) fn note_receiving(&self, session: &Arc<Session>) {
        self.change_not_receiving(|not_receiving| match session.receives() {
            true => drop(not_receiving.remove(&session.id)),
            false => drop(not_receiving.insert(session.id.clone(), session.clone())),
        });
    }

    fn change_not_receiving(&self, change: impl FnOnce(&mut HashMap<String, Arc<Session>>)) {
        let mut not_receiving = self.not_receiving.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut not_receiving);
        self.any_not_receiving.store(!not_receiving.is_empty(), Ordering::Release);
    }

    /// Whether a session that is connected under this name receives no messages.
    pub(super) fn is_not_receiving(&self, agent: &AgentId) -> bool {
        self.any_not_receiving.load(Ordering::Acquire) && {
            let not_receiving = self.not_receiving.lock().unwrap_or_else(PoisonError::into_inner);
            not_receiving.values().any(|session| session.is_live() && session.owns(agent))
        }
    }

    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().by_id.get(id).cloned()
    }

    /// The session of a participant.
    pub(super) fn participant(&self, id: &AgentId) -> Option<Arc<Session>> {
        let sessions = self.lock();
        sessions.participants.get(id).and_then(|session| sessions.by_id.get(session)).cloned()
    }

    /// The session without a connection that this token resumes.
    pub(super) fn resumable(&self, token: &str) -> Option<Arc<Session>> {
        let sessions = self.lock();
        sessions.by_id.values().find(|session| !session.is_live() && session.token() == token).cloned()
    }

    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<_> = self.lock().by_id.values().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Removes an agent that is gone from every session, first from the one that unregistered it.
    pub(super) fn forget_agent(&self, seen_by: &Session, agent: &AgentId) {
        // Usually that session has it, and there may be thousands of others.
        if seen_by.owns(agent) {
            return seen_by.remove_agent(agent);
        }
        self.lock().by_id.values().filter(|session| session.owns(agent)).for_each(|session| {
            session.remove_agent(agent);
        });
    }

    /// The connection to another system.
    pub(super) fn link(&self, system: &str) -> Option<Link> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).get(system).cloned()
    }

    /// Adds a link, which replaces an earlier one to the same system; returns its number.
    pub(super) fn add_link(&self, system: &str, make: impl FnOnce(u64) -> Link) -> u64 {
        let id = self.next_link.fetch_add(1, Ordering::Relaxed);
        self.links.lock().unwrap_or_else(PoisonError::into_inner).insert(system.to_owned(), make(id));
        id
    }

    /// Removes a link; false if it was removed or replaced already.
    pub(super) fn remove_link(&self, system: &str, id: u64) -> bool {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.get(system).is_none_or(|link| link.id() != id) {
            return false;
        }
        links.remove(system).is_some()
    }

    /// The tag that distinguishes event ids of this event log from those of another.
    pub(super) async fn history(&self, engine: &Engine) -> Result<u16, EngineError> {
        if let Some(tag) = self.history.get() {
            return Ok(*tag);
        }
        let name = engine.read(|view| view.history()).await?;
        Ok(*self.history.get_or_init(|| log_tag(&name)))
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
