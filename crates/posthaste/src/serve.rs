//! Starts the server: database, doors and listener; and closes it gracefully.

pub(crate) mod handover;

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{EngineError, Fault, Office};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::exit::{Exit, Failure};
use crate::config::{Config, ConfigError, Origin};
use crate::doors;
use posthaste_files::{Bridge, BridgeOptions, StateDir};
use posthaste_host::Host;
use posthaste_host::http::bind::bind;
use posthaste_host::http::layers::{LayerOptions, wrap};
use posthaste_host::http::listen::{self, ListenOptions};
use posthaste_host::http::outgoing::OutgoingClients;
use posthaste_host::http::tls::{Tls, reload_on_hangup};
use posthaste_host::http::tls_client::TrustedRoots;
use posthaste_host::jwt::JwtKey;
use posthaste_host::keys::AdminKey;
use posthaste_host::observe::inspector::Inspector;
use posthaste_host::projects;
use posthaste_host::signals::stop_on_signal;
use posthaste_swarm::runtime::Runtime;
use posthaste_swarm::runtime::definition::Swarm;

/// How often expired things are turned into events and idle realms are closed.
const TIDY_EVERY: Duration = Duration::from_secs(1);
/// How often mail between realms is delivered.
const CARRY_EVERY: Duration = Duration::from_millis(200);
/// Bytes of a request beyond its message: the envelope and the frame around it.
const BODY_ALLOWANCE: usize = 64 << 10;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The address of a running server, in a file in the data directory for commands on the same machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Whereabouts {
    pub pid: u32,
    pub url: String,
    /// Whether another command runs it inside, and gives the data directory up to `posthaste serve`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hosted: bool,
}

impl Whereabouts {
    fn path(data: &Path) -> PathBuf {
        data.join("office.json")
    }

    /// The address in the file of a data directory. The server may have ended since.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(Self::path(data)).ok()?).ok()
    }

    /// Where the server that has a data directory now can be reached: the process that wrote the file still holds the
    /// directory's lock, so that the directory's key can be shown at its address.
    pub fn live(data: &Path) -> Option<Self> {
        Self::read(data).filter(|said| posthaste_engine::lock_holder(data) == Some(said.pid))
    }

    fn write(&self, data: &Path) -> io::Result<()> {
        // Written under another name and renamed, so that readers never see half of it.
        let fresh = data.join("office.json.new");
        fs::write(&fresh, serde_json::to_vec(self)?)?;
        fs::rename(fresh, Self::path(data))
    }
}

/// Runs the server until it is told to stop.
pub async fn run(config: &Config) -> Result<(), Failure> {
    config.check()?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let ready = |url: &str, realm: &RealmName, address: SocketAddr| announce(url, config, realm, address);
    run_until(config, None, ready).await
}

