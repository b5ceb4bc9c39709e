//! Reading every setting from its four sources, first come first served.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;

use super::file::File;
use super::value::Value;
use super::{AllowRemote, Config, ConfigError, LogLevel, Opening, Origin, Setting, Span, ToolSet, place};
use crate::cli::args::{GlobalArgs, OfficeArgs};
use crate::logs::LogForm;
use posthaste_host::http::rate::Rates;

/// How the program asks for an environment variable; tests ask a table instead.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// POST on the keys of a telephone.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7678);

/// Enough for a few thousand agents on one machine, and few enough to bound the memory they can take.
const DEFAULT_MAX_CONNECTIONS: usize = 16_384;

/// The name of a setting in the file, in the environment and on the command line.
struct Key {
    name: &'static str,
    var: &'static str,
    flag: &'static str,
}

const DATA: Key = Key { name: "data", var: "POSTHASTE_DATA", flag: "--data" };
const LISTEN: Key = Key { name: "listen", var: "POSTHASTE_LISTEN", flag: "--listen" };
const REALM: Key = Key { name: "realm", var: "POSTHASTE_REALM", flag: "--realm" };
const AUTH: Key = Key { name: "auth", var: "POSTHASTE_AUTH", flag: "--no-auth" };
const MAIL: Key = Key { name: "mail", var: "POSTHASTE_MAIL", flag: "--no-mail" };
const MAIL_DIR: Key = Key { name: "mail_dir", var: "POSTHASTE_MAIL_DIR", flag: "--mail-dir" };
const MAIL_DIR_SHARED: Key =
    Key { name: "mail_dir_shared", var: "POSTHASTE_MAIL_DIR_SHARED", flag: "--mail-dir-shared" };
const MAIL_DIR_AGENTS: Key =
    Key { name: "mail_dir_agents", var: "POSTHASTE_MAIL_DIR_AGENTS", flag: "--mail-dir-agent" };
const ARCHIVE_EVERY: Key =
    Key { name: "archive_every", var: "POSTHASTE_ARCHIVE_EVERY", flag: "--archive-every" };
const SAFE_MODE: Key = Key { name: "safe_mode", var: "POSTHASTE_SAFE_MODE", flag: "--safe-mode" };
const REGISTRATION: Key = Key { name: "registration", var: "POSTHASTE_REGISTRATION", flag: "--registration" };
const PROJECTS: Key = Key { name: "projects", var: "POSTHASTE_PROJECTS", flag: "--project" };
const TOOLS: Key = Key { name: "tools", var: "POSTHASTE_TOOLS", flag: "--tools" };
const TRUST_LOCAL: Key = Key { name: "trust_local", var: "POSTHASTE_TRUST_LOCAL", flag: "--trust-local" };
const TLS_CERT: Key = Key { name: "tls_cert", var: "POSTHASTE_TLS_CERT", flag: "--tls-cert" };
const TLS_KEY: Key = Key { name: "tls_key", var: "POSTHASTE_TLS_KEY", flag: "--tls-key" };
const TLS_CA: Key = Key { name: "tls_ca", var: "POSTHASTE_TLS_CA", flag: "--tls-ca" };
const ALLOW_REMOTE: Key = Key { name: "allow_remote", var: "POSTHASTE_ALLOW_REMOTE", flag: "--allow-remote" };
const ALLOWED_HOSTS: Key =
    Key { name: "allowed_hosts", var: "POSTHASTE_ALLOWED_HOSTS", flag: "--allowed-host" };
const ALLOWED_ORIGINS: Key =
    Key { name: "allowed_origins", var: "POSTHASTE_ALLOWED_ORIGINS", flag: "--allowed-origin" };
const MAX_CONNECTIONS: Key =
    Key { name: "max_connections", var: "POSTHASTE_MAX_CONNECTIONS", flag: "--max-connections" };
const LOG: Key = Key { name: "log", var: "POSTHASTE_LOG", flag: "--log" };
const LOG_LEVEL: Key = Key { name: "log_level", var: "POSTHASTE_LOG_LEVEL", flag: "--log-level" };

const SWARM: Key = Key { name: "swarm", var: "POSTHASTE_SWARM", flag: "--swarm" };
const JWT_KEY: Key = Key { name: "jwt_key", var: "POSTHASTE_JWT_KEY", flag: "--jwt-key" };
/// Whether the office may make requests into private networks; set once, not typed.
const PRIVATE_NETWORKS: Key =
    Key { name: "private_networks", var: "POSTHASTE_PRIVATE_NETWORKS", flag: "private_networks" };

/// How often a silent peer is asked whether it is there; set once, not typed.
const PING_EVERY: Key = Key { name: "ping_every", var: "POSTHASTE_PING_EVERY", flag: "ping_every" };

/// Rates stand in the file or the environment: they are set once, not typed.
const RATE_CALLS: Key = Key { name: "rate_calls", var: "POSTHASTE_RATE_CALLS", flag: "rate_calls" };
const RATE_REQUESTS: Key =
    Key { name: "rate_requests", var: "POSTHASTE_RATE_REQUESTS", flag: "rate_requests" };
