//! What is in force: flags over environment over `posthaste.toml` over defaults, each value with its origin.

mod file;
mod load;
mod place;
mod rules;
mod setting;
mod value;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use posthaste_engine::nouns::RealmName;
use serde::Serialize;
use serde_json::Value as Json;

use self::value::Value;
use crate::logs::LogForm;
use posthaste_host::http::rate::{Quota, Rates};
use posthaste_host::http::reach::{Reach, Reaches};
use posthaste_host::{Features, Offer};

pub use self::load::Env;
pub use self::setting::{Origin, Setting};
pub use self::value::{LogLevel, Span};

/// Every setting of an office. Made by [`Config::load`], allowed to open a door by [`Config::check`].
#[derive(Clone, Debug)]
pub struct Config {
    pub data: Setting<PathBuf>,
    pub listen: Setting<SocketAddr>,
    pub realm: Setting<RealmName>,
    pub auth: Setting<bool>,
    pub mail: Setting<bool>,
    pub mail_dir: Setting<Option<PathBuf>>,
    pub mail_dir_shared: Setting<bool>,
    /// Agents of other doors whose mail is copied into the mail directory.
    pub mail_dir_agents: Setting<Vec<String>>,
    pub archive_every: Setting<Span>,
    pub safe_mode: Setting<Opening>,
    pub registration: Setting<Opening>,
    pub projects: Setting<Vec<String>>,
    pub tools: Setting<ToolSet>,
    pub trust_local: Setting<bool>,
    pub tls_cert: Setting<Option<PathBuf>>,
    pub tls_key: Setting<Option<PathBuf>>,
    pub tls_ca: Setting<Option<PathBuf>>,
    pub allow_remote: Setting<AllowRemote>,
    pub allowed_hosts: Setting<Vec<String>>,
    pub allowed_origins: Setting<Vec<String>>,
    pub max_connections: Setting<usize>,
    pub log: Setting<LogForm>,
    pub log_level: Setting<LogLevel>,
    /// The swarm that the default realm hosts.
    pub swarm: Setting<Option<PathBuf>>,
    /// Further authorities that the office's own requests trust.
    /// The key that JSON web tokens are signed with.
    pub jwt_key: Setting<Option<PathBuf>>,
    /// Whether the office's own requests may go to private networks: for addresses that callers name, and (unless off)
    /// always for those that the operator wrote down.
    pub private_networks: Setting<Opening>,
    /// How often a silent peer is asked whether it is there.
    pub ping_every: Setting<Span>,
    pub rate_calls: Setting<Quota>,
    pub rate_requests: Setting<Quota>,
    pub rate_messages: Setting<Quota>,
    pub rate_broadcasts: Setting<Quota>,
    pub rate_heartbeats: Setting<Quota>,
    pub rate_consents: Setting<Quota>,
    pub rate_registrations: Setting<Quota>,
}

/// Whether other machines may reach the office, and whether in the clear.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowRemote {
    /// This machine only.
    No,
    /// Other machines, over TLS.
    Tls,
    /// Other machines, unencrypted: everyone on the way can read tokens and mail.
    Plaintext,
}

/// Whether something is offered that suits one machine better than the world.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Opening {
    /// Where only this machine can reach the server, and no name or page of others is allowed in.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Opening {
    fn is_open(self, reach: Reachable) -> bool {
        match self {
            Self::Auto => reach == Reachable::FromHere,
            Self::On => true,
            Self::Off => false,
        }
    }

    fn offer(self, reach: Reachable) -> Offer {
        match self {
            Self::Auto if reach == Reachable::FromHere => Offer::ThisMachine,
            Self::On => Offer::On,
            Self::Auto | Self::Off => Offer::Off,
        }
    }
}

/// From where the settings let callers come. `auto` goes by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reachable {
    /// From this machine alone.
    FromHere,
    /// From elsewhere, because of this setting.
    Elsewhere(&'static str),
}

/// How many tools the MCP door shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolSet {
    /// Those that most agents need; the others can still be called.
    Core,
    /// All of them.
    #[default]
    Full,
}

/// A configuration that cannot be used: where it is wrong, and how.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    place: String,
    problem: String,
}

/// One line of `posthaste config`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub setting: &'static str,
    pub value: Json,
    pub origin: String,
    /// What `auto` comes to under the other settings, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

