//! Where the demo plays: the running office of the data directory, or one that is opened for it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use posthaste_engine::stamp;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::cli::client::Client;
use crate::cli::exit::{Exit, Failure};
use crate::cli::target::own_key;
use crate::config::Config;
use crate::serve::Whereabouts;
use posthaste_host::keys::AdminKey;
use posthaste_host::safe_open::make_private_directory;

/// How long an office that was opened for the demo may take to close.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Stage {
    client: Client,
    url: String,
    realm: RealmName,
    data: PathBuf,
    /// The office, if it was opened for the demo.
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
        // Whoever looks on with the office's key is written to as well.
        stage.call("register", json!({ "id": "admin", "kind": "admin" })).await?;
        Ok(stage)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn realm(&self) -> &RealmName {
        &self.realm
    }

    /// Where the key to the office lies.
    pub(super) fn key_hint(&self) -> String {
        AdminKey::path(&self.data).display().to_string()
    }

    /// One of the office's own methods, as the one who runs it.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        self.client.call(Some(&self.realm), method, params).await
    }

    /// How far the realm's history has come.
    pub(super) async fn events(&self) -> Result<usize, Failure> {
        let status = self.client.get(&format!("/r/{}/x-posthaste/status", self.realm)).await?;
        Ok(status["events"].as_u64().and_then(|events| usize::try_from(events).ok()).unwrap_or(0))
    }

    /// A token for somebody on the stage, good for a day.
    pub(super) async fn token(&self, name: &str) -> Result<String, Failure> {
        let end = stamp::now() + 24 * 3_600_000;
        let made =
            self.call("token.create", json!({ "role": "agent", "name": name, "expires_at": end })).await?;
        made["token"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::new(Exit::Failed, "no token was made"))
    }

    pub(super) async fn close(self) -> Result<(), Failure> {
        let Some(mut own) = self.own else { return Ok(()) };
        #[cfg(unix)]
        if let Some(pid) =
            own.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            // It may have been told by the same Ctrl-C.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        if tokio::time::timeout(PATIENCE, own.wait()).await.is_err() {
            own.kill().await?;
        }
        Ok(())
    }
}

/// This very program as an office of its own.
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
    let out = child.stdout.take().ok_or_else(|| Failure::new(Exit::Failed, "the office cannot be heard"))?;
    let mut lines = BufReader::new(out).lines();
    match lines.next_line().await? {
        Some(line) if line.starts_with("ready ") => Ok((line["ready ".len()..].to_owned(), child)),
        _ => Err(Failure::new(Exit::Failed, "the office did not open; `posthaste serve` says why")),
    }
}
