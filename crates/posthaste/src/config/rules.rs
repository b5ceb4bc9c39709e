//! Settings that may not be combined: a server that other machines can reach must not be started by accident.

use super::{AllowRemote, Config, ConfigError, Opening, Reachable};
use posthaste_host::http::guard::Guard;

impl Config {
    /// Refuses settings that open the server to other machines without an explicit setting for that.
    pub fn check(&self) -> Result<(), ConfigError> {
        let listen = self.listen.value;
        match (&self.tls_cert.value, &self.tls_key.value) {
            (Some(_), None) => {
                return Err(ConfigError::new("tls_cert", "needs tls_key (--tls-key FILE) too"));
            }
            (None, Some(_)) => {
                return Err(ConfigError::new("tls_key", "needs tls_cert (--tls-cert FILE) too"));
            }
            _ => {}
        }
        if self.max_connections.value == 0 {
            return Err(ConfigError::new("max_connections", "a server needs at least one connection"));
        }
        self.guard()?;
        if self.is_loopback() {
            return Ok(());
        }

        let reach = format!("{listen} can be reached from other machines");
        let problem = if !self.auth.value {
            format!(
                "{reach}, and a server without authentication must not be; drop --no-auth or listen on 127.0.0.1"
            )
        } else {
            match (self.allow_remote.value, self.has_tls()) {
                (AllowRemote::No, true) => format!("{reach}; say so with --allow-remote"),
                (AllowRemote::No, false) => format!(
                    "{reach}; say so with --allow-remote and give --tls-cert and --tls-key, \
                     or accept with --allow-remote=plaintext that everyone on the way can read tokens and mail"
                ),
                (AllowRemote::Tls, false) => format!(
                    "{reach} and there is no TLS; give --tls-cert and --tls-key, \
                     or accept with --allow-remote=plaintext that everyone on the way can read tokens and mail"
                ),
                (AllowRemote::Tls, true) | (AllowRemote::Plaintext, _) => return Ok(()),
            }
        };
        Err(ConfigError::new("listen", problem))
    }

    /// Settings that are allowed and get a warning in the log at every start.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.is_loopback() && !self.has_tls() {
            warnings.push(format!("{} is open to other machines without TLS", self.listen.value));
        }
        if !self.auth.value {
            warnings
                .push("authentication is off: every program on this machine may do everything".to_owned());
        }
        warnings
    }

    /// The Host and Origin rules that belong to these settings.
    pub fn guard(&self) -> Result<Guard, ConfigError> {
        Guard::new(self.is_loopback(), &self.allowed_hosts.value, &self.allowed_origins.value)
            .map_err(|problem| ConfigError::new("allowed_hosts, allowed_origins", problem))
    }

    pub fn has_tls(&self) -> bool {
        self.tls_cert.value.is_some()
    }

    /// From where callers can reach the server. A further allowed host or origin means that other machines reach it, usually
    /// through a proxy, whatever address it listens on.
    pub fn reachable(&self) -> Reachable {
        if !self.is_loopback() {
            Reachable::Elsewhere("listen is not a loopback address")
        } else if !self.allowed_hosts.value.is_empty() {
            Reachable::Elsewhere("allowed_hosts is set")
        } else if !self.allowed_origins.value.is_empty() {
            Reachable::Elsewhere("allowed_origins is set")
        } else {
            Reachable::FromHere
        }
    }

    /// What `auto` means, and why.
    pub(super) fn effect(&self, opening: Opening) -> Option<String> {
        match (opening, self.reachable()) {
            (Opening::On | Opening::Off, _) => None,
            (Opening::Auto, Reachable::FromHere) => Some("on: for callers on this machine".to_owned()),
            (Opening::Auto, Reachable::Elsewhere(why)) => Some(format!("off: {why}")),
        }
    }

    /// Whether only this machine can reach the server. `::ffff:127.0.0.1` is a loopback address, too.
    pub fn is_loopback(&self) -> bool {
        self.listen.value.ip().to_canonical().is_loopback()
    }
}
