//! Tokens for other swarms: given with the registration, or from the operator's environment.
//!
//! Stored in a file that only the server can read, never in the database. Each token belongs to an address: a swarm that is
//! registered again at another address does not inherit it. Tokens of the environment are the operator's, so they are sent only
//! to addresses that the operator registered.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;
use serde::{Deserialize, Serialize};

/// The token for a swarm at one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Secret {
    /// The token of its registration.
    pub(super) token: Option<String>,
    /// Whether the operator registered the address, so that the environment's token may be sent there.
    pub(super) environment: bool,
}

impl Secret {
    /// The token for a swarm. The environment is read each time.
    pub(super) fn token_for(&self, swarm: &RealmName) -> Option<String> {
        let variable = || self.environment.then(|| env_token(swarm)).flatten();
        self.token.clone().or_else(variable)
    }
}

/// The file: an object with a member for each swarm.
#[derive(Debug)]
pub(super) struct Secrets {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    /// The form of older versions: a token for the address in the database.
    Token(String),
    For {
        base_url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        #[serde(default)]
        environment: bool,
    },
}

impl Secrets {
    pub(super) fn new(data: &Path, realm: &RealmName) -> Self {
        Self { path: data.join(format!("swarm-tokens-{realm}.json")) }
    }

    /// The stored token for a swarm at an address.
    pub(super) fn of(&self, swarm: &RealmName, base_url: &str) -> Secret {
        match self.read().remove(swarm.as_str()) {
            Some(Kept::Token(token)) => Secret { token: Some(token), environment: false },
            Some(Kept::For { base_url: kept, token, environment }) if kept == base_url => {
                Secret { token, environment }
            }
            Some(Kept::For { .. }) | None => Secret::default(),
        }
    }

    /// Stores a token for a swarm and replaces the previous one.
    pub(super) fn keep(&self, swarm: &RealmName, base_url: &str, secret: &Secret) -> std::io::Result<()> {
        let mut kept = self.read();
        let Secret { token, environment } = secret.clone();
        if token.is_none() && !environment {
            if kept.remove(swarm.as_str()).is_none() {
                return Ok(());
            }
        } else {
            let entry = Kept::For { base_url: base_url.to_owned(), token, environment };
            kept.insert(swarm.to_string(), entry);
        }
        let fresh = self.path.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        file.sync_all()?;
        std::fs::rename(fresh, &self.path)
    }

    fn read(&self) -> BTreeMap<String, Kept> {
        let bytes = std::fs::read(&self.path).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }
}

/// The environment variable that holds the token for a swarm.
pub(super) fn variable(swarm: &RealmName) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("SWARM_AUTH_TOKEN_{}", swarm.as_str().chars().map(upper).collect::<String>())
}

/// The token in that variable.
pub(super) fn env_token(swarm: &RealmName) -> Option<String> {
    std::env::var(variable(swarm)).ok().filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swarms_variable_is_named_as_the_reference_names_it() {
        assert_eq!(variable(&RealmName::new("far-away").unwrap()), "SWARM_AUTH_TOKEN_FAR_AWAY");
    }

    #[test]
    fn a_secret_belongs_to_its_address() {
        let data = tempfile::tempdir().unwrap();
        let [realm, far, old] = ["team", "far", "old"].map(|name| RealmName::new(name).unwrap());
        let path = data.path().join("swarm-tokens-team.json");
        std::fs::write(path, r#"{"old":"t"}"#).unwrap();
        let secrets = Secrets::new(data.path(), &realm);
        let secret = Secret { token: Some("s".to_owned()), environment: true };
        secrets.keep(&far, "http://a", &secret).unwrap();
        assert_eq!(secrets.of(&far, "http://a"), secret);
        assert_eq!(secrets.of(&far, "http://b"), Secret::default());
        let before = Secret { token: Some("t".to_owned()), environment: false };
        assert_eq!(secrets.of(&old, "http://c"), before, "a file of an earlier version");
        secrets.keep(&far, "http://a", &Secret::default()).unwrap();
        assert_eq!(secrets.of(&far, "http://a"), Secret::default());
    }
}
