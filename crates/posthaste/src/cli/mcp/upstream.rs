//! The server that lines are relayed to: the one that is named, the one that runs on the data directory, or one in this
//! process. Of several processes on one data directory the first has the server; when it ends, another starts one.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::client_tokens::ClientDirectory;
use super::super::exit::{Exit, Failure};
use super::super::realm_access::{Purpose, RealmAccess};
use super::super::target::{Server, Source, Target};
use crate::config::{AllowRemote, Config, Setting};
use crate::serve::{self, Whereabouts, handover};

/// How long the next `posthaste serve` is waited for when one has ended: it may be restarted.
const RESTART: Duration = Duration::from_secs(3);
/// How often a server in this process looks whether `posthaste serve` wants the data directory.
const BETWEEN_GLANCES: Duration = Duration::from_millis(200);
/// How often, and how long apart, the server of another process is looked for while it starts or ends.
const LOOKS: u32 = 200;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Where to relay to.
pub(super) struct Upstream {
    config: Config,
    target: Target,
    place: ClientDirectory,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The client's own token, once it is known.
    token: Option<String>,
    /// The server in this process.
    hosted: Option<Hosted>,
    /// Whether the last server was one by itself, as `posthaste serve` is.
    was_by_itself: bool,
}

struct Hosted {
    stop: CancellationToken,
    done: JoinHandle<Result<(), Failure>>,
}

/// A server and the token that the client has there.
#[derive(Clone)]
pub(super) struct Endpoint {
    /// Where MCP is spoken.
    pub(super) url: String,
    /// The server's address.
    pub(super) base: String,
    pub(super) token: Option<String>,
}

impl Upstream {
    pub(super) fn new(config: Config, target: Target, place: ClientDirectory) -> Self {
        Self { config, target, place, inner: Mutex::default() }
    }

    /// The server, started if need be.
    pub(super) async fn find(&self) -> Result<Endpoint, Failure> {
        let mut inner = self.inner.lock().await;
        let mut refused = None;
        let data = &self.config.data.value;
        let started = Instant::now();
        for _ in 0..LOOKS {
            if let Some(server) = self.target.server(data)? {
                inner.was_by_itself = Whereabouts::live(data).is_some_and(|running| !running.hosted);
                let token = self.token(&mut inner, &server).await?;
                let realm =
                    self.target.realm(&self.config).map(|realm| format!("/r/{realm}")).unwrap_or_default();
                let url = format!("{}{realm}/mcp", server.url);
                return Ok(Endpoint { url, base: server.url, token });
            }
            // A server that starts by itself comes first.
            let is_restarting = inner.was_by_itself && started.elapsed() < RESTART;
            if is_restarting || handover::is_wanted(data) {
                tokio::time::sleep(BETWEEN_LOOKS).await;
                continue;
            }
            match self.host(&mut inner).await {
                Ok(()) => continue,
                // Another process was faster, or has not quite ended.
                Err(failure) if failure.exit == Exit::Held => refused = Some(failure),
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Err(refused.unwrap_or_else(|| Failure::new(Exit::Failed, "no server could be started")))
    }

    /// Ends the server in this process, if there is one.
    pub(super) async fn close(&self) {
        if let Some(hosted) = self.inner.lock().await.hosted.take() {
            hosted.stop.cancel();
            // It says nothing that the client could still be told.
            drop(hosted.done.await);
        }
    }

    /// Starts a server in this process and waits until it listens.
    async fn host(&self, inner: &mut Inner) -> Result<(), Failure> {
        if let Some(hosted) = inner.hosted.take() {
            hosted.stop.cancel();
            drop(hosted.done.await);
        }
        let (stop, (ready, listens)) = (CancellationToken::new(), oneshot::channel());
        let (config, told) = (for_this_machine(&self.config), stop.clone());
        let mut done = tokio::spawn(async move {
            let glance = async {
                while !handover::is_wanted(&config.data.value) {
                    tokio::time::sleep(BETWEEN_GLANCES).await;
                }
                told.cancel();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                done = serve::run_inside(&config, told.clone(), ready) => done,
                () = glance => Ok(()),
            }
        });
        tokio::select! {
            ended = &mut done => match ended? {
                Ok(()) => Err(Failure::new(Exit::Failed, "the server ended before it listened")),
                Err(failure) => Err(failure),
            },
            Ok(()) = listens => {
                inner.hosted = Some(Hosted { stop, done });
                Ok(())
            }
        }
    }

    /// The token that was given, else the one that is kept for this client and directory; one is made if there is none. The
    /// data directory's key makes it and is not used for anything else: the client acts as itself, not as the operator.
    async fn token(&self, inner: &mut Inner, server: &Server) -> Result<Option<String>, Failure> {
        if self.target.token.is_some() || !server.is_own || server.token.is_none() {
            return Ok(self.target.token.clone());
        }
        if let Some(token) = &inner.token {
            return Ok(Some(token.clone()));
        }
        let data = &self.config.data.value;
        let operator =
            Target { url: Some(server.url.clone()), url_from: Source::Data, ..self.target.clone() };
        let realm = RealmAccess::open(&self.config, &operator, Purpose::Make).await?;
        let token = match self.place.kept(data)? {
            None => self.place.make(&realm, data, None, false).await?,
            Some(token) if realm.knows(&token).await? => token,
            Some(_) => {
                let text = format!(
                    "the token that is kept for {} in {} is revoked or unknown; `posthaste connect {0} --write` makes another",
                    self.place.client,
                    self.place.directory.display()
                );
                return Err(Failure::new(Exit::Denied, text));
            }
        };
        inner.token = Some(token.clone());
        Ok(Some(token))
    }
}

/// The settings of a server in this process: whatever else is configured, it serves this machine only, and only the data
/// directory.
fn for_this_machine(config: &Config) -> Config {
    let mut config = config.clone();
    config.listen = Setting::by_default(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    config.tls_cert = Setting::by_default(None);
    config.tls_key = Setting::by_default(None);
    config.mail_dir = Setting::by_default(None);
    config.swarm = Setting::by_default(None);
    config.allow_remote = Setting::by_default(AllowRemote::No);
    config
}