/// Runs a server inside another command until it is told to stop. Says that it is ready to the caller instead of on standard
/// output, which is the command's own.
pub(crate) async fn run_inside(
    config: &Config,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> Result<(), Failure> {
    let tell = |_: &str, _: &RealmName, _: SocketAddr| {
        // A caller that dropped the receiver has cancelled `stop`, too.
        let _ = ready.send(());
        Ok(())
    };
    run_until(config, Some(stop), tell).await
}

/// Runs the server until `stop` is cancelled, or until SIGTERM or SIGINT if there is none.
async fn run_until(
    config: &Config,
    stop: Option<CancellationToken>,
    ready: impl FnOnce(&str, &RealmName, SocketAddr) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let swarm = read_swarm(config)?;
    let realm = match &swarm {
        Some((_, _, name)) => name.clone(),
        None => config.realm.value.clone(),
    };
    let data = &config.data.value;
    posthaste_host::safe_open::make_private_directory(data)
        .with_context(|| format!("cannot make {}", data.display()))?;
    raise_descriptor_limit(config.max_connections.value);
    let hosted = stop.is_some();
    let (office, guard) = match hosted {
        true => Office::open(data, Limits::default()).map_err(held)?,
        false => handover::open(data).await?,
    };
    let reads_end = office.reads_end();
    let admin = AdminKey::open(data).context("cannot read the admin key")?;
    let engine = office.realm(&realm).await.map_err(|error| unusable(error, &realm))?;
    let stop = match stop {
        Some(stop) => stop,
        None => stop_on_signal()?,
    };
    let tls = load_tls(config, &stop)?;
    let listener = bind(config.listen.value).await.map_err(|error| Failure::new(Exit::Failed, error))?;
    let address = listener.local_addr()?;

    let features = config.features();
    let host = Host::new(office, realm.clone(), admin, features, stop.clone());
    if let Some(path) = &config.tls_ca.value {
        host.set_trusted_roots(TrustedRoots::load(Some(path))?);
    }
    if let Some(path) = &config.jwt_key.value {
        host.accept_jwt(JwtKey::read(path)?);
    }
    let mut runtime = None;
    if let Some((swarm, here, _)) = swarm {
        let ways = OutgoingClients::new(config.tls_ca.value.as_deref(), features.egress_policy)?;
        let started = Runtime::start(engine.unhurried(), swarm, here, data.clone(), ways, stop.clone()).await;
        let started = Arc::new(started.map_err(anyhow::Error::from)?);
        host.set_swarm(started.clone());
        runtime = Some(started);
    }
    open_projects(&host, config).await?;
    let bridge = open_bridge(config, &host).await?;
    let map_door = doors::map_door(&host);
    let options = doors::Options { mcp: config.mcp_options(), runtime };
    let max_body = host.office().limits().message_bytes * 2 + BODY_ALLOWANCE;
    let layers = LayerOptions { guard: config.guard()?, max_body, body_timeout: BODY_TIMEOUT };
    let app = wrap(doors::router(&host, &map_door, options), layers);
    let janitor = tokio::spawn(maintain(host.clone()));
    let stale = tokio::spawn(posthaste_map::resolve_all(map_door));
    let inspector = Inspector::start(host.clone(), engine);
    inspector.first_look().await;

    let url = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
    Whereabouts { pid: std::process::id(), url: url.clone(), hosted }.write(data)?;
    ready(&url, &realm, address)?;
    let options =
        ListenOptions { tls, max_connections: config.max_connections.value, ..ListenOptions::default() };
    let served = listen::serve(listener, app, options, stop.clone()).await;

    // Accepted work is answered and on disk before the process ends.
    stop.cancel();
    // Requests have had their time; a read that still runs has no caller left.
    reads_end.store(true, Ordering::Release);
    drop(janitor.await);
    drop(stale.await);
    inspector.end().await;
    if let Some(bridge) = bridge {
        drop(bridge.await);
    }
    drop(host);
    guard.close().await;
    drop(fs::remove_file(Whereabouts::path(data)));
    tracing::info!("closed");
    Ok(served?)
}

/// The swarm to host, where it is described, and the realm that has its name.
fn read_swarm(config: &Config) -> Result<Option<(Swarm, PathBuf, RealmName)>, Failure> {
    let Some(path) = &config.swarm.value else { return Ok(None) };
    let (swarm, here) = Swarm::from_file(path).map_err(|error| Failure::new(Exit::Usage, error))?;
    let name = RealmName::new(&swarm.name).map_err(anyhow::Error::from)?;
    if config.realm.origin != Origin::Default && config.realm.value != name {
        let why =
            format!("the default realm has the swarm's name {name}, so it cannot be {}", config.realm.value);
        return Err(ConfigError::new("realm", why).into());
    }
    Ok(Some((swarm, here, name)))
}

/// The default realm belongs to the work tree that the server was started in, and to the paths of `--project`. Files are read
/// for callers in those directories only.
async fn open_projects(host: &Host, config: &Config) -> Result<(), Failure> {
    let here = std::env::current_dir().ok();
    let given = projects::given(here.as_deref(), &config.projects.value).map_err(not_given)?;
    host.name_trees(projects::Trees::named(here.as_deref(), &given, &config.data.value));
    host.claim_given(&given).await.map_err(not_given)
}

/// A `--project` that cannot be honoured is wrong usage, unless the database failed.
pub(crate) fn not_given(error: projects::GivenError) -> Failure {
    let exit = match error {
        projects::GivenError::Engine(_) => Exit::Failed,
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Prints the line that scripts wait for, then hints for people.
fn announce(url: &str, config: &Config, realm: &RealmName, address: SocketAddr) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "ready {url}").and_then(|()| out.flush()).map_err(crate::cli::exit::OutputError)?;
    drop(out);
    if config.log.value == crate::logs::LogForm::Json {
        return Ok(());
    }
    let data = config.data.value.display();
    let token = match config.auth.value {
        true => {
            format!(" -H \"Authorization: Bearer $(cat {})\"", AdminKey::path(&config.data.value).display())
        }
        false => String::new(),
    };
    let mail_dir = match &config.mail_dir.value {
        Some(directory) => format!("{}   (joined with realm {realm})", directory.display()),
        None => "none; `--mail-dir DIR` joins a directory of mailboxes with this realm".to_owned(),
    };
    eprintln!(
        "\nposthaste is ready: realm {realm}, port {port}, data in {data}\n\
         \n  page        {url}{page}   (sign in with the key in {key}; `posthaste demo` fills it)\
         \n  MCP         {url}/mcp   (coding agents; `posthaste connect` sets a client up)\
         \n  MAP         ws{socket}/map   (also POST {url}/map/rpc, or `posthaste map` on stdin and stdout)\
         \n  AIRC        {url}   (`posthaste airc register ann`)\
         \n  MAIL        {url}   (POST /message; `--swarm FILE` hosts agents)\
         \n  mail files  {mail_dir}\
         \n  curl        curl{token} {url}/x-posthaste/status   (also /health and /metrics, without a token)\n\
         \nTwo agents that talk:\
         \n  cd YOUR-REPOSITORY && posthaste connect claude-code --write   (or codex, cursor, gemini, vscode)\
         \n  posthaste agents                                   who is there\
         \n  echo hello | posthaste send --from me --to NAME    write to one of them\
         \n  posthaste tail                                     watch what happens; Ctrl-C stops the server\n",
        socket = url.strip_prefix("http").unwrap_or(url),
        page = posthaste_web::PATH,
        key = AdminKey::path(&config.data.value).display(),
        port = address.port(),
    );
    Ok(())
}

/// Joins the mail directory with the default realm, if there is one.
async fn open_bridge(config: &Config, host: &Host) -> Result<Option<JoinHandle<()>>, Failure> {
    let Some(mail_dir) = config.mail_dir.value.clone() else { return Ok(None) };
    let engine = host.office().realm(host.default_realm()).await.map_err(anyhow::Error::from)?;
    let options = BridgeOptions {
        mail_dir: mail_dir.clone(),
        archive_every: config.archive_every.value.duration(),
        shared: config.mail_dir_shared.value,
        agents: config.mail_dir_agents.value.clone(),
    };
    let bridge = Bridge::open(engine.unhurried(), options).await?;
    if let Some(signals) = StateDir::of(&std::path::absolute(mail_dir)?) {
        host.set_mail_signals(Arc::new(signals));
    }
    Ok(Some(tokio::spawn(bridge.run(host.stop().clone()))))
}

/// The failure of a default realm that cannot be opened, with advice.
fn unusable(error: EngineError, realm: &RealmName) -> Failure {
    let advice = match &error {
        EngineError::Failed(Fault::Database { .. }) => {
            "; `posthaste doctor` says what is wrong, and `posthaste restore FILE --force` brings a backup back"
        }
        _ => "",
    };
    Failure::new(Exit::Failed, format!("realm {realm}: {error}{advice}"))
}

async fn maintain(host: Host) {
    let mut tidy = tokio::time::interval(TIDY_EVERY);
    let mut carry = tokio::time::interval(CARRY_EVERY);
    loop {
        let work = async {
            tokio::select! {
                _ = tidy.tick() => host.office().tidy().await,
                _ = carry.tick() => host.office().carry().await,
            }
        };
        // Cancelled when the server closes: a stuck writer must not delay that.
        if host.stop().run_until_cancelled(work).await.is_none() {
            return;
        }
    }
}

fn load_tls(config: &Config, stop: &CancellationToken) -> Result<Option<Arc<Tls>>, Failure> {
    let (Some(cert), Some(key)) = (&config.tls_cert.value, &config.tls_key.value) else { return Ok(None) };
    let tls = Tls::load(cert, key)?;
    reload_on_hangup(tls.clone(), stop.clone())?;
    Ok(Some(tls))
}

/// A data directory that another server has locked has an exit code of its own, for scripts.
pub(crate) fn held(fault: Fault) -> Failure {
    let exit = if matches!(fault, Fault::Locked { .. }) { Exit::Held } else { Exit::Failed };
    Failure::new(exit, fault)
}

/// Raises the limit on open files: every connection takes a descriptor, and the usual soft limit is 1024.
fn raise_descriptor_limit(connections: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let wanted = connections as u64 + 256;
        let now = getrlimit(Resource::Nofile);
        if now.current.is_some_and(|current| current < wanted) {
            let current = Some(now.maximum.map_or(wanted, |most| wanted.min(most)));
            if setrlimit(Resource::Nofile, Rlimit { current, maximum: now.maximum }).is_err() {
                tracing::warn!(wanted, "the limit on open files cannot be raised");
            }
        }
    }
    #[cfg(not(unix))]
    let _ = connections;
}