const RATE_MESSAGES: Key =
    Key { name: "rate_messages", var: "POSTHASTE_RATE_MESSAGES", flag: "rate_messages" };
const RATE_BROADCASTS: Key =
    Key { name: "rate_broadcasts", var: "POSTHASTE_RATE_BROADCASTS", flag: "rate_broadcasts" };
const RATE_HEARTBEATS: Key =
    Key { name: "rate_heartbeats", var: "POSTHASTE_RATE_HEARTBEATS", flag: "rate_heartbeats" };
const RATE_CONSENTS: Key =
    Key { name: "rate_consents", var: "POSTHASTE_RATE_CONSENTS", flag: "rate_consents" };
const RATE_REGISTRATIONS: Key =
    Key { name: "rate_registrations", var: "POSTHASTE_RATE_REGISTRATIONS", flag: "rate_registrations" };

/// The keys of the file. `data` is only for a file named with `--config`: see [`Config::load`].
const FILE_KEYS: &[&str] = &[
    DATA.name,
    LISTEN.name,
    REALM.name,
    AUTH.name,
    MAIL.name,
    MAIL_DIR.name,
    MAIL_DIR_SHARED.name,
    MAIL_DIR_AGENTS.name,
    ARCHIVE_EVERY.name,
    SAFE_MODE.name,
    REGISTRATION.name,
    PROJECTS.name,
    TOOLS.name,
    TRUST_LOCAL.name,
    TLS_CERT.name,
    TLS_KEY.name,
    TLS_CA.name,
    ALLOW_REMOTE.name,
    ALLOWED_HOSTS.name,
    ALLOWED_ORIGINS.name,
    MAX_CONNECTIONS.name,
    LOG.name,
    LOG_LEVEL.name,
    SWARM.name,
    JWT_KEY.name,
    PRIVATE_NETWORKS.name,
    PING_EVERY.name,
    RATE_CALLS.name,
    RATE_REQUESTS.name,
    RATE_MESSAGES.name,
    RATE_BROADCASTS.name,
    RATE_HEARTBEATS.name,
    RATE_CONSENTS.name,
    RATE_REGISTRATIONS.name,
];

impl Config {
    /// Reads every setting. Nothing is created and nothing is checked against anything else;
    /// that is the work of [`Config::check`].
    pub fn load(global: &GlobalArgs, office: &OfficeArgs, env: Env<'_>) -> Result<Self, ConfigError> {
        let (data, file) = locate(global, env)?;
        Self::read(data, office, &Sources { env, file: file.as_ref() })
    }

    /// The settings of a file alone, by its text: a seam for tests and fuzz targets.
    #[doc(hidden)]
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        let file = File::parse(Path::new("posthaste.toml"), text, FILE_KEYS)?;
        let data = Setting::by_default(PathBuf::from("data"));
        Self::read(data, &OfficeArgs::default(), &Sources { env: &|_| None, file: Some(&file) })
    }

    fn read(data: Setting<PathBuf>, office: &OfficeArgs, from: &Sources<'_>) -> Result<Self, ConfigError> {
        let usual = Rates::default();
        Ok(Self {
            data,
            listen: from.text(&LISTEN, office.listen.as_deref(), DEFAULT_LISTEN)?,
            realm: from.text(&REALM, office.realm.as_deref(), RealmName::main())?,
            auth: from.flag(&AUTH, office.no_auth.then_some(false), true)?,
            mail: from.flag(&MAIL, office.no_mail.then_some(false), true)?,
            mail_dir: from.flag(&MAIL_DIR, office.mail_dir.clone().map(Some), None)?,
            mail_dir_agents: from.flag(&MAIL_DIR_AGENTS, list(&office.mail_dir_agent), Vec::new())?,
            mail_dir_shared: from.flag(&MAIL_DIR_SHARED, office.mail_dir_shared.then_some(true), false)?,
            archive_every: from.text(&ARCHIVE_EVERY, office.archive_every.as_deref(), Span::hour())?,
            safe_mode: from.flag(&SAFE_MODE, office.safe_mode, Opening::Auto)?,
            registration: from.flag(&REGISTRATION, office.registration, Opening::Auto)?,
            projects: from.flag(&PROJECTS, list(&office.project), Vec::new())?,
            tools: from.flag(&TOOLS, office.tools, ToolSet::default())?,
            trust_local: from.flag(&TRUST_LOCAL, office.trust_local.then_some(true), false)?,
            tls_cert: from.flag(&TLS_CERT, office.tls_cert.clone().map(Some), None)?,
            tls_key: from.flag(&TLS_KEY, office.tls_key.clone().map(Some), None)?,
            tls_ca: from.flag(&TLS_CA, office.tls_ca.clone().map(Some), None)?,
            allow_remote: from.flag(&ALLOW_REMOTE, office.allow_remote, AllowRemote::No)?,
            allowed_hosts: from.flag(&ALLOWED_HOSTS, list(&office.allowed_host), Vec::new())?,
            allowed_origins: from.flag(&ALLOWED_ORIGINS, list(&office.allowed_origin), Vec::new())?,
            max_connections: from.flag(&MAX_CONNECTIONS, office.max_connections, DEFAULT_MAX_CONNECTIONS)?,
            log: from.flag(&LOG, office.log, LogForm::Text)?,
            log_level: from.text(&LOG_LEVEL, office.log_level.as_deref(), LogLevel::default())?,
            swarm: from.flag(&SWARM, office.swarm.clone().map(Some), None)?,
            jwt_key: from.flag(&JWT_KEY, office.jwt_key.clone().map(Some), None)?,
            private_networks: from.flag(&PRIVATE_NETWORKS, None, Opening::Auto)?,
            ping_every: from.flag(&PING_EVERY, None, Span::half_minute())?,
            rate_calls: from.flag(&RATE_CALLS, None, usual.calls)?,
            rate_requests: from.flag(&RATE_REQUESTS, None, usual.requests)?,
            rate_messages: from.flag(&RATE_MESSAGES, None, usual.messages)?,
            rate_broadcasts: from.flag(&RATE_BROADCASTS, None, usual.broadcasts)?,
            rate_heartbeats: from.flag(&RATE_HEARTBEATS, None, usual.heartbeats)?,
            rate_consents: from.flag(&RATE_CONSENTS, None, usual.consents)?,
            rate_registrations: from.flag(&RATE_REGISTRATIONS, None, usual.registrations)?,
        })
    }
}

