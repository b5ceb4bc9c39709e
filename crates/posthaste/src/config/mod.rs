//! The settings: flags over environment over `posthaste.toml` over defaults, each value with its origin.

mod data_dir;
mod file;
mod load;
mod markdown;
mod rules;
mod schema;
mod setting;
mod settings;
mod table;
mod value;

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value as Json;

use self::value::Value;
use posthaste_host::http::egress_policy::{Egress, EgressPolicy};
use posthaste_host::http::rate::Rates;
use posthaste_host::{Features, Offer};

pub use self::load::Env;
pub use self::markdown::markdown;
pub use self::schema::schema;
pub use self::setting::{Origin, Setting};
pub use self::settings::{Config, OfficeArgs};
pub use self::table::{Definition, definitions, help};
pub use self::value::{LogLevel, Span};

/// Whether other machines may reach the server, and whether without TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowRemote {
    /// This machine only.
    No,
    /// Other machines, over TLS.
    Tls,
    /// Other machines, unencrypted: tokens and mail can be read on the network.
    Plaintext,
}

/// Whether a feature is on that suits a server for one machine better than one for others.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Opening {
    /// If only this machine can reach the server, and no further host or origin is allowed.
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

/// From where callers can reach the server under these settings. Decides what `auto` means.
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
    /// The tools that most agents need; the others can still be called.
    Core,
    /// All of them.
    #[default]
    Full,
}

/// A configuration that cannot be used: where it is wrong, and why.
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
    /// What `auto` means under the other settings, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

impl Config {
    /// The features of a server under these settings.
    pub fn features(&self) -> Features {
        Features {
            auth: self.auth.value,
            mail: self.mail.value,
            rates: self.rates(),
            egress_policy: self.egress_policy(),
            safe_mode: self.safe_mode.value.offer(self.reachable()),
            registration: self.registration.value.offer(self.reachable()),
            ping_every: self.ping_every.value.duration(),
        }
    }

    /// The options of the MCP door under these settings.
    pub fn mcp_options(&self) -> posthaste_mcp::Options {
        let tools = match self.tools.value {
            ToolSet::Core => posthaste_mcp::ToolSet::Core,
            ToolSet::Full => posthaste_mcp::ToolSet::Full,
        };
        posthaste_mcp::Options { tools, trust_local: self.trust_local.value }
    }

    /// Addresses in the operator's files may be private unless `private_networks` is off. Addresses given by callers may be
    /// private only if all callers are on this machine, or if the operator allows it.
    pub fn egress_policy(&self) -> EgressPolicy {
        let reach = |open: bool| if open { Egress::Anywhere } else { Egress::Public };
        let private = self.private_networks.value;
        EgressPolicy {
            written: reach(private != Opening::Off),
            named: reach(private.is_open(self.reachable())),
        }
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

    fn row<T: Value>(&self, setting: &'static str, from: &Setting<T>) -> Row {
        Row {
            setting,
            value: from.value.to_json(),
            origin: from.origin.to_string(),
            effective: from.value.effect(self),
        }
    }
}

impl Row {
    /// The value in a table.
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
