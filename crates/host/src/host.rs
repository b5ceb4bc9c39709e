//! What every door is given: the engine of each realm, authentication, limits, health, and when to stop.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use posthaste_engine::Office;
use posthaste_engine::nouns::RealmName;
use tokio_util::sync::CancellationToken;

use crate::caller::{Shares, TokenCache};
use crate::http::egress_policy::EgressPolicy;
use crate::http::rate::{Limiter, Rates};
use crate::http::tls_client::TrustedRoots;
use crate::jwt::JwtKey;
use crate::keys::AdminKey;
use crate::observe::health::Health;
use crate::projects::Projects;
use crate::services::{HostedSwarm, MailSignals};
use crate::token_watch::TokenWatches;

/// Handed to every door. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Host {
    inner: Arc<Inner>,
}

/// A handle that does not keep the databases open.
#[derive(Clone, Debug)]
pub struct WeakHost(Weak<Inner>);

impl WeakHost {
    pub fn upgrade(&self) -> Option<Host> {
        self.0.upgrade().map(|inner| Host { inner })
    }
}

/// Features and limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Whether callers must show a token.
    pub auth: bool,
    /// Whether conversations are kept for MAP.
    pub mail: bool,
    /// Rate limits of callers.
    pub rates: Rates,
    /// The egress policy.
    pub egress_policy: EgressPolicy,
    /// To which callers AIRC's Safe Mode is open: tokens without signatures.
    pub safe_mode: Offer,
    /// Interval of pings to silent peers.
    pub ping_every: Duration,
    /// To which callers AIRC registration is open without a token.
    pub registration: Offer,
}

/// The callers that a feature is open to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// No caller.
    Off,
    /// Callers on this machine, without a proxy between.
    ThisMachine,
    /// Every caller.
    On,
}

impl Offer {
    /// Whether it is open to a caller on this machine, or elsewhere.
    pub fn holds(self, local: bool) -> bool {
        match self {
            Self::Off => false,
            Self::ThisMachine => local,
            Self::On => true,
        }
    }
}

#[derive(Debug)]
struct Inner {
    office: Office,
    realm: RealmName,
    admin: AdminKey,
    features: Features,
    limiter: Limiter,
    attachments: crate::attachments::Usage,
    projects: Projects,
    health: Health,
    /// The swarm that the default realm hosts, if it hosts one.
    swarm: OnceLock<Arc<dyn HostedSwarm>>,
    /// The key of JSON web tokens, if they are accepted.
    jwt: OnceLock<JwtKey>,
    token_cache: TokenCache,
    /// The quota of each token.
    shares: Shares,
    /// Watches the tokens of open connections.
    token_watches: TokenWatches,
    started: Instant,
    stop: CancellationToken,
    /// Hooks and nudges of the mail directory that is joined with the default realm, if there is one.
    mail_signals: OnceLock<Arc<dyn MailSignals>>,
    trust: OnceLock<TrustedRoots>,
}

