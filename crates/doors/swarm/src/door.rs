//! The door's state: the host and the runtime of the swarm that the default realm hosts.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_engine::nouns::RealmName;
use posthaste_host::Host;

use super::runtime::Runtime;

/// The state of every handler. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    host: Host,
    runtime: Option<Arc<Runtime>>,
}

impl Door {
    /// A door to every realm; the default realm hosts a swarm if there is a runtime.
    pub fn new(host: Host, runtime: Option<Arc<Runtime>>) -> Self {
        Self { host, runtime }
    }

    /// The runtime, if the realm hosts a swarm.
    pub(super) fn runtime(&self, realm: &RealmName) -> Option<&Runtime> {
        self.runtime.as_deref().filter(|_| realm == self.host.default_realm())
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