/// The two settings that say where the others are.
fn locate(global: &GlobalArgs, env: Env<'_>) -> Result<(Setting<PathBuf>, Option<File>), ConfigError> {
    let named = global.config.clone().or_else(|| env("POSTHASTE_CONFIG").filter(some).map(PathBuf::from));
    let named = named.map(absolute).transpose()?;
    let file = match &named {
        None => None,
        // A file that somebody named must be there; the one in the data directory may be missing.
        Some(path) => match File::read(path, FILE_KEYS)? {
            Some(file) => Some(file),
            None => return Err(ConfigError::new(path.display(), "no such configuration file")),
        },
    };

    let from = Sources { env, file: file.as_ref() };
    let data: Option<Setting<Option<PathBuf>>> = from.given(&DATA, global.data.clone().map(Some))?;
    let (path, origin) = match data {
        Some(Setting { value: Some(path), origin }) => (path, origin),
        _ => {
            let path = place::default_data(env).map_err(|problem| ConfigError::new("data", problem))?;
            (path, Origin::Default)
        }
    };
    let data = Setting { value: absolute(path)?, origin };
    if named.is_some() {
        return Ok((data, file));
    }

    let file = File::read(&data.value.join("posthaste.toml"), FILE_KEYS)?;
    match file {
        // By then the directory is already chosen, so the key could only be ignored.
        Some(file) if file.get(DATA.name).is_some() => Err(ConfigError::new(
            file.path.display(),
            "`data` has no meaning inside the data directory; use it in a file named with --config",
        )),
        file => Ok((data, file)),
    }
}

struct Sources<'a> {
    env: Env<'a>,
    file: Option<&'a File>,
}

impl Sources<'_> {
    /// For a flag that came typed from the command line.
    fn flag<T: Value>(&self, key: &Key, flag: Option<T>, default: T) -> Result<Setting<T>, ConfigError> {
        Ok(self.given(key, flag)?.unwrap_or_else(|| Setting::by_default(default)))
    }

    /// For a flag that came as text.
    fn text<T: Value>(&self, key: &Key, flag: Option<&str>, default: T) -> Result<Setting<T>, ConfigError> {
        let flag =
            flag.map(T::from_text).transpose().map_err(|problem| ConfigError::new(key.flag, problem))?;
        self.flag(key, flag, default)
    }

    fn given<T: Value>(&self, key: &Key, flag: Option<T>) -> Result<Option<Setting<T>>, ConfigError> {
        if let Some(value) = flag {
            return Ok(Some(Setting { value, origin: Origin::Flag }));
        }
        if let Some(text) = (self.env)(key.var).filter(some) {
            let value = T::from_os(&text).map_err(|problem| ConfigError::new(key.var, problem))?;
            return Ok(Some(Setting { value, origin: Origin::Env(key.var) }));
        }
        let Some((file, value)) = self.file.and_then(|file| Some((file, file.get(key.name)?))) else {
            return Ok(None);
        };
        let value = T::from_toml(value, file.base()).map_err(|problem| {
            ConfigError::new(format_args!("{}: {}", file.path.display(), key.name), problem)
        })?;
        Ok(Some(Setting { value, origin: Origin::File(file.path.clone()) }))
    }
}

/// A variable that is set to nothing is how many tools unset one.
fn some(value: &OsString) -> bool {
    value.as_os_str() != OsStr::new("")
}

fn list(flags: &[String]) -> Option<Vec<String>> {
    (!flags.is_empty()).then(|| flags.to_vec())
}

fn absolute(path: PathBuf) -> Result<PathBuf, ConfigError> {
    std::path::absolute(&path).map_err(|error| ConfigError::new(path.display(), error))
}
