//! Many realms in one data directory: each its own file, opened on first use and closed when nobody uses it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;
use tracing::{debug, info};

use crate::engine::{Engine, EngineGuard};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::lock::DirectoryLock;
use crate::nouns::{Caller, RealmName};
use crate::verbs::office::Sweep;

/// A data directory in use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Office {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    limits: Limits,
    open: Mutex<HashMap<RealmName, OpenRealm>>,
}

#[derive(Debug)]
struct OpenRealm {
    engine: Engine,
    guard: EngineGuard,
    used: Instant,
}

/// Holds the directory. Closing it waits for every realm's writer.
#[derive(Debug)]
pub struct OfficeGuard {
    shared: Arc<Shared>,
    _lock: DirectoryLock,
}

impl Office {
    /// Takes a data directory, making it if it is not there.
    ///
    /// # Errors
    /// When another process has it, or it cannot be made.
    pub fn open(directory: &Path, limits: Limits) -> Result<(Self, OfficeGuard), Fault> {
        let realms = realms_in(directory);
        let broken =
            |error: std::io::Error| Fault::Books { reason: format!("{}: {error}", realms.display()) };
        make_private(&realms).map_err(broken)?;
        let lock = DirectoryLock::take(directory)?;
        let shared = Arc::new(Shared { directory: directory.to_owned(), limits, open: Mutex::default() });
        Ok((Self { shared: shared.clone() }, OfficeGuard { shared, _lock: lock }))
    }

    /// A realm, opened or made if need be.
    ///
    /// # Errors
    /// When its books cannot be used, or too many realms are open.
    pub async fn realm(&self, name: &RealmName) -> Result<Engine, EngineError> {
        let mut open = self.shared.open.lock().await;
        if let Some(realm) = open.get_mut(name) {
            realm.used = Instant::now();
            return Ok(realm.engine.clone());
        }
        if open.len() >= self.shared.limits.open_realms {
            return Err(Refusal::TooMany {
                what: "open realms",
                limit: self.shared.limits.open_realms as u64,
            }
            .into());
        }
        let (path, limits, realm) = (self.path_of(name), self.shared.limits.clone(), name.clone());
        let opened = tokio::task::spawn_blocking(move || Engine::open(&path, realm, limits)).await;
        let (engine, guard) = opened.map_err(|error| Fault::Internal { reason: error.to_string() })??;
        info!(realm = %name, "realm opened");
        open.insert(name.clone(), OpenRealm { engine: engine.clone(), guard, used: Instant::now() });
        Ok(engine)
    }

    /// Whether a realm of that name has books.
    #[must_use]
    pub fn has_realm(&self, name: &RealmName) -> bool {
        self.path_of(name).exists()
    }

    /// Where a realm's books are.
    #[must_use]
    pub fn path_of(&self, name: &RealmName) -> PathBuf {
        books_of(&self.shared.directory, name)
    }

    /// The realms that are open now.
    pub async fn open_realms(&self) -> Vec<Engine> {
        let open = self.shared.open.lock().await;
        let mut engines: Vec<Engine> = open.values().map(|realm| realm.engine.clone()).collect();
        engines.sort_by(|a, b| a.realm().cmp(b.realm()));
        engines
    }

    /// The realms that have books, by name.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn realms(&self) -> Result<Vec<RealmName>, Fault> {
        list_realms(&self.shared.directory)
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Turns expiry into events, forgets stale presence, and closes realms that nobody uses. To be called now and then.
    pub async fn tidy(&self) {
        for engine in self.open_realms().await {
            engine.presences().sweep();
            while let Ok(swept) = engine.submit(&Caller::office(), Sweep {}).await
                && swept.more
            {}
        }
        let mut open = self.shared.open.lock().await;
        let idle: Vec<RealmName> = open
            .iter()
            .filter(|(_, realm)| {
                realm.engine.is_idle() && realm.used.elapsed() > self.shared.limits.realm_idle
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in idle {
            if let Some(OpenRealm { engine, guard, .. }) = open.remove(&name) {
                drop(engine);
                // Waiting here keeps a second opening from meeting the first one's writer.
                drop(tokio::task::spawn_blocking(move || guard.join()).await);
                debug!(realm = %name, "realm closed: nobody uses it");
            }
        }
    }
}

impl OfficeGuard {
    /// Lets go of every realm and waits until all that was taken is answered and on disk. Handles elsewhere must be gone.
    pub async fn close(self) {
        let realms: Vec<OpenRealm> = self.shared.open.lock().await.drain().map(|(_, realm)| realm).collect();
        let joined = tokio::task::spawn_blocking(move || {
            for OpenRealm { engine, guard, .. } in realms {
                drop(engine);
                guard.join();
            }
        });
        drop(joined.await);
    }
}

/// Makes a directory that only its owner can enter: the mail of others is none of anybody's business.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Where a data directory keeps its realms.
#[must_use]
pub fn realms_in(directory: &Path) -> PathBuf {
    directory.join("realms")
}

/// Where a realm's books are in a data directory.
#[must_use]
pub fn books_of(directory: &Path, name: &RealmName) -> PathBuf {
    // A realm name is checked to be a plain file name, so it cannot lead elsewhere.
    realms_in(directory).join(format!("{name}.db"))
}

/// The realms in a data directory, by name. Files that are not realms are passed over.
///
/// # Errors
/// When the directory cannot be read.
pub fn list_realms(directory: &Path) -> Result<Vec<RealmName>, Fault> {
    let entries = match std::fs::read_dir(realms_in(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Fault::Books { reason: error.to_string() }),
    };
    let mut names: Vec<RealmName> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".db").map(str::to_owned))
        .filter_map(|stem| RealmName::new(stem).ok())
        .collect();
    names.sort();
    Ok(names)
}
