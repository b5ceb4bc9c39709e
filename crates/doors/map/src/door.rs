//! The door's state: the host, the sessions of every realm, and posthaste's own methods.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_host::Host;
use posthaste_host::services::OwnMethods;

use super::registry::SessionRegistries;

/// What the door is given besides the host.
#[derive(Clone, Debug)]
pub struct Options {
    /// What answers `x-posthaste/…`.
    pub own_methods: Arc<dyn OwnMethods>,
}

/// Handed to every connection and request. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    host: Host,
    sessions: Arc<SessionRegistries>,
    own_methods: Arc<dyn OwnMethods>,
}

impl Door {
    /// A door without sessions.
    pub fn new(host: Host, options: Options) -> Self {
        Self { host, sessions: Arc::default(), own_methods: options.own_methods }
    }

    /// The sessions of every realm.
    pub(super) fn registries(&self) -> &SessionRegistries {
        &self.sessions
    }

    /// What answers `x-posthaste/…`.
    pub(super) fn own_methods(&self) -> &dyn OwnMethods {
        &*self.own_methods
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
