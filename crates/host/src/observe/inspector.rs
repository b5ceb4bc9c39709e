//! Checks the databases for damage: the default realm's at the start, the others' after they are opened, each once unless it is damaged.
//! What is found stands in the log and in `/health`, and the realm is read-only from then on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::Engine;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::Inspection;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::Host;

/// The time that one realm gets. A disk reads some gigabytes in it; `posthaste doctor` reads everything.
const LONGEST: Duration = Duration::from_secs(20);
/// The start waits for no longer than this, so that damage in a database of usual size is known before `ready`.
const START_WAITS: Duration = Duration::from_millis(500);
/// How often it is asked which realms were opened.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The task that looks.
#[derive(Debug)]
pub struct Inspector {
    task: JoinHandle<()>,
    first: Arc<Notify>,
}

impl Inspector {
    pub fn start(host: Host, default: Engine) -> Self {
        let first = Arc::new(Notify::new());
        let looked = first.clone();
        let task = tokio::spawn(async move {
            let mut sound = HashSet::new();
            look_at(default, &mut sound).await;
            looked.notify_one();
            let stop = host.stop().clone();
            stop.run_until_cancelled(look_at_others(&host, &mut sound)).await;
        });
        Self { task, first }
    }

    /// Waits for the first look, a little.
    pub async fn first_look(&self) {
        drop(tokio::time::timeout(START_WAITS, self.first.notified()).await);
    }

    /// Waits for the task, which ends when the server stops.
    pub async fn end(self) {
        drop(self.task.await);
    }
}

async fn look_at_others(host: &Host, sound: &mut HashSet<RealmName>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        for engine in host.office().open_realms().await {
            // One that is damaged is read-only while it is open, and looked at again when it is opened anew.
            if engine.poisoned().is_none() && !sound.contains(engine.realm()) {
                look_at(engine, sound).await;
            }
        }
    }
}

async fn look_at(engine: Engine, sound: &mut HashSet<RealmName>) {
    let realm = engine.realm().clone();
    // A handle of its own: the realm stays open until this is done.
    let looked = tokio::task::spawn_blocking(move || engine.inspect(LONGEST));
    match looked.await {
        Ok(Inspection::Whole) => {
            tracing::debug!(%realm, "the database is in order");
            sound.insert(realm);
        }
        Ok(Inspection::Unfinished) => {
            tracing::info!(%realm, "no damage found in the part of the database that there was time for");
            sound.insert(realm);
        }
        // The engine has said what it found.
        Ok(Inspection::Damaged(_)) => {}
        Err(error) => {
            tracing::warn!(%realm, %error, "the database could not be looked through");
            sound.insert(realm);
        }
    }
}
