//! The office under test: opened, killed without warning, opened again on the same port with the same books.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::chance::Chance;
use super::field::{Field, REALM};
use crate::clients::{Process, Server};
use posthaste::cli::exit::{Exit, Failure};

/// How long it may take to close when it is asked to.
const CLOSING: Duration = Duration::from_secs(30);

pub(super) struct Office {
    place: Place,
    server: Option<Server>,
    pub(super) address: String,
    pub(super) token: String,
}

/// Where everything of it lies.
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

/// Three agents that need no model: one asks the next, the last says back.
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

impl Office {
    pub(super) async fn open(place: &Place) -> Result<Self, Failure> {
        let at = place.clone();
        let server = tokio::task::spawn_blocking(move || at.start("127.0.0.1:0")).await??;
        let (address, token) = (server.address.clone(), server.token.clone());
        Ok(Self { place: place.clone(), server: Some(server), address, token })
    }

    pub(super) fn process(&self) -> Process {
        self.server.as_ref().map_or(Process { id: None }, Server::process)
    }

    /// Kills it; gives how long it took to be open again.
    async fn kill(&mut self, field: &Field, down: Duration) -> Result<Duration, Failure> {
        if let Some(server) = self.server.take() {
            server.stop()?;
        }
        field.office_died();
        tokio::time::sleep(down).await;
        let (place, address, started) = (self.place.clone(), self.address.clone(), Instant::now());
        let server = tokio::task::spawn_blocking(move || place.start(&address)).await?;
        self.server = Some(server.map_err(|failure| {
            Failure::new(
                Exit::Failed,
                format!("the office did not open again after a kill: {}", failure.error),
            )
        })?);
        field.office_opened();
        Ok(started.elapsed())
    }

    /// Asks it to close in good order. Says what was not in order.
    pub(super) async fn close(mut self) -> Result<Option<String>, Failure> {
        let Some(server) = self.server.take() else { return Ok(Some("it was not open".to_owned())) };
        let ended = tokio::task::spawn_blocking(move || server.close(CLOSING)).await??;
        Ok(match ended {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("it ended with {status}")),
            None => Some(format!("it was not closed after {} s", CLOSING.as_secs())),
        })
    }
}

/// Kills the office so many times in the given time, at random moments. Gives how long each opening took.
pub(super) async fn storm(
    office: Arc<tokio::sync::Mutex<Office>>,
    field: Arc<Field>,
    kills: u32,
    within: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut chance = Chance::new(field.seed, 7_777_777);
    let mut openings = Vec::new();
    let started = Instant::now();
    for n in 1..=kills {
        // Somewhere in its share of the time, but not at its very beginning.
        let share = within / kills;
        let moment = share * (n - 1) + share.mul_f64(0.4 + chance.below(600) as f64 / 1_000.0);
        if !field.rest(moment.saturating_sub(started.elapsed())).await {
            break;
        }
        let down = chance.millis(0, 400);
        let took = office.lock().await.kill(&field, down).await;
        match took {
            Ok(took) => openings.push(took),
            Err(failure) => {
                field.ledger.find("office: did not open", failure.error.to_string());
                return Err(failure);
            }
        }
    }
    Ok(openings)
}
