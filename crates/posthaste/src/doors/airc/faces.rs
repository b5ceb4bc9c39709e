//! Faces: who bore a token a moment ago, so that a message need not ask the books again. A face is forgotten as soon as an
//! agent or a token of the realm changes, before whoever changed it has its answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posthaste_engine::nouns::{Millis, RealmName};
use posthaste_engine::stamp;

use super::context::Actor;

/// Faces that are remembered; beyond these all are forgotten and looked up again.
const REMEMBERED: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Faces {
    known: Mutex<HashMap<(RealmName, [u8; 32]), Face>>,
}

#[derive(Debug)]
struct Face {
    edition: u64,
    /// When the token stops working.
    until: Option<Millis>,
    actor: Actor,
}

impl Faces {
    /// Who bears the token of this hash, if that still holds.
    pub(super) fn recall(&self, realm: &RealmName, hash: &[u8; 32], edition: u64) -> Option<Actor> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let face = known.get(&(realm.clone(), *hash))?;
        let valid = face.edition == edition && face.until.is_none_or(|until| stamp::now() < until);
        valid.then(|| face.actor.clone())
    }

    /// Remembers a face as the books had it in an edition.
    pub(super) fn remember(
        &self,
        realm: &RealmName,
        hash: [u8; 32],
        edition: u64,
        until: Option<Millis>,
        actor: &Actor,
    ) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert((realm.clone(), hash), Face { edition, until, actor: actor.clone() });
    }
}
