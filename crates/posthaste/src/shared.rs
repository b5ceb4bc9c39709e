//! What every door shares: the office, who may come in, and when to stop.

use std::sync::{Arc, Weak};
use std::time::Instant;

use posthaste_engine::Office;
use posthaste_engine::nouns::RealmName;
use tokio_util::sync::CancellationToken;

use crate::doors::{Halls, McpDesk};
use crate::keys::AdminKey;
use crate::observe::health::Health;
use crate::projects::Projects;

/// Handed to every door. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shared {
    inner: Arc<Inner>,
}

/// A handle that does not keep the office open.
#[derive(Clone, Debug)]
pub(crate) struct WeakShared(Weak<Inner>);

impl WeakShared {
    pub(crate) fn upgrade(&self) -> Option<Shared> {
        self.0.upgrade().map(|inner| Shared { inner })
    }
}

/// What an office does or leaves.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Whether callers must show a token.
    pub auth: bool,
    /// Whether conversations are kept for MAP.
    pub mail: bool,
}

#[derive(Debug)]
struct Inner {
    office: Office,
    realm: RealmName,
    admin: AdminKey,
    switches: Switches,
    halls: Halls,
    mcp: McpDesk,
    projects: Projects,
    health: Health,
    started: Instant,
    stop: CancellationToken,
}

impl Shared {
    pub fn new(
        office: Office,
        realm: RealmName,
        admin: AdminKey,
        switches: Switches,
        stop: CancellationToken,
    ) -> Self {
        let health = Health::new();
        let inner = Inner {
            office,
            realm,
            admin,
            switches,
            halls: Halls::default(),
            mcp: McpDesk::default(),
            projects: Projects::default(),
            health,
            started: Instant::now(),
            stop,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn downgrade(&self) -> WeakShared {
        WeakShared(Arc::downgrade(&self.inner))
    }

    pub fn office(&self) -> &Office {
        &self.inner.office
    }

    /// The realm of requests that name none.
    pub fn default_realm(&self) -> &RealmName {
        &self.inner.realm
    }

    pub(crate) fn admin(&self) -> &AdminKey {
        &self.inner.admin
    }

    /// Whether callers must show a token.
    pub fn needs_token(&self) -> bool {
        self.inner.switches.auth
    }

    /// Whether conversations are kept for MAP.
    pub fn keeps_mail(&self) -> bool {
        self.inner.switches.mail
    }

    /// Everyone who is connected by MAP.
    pub(crate) fn halls(&self) -> &Halls {
        &self.inner.halls
    }

    /// What the MCP door keeps while the office is open.
    pub(crate) fn mcp(&self) -> &McpDesk {
        &self.inner.mcp
    }

    /// The other names of the realms.
    pub(crate) fn projects(&self) -> &Projects {
        &self.inner.projects
    }

    pub(crate) fn health(&self) -> &Health {
        &self.inner.health
    }

    pub fn started(&self) -> Instant {
        self.inner.started
    }

    /// Cancelled when the office closes; whoever holds a connection open watches it.
    pub fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }
}
