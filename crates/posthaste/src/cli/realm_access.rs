//! Where a command works: in a realm of the server that is meant, or in a database of the data directory that this process
//! opens itself.

use std::path::Path;
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::names::edit_distance;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{Fault, Office, OfficeGuard, database_path, list_realms};
use posthaste_wire::control::{AgentKind, NoParams, RegisterParams, RegisterResult, WhoamiResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::args::{GlobalArgs, RealmArgs};
use super::client::Client;
use super::exit::{Exit, Failure, Refused};
use super::runtime;
use super::target::{Server, Target};
use crate::config::Config;
use crate::serve::held;
use posthaste_control as control;
use posthaste_host::caller::Identity;
use posthaste_host::keys::AdminKey;
use posthaste_host::safe_open::make_private_directory;
use posthaste_host::{Features, Host};

/// How often, and how long apart, a server that has just locked the data directory is asked for its address.
const ADDRESS_ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// What a command may create before it starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// Nothing: a missing data directory or realm is an error.
    Look,
    /// The data directory and the realm, if they are missing.
    Make,
}

/// A realm that a command works in.
#[derive(Debug)]
pub(super) enum RealmAccess {
    /// At a running server.
    Running {
        client: Client,
        /// The realm; the server's default if absent.
        realm: Option<RealmName>,
    },
    /// In the data directory, which this process holds the lock of.
    Local { host: Host, guard: OfficeGuard, identity: Identity },
}

/// Runs a command's work in its realm. Creates nothing.
pub(super) fn with_realm<T>(
    global: &GlobalArgs,
    args: &RealmArgs,
    work: impl AsyncFnOnce(&RealmAccess) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with_realm_for(Purpose::Look, global, args, work)
}

/// Runs a command's work in its realm.
pub(super) fn with_realm_for<T>(
    purpose: Purpose,
    global: &GlobalArgs,
    args: &RealmArgs,
    work: impl AsyncFnOnce(&RealmAccess) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, &args.office(), &|name| std::env::var_os(name))?;
    runtime()?.block_on(async {
        let realm = RealmAccess::open(&config, &target, purpose).await?;
        // After Ctrl-C the database is still closed gracefully.
        let done = tokio::select! {
            done = work(&realm) => done,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        };
        realm.close().await;
        done
    })
}

/// Refuses a message to an agent of a realm that does not exist, before a data directory or a realm is created for it.
pub(super) fn must_have(recipient: &str, global: &GlobalArgs, args: &RealmArgs) -> Result<(), Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, &args.office(), &|name| std::env::var_os(name))?;
    let realm = target.realm(&config).unwrap_or_else(|| config.realm.value.clone());
    let data = &config.data.value;
    // A running server may have a default realm of another name.
    let is_local = target.server(data)?.is_none_or(|server| server.is_own && target.realm(&config).is_some());
    if !is_local || database_path(data, &realm).exists() {
        return Ok(());
    }
    match list_realms(data).is_ok_and(|realms| !realms.is_empty()) {
        true => Err(no_such_realm(data, &realm)),
        false => Err(Failure::new(Exit::NotFound, format!("there is no agent {recipient}"))),
    }
}

/// The agent that a command is about: the one it names, or the one in the environment.
pub(super) fn agent(given: Option<&str>) -> Option<String> {
    let text = given.map(str::to_owned).or_else(|| std::env::var("POSTHASTE_AGENT").ok());
    text.filter(|text| !text.is_empty())
}

impl RealmAccess {
    /// Connects to the server that is named or runs on the data directory; else opens the data directory.
    pub(super) async fn open(config: &Config, target: &Target, purpose: Purpose) -> Result<Self, Failure> {
        let data = &config.data.value;
        if let Some(server) = target.server(data)? {
            return Self::at(config, target, &server, purpose).await;
        }
        let realm = target.realm(config).unwrap_or_else(|| config.realm.value.clone());
        match purpose {
            Purpose::Make => make_private_directory(data)?,
            Purpose::Look => must_exist(data, &realm)?,
        }
        let (office, guard) = match Office::open(data, Limits::default()) {
            Ok(opened) => opened,
            // A server that is starting locks the directory before it writes its address there.
            Err(fault @ Fault::Locked { .. }) => {
                for _ in 0..ADDRESS_ATTEMPTS {
                    if let Some(server) = target.server(data)? {
                        return Self::at(config, target, &server, purpose).await;
                    }
                    tokio::time::sleep(BETWEEN_ATTEMPTS).await;
                }
                return Err(held(fault));
            }
            Err(fault) => return Err(held(fault)),
        };
        Self::open_local(config, target, realm, office, guard).await
    }

    async fn at(
        config: &Config,
        target: &Target,
        server: &Server,
        purpose: Purpose,
    ) -> Result<Self, Failure> {
        let mut client = server.client()?;
        if server.is_own {
            client = client.found_in(&config.data.value);
        }
        let realm = target.realm(config);
        if let Some(name) = realm.as_ref().filter(|_| server.is_own) {
            let data = &config.data.value;
            match purpose {
                _ if database_path(data, name).exists() => {}
                Purpose::Make => client.open_realm(name).await?,
                Purpose::Look => return Err(no_such_realm(data, name)),
            }
        }
        Ok(Self::Running { client, realm })
    }

