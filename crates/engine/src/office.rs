//! All realms of one data directory: each is a database file, opened on first use and closed when it is idle, or when
//! too many realms are open and another one is needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tracing::{debug, info};

use crate::commit::Writer;
use crate::engine::{Engine, EngineGuard};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::lock::DirectoryLock;
use crate::nouns::{Caller, RealmName};
use crate::verbs::office::Sweep;

/// Realms that may be opening at the same time. Opening reads and may recover a database.
const MAX_CONCURRENT_OPENINGS: usize = 4;
/// How often to check for a realm that can be closed, while all are in use.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// A data directory in use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Office {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    limits: Limits,
    open: Mutex<Open>,
    /// One permit for each realm that may be open.
    open_permits: Arc<Semaphore>,
    openings: Arc<Semaphore>,
    /// Set when the process is about to end; reads in all realms stop.
    reads_end: Arc<AtomicBool>,
}

/// The open realms, and the lock that allows opening more.
#[derive(Debug)]
struct Open {
    /// Dropped when the office closes. Every writer has a clone, so the directory is unlocked when the last writer has
    /// ended.
    lock: Option<Arc<DirectoryLock>>,
    realms: HashMap<RealmName, Arc<RealmSlot>>,
}

/// Holds a realm while it is open. Each realm has its own gate, so opening or closing one does not block the others.
#[derive(Debug, Default)]
struct RealmSlot {
    realm: Mutex<Option<OpenRealm>>,
    /// Held while the realm is opened or closed.
    gate: Arc<AsyncMutex<()>>,
}

#[derive(Debug)]
struct OpenRealm {
    engine: Engine,
    guard: EngineGuard,
    used: Instant,
    _permit: OwnedSemaphorePermit,
}

impl RealmSlot {
    /// The realm's handle, if it is open.
    fn engine(&self) -> Option<Engine> {
        lock(&self.realm).as_ref().map(|realm| realm.engine.clone())
    }

    /// The realm's handle, if it is open; counts as a use.
    fn use_now(&self) -> Option<Engine> {
        let mut realm = lock(&self.realm);
        let realm = realm.as_mut()?;
        realm.used = Instant::now();
        Some(realm.engine.clone())
    }

    /// When the realm was last used, if it is open and idle.
    fn idle_since(&self) -> Option<Instant> {
        lock(&self.realm).as_ref().filter(|realm| realm.engine.is_idle()).map(|realm| realm.used)
    }

    /// Takes the realm out to close it, if it is idle and was not used after `used`. A caller that needs it meanwhile
    /// waits at the gate.
    fn take_idle(&self, used: Instant) -> Option<(OwnedMutexGuard<()>, OpenRealm)> {
        let gate = self.gate.clone().try_lock_owned().ok()?;
        let mut realm = lock(&self.realm);
        let is_idle = realm.as_ref().is_some_and(|realm| realm.engine.is_idle() && realm.used <= used);
        if !is_idle {
            return None;
        }
        Some((gate, realm.take()?))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that does not keep the office open, held by its realms.
#[derive(Clone, Debug)]
pub(crate) struct WeakOffice(Weak<Shared>);

impl WeakOffice {
    pub(crate) fn upgrade(&self) -> Option<Office> {
        self.0.upgrade().map(|shared| Office { shared })
    }
}

/// Closes the office: waits for every realm's writer, then unlocks the directory.
#[derive(Debug)]
pub struct OfficeGuard {
    shared: Arc<Shared>,
}

impl Office {
    /// Locks a data directory and creates it if it does not exist.
    ///
    /// # Errors
    /// When another process holds it, or it cannot be created.
    pub fn open(directory: &Path, limits: Limits) -> Result<(Self, OfficeGuard), Fault> {
        let realms = realms_in(directory);
        let broken =
            |error: std::io::Error| Fault::Database { reason: format!("{}: {error}", realms.display()) };
        make_private(&realms).map_err(broken)?;
        let lock = Some(Arc::new(DirectoryLock::take(directory)?));
        let open = Mutex::new(Open { lock, realms: HashMap::new() });
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            open,
            open_permits: Arc::new(Semaphore::new(limits.open_realms)),
            openings: Arc::new(Semaphore::new(MAX_CONCURRENT_OPENINGS)),
            reads_end: Arc::default(),
            limits,
        });
        Ok((Self { shared: shared.clone() }, OfficeGuard { shared }))
    }

