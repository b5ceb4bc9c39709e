//! The door's state: the host, challenges that newcomers were given, signatures under way, and cached directory entries.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_host::Host;

use super::challenges::Challenges;
use super::checks::Checks;
use super::context::ActorCache;

/// Handed to every request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    host: Host,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    challenges: Challenges,
    checks: Checks,
    actors: ActorCache,
}

impl Door {
    /// A door that has given no challenge yet.
    pub fn new(host: Host) -> Self {
        Self { host, state: Arc::default() }
    }

    /// What newcomers are asked to sign.
    pub(super) fn challenges(&self) -> &Challenges {
        &self.state.challenges
    }

    /// Signatures that wait to be checked.
    pub(super) fn checks(&self) -> &Checks {
        &self.state.checks
    }

    /// Directory entries of senders.
    pub(super) fn actors(&self) -> &ActorCache {
        &self.state.actors
    }
}

impl Deref for Door {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

impl FromRef<Door> for Host {
    fn from_ref(door: &Door) -> Self {
        door.host.clone()
    }
}
