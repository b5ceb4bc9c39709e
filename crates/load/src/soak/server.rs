//! The server under test: started, killed without warning, started again on the same port with the same database.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rng::Rng;
use super::shared::{REALM, Shared};
use crate::clients::{Process, Server};
use posthaste::cli::exit::{Exit, Failure};

/// How long it may take to close gracefully.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct TestServer {
    place: Place,
    server: Option<Server>,
    pub(super) address: String,
    pub(super) token: String,
}

/// The paths of its files.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) data: PathBuf,
    pub(super) mail: PathBuf,
    swarm: PathBuf,
    pub(super) log: PathBuf,
}

impl Place {
    pub(super) fn make(directory: &Path) -> Result<Self, Failure> {
        let place = Self {
            data: directory.join("office"),
            mail: directory.join("mail"),
            swarm: directory.join("swarm.json"),
            log: directory.join("office.log"),
        };
        if place.data.exists() {
            return Err(Failure::new(Exit::Usage, format!("{} is there already", place.data.display())));
        }
        std::fs::create_dir_all(&place.mail)?;
        std::fs::write(&place.swarm, swarm().to_string())?;
        Ok(place)
    }

    fn start(&self, address: &str) -> Result<Server, Failure> {
        let log: File = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let (mail, swarm) = (self.mail.to_string_lossy(), self.swarm.to_string_lossy());
        let flags = ["--mail-dir", &*mail, "--swarm", &*swarm, "--registration", "on"];
        Server::start_at(address, &self.data, &flags, Some(log))
    }
}

/// A swarm of three built-in agents: two relays, and the last echoes.
fn swarm() -> Value {
    let agent = |name: &str, driver: Value, targets: &[&str], first: bool| {
        json!({
            "name": name, "driver": driver, "comm_targets": targets, "enable_entrypoint": first,
            "can_complete_tasks": first,
        })
    };
    let relay = |to: &str| json!({ "builtin": "relay", "to": to });
    json!({
        "name": REALM, "version": "1.3", "description": "a swarm to soak", "keywords": [], "public": false,
        "entrypoint": "first", "actions": [],
        "agents": [
            agent("first", relay("second"), &["second", "third"], true),
            agent("second", relay("third"), &["first", "third"], false),
            agent("third", json!({ "builtin": "echo" }), &["first", "second"], false),
        ],
    })
}

impl TestServer {
    pub(super) async fn open(place: &Place) -> Result<Self, Failure> {
        let at = place.clone();
        let server = tokio::task::spawn_blocking(move || at.start("127.0.0.1:0")).await??;
        let (address, token) = (server.address.clone(), server.token.clone());
        Ok(Self { place: place.clone(), server: Some(server), address, token })
    }

    pub(super) fn process(&self) -> Process {
        self.server.as_ref().map_or(Process { id: None }, Server::process)
    }

    /// Kills it and starts it again; gives how long the start took.
    async fn kill(&mut self, shared: &Shared, down: Duration) -> Result<Duration, Failure> {
        if let Some(server) = self.server.take() {
            server.stop()?;
        }
        shared.server_killed();
        tokio::time::sleep(down).await;
        let (place, address, started) = (self.place.clone(), self.address.clone(), Instant::now());
        let server = tokio::task::spawn_blocking(move || place.start(&address)).await?;
        self.server = Some(server.map_err(|failure| {
            Failure::new(
                Exit::Failed,
                format!("the server did not open again after a kill: {}", failure.error),
            )
        })?);
        shared.server_started();
        Ok(started.elapsed())
    }

    /// Closes it gracefully. Returns what went wrong.
    pub(super) async fn close(mut self) -> Result<Option<String>, Failure> {
        let Some(server) = self.server.take() else { return Ok(Some("it was not open".to_owned())) };
        let ended = tokio::task::spawn_blocking(move || server.close(CLOSE_TIMEOUT)).await??;
        Ok(match ended {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("it ended with {status}")),
            None => Some(format!("it was not closed after {} s", CLOSE_TIMEOUT.as_secs())),
        })
    }
}

/// Kills the server `kills` times within the given time, at random moments. Gives how long each start took.
pub(super) async fn kill_at_random(
    server: Arc<tokio::sync::Mutex<TestServer>>,
    shared: Arc<Shared>,
    kills: u32,
    within: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut rng = Rng::new(shared.seed, 7_777_777);
    let mut openings = Vec::new();
    let started = Instant::now();
    for n in 1..=kills {
        // Somewhere in its share of the time, but not at its very beginning.
        let share = within / kills;
        let moment = share * (n - 1) + share.mul_f64(0.4 + rng.below(600) as f64 / 1_000.0);
        if !shared.rest(moment.saturating_sub(started.elapsed())).await {
            break;
        }
        let down = rng.millis(0, 400);
        let took = server.lock().await.kill(&shared, down).await;
        match took {
            Ok(took) => openings.push(took),
            Err(failure) => {
                shared.ledger.find("server: did not open", failure.error.to_string());
                return Err(failure);
            }
        }
    }
    Ok(openings)
}
