//! Faces: how a sender stood in the address book a moment ago, so that a message need not ask the books again. A face is
//! forgotten as soon as an agent of the realm changes, before whoever changed it has its answer. Whose token is whose is
//! not remembered here: that is the office's own memory, for all doors.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posthaste_engine::Engine;
use posthaste_engine::nouns::{AgentId, RealmName};

use super::context::Actor;

/// Faces that are remembered; beyond these all are forgotten and looked up again.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Faces {
    known: Mutex<HashMap<(RealmName, AgentId), (Edition, Actor)>>,
}

/// Which opening of the realm, and which state of its address book.
pub(super) type Edition = (u64, u64);

/// To be taken before the books are asked.
pub(super) fn edition(engine: &Engine) -> Edition {
    (engine.meter().opening(), engine.directory_version())
}

impl Faces {
    /// The sender of that name, if what was found out still holds.
    pub(super) fn recall(&self, engine: &Engine, name: &AgentId) -> Option<Actor> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, actor) = known.get(&(engine.realm().clone(), name.clone()))?;
        (*of == edition(engine)).then(|| actor.clone())
    }

    /// Remembers a face as the books had it in an edition.
    pub(super) fn remember(&self, realm: &RealmName, of: Edition, actor: &Actor) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert((realm.clone(), actor.agent.id.clone()), (of, actor.clone()));
    }
}
