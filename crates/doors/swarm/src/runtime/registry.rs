//! Other swarms: their addresses, health and tokens. The database keeps everything but the tokens (`secrets.rs`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use posthaste_engine::nouns::{Caller, Json, Millis, Peer, PeerKind, RealmName};
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::mail::RegisterRequest;
use posthaste_wire::mail::answers::PeerCard;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::MissedTickBehavior;

use super::secrets::{Secret, Secrets, env_token, variable};
use super::{Runtime, lock};
use posthaste_host::http::outgoing::OutgoingError;

/// Time limit of requests for a swarm's card and health.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the health of other swarms is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of concurrent health checks.
const MAX_CONCURRENT_CHECKS: usize = 16;
/// Maximum number of registered swarms.
const MAX_SWARMS: usize = 10_000;

/// Another swarm.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: RealmName,
    pub(crate) base_url: String,
    pub(crate) volatile: bool,
    pub(crate) active: bool,
    pub(crate) seen_at: Option<Millis>,
    pub(crate) about: About,
    secret: Secret,
}

/// What another swarm's card and its registration say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) public: bool,
    pub(crate) latency: Option<f64>,
    pub(crate) metadata: Option<Map<String, Value>>,
}

/// Why a swarm was not registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error("field `{0}` {1}")]
    Bad(&'static str, String),
    #[error("the swarm at that address did not answer as one: {0}")]
    Unreachable(String),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

#[derive(Debug)]
pub(crate) struct Registry {
    entries: Mutex<HashMap<String, Entry>>,
    secrets: Secrets,
}

impl Registry {
    /// Reads the registered swarms from the database, and removes volatile ones.
    pub(super) async fn open(engine: &Engine, data: &Path) -> Result<Self, EngineError> {
        let secrets = Secrets::new(data, engine.realm());
        let mut entries = HashMap::new();
        for peer in engine.read(|view| view.peers(&Caller::office())).await? {
            if peer.volatile && peer.kind == PeerKind::Server {
                engine.submit(&Caller::office(), RemovePeer { name: peer.name }).await?;
                continue;
            }
            if let Some(mut entry) = entry(peer) {
                entry.secret = secrets.of(&entry.name, &entry.base_url);
                let given = env_token(&entry.name).is_some();
                if given && entry.secret.environment {
                    // The variable that the operator has set for this start takes precedence.
                    entry.secret.token = None;
                } else if given {
                    tracing::warn!(
                        swarm = %entry.name, variable = variable(&entry.name),
                        "this variable is not shown to the swarm, because the operator did not register its address; \
                         register it again with the server's own key"
                    );
                }
                entries.insert(entry.name.to_string(), entry);
            }
        }
        Ok(Self { entries: Mutex::new(entries), secrets })
    }

    pub(crate) fn knows(&self, swarm: &str) -> bool {
        lock(&self.entries).contains_key(swarm)
    }

    fn is_full(&self) -> bool {
        lock(&self.entries).len() >= MAX_SWARMS
    }

    pub(crate) fn get(&self, swarm: &str) -> Option<Entry> {
        lock(&self.entries).get(swarm).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = lock(&self.entries).values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn put(&self, entry: Entry) {
        lock(&self.entries).insert(entry.name.to_string(), entry);
    }

    pub(super) fn forget(&self, swarm: &str) {
        lock(&self.entries).remove(swarm);
    }

    /// Whether two swarms are registered, and at the same host.
    pub(crate) fn share_a_host(&self, one: &str, other: &str) -> bool {
        let entries = lock(&self.entries);
        let host = |swarm: &str| host_of(&entries.get(swarm)?.base_url);
        matches!((host(one), host(other)), (Some(one), Some(other)) if one == other)
    }

    /// Allows the environment's token for a swarm to be sent to an address that the operator named.
    pub(crate) fn trust(&self, swarm: &RealmName, base_url: &str) -> std::io::Result<()> {
        let base_url = base_url.trim_end_matches('/');
        let secret = Secret { environment: true, ..self.secrets.of(swarm, base_url) };
        self.secrets.keep(swarm, base_url, &secret)
    }
}

impl Entry {
    /// The token for requests to the swarm.
    pub(crate) fn token(&self) -> Option<String> {
        self.secret.token_for(&self.name)
    }
}

impl Runtime {
    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// Registers another swarm after reading its card. Tokens of the environment are sent only to swarms that the operator
    /// registers: other administrators could have them sent to an address of their own.
    pub(crate) async fn register(
        &self,
        request: RegisterRequest,
        by_operator: bool,
    ) -> Result<String, RegisterError> {
        let name = RealmName::new(&request.name)
            .map_err(|_| RegisterError::Bad("name", "cannot be a swarm's name".to_owned()))?;
        if name == *self.inner.engine.realm() {
            return Err(RegisterError::Bad("name", "is this server's own".to_owned()));
        }
        let base_url = request.base_url.trim_end_matches('/').to_owned();
        if self.inner.registry.is_full() && !self.inner.registry.knows(&request.name) {
            return Err(RegisterError::Bad("name", format!("there are {MAX_SWARMS} swarms already")));
        }
        let mut about = self.read_card(&base_url).await?;
        about.metadata = request.metadata;
        let known = self.inner.registry.get(name.as_str()).filter(|known| known.base_url == base_url);
        let environment = by_operator || known.is_some_and(|known| known.secret.environment);
        let entry = Entry {
            name: name.clone(),
            base_url,
            volatile: request.volatile,
            active: true,
            seen_at: Some(stamp::now()),
            about,
            secret: Secret { token: request.auth_token, environment },
        };
        if !entry.volatile
            && let Err(error) = self.inner.registry.secrets.keep(&name, &entry.base_url, &entry.secret)
        {
            tracing::warn!(%error, "the token for another swarm cannot be kept; it is lost at restart");
        }
        self.write_peer(&entry).await?;
        self.inner.registry.put(entry);
        self.inner.outbox.notify_one();
        Ok(name.to_string())
    }

    /// Adds a swarm that was written to the database in another way than by a registration. False if there is none.
    pub(super) async fn adopt(&self, name: &RealmName) -> bool {
        let wanted = name.clone();
        let found = self.inner.engine.read(move |view| view.peer(&Caller::office(), &wanted)).await;
        let Ok(Some(peer)) = found else { return false };
        let registry = &self.inner.registry;
        let known = registry.get(name.as_str());
        let Some(mut entry) = entry(peer).filter(|_| known.is_some() || !registry.is_full()) else {
            return false;
        };
        entry.secret = match known.filter(|known| known.base_url == entry.base_url) {
            Some(known) => known.secret,
            None => registry.secrets.of(name, &entry.base_url),
        };
        if let Err(error) = registry.secrets.keep(name, &entry.base_url, &entry.secret) {
            tracing::warn!(%error, "the token for another swarm cannot be kept");
        }
        let base_url = entry.base_url.clone();
        registry.put(entry);
        let about = self.read_card(&base_url).await;
        // It may have been removed or registered again meanwhile.
        let mut entries = lock(&registry.entries);
        if let Some(kept) = entries.get_mut(name.as_str()).filter(|kept| kept.base_url == base_url) {
            kept.active = about.is_ok();
            if let Ok(about) = about {
                let metadata = kept.about.metadata.take();
                (kept.about, kept.seen_at) = (About { metadata, ..about }, Some(stamp::now()));
            }
        }
        drop(entries);
        self.inner.outbox.notify_one();
        true
    }

    /// Reads a swarm's card.
    async fn read_card(&self, base_url: &str) -> Result<About, RegisterError> {
        let started = Instant::now();
        let answer = match self.inner.ways.named.get(&format!("{base_url}/"), CHECK_TIMEOUT).await {
            Ok(answer) => answer,
            Err(OutgoingError::BadUrl(_)) => {
                return Err(RegisterError::Bad("base_url", "must be an http or https address".to_owned()));
            }
            Err(OutgoingError::Private) => {
                return Err(RegisterError::Bad("base_url", "is a private address".to_owned()));
            }
            Err(error) => return Err(RegisterError::Unreachable(error.to_string())),
        };
        if !answer.status.is_success() {
            return Err(RegisterError::Unreachable(format!("it answered {}", answer.status)));
        }
        let root: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| RegisterError::Unreachable("its answer is not JSON".to_owned()))?;
        let PeerCard { version, description, keywords, public } = PeerCard::read(&root);
        let latency = Some(started.elapsed().as_secs_f64());
        Ok(About { version, description, keywords, public, latency, metadata: None })
    }

    async fn write_peer(&self, entry: &Entry) -> Result<(), EngineError> {
        let about = serde_json::to_string(&entry.about).ok().and_then(|text| Json::new(text).ok());
        let put = PutPeer {
            name: entry.name.clone(),
            kind: PeerKind::Server,
            url: Some(entry.base_url.clone()),
            token_ref: entry.secret.environment.then(|| format!("${{{}}}", variable(&entry.name))),
            reachable: entry.active,
            volatile: entry.volatile,
            meta: about,
            seen_at: entry.seen_at,
        };
        self.inner.engine.submit(&Caller::office(), put).await.map(drop)
    }

    /// Checks the health of all swarms, at start and then at intervals.
    pub(super) async fn watch_peers(self) {
        let mut tick = tokio::time::interval(CHECK_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            // Concurrent, so that a swarm that does not answer delays no other check.
            let all = futures_util::stream::iter(self.inner.registry.all());
            let checked = all.for_each_concurrent(MAX_CONCURRENT_CHECKS, |entry| self.check_peer(entry));
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                () = checked => {}
            }
        }
    }

    async fn check_peer(&self, mut entry: Entry) {
        let started = Instant::now();
        let answer = self.inner.ways.named.get(&format!("{}/health", entry.base_url), CHECK_TIMEOUT).await;
        let well = matches!(&answer, Ok(answer) if answer.status.is_success());
        let changed = well != entry.active;
        entry.active = well;
        if well {
            entry.seen_at = Some(stamp::now());
            entry.about.latency = Some(started.elapsed().as_secs_f64());
        }
        if changed && let Err(error) = self.write_peer(&entry).await {
            tracing::warn!(swarm = %entry.name, %error, "what is known of another swarm cannot be written");
        }
        // It may have been registered again meanwhile.
        let mut entries = lock(&self.inner.registry.entries);
        if let Some(kept) = entries.get_mut(entry.name.as_str())
            && kept.base_url == entry.base_url
        {
            (kept.active, kept.seen_at, kept.about.latency) =
                (entry.active, entry.seen_at, entry.about.latency);
        }
    }
}

fn host_of(base_url: &str) -> Option<String> {
    let uri: axum::http::Uri = base_url.parse().ok()?;
    uri.host().map(str::to_ascii_lowercase)
}

/// A swarm in the database, without its token.
fn entry(peer: Peer) -> Option<Entry> {
    if peer.kind != PeerKind::Server {
        return None;
    }
    let about = peer.meta.and_then(|json| serde_json::from_str(json.as_str()).ok()).unwrap_or_default();
    Some(Entry {
        name: peer.name,
        base_url: peer.url?.trim_end_matches('/').to_owned(),
        volatile: peer.volatile,
        active: peer.reachable,
        seen_at: peer.seen_at,
        about,
        secret: Secret::default(),
    })
}