impl Host {
    pub fn new(
        office: Office,
        realm: RealmName,
        admin: AdminKey,
        features: Features,
        stop: CancellationToken,
    ) -> Self {
        let health = Health::default();
        let inner = Inner {
            office,
            realm,
            admin,
            features,
            limiter: Limiter::default(),
            attachments: crate::attachments::Usage::default(),
            projects: Projects::default(),
            health,
            swarm: OnceLock::new(),
            jwt: OnceLock::new(),
            token_cache: TokenCache::default(),
            shares: Shares::default(),
            token_watches: TokenWatches::default(),
            mail_signals: OnceLock::new(),
            trust: OnceLock::new(),
            started: Instant::now(),
            stop,
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn downgrade(&self) -> WeakHost {
        WeakHost(Arc::downgrade(&self.inner))
    }

    pub fn office(&self) -> &Office {
        &self.inner.office
    }

    /// The realm of requests that name none.
    pub fn default_realm(&self) -> &RealmName {
        &self.inner.realm
    }

    pub fn admin(&self) -> &AdminKey {
        &self.inner.admin
    }

    /// Whether callers must show a token.
    pub fn needs_token(&self) -> bool {
        self.inner.features.auth
    }

    /// Whether conversations are kept for MAP.
    pub fn keeps_mail(&self) -> bool {
        self.inner.features.mail
    }

    /// Interval of pings to silent peers.
    pub fn ping_every(&self) -> Duration {
        self.inner.features.ping_every
    }

    /// To which callers AIRC's Safe Mode is open.
    pub fn safe_mode(&self) -> Offer {
        self.inner.features.safe_mode
    }

    /// To which callers AIRC registration is open without a token.
    pub fn open_registration(&self) -> Offer {
        self.inner.features.registration
    }

    /// The egress policy.
    pub fn egress_policy(&self) -> EgressPolicy {
        self.inner.features.egress_policy
    }

    /// Rate limits of callers.
    pub fn rates(&self) -> &Rates {
        &self.inner.features.rates
    }

    /// Applies the rate limits.
    pub fn limiter(&self) -> &Limiter {
        &self.inner.limiter
    }

    /// Makes a swarm the one that the default realm hosts. The first call counts.
    pub fn set_swarm(&self, swarm: Arc<dyn HostedSwarm>) {
        drop(self.inner.swarm.set(swarm));
    }

    /// Accepts JSON web tokens under a key. The first call counts.
    pub fn accept_jwt(&self, key: JwtKey) {
        drop(self.inner.jwt.set(key));
    }

    pub fn jwt(&self) -> Option<&JwtKey> {
        self.inner.jwt.get()
    }

    pub fn token_watches(&self) -> &TokenWatches {
        &self.inner.token_watches
    }

    pub fn shares(&self) -> &Shares {
        &self.inner.shares
    }

    pub fn token_cache(&self) -> &TokenCache {
        &self.inner.token_cache
    }

    /// The swarm that a realm hosts, if it hosts one.
    pub fn swarm(&self, realm: &RealmName) -> Option<&dyn HostedSwarm> {
        self.inner.swarm.get().filter(|_| *realm == self.inner.realm).map(Arc::as_ref)
    }

    /// Bytes of the files of each realm.
    pub fn attachments(&self) -> &crate::attachments::Usage {
        &self.inner.attachments
    }

    /// The other names of the realms.
    pub fn projects(&self) -> &Projects {
        &self.inner.projects
    }

    pub fn health(&self) -> &Health {
        &self.inner.health
    }

    pub fn started(&self) -> Instant {
        self.inner.started
    }

    /// Hooks and nudges of the mail directory that is joined with a realm, if there is one.
    pub fn mail_signals(&self, realm: &RealmName) -> Option<Arc<dyn MailSignals>> {
        self.inner.mail_signals.get().filter(|_| *realm == self.inner.realm).cloned()
    }

    /// Joins a mail directory's hooks and nudges with the default realm. The first call counts.
    pub fn set_mail_signals(&self, signals: Arc<dyn MailSignals>) {
        drop(self.inner.mail_signals.set(signals));
    }

    /// Sets the trusted authorities for TLS connections to other servers. The first call counts.
    pub fn set_trusted_roots(&self, trust: TrustedRoots) {
        drop(self.inner.trust.set(trust));
    }

    /// The trusted authorities for TLS connections to other servers: those of the system, unless others were set.
    pub fn trusted_roots(&self) -> anyhow::Result<TrustedRoots> {
        if let Some(trust) = self.inner.trust.get() {
            return Ok(trust.clone());
        }
        let trust = TrustedRoots::load(None)?;
        Ok(self.inner.trust.get_or_init(|| trust).clone())
    }

    /// Cancelled when the server shuts down. Code that keeps a connection open watches it.
    pub fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }
}
