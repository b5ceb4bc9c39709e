//! Health: every request runs the checks, and a problem is reported with its reason.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use posthaste_engine::nouns::Millis;
use posthaste_engine::{EngineError, stamp};

use crate::Host;

/// Free bytes on the disk below which the health check fails, before a commit does.
pub const MIN_FREE_BYTES: u64 = 16 << 20;

/// The longest time that a check waits, so that it responds while the server is busy.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// The health of the server, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is wrong; `None` if nothing is.
    pub problem: Option<String>,
    /// When that last changed.
    pub since: Millis,
}

/// The last report, to know since when it holds.
#[derive(Debug)]
pub struct Health {
    last: Mutex<Report>,
    /// The status that an administrator set, and since when.
    word: Mutex<Option<(String, Millis)>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { last: Mutex::new(Report { problem: None, since: stamp::now() }), word: Mutex::default() }
    }
}

impl Health {
    /// Sets the status that is reported while nothing is wrong.
    pub fn set_status(&self, word: &str) {
        let mut kept = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(before, _)| before != word) {
            *kept = Some((word.to_owned(), stamp::now()));
        }
    }

    pub fn word(&self) -> Option<(String, Millis)> {
        self.word.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, problem: Option<String>) -> Report {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.problem.is_some() != problem.is_some() {
            last.since = stamp::now();
        }
        last.problem = problem;
        last.clone()
    }
}

impl Host {
    /// Checks every open realm and the disk.
    pub async fn check_health(&self) -> Report {
        let problem = self.find_problem().await;
        if let Some(problem) = &problem {
            tracing::warn!(problem, "health check failed");
        }
        self.health().note(problem)
    }

    async fn find_problem(&self) -> Option<String> {
        // Opening realms may wait, so it has a timeout; stuck writers and readers are known without waiting.
        let looked = tokio::time::timeout(CHECK_TIMEOUT, async {
            if let Err(error) = self.office().realm(self.default_realm()).await {
                return Err(format!("realm {}: {error}", self.default_realm()));
            }
            Ok(self.office().open_realms().await)
        });
        let engines = match looked.await {
            Ok(Ok(engines)) => engines,
            Ok(Err(problem)) => return Some(problem),
            Err(_) => return Some("a realm has been opening or closing for too long".to_owned()),
        };
        let until = Instant::now() + CHECK_TIMEOUT;
        for engine in engines {
            engine.check_files();
            if let Some(reason) = engine.poisoned() {
                return Some(format!("realm {} is read-only: {reason}", engine.realm()));
            }
            if let Some(reason) = engine.stuck() {
                return Some(format!("realm {} is stuck: {reason}", engine.realm()));
            }
            match tokio::time::timeout_at(until.into(), engine.read(|view| view.head())).await {
                // Busy is not a problem; stuck readers are reported above.
                Ok(Ok(_) | Err(EngineError::Refused(_))) | Err(_) => {}
                Ok(Err(error)) => return Some(format!("realm {} cannot be read: {error}", engine.realm())),
            }
            match free_bytes(engine.path()) {
                Some(free) if free < MIN_FREE_BYTES => {
                    return Some(format!("only {free} bytes are free on the disk"));
                }
                _ => {}
            }
        }
        None
    }
}

/// The free bytes on the file system of a path; `None` if the system does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let space = rustix::fs::statvfs(path).ok()?;
        Some(space.f_bavail.saturating_mul(space.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}
