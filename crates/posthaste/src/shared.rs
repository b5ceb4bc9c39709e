//! What every door shares: the office, who may come in, and when to stop.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use posthaste_engine::Office;
use posthaste_engine::nouns::RealmName;
use tokio_util::sync::CancellationToken;

use crate::doors::Halls;
use crate::keys::AdminKey;
use crate::observe::health::Health;

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
}

#[derive(Debug)]
struct Inner {
    office: Office,
    realm: RealmName,
    admin: AdminKey,
    switches: Switches,
    halls: Halls,
    health: Health,
    started: Instant,
    stop: CancellationToken,
    /// The directory that the files bridge serves, if there is one.
    mail_dir: OnceLock<PathBuf>,
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
        let (halls, started) = (Halls::default(), Instant::now());
        let mail_dir = OnceLock::new();
        Self {
            inner: Arc::new(Inner { office, realm, admin, switches, halls, health, started, stop, mail_dir }),
        }
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

    pub(crate) fn health(&self) -> &Health {
        &self.inner.health
    }

    pub fn started(&self) -> Instant {
        self.inner.started
    }

    /// The directory that the files bridge serves, if there is one.
    pub fn mail_dir(&self) -> Option<&Path> {
        self.inner.mail_dir.get().map(PathBuf::as_path)
    }

    /// Says which directory the files bridge serves; the first time counts.
    pub(crate) fn set_mail_dir(&self, path: PathBuf) {
        let _ = self.inner.mail_dir.set(path);
    }

    /// Cancelled when the office closes; whoever holds a connection open watches it.
    pub fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }
}
