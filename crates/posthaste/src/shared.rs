//! What every door shares: the office, who may come in, and when to stop.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use posthaste_engine::Office;
use posthaste_engine::nouns::RealmName;
use tokio_util::sync::CancellationToken;

use crate::caller::Remembered;
use crate::doors::Halls;
use crate::http::rate::{Limiter, Rates};
use crate::jwt::JwtKey;
use crate::keys::AdminKey;
use crate::observe::health::Health;
use crate::runtime::Runtime;

/// Handed to every door. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Shared {
    inner: Arc<Inner>,
}

/// What an office does or leaves.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Whether callers must show a token.
    pub auth: bool,
    /// Whether conversations are kept for MAP.
    pub mail: bool,
    /// How often callers may ask.
    pub rates: Rates,
}

#[derive(Debug)]
struct Inner {
    office: Office,
    realm: RealmName,
    admin: AdminKey,
    switches: Switches,
    halls: Halls,
    limiter: Limiter,
    health: Health,
    /// The swarm that the default realm hosts, if it hosts one.
    runtime: OnceLock<Runtime>,
    /// The key of JSON web tokens, if they are accepted.
    jwt: OnceLock<JwtKey>,
    /// Whose tokens were looked up.
    remembered: Remembered,
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
        let (halls, limiter, started) = (Halls::default(), Limiter::default(), Instant::now());
        let (runtime, jwt, remembered) = (OnceLock::new(), OnceLock::new(), Remembered::default());
        let inner = Inner {
            office,
            realm,
            admin,
            switches,
            halls,
            limiter,
            health,
            runtime,
            jwt,
            remembered,
            started,
            stop,
        };
        Self { inner: Arc::new(inner) }
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

    /// How often callers may ask.
    pub fn rates(&self) -> &Rates {
        &self.inner.switches.rates
    }

    /// Counts how often they do.
    pub fn limiter(&self) -> &Limiter {
        &self.inner.limiter
    }

    /// Has the default realm host a swarm. The first call counts.
    pub fn host(&self, runtime: Runtime) {
        // Only the program's start calls this.
        drop(self.inner.runtime.set(runtime));
    }

    /// Accepts JSON web tokens under a key. The first call counts.
    pub fn accept_jwt(&self, key: JwtKey) {
        drop(self.inner.jwt.set(key));
    }

    pub(crate) fn jwt(&self) -> Option<&JwtKey> {
        self.inner.jwt.get()
    }

    pub(crate) fn remembered(&self) -> &Remembered {
        &self.inner.remembered
    }

    /// What moves the tasks of a realm along, if the realm hosts a swarm.
    pub(crate) fn runtime(&self, realm: &RealmName) -> Option<&Runtime> {
        self.inner.runtime.get().filter(|_| *realm == self.inner.realm)
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