    /// A realm, opened or created if necessary. If the maximum number of realms is open, the least recently used idle
    /// one is closed.
    ///
    /// # Errors
    /// When its database cannot be used, all open realms are in use, or the office is closing.
    pub async fn realm(&self, name: &RealmName) -> Result<Engine, EngineError> {
        let slot = {
            let mut open = lock(&self.shared.open);
            if open.lock.is_none() {
                return Err(Fault::Closing.into());
            }
            match open.realms.get(name) {
                Some(slot) => slot.clone(),
                None => open.realms.entry(name.clone()).or_default().clone(),
            }
        };
        if let Some(engine) = slot.use_now() {
            return Ok(engine);
        }
        let gate = slot.gate.clone().lock_owned().await;
        if let Some(engine) = slot.use_now() {
            return Ok(engine);
        }
        let permit = self.open_permit().await?;
        let turn = self.shared.openings.clone().acquire_owned().await.map_err(|_| Fault::Closing)?;
        // Checked with the gate held: closing the office waits at the gate, so it finds a realm that is opened now.
        let Some(directory) = lock(&self.shared.open).lock.clone() else { return Err(Fault::Closing.into()) };
        let held = (directory, WeakOffice(Arc::downgrade(&self.shared)));
        let (path, name, limits) = (self.path_of(name), name.clone(), self.shared.limits.clone());
        // Runs to its end even if the caller goes away: a realm must not be opened twice at the same time.
        let opened = tokio::task::spawn_blocking(move || -> Result<Engine, Fault> {
            let _held_until_done = (gate, turn);
            let (engine, guard) = Engine::open_with(&path, name.clone(), limits, Some(held), Writer::start)?;
            info!(realm = %name, "realm opened");
            let realm = OpenRealm { engine: engine.clone(), guard, used: Instant::now(), _permit: permit };
            *lock(&slot.realm) = Some(realm);
            Ok(engine)
        });
        Ok(opened.await.map_err(|error| Fault::Internal { reason: error.to_string() })??)
    }

    /// The flag that stops the reads of all realms when it is set: the process is about to end.
    #[must_use]
    pub fn reads_end(&self) -> Arc<AtomicBool> {
        self.shared.reads_end.clone()
    }

