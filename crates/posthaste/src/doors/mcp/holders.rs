//! Who holds an agent: whose it is and by which secret its holder is known, as the books had it a moment ago. Forgotten
//! as soon as an agent of the realm changes, before whoever changed it has its answer, so that a call need not ask the
//! books again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use posthaste_engine::nouns::{AgentId, RealmName};

/// Holders that are remembered; beyond these all are forgotten and looked up again.
const REMEMBERED: usize = 4_096;

/// What a call must show to act for an agent.
pub(super) struct Holder {
    pub(super) owner: Option<AgentId>,
    /// The token under which it was entered.
    pub(super) bearer: Option<AgentId>,
    pub(super) secret: String,
}

/// A holder, and the edition of the realm in which it was one.
type Dated = (u64, Arc<Holder>);

#[derive(Default)]
pub(super) struct Holders {
    known: Mutex<HashMap<(RealmName, AgentId), Dated>>,
}

/// Secrets are not shown.
impl std::fmt::Debug for Holders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holders").finish_non_exhaustive()
    }
}

impl Holders {
    /// The agent's holder, if nothing changed since that edition.
    pub(super) fn recall(&self, realm: &RealmName, agent: &AgentId, edition: u64) -> Option<Arc<Holder>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, holder) = known.get(&(realm.clone(), agent.clone()))?;
        (*of == edition).then(|| holder.clone())
    }

    /// Remembers a holder as the books had it in an edition, which was asked for before the books.
    pub(super) fn remember(&self, realm: &RealmName, agent: AgentId, edition: u64, holder: Arc<Holder>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert((realm.clone(), agent), (edition, holder));
    }
}
