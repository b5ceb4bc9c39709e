//! What every door shares: the office, who may come in, and when to stop.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use posthaste_engine::Office;
use posthaste_engine::nouns::RealmName;
use tokio_util::sync::CancellationToken;

use crate::caller::{Shares, TokenCache};
use crate::doors::{ActorCache, Challenges, Checks, Halls, McpDesk};
use crate::http::dial::Trust;
use crate::http::rate::{Limiter, Rates};
use crate::http::reach::Reaches;
use crate::jwt::JwtKey;
use crate::keys::AdminKey;
use crate::observe::health::Health;
use crate::projects::Projects;
use crate::runtime::Runtime;
use crate::warden::Wardens;

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
    /// How often callers may ask.
    pub rates: Rates,
    /// Where the office may go on its own account.
    pub reaches: Reaches,
    /// Whether AIRC's Safe Mode is spoken: tokens without signatures.
    pub safe_mode: Offer,
    /// How often a silent peer is asked whether it is there.
    pub ping_every: Duration,
    /// Whether anybody may become an AIRC identity, or only those whom somebody with a token brings.
    pub registration: Offer,
}

/// To whom something is offered that suits one machine better than the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// To no caller.
    Off,
    /// To callers on this machine that no proxy passed on.
    ThisMachine,
    /// To every caller.
    On,
}

impl Offer {
    /// Whether it holds for a caller.
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
    switches: Switches,
    halls: Halls,
    challenges: Challenges,
    checks: Checks,
    actors: ActorCache,
    limiter: Limiter,
    mcp: McpDesk,
    attachments: crate::attachments::Usage,
    projects: Projects,
    health: Health,
    /// The swarm that the default realm hosts, if it hosts one.
    runtime: OnceLock<Runtime>,
    /// The key of JSON web tokens, if they are accepted.
    jwt: OnceLock<JwtKey>,
    token_cache: TokenCache,
    /// What part of the office each of them has.
    shares: Shares,
    /// Who watches over the tokens of open connections.
    wardens: Wardens,
    started: Instant,
    stop: CancellationToken,
    /// The directory that the files bridge serves, if there is one.
    mail_dir: OnceLock<PathBuf>,
    trust: OnceLock<Trust>,
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
            challenges: Challenges::default(),
            checks: Checks::default(),
            actors: ActorCache::default(),
            limiter: Limiter::default(),
            mcp: McpDesk::default(),
            attachments: crate::attachments::Usage::default(),
            projects: Projects::default(),
            health,
            runtime: OnceLock::new(),
            jwt: OnceLock::new(),
            token_cache: TokenCache::default(),
            shares: Shares::default(),
            wardens: Wardens::default(),
            mail_dir: OnceLock::new(),
            trust: OnceLock::new(),
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

    /// How often a silent peer is asked whether it is there.
    pub fn ping_every(&self) -> Duration {
        self.inner.switches.ping_every
    }

    /// To whom AIRC's Safe Mode is spoken.
    pub fn safe_mode(&self) -> Offer {
        self.inner.switches.safe_mode
    }

    /// Who may become an AIRC identity without a token.
    pub fn takes_newcomers(&self) -> Offer {
        self.inner.switches.registration
    }

    /// What AIRC's newcomers are asked to sign.
    pub(crate) fn challenges(&self) -> &Challenges {
        &self.inner.challenges
    }

    /// Signatures that wait to be checked.
    pub(crate) fn checks(&self) -> &Checks {
        &self.inner.checks
    }

    /// Directory entries of AIRC's senders.
    pub(crate) fn actors(&self) -> &ActorCache {
        &self.inner.actors
    }

    /// Everyone who is connected by MAP.
    pub(crate) fn halls(&self) -> &Halls {
        &self.inner.halls
    }

    /// Where the office may go on its own account.
    pub fn reaches(&self) -> Reaches {
        self.inner.switches.reaches
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

    pub(crate) fn wardens(&self) -> &Wardens {
        &self.inner.wardens
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.inner.shares
    }

    pub(crate) fn token_cache(&self) -> &TokenCache {
        &self.inner.token_cache
    }

    /// What moves the tasks of a realm along, if the realm hosts a swarm.
    pub(crate) fn runtime(&self, realm: &RealmName) -> Option<&Runtime> {
        self.inner.runtime.get().filter(|_| *realm == self.inner.realm)
    }

    /// What the files that messages carry take of each realm.
    pub(crate) fn attachments(&self) -> &crate::attachments::Usage {
        &self.inner.attachments
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

    /// The directory that the files bridge serves, if there is one.
    pub fn mail_dir(&self) -> Option<&Path> {
        self.inner.mail_dir.get().map(PathBuf::as_path)
    }

    /// Says which directory the files bridge serves; the first time counts.
    pub(crate) fn set_mail_dir(&self, path: PathBuf) {
        let _ = self.inner.mail_dir.set(path);
    }

    /// Says whom to believe when the office calls others over TLS; only the first word counts.
    pub fn believe(&self, trust: Trust) {
        // Said twice is as good as said once.
        drop(self.inner.trust.set(trust));
    }

    /// Whom to believe when the office calls others over TLS: what the system trusts, unless something else was said.
    pub(crate) fn trust(&self) -> anyhow::Result<Trust> {
        if let Some(trust) = self.inner.trust.get() {
            return Ok(trust.clone());
        }
        let trust = Trust::load(None)?;
        Ok(self.inner.trust.get_or_init(|| trust).clone())
    }

    /// Cancelled when the office closes; whoever holds a connection open watches it.
    pub fn stop(&self) -> &CancellationToken {
        &self.inner.stop
    }
}
