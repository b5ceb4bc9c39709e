//! Where a command does its work: at the office it was pointed to, at the running office of the data directory, or on the
//! books themselves.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{Fault, Office, OfficeGuard};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::args::GlobalArgs;
use super::client::Client;
use super::exit::{Exit, Failure, Refused};
use super::mail_args::DeskArgs;
use super::runtime;
use crate::caller::Identity;
use crate::config::Config;
use crate::doors::control;
use crate::keys::AdminKey;
use crate::serve::{held, make_private_directory};
use crate::shared::{Shared, Switches};

/// One realm, at a running office or in our own hands.
#[derive(Debug)]
pub(super) enum Desk {
    Running {
        client: Client,
        /// The realm; the office's default if absent.
        realm: Option<RealmName>,
    },
    Ours {
        shared: Shared,
        guard: OfficeGuard,
    },
}

/// Does a command's work at the desk that its flags name.
pub(super) fn at_desk<T>(
    global: &GlobalArgs,
    args: &DeskArgs,
    work: impl AsyncFnOnce(&Desk) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let config = Config::load(global, &args.office(), &|name| std::env::var_os(name))?;
    runtime()?.block_on(async {
        let desk = Desk::reach(&config, args).await?;
        // Ctrl-C ends what waits, and the books are still closed in good order.
        let done = tokio::select! {
            done = work(&desk) => done,
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        };
        desk.close().await;
        done
    })
}

/// The agent that a command is about: the one it names, or the one in the environment.
pub(super) fn agent(given: Option<&str>) -> Option<String> {
    let text = given.map(str::to_owned).or_else(|| std::env::var("POSTHASTE_AGENT").ok());
    text.filter(|text| !text.is_empty())
}

impl Desk {
    /// The office that flags or environment name, or else that of the data directory.
    async fn reach(config: &Config, args: &DeskArgs) -> Result<Self, Failure> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let token = args.shown_token()?;
        let Some(url) = args.url.clone().or_else(|| variable("POSTHASTE_URL")) else {
            return match token {
                // Somebody who shows a token wants to be taken for its bearer, so the books are not opened past it.
                Some(token) => {
                    let client = Client::find(&config.data.value)?.with_token(Some(token));
                    Ok(Self::Running { client, realm: chosen(config) })
                }
                None => Self::open(config).await,
            };
        };
        let url = url.trim_end_matches('/').to_owned();
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Failure::new(
                Exit::Usage,
                format!("{url} is not an address like http://127.0.0.1:7678"),
            ));
        }
        let client = Client::at(url, &config.data.value)?;
        let client = match token {
            Some(token) => client.with_token(Some(token)),
            // The key of this machine's office is shown to no other machine.
            None if !client.is_local() => client.with_token(None),
            None => client,
        };
        Ok(Self::Running { client, realm: chosen(config) })
    }

    /// Takes the data directory, or finds the office that has it.
    pub(super) async fn open(config: &Config) -> Result<Self, Failure> {
        let data = &config.data.value;
        make_private_directory(data)?;
        let realm = config.realm.value.clone();
        let (office, guard) = match Office::open(data, Limits::default()) {
            Ok(opened) => opened,
            Err(fault @ Fault::Locked { .. }) => {
                let client = Client::find(data).map_err(|_| held(fault))?;
                // An office may have a default realm of another name; whoever names none means that one.
                let realm = chosen(config);
                if let Some(realm) = &realm {
                    client.open_realm(realm).await?;
                }
                return Ok(Self::Running { client, realm });
            }
            Err(fault) => return Err(held(fault)),
        };
        let admin = AdminKey::open(data)?;
        office.realm(&realm).await.map_err(anyhow::Error::from)?;
        let switches = Switches { auth: true, ..config.switches() };
        let shared = Shared::new(office, realm, admin, switches, CancellationToken::new());
        Ok(Self::Ours { shared, guard })
    }

    /// Calls one of the office's own methods.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        match self {
            Self::Running { client, realm } => client.call(realm.as_ref(), method, params).await,
            Self::Ours { shared, .. } => {
                let engine =
                    shared.office().realm(shared.default_realm()).await.map_err(anyhow::Error::from)?;
                let params = serde_json::value::to_raw_value(&params)?;
                let answer =
                    control::call(shared, &engine, &Identity::operator(), method, Some(&params)).await;
                let answer = answer.map_err(|error| {
                    let data = error.data.as_deref().and_then(|data| serde_json::from_str(data.get()).ok());
                    Refused::failure(&error.message, data.as_ref())
                })?;
                Ok(serde_json::from_str(answer.get())?)
            }
        }
    }

    /// Calls a method that an agent must be in the address book for. One that is not is entered, if the caller may.
    pub(super) async fn call_as(
        &self,
        agent: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        let first = match self.call(method, params.clone()).await {
            Err(failure) if failure.refusal() == Some("no_such_agent") => failure,
            done => return done,
        };
        let me = match agent {
            Some(agent) => agent.to_owned(),
            None => self.call("whoami", json!({})).await?["name"].as_str().unwrap_or_default().to_owned(),
        };
        // The letter's recipient may be the one who is not there.
        let about_me = format!("there is no agent {me}");
        let message = first.error.to_string();
        if message != about_me
            && !message.starts_with(&format!("{about_me};"))
            && !message.starts_with(&format!("{about_me} "))
        {
            return Err(first);
        }
        self.call("register", json!({ "id": me, "kind": "user" })).await.map_err(|_| first)?;
        self.call(method, params).await
    }

    /// The same server after a restart, at the address it has now.
    pub(super) fn again(&self) -> Option<Self> {
        match self {
            Self::Running { client, realm } => {
                Some(Self::Running { client: client.again(), realm: realm.clone() })
            }
            Self::Ours { .. } => None,
        }
    }

    /// Lets go of the books, if they are in our hands.
    pub(super) async fn close(self) {
        if let Self::Ours { shared, guard } = self {
            drop(shared);
            guard.close().await;
        }
    }
}

/// The realm, if somebody named one.
fn chosen(config: &Config) -> Option<RealmName> {
    (config.realm.origin != crate::config::Origin::Default).then(|| config.realm.value.clone())
}