    /// Waits for a permit for one more open realm.
    async fn open_permit(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        let limits = &self.shared.limits;
        let start = Instant::now();
        loop {
            if let Ok(permit) = self.shared.open_permits.clone().try_acquire_owned() {
                return Ok(permit);
            }
            if let Some((gate, realm)) = self.least_recently_used() {
                debug!(realm = %realm.engine.realm(), "realm closed: another one is opened");
                let closed = tokio::task::spawn_blocking(move || {
                    let _held_until_done = gate;
                    realm.close();
                });
                drop(closed.await);
                continue;
            }
            if start.elapsed() >= limits.queue_wait {
                return Err(
                    Refusal::TooMany { what: "realms in use", limit: limits.open_realms as u64 }.into()
                );
            }
            tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// Takes out the idle realm that was unused for longest.
    fn least_recently_used(&self) -> Option<(OwnedMutexGuard<()>, OpenRealm)> {
        let open = lock(&self.shared.open);
        let idle = open.realms.values().filter_map(|slot| Some((slot.idle_since()?, slot)));
        let (used, slot) = idle.min_by_key(|(used, _)| *used)?;
        slot.take_idle(used)
    }

    /// Whether a database exists for this realm.
    #[must_use]
    pub fn has_realm(&self, name: &RealmName) -> bool {
        self.path_of(name).exists()
    }

    /// The path of a realm's database.
    #[must_use]
    pub fn path_of(&self, name: &RealmName) -> PathBuf {
        database_path(&self.shared.directory, name)
    }

    /// The realms that are open now.
    pub async fn open_realms(&self) -> Vec<Engine> {
        let open = lock(&self.shared.open);
        let mut engines: Vec<Engine> = open.realms.values().filter_map(|slot| slot.engine()).collect();
        engines.sort_by(|a, b| a.realm().cmp(b.realm()));
        engines
    }

    /// The names of the open realms. Unlike handles, names keep no realm open.
    pub(crate) fn open_names(&self) -> Vec<RealmName> {
        let open = lock(&self.shared.open);
        let is_open = |slot: &RealmSlot| lock(&slot.realm).is_some();
        open.realms.iter().filter(|(_, slot)| is_open(slot)).map(|(name, _)| name.clone()).collect()
    }

    /// A realm if it is open; does not count as a use.
    pub(crate) fn if_open(&self, name: &RealmName) -> Option<Engine> {
        let slot = lock(&self.shared.open).realms.get(name)?.clone();
        slot.engine()
    }

    /// The realms that have a database, by name.
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

    /// Turns expiry into events, removes stale presence, and closes unused realms. To be called regularly.
    pub async fn tidy(&self) {
        for name in self.open_names() {
            let Some(engine) = self.if_open(&name) else { continue };
            engine.presences().sweep();
            // A sweep that changed nothing is the last one, whatever the rules say about its size.
            while let Ok(swept) = engine.submit(&Caller::office(), Sweep {}).await
                && swept.more
                && swept.deliveries + swept.reservations + swept.keys > 0
            {}
        }
        self.close_idle().await;
    }

    /// Closes the realms that have been idle for long enough, and drops the slots of closed realms.
    async fn close_idle(&self) {
        let max_idle = self.shared.limits.realm_idle;
        let idle: Vec<(OwnedMutexGuard<()>, OpenRealm)> = {
            let mut open = lock(&self.shared.open);
            // Callers that are about to open a realm hold its slot, which they cloned under this lock.
            open.realms.retain(|_, slot| Arc::strong_count(slot) > 1 || lock(&slot.realm).is_some());
            let old = |slot: &Arc<RealmSlot>| {
                let used = slot.idle_since()?;
                if used.elapsed() > max_idle { slot.take_idle(used) } else { None }
            };
            open.realms.values().filter_map(old).collect()
        };
        let closed = tokio::task::spawn_blocking(move || {
            for (gate, realm) in idle {
                debug!(realm = %realm.engine.realm(), "realm closed: not in use");
                realm.close();
                drop(gate);
            }
        });
        drop(closed.await);
    }
}

impl OpenRealm {
    /// Drops the handle and waits for the writer.
    fn close(self) {
        drop(self.engine);
        self.guard.join();
    }
}

impl OfficeGuard {
    /// Closes every realm and waits until all accepted commands are answered and on disk; then the directory is
    /// unlocked. Remaining handles can still read, but not write. Nothing can be opened afterwards.
    pub async fn close(self) {
        let (directory, slots) = {
            let mut open = lock(&self.shared.open);
            (open.lock.take(), open.realms.drain().map(|(_, slot)| slot).collect::<Vec<_>>())
        };
        let mut gates = Vec::new();
        for slot in &slots {
            gates.push(slot.gate.clone().lock_owned().await);
        }
        let realms: Vec<OpenRealm> = slots.iter().filter_map(|slot| lock(&slot.realm).take()).collect();
        for realm in &realms {
            realm.engine.close().await;
        }
        let joined = tokio::task::spawn_blocking(move || {
            realms.into_iter().for_each(OpenRealm::close);
            drop((gates, directory));
        });
        drop(joined.await);
    }
}

/// Creates a directory that only its owner can enter, because it holds private mail.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The directory of the realms' databases within a data directory.
#[must_use]
pub fn realms_in(directory: &Path) -> PathBuf {
    directory.join("realms")
}

/// The path of a realm's database in a data directory.
#[must_use]
pub fn database_path(directory: &Path, name: &RealmName) -> PathBuf {
    // A realm name is checked to be a plain file name, so it cannot lead elsewhere.
    realms_in(directory).join(format!("{name}.db"))
}

/// The realms in a data directory, by name. Other files are skipped.
///
/// # Errors
/// When the directory cannot be read.
pub fn list_realms(directory: &Path) -> Result<Vec<RealmName>, Fault> {
    let entries = match std::fs::read_dir(realms_in(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Fault::Database { reason: error.to_string() }),
    };
    let mut names: Vec<RealmName> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".db").map(str::to_owned))
        .filter_map(|stem| RealmName::new(stem).ok())
        .collect();
    names.sort();
    Ok(names)
}