impl Config {
    /// What the office does or leaves under these settings.
    pub fn features(&self) -> Features {
        Features {
            auth: self.auth.value,
            mail: self.mail.value,
            rates: self.rates(),
            reaches: self.reaches(),
            safe_mode: self.safe_mode.value.offer(self.reachable()),
            registration: self.registration.value.offer(self.reachable()),
            ping_every: self.ping_every.value.duration(),
        }
    }

    /// How the MCP door works under these settings.
    pub fn mcp_options(&self) -> posthaste_mcp::Options {
        let tools = match self.tools.value {
            ToolSet::Core => posthaste_mcp::ToolSet::Core,
            ToolSet::Full => posthaste_mcp::ToolSet::Full,
        };
        posthaste_mcp::Options { tools, trust_local: self.trust_local.value }
    }

    /// What the operator wrote down is reached unless private networks are closed altogether. What callers name is
    /// reached in private networks only where all callers are on this machine, or where the operator says so.
    pub fn reaches(&self) -> Reaches {
        let reach = |open: bool| if open { Reach::Anywhere } else { Reach::Public };
        let private = self.private_networks.value;
        Reaches { written: reach(private != Opening::Off), named: reach(private.is_open(self.reachable())) }
    }

    fn rates(&self) -> Rates {
        Rates {
            calls: self.rate_calls.value,
            requests: self.rate_requests.value,
            messages: self.rate_messages.value,
            broadcasts: self.rate_broadcasts.value,
            heartbeats: self.rate_heartbeats.value,
            consents: self.rate_consents.value,
            registrations: self.rate_registrations.value,
        }
    }

    /// The settings in force, in the order in which people ask for them. None of them is a secret:
    /// keys and tokens are files, and only their paths are settings.
    pub fn rows(&self) -> Vec<Row> {
        fn row<T: Value>(setting: &'static str, from: &Setting<T>) -> Row {
            Row { setting, value: from.value.to_json(), origin: from.origin.to_string(), effective: None }
        }
        let auto = |setting: &'static str, from: &Setting<Opening>| Row {
            effective: self.effect(from.value),
            ..row(setting, from)
        };
        vec![
            Row {
                setting: "data",
                value: Json::from(self.data.value.to_string_lossy()),
                origin: self.data.origin.to_string(),
                effective: None,
            },
            row("listen", &self.listen),
            row("realm", &self.realm),
            row("auth", &self.auth),
            row("mail", &self.mail),
            row("mail_dir", &self.mail_dir),
            row("mail_dir_shared", &self.mail_dir_shared),
            row("mail_dir_agents", &self.mail_dir_agents),
            row("archive_every", &self.archive_every),
            auto("safe_mode", &self.safe_mode),
            auto("registration", &self.registration),
            row("projects", &self.projects),
            row("tools", &self.tools),
            row("trust_local", &self.trust_local),
            row("tls_cert", &self.tls_cert),
            row("tls_key", &self.tls_key),
            row("tls_ca", &self.tls_ca),
            row("allow_remote", &self.allow_remote),
            row("allowed_hosts", &self.allowed_hosts),
            row("allowed_origins", &self.allowed_origins),
            row("max_connections", &self.max_connections),
            row("log", &self.log),
            row("log_level", &self.log_level),
            row("swarm", &self.swarm),
            row("jwt_key", &self.jwt_key),
            auto("private_networks", &self.private_networks),
            row("ping_every", &self.ping_every),
            row("rate_calls", &self.rate_calls),
            row("rate_requests", &self.rate_requests),
            row("rate_messages", &self.rate_messages),
            row("rate_broadcasts", &self.rate_broadcasts),
            row("rate_heartbeats", &self.rate_heartbeats),
            row("rate_consents", &self.rate_consents),
            row("rate_registrations", &self.rate_registrations),
        ]
    }
}

impl Row {
    /// The value as people read it.
    pub fn shown(&self) -> String {
        match &self.value {
            Json::String(text) if self.effective.is_some() => {
                format!("{text} ({})", self.effective.as_deref().unwrap_or_default())
            }
            Json::Null => "-".to_owned(),
            Json::String(text) => text.clone(),
            Json::Array(list) if list.is_empty() => "-".to_owned(),
            Json::Array(list) => list.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        }
    }
}

impl ConfigError {
    pub(crate) fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}
