//! The door's state: the host, open challenges, and cached directory entries.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_host::Host;

use super::challenges::Challenges;
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
    actors: ActorCache,
}

impl Door {
    /// A door without open challenges.
    pub fn new(host: Host) -> Self {
        Self { host, state: Arc::default() }
    }

    /// Challenges that were handed out for signing.
    pub(super) fn challenges(&self) -> &Challenges {
        &self.state.challenges
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
