//! Many realms in one data directory: each its own file, opened on first use and closed when nobody uses it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};
use tracing::{debug, info};

use crate::engine::{Engine, EngineGuard};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::lock::DirectoryLock;
use crate::nouns::{Caller, RealmName};
use crate::verbs::office::Sweep;
use crate::writer::Writer;

/// A data directory in use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Office {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    limits: Limits,
    open: Arc<Mutex<Open>>,
    /// Set when the process is about to end: reads in all realms stop.
    reads_end: Arc<AtomicBool>,
}

/// What is open, and the right to open more.
#[derive(Debug)]
struct Open {
    /// Given up when the office closes. Every writer has a share in it, so the directory is free when the last has ended.
    lock: Option<Arc<DirectoryLock>>,
    realms: HashMap<RealmName, OpenRealm>,
}

#[derive(Debug)]
struct OpenRealm {
    engine: Engine,
    guard: EngineGuard,
    used: Instant,
}

/// A handle that does not keep the office open, for its own realms.
#[derive(Clone, Debug)]
pub(crate) struct WeakOffice(Weak<Shared>);

impl WeakOffice {
    pub(crate) fn upgrade(&self) -> Option<Office> {
        self.0.upgrade().map(|shared| Office { shared })
    }
}

/// Closes the office in good order: closing waits for every realm's writer, then the directory is free.
#[derive(Debug)]
pub struct OfficeGuard {
    shared: Arc<Shared>,
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
        let lock = Some(Arc::new(DirectoryLock::take(directory)?));
        let open = Arc::new(Mutex::new(Open { lock, realms: HashMap::new() }));
        let shared =
            Arc::new(Shared { directory: directory.to_owned(), limits, open, reads_end: Arc::default() });
        Ok((Self { shared: shared.clone() }, OfficeGuard { shared }))
    }

    /// A realm, opened or made if need be.
    ///
    /// # Errors
    /// When its books cannot be used, too many realms are open, or the office is closing.
    pub async fn realm(&self, name: &RealmName) -> Result<Engine, EngineError> {
        let mut open = self.shared.open.clone().lock_owned().await;
        let Some(lock) = open.lock.clone() else { return Err(Fault::Closing.into()) };
        if let Some(realm) = open.realms.get_mut(name) {
            realm.used = Instant::now();
            return Ok(realm.engine.clone());
        }
        let limits = self.shared.limits.clone();
        if open.realms.len() >= limits.open_realms {
            return Err(Refusal::TooMany { what: "open realms", limit: limits.open_realms as u64 }.into());
        }
        let held = (lock, WeakOffice(Arc::downgrade(&self.shared)));
        let (path, name) = (self.path_of(name), name.clone());
        // Goes on when the caller goes away: a realm half opened must not meet a second opening.
        let opened = tokio::task::spawn_blocking(move || -> Result<Engine, Fault> {
            let (engine, guard) = Engine::open_with(&path, name.clone(), limits, Some(held), Writer::start)?;
            info!(realm = %name, "realm opened");
            open.realms.insert(name, OpenRealm { engine: engine.clone(), guard, used: Instant::now() });
            Ok(engine)
        });
        Ok(opened.await.map_err(|error| Fault::Internal { reason: error.to_string() })??)
    }

    /// What stops the reads of all realms when it is set: the process is about to end.
    #[must_use]
    pub fn reads_end(&self) -> Arc<AtomicBool> {
        self.shared.reads_end.clone()
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
        let mut engines: Vec<Engine> = open.realms.values().map(|realm| realm.engine.clone()).collect();
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
            // A sweep that found nothing has nothing more to find, whatever the rules say of its size.
            while let Ok(swept) = engine.submit(&Caller::office(), Sweep {}).await
                && swept.more
                && swept.deliveries + swept.reservations + swept.marks > 0
            {}
        }
        let open = self.shared.open.clone().lock_owned().await;
        let patience = self.shared.limits.realm_idle;
        drop(tokio::task::spawn_blocking(move || close_idle(open, patience)).await);
    }
}

/// Closes the realms that nobody uses. Holding on to `open` until their writers have ended keeps a second opening from
/// meeting them.
fn close_idle(mut open: OwnedMutexGuard<Open>, patience: Duration) {
    let idle = |realm: &OpenRealm| realm.engine.is_idle() && realm.used.elapsed() > patience;
    let names: Vec<RealmName> =
        open.realms.iter().filter(|(_, realm)| idle(realm)).map(|(name, _)| name.clone()).collect();
    for name in names {
        if let Some(realm) = open.realms.remove(&name) {
            realm.close();
            debug!(realm = %name, "realm closed: nobody uses it");
        }
    }
}

impl OpenRealm {
    /// Lets go of the realm and waits for its writer.
    fn close(self) {
        drop(self.engine);
        self.guard.join();
    }
}

impl OfficeGuard {
    /// Lets go of every realm and waits until all that was taken is answered and on disk; then the directory is free.
    /// Handles that are left elsewhere can still read, but not write. Nothing can be opened afterwards.
    pub async fn close(self) {
        let mut open = self.shared.open.clone().lock_owned().await;
        for realm in open.realms.values() {
            realm.engine.close().await;
        }
        let joined = tokio::task::spawn_blocking(move || {
            open.realms.drain().for_each(|(_, realm)| realm.close());
            open.lock = None;
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
