//! The server that the demo works at: the running one of the data directory, or one that is started for it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use posthaste_wire::control::{
    AgentKind, RegisterParams, RegisterResult, Status, TokenCreateParams, TokenCreateResult, TokenRole,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::cli::client::Client;
use crate::cli::exit::{Exit, Failure};
use crate::cli::send::from_now;
use crate::cli::target::own_key;
use crate::config::Config;
use crate::serve::Whereabouts;
use posthaste_host::keys::AdminKey;
use posthaste_host::safe_open::make_private_directory;

/// How long a server that was started for the demo may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the agents' tokens are valid.
const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

pub(super) struct Stage {
    client: Client,
    url: String,
    realm: RealmName,
    data: PathBuf,
    /// The server, if it was started for the demo.
    own: Option<Child>,
}

impl Stage {
    pub(super) async fn open(config: &Config, realm: &RealmName) -> Result<Self, Failure> {
        let data = config.data.value.clone();
        make_private_directory(&data)?;
        let running = Whereabouts::live(&data).map(|running| running.url);
        let (url, own) = match running {
            Some(url) => (url, None),
            None => {
                let (url, child) = start(config).await?;
                (url, Some(child))
            }
        };
        let client = Client::bare(url.clone())?.with_token(own_key(&data)?);
        client.open_realm(realm).await?;
        let stage = Self { client, url, realm: realm.clone(), data, own };
        // The person who looks at the page with the admin key gets messages, too.
        let admin = RegisterParams {
            id: Some("admin".to_owned()),
            kind: Some(AgentKind::Admin),
            ..RegisterParams::default()
        };
        stage.call::<RegisterResult>("register", admin).await?;
        Ok(stage)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn realm(&self) -> &RealmName {
        &self.realm
    }

    /// The file that holds the admin key.
    pub(super) fn key_hint(&self) -> String {
        AdminKey::path(&self.data).display().to_string()
    }

    /// Calls one of the server's own methods as its operator.
    async fn call<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R, Failure> {
        self.client.call(Some(&self.realm), method, params).await
    }

    /// The number of events in the realm's log.
    pub(super) async fn events(&self) -> Result<usize, Failure> {
        let status: Status = self.client.get(&format!("/r/{}/x-posthaste/status", self.realm)).await?;
        Ok(usize::try_from(status.events).unwrap_or(0))
    }

    /// A token for an agent of the demo, valid for a day.
    pub(super) async fn token(&self, name: &str) -> Result<String, Failure> {
        let params = TokenCreateParams {
            role: TokenRole::Agent,
            name: name.to_owned(),
            observe: false,
            expires_at: Some(from_now(TOKEN_LIFETIME)),
        };
        Ok(self.call::<TokenCreateResult>("token.create", params).await?.token)
    }

    pub(super) async fn close(self) -> Result<(), Failure> {
        let Some(mut own) = self.own else { return Ok(()) };
        #[cfg(unix)]
        if let Some(pid) =
            own.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            // The same Ctrl-C may have ended it already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        if tokio::time::timeout(CLOSE_TIMEOUT, own.wait()).await.is_err() {
            own.kill().await?;
        }
        Ok(())
    }
}

/// Starts this program as a server of its own.
async fn start(config: &Config) -> Result<(String, Child), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg("--data").arg(&config.data.value);
    command.arg("--listen").arg(config.listen.value.to_string()).args([
        "--log",
        "json",
        "--log-level",
        "warn",
    ]);
    // Ctrl-C at the terminal is for the demo, which then closes the server itself: two signals would be an emergency stop.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let out = child
        .stdout
        .take()
        .ok_or_else(|| Failure::new(Exit::Failed, "the output of the server cannot be read"))?;
    let mut lines = BufReader::new(out).lines();
    match lines.next_line().await? {
        Some(line) if line.starts_with("ready ") => Ok((line["ready ".len()..].to_owned(), child)),
        _ => Err(Failure::new(Exit::Failed, "the server did not start; `posthaste serve` says why")),
    }
}