    /// Opens the data directory, as the bearer of the token if one is given.
    async fn open_local(
        config: &Config,
        target: &Target,
        realm: RealmName,
        office: Office,
        guard: OfficeGuard,
    ) -> Result<Self, Failure> {
        let admin = AdminKey::open(&config.data.value)?;
        let engine = office.realm(&realm).await.map_err(anyhow::Error::from)?;
        let features = Features { auth: true, ..config.features() };
        let host = Host::new(office, realm, admin, features, CancellationToken::new());
        let identity = match &target.token {
            None => Identity::operator(),
            Some(token) => {
                let known = host.identify(&engine, Some(token), "cli").await;
                known.map_err(|error| Failure::new(Exit::Denied, error))?
            }
        };
        Ok(Self::Local { host, guard, identity })
    }

    /// Calls one of the server's own methods.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Failure> {
        match self {
            Self::Running { client, realm } => client.call(realm.as_ref(), method, params).await,
            Self::Local { host, identity, .. } => {
                let engine = host.office().realm(host.default_realm()).await.map_err(anyhow::Error::from)?;
                let params = serde_json::value::to_raw_value(&params)?;
                let answer = control::call(host, &engine, identity, method, Some(&params)).await;
                let answer = answer.map_err(|error| Refused::by(error.message, error.data.as_deref()))?;
                Ok(serde_json::from_str(answer.get())?)
            }
        }
    }

    /// The caller as the server knows it.
    pub(super) async fn whoami(&self) -> Result<WhoamiResult, Failure> {
        self.call("whoami", NoParams {}).await
    }

    /// Whether a token is valid here.
    pub(super) async fn knows(&self, token: &str) -> Result<bool, Failure> {
        match self {
            Self::Running { client, realm } => {
                let bearer = client.clone().with_token(Some(token.to_owned()));
                match bearer.call::<WhoamiResult>(realm.as_ref(), "whoami", NoParams {}).await {
                    Ok(_) => Ok(true),
                    Err(failure) if failure.exit == Exit::Denied => Ok(false),
                    Err(failure) => Err(failure),
                }
            }
            Self::Local { host, .. } => {
                let engine = host.office().realm(host.default_realm()).await.map_err(anyhow::Error::from)?;
                Ok(host.identify(&engine, Some(token), "cli").await.is_ok())
            }
        }
    }

    /// Calls a method that changes something for an agent. An agent that is not registered is registered first, if the
    /// caller may do that.
    pub(super) async fn call_as<R: DeserializeOwned>(
        &self,
        agent: Option<&str>,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Failure> {
        let first = match self.call(method, &params).await {
            Err(failure) if failure.missing_agent().is_some() => failure,
            done => return done,
        };
        let me = match agent {
            Some(agent) => agent.to_owned(),
            None => self.whoami().await?.name,
        };
        // The missing agent may be another than the caller.
        if first.missing_agent() != Some(me.as_str()) {
            return Err(first);
        }
        let entry = RegisterParams { id: Some(me), kind: Some(AgentKind::User), ..RegisterParams::default() };
        self.call::<RegisterResult>("register", entry).await.map_err(|_| first)?;
        self.call(method, params).await
    }

    /// The same server after a restart, at the address it has now.
    pub(super) fn again(&self) -> Option<Self> {
        match self {
            Self::Running { client, realm } => {
                Some(Self::Running { client: client.again(), realm: realm.clone() })
            }
            Self::Local { .. } => None,
        }
    }

    /// Closes the database, if this process has it open.
    pub(super) async fn close(self) {
        if let Self::Local { host, guard, .. } = self {
            drop(host);
            guard.close().await;
        }
    }
}

/// Refuses a data directory or a realm that is not there.
fn must_exist(data: &Path, realm: &RealmName) -> Result<(), Failure> {
    if database_path(data, realm).exists() {
        return Ok(());
    }
    match list_realms(data).is_ok_and(|realms| realms.is_empty()) {
        false => Err(no_such_realm(data, realm)),
        true => {
            let text = format!(
                "there is no server: none runs on {}, and no data is there; start one with `posthaste serve`, or name one \
                 with --url or `posthaste context use`",
                data.display()
            );
            Err(Failure::new(Exit::Unreachable, text))
        }
    }
}

/// The failure for a realm that is not there, with names like it.
pub(super) fn no_such_realm(data: &Path, realm: &RealmName) -> Failure {
    let known = list_realms(data).unwrap_or_default();
    let near: Vec<&str> =
        known.iter().map(RealmName::as_str).filter(|name| edit_distance(name, realm.as_str()) <= 2).collect();
    let hint = match near.is_empty() {
        false => format!("; did you mean {}?", near.join(", ")),
        true => {
            let names: Vec<&str> = known.iter().map(RealmName::as_str).take(10).collect();
            format!("; there are {}", names.join(", "))
        }
    };
    Failure::new(Exit::NotFound, format!("there is no realm {realm} in {}{hint}", data.display()))
}
