//! Health that tells the truth: every answer runs real checks, and red says why.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use posthaste_engine::nouns::Millis;
use posthaste_engine::{EngineError, stamp};

use crate::Host;

/// Below this the next commit may fail; better to say so before it does.
pub const LEAST_FREE_BYTES: u64 = 16 << 20;

/// A check waits for no longer than this, so that it answers while everything else is busy.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How the office is, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Nothing if all is well.
    pub problem: Option<String>,
    /// When that last changed.
    pub since: Millis,
}

/// Remembers the last report, to tell since when it holds.
#[derive(Debug)]
pub struct Health {
    last: Mutex<Report>,
    /// What those who run the office say about it, and since when.
    word: Mutex<Option<(String, Millis)>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { last: Mutex::new(Report { problem: None, since: stamp::now() }), word: Mutex::default() }
    }
}

impl Health {
    /// Has the office call itself by this word for as long as nothing is wrong.
    pub fn set_word(&self, word: &str) {
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
    /// Looks at every open realm and at the disk.
    pub async fn check_health(&self) -> Report {
        let problem = self.find_problem().await;
        if let Some(problem) = &problem {
            tracing::warn!(problem, "health check failed");
        }
        self.health().note(problem)
    }

    async fn find_problem(&self) -> Option<String> {
        // Whether anything is stuck is known without waiting for it; for what must be waited for there is a limit.
        let looked = tokio::time::timeout(LONGEST_LOOK, async {
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
        let until = Instant::now() + LONGEST_LOOK;
        for engine in engines {
            engine.check_files();
            if let Some(reason) = engine.poisoned() {
                return Some(format!("realm {} is read-only: {reason}", engine.realm()));
            }
            if let Some(reason) = engine.stuck() {
                return Some(format!("realm {} is stuck: {reason}", engine.realm()));
            }
            match tokio::time::timeout_at(until.into(), engine.read(|view| view.head())).await {
                // Busy is not broken; readers that are stuck are told of above.
                Ok(Ok(_) | Err(EngineError::Refused(_))) | Err(_) => {}
                Ok(Err(error)) => return Some(format!("realm {} cannot be read: {error}", engine.realm())),
            }
            match free_bytes(engine.path()) {
                Some(free) if free < LEAST_FREE_BYTES => {
                    return Some(format!("only {free} bytes are free on the disk"));
                }
                _ => {}
            }
        }
        None
    }
}

/// The bytes that may still be written where a file is; nothing if the system does not say.
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
