//! Many realms in one data directory: each its own file, opened on first use and closed when it is not in use, or when
//! another one is to be opened and too many are open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tracing::{debug, info};

use crate::engine::{Engine, EngineGuard};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::lock::DirectoryLock;
use crate::nouns::{Caller, RealmName};
use crate::verbs::office::Sweep;
use crate::writer::Writer;

/// Realms that are opened at once. Opening reads and may recover a database.
const OPENINGS: usize = 4;
/// How often to look again for a realm that can be closed, while all are in use.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

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
    /// One for each realm that may be open.
    places: Arc<Semaphore>,
    openings: Arc<Semaphore>,
    /// Set when the process is about to end: reads in all realms stop.
    reads_end: Arc<AtomicBool>,
}

/// What is open, and the right to open more.
#[derive(Debug)]
struct Open {
    /// Given up when the office closes. Every writer has a share in it, so the directory is free when the last has ended.
    lock: Option<Arc<DirectoryLock>>,
    realms: HashMap<RealmName, Arc<Mailbox>>,
}

/// Where a realm is while it is open. Opening or closing one realm does not hold up the others.
#[derive(Debug, Default)]
struct Mailbox {
    realm: Mutex<Option<OpenRealm>>,
    /// Held while the realm is opened or closed.
    gate: Arc<AsyncMutex<()>>,
}

#[derive(Debug)]
struct OpenRealm {
    engine: Engine,
    guard: EngineGuard,
    used: Instant,
    _place: OwnedSemaphorePermit,
}

impl Mailbox {
    /// The realm's handle, if it is open.
    fn engine(&self) -> Option<Engine> {
        lock(&self.realm).as_ref().map(|realm| realm.engine.clone())
    }

    fn use_now(&self) -> Option<Engine> {
        let mut realm = lock(&self.realm);
        let realm = realm.as_mut()?;
        realm.used = Instant::now();
        Some(realm.engine.clone())
    }

    /// When it was last used, if it is open and not in use.
    fn idle_since(&self) -> Option<Instant> {
        lock(&self.realm).as_ref().filter(|realm| realm.engine.is_idle()).map(|realm| realm.used)
    }

    /// Takes the realm to close it, if it is not in use and was not used after that moment. A caller that wants it
    /// meanwhile waits at the gate.
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
            |error: std::io::Error| Fault::Database { reason: format!("{}: {error}", realms.display()) };
        make_private(&realms).map_err(broken)?;
        let lock = Some(Arc::new(DirectoryLock::take(directory)?));
        let open = Mutex::new(Open { lock, realms: HashMap::new() });
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            open,
            places: Arc::new(Semaphore::new(limits.open_realms)),
            openings: Arc::new(Semaphore::new(OPENINGS)),
            reads_end: Arc::default(),
            limits,
        });
        Ok((Self { shared: shared.clone() }, OfficeGuard { shared }))
    }

    /// A realm, opened or made if need be. If as many are open as may be, the one that was not used for longest is
    /// closed.
    ///
    /// # Errors
    /// When its books cannot be used, all open realms are in use, or the office is closing.
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
        let place = self.place().await?;
        let turn = self.shared.openings.clone().acquire_owned().await.map_err(|_| Fault::Closing)?;
        // Asked with the gate held: an office that closes waits at the gate, and finds what is opened now.
        let Some(directory) = lock(&self.shared.open).lock.clone() else { return Err(Fault::Closing.into()) };
        let held = (directory, WeakOffice(Arc::downgrade(&self.shared)));
        let (path, name, limits) = (self.path_of(name), name.clone(), self.shared.limits.clone());
        // Goes on when the caller goes away: a realm half opened must not meet a second opening.
        let opened = tokio::task::spawn_blocking(move || -> Result<Engine, Fault> {
            let _held_until_done = (gate, turn);
            let (engine, guard) = Engine::open_with(&path, name.clone(), limits, Some(held), Writer::start)?;
            info!(realm = %name, "realm opened");
            let realm = OpenRealm { engine: engine.clone(), guard, used: Instant::now(), _place: place };
            *lock(&slot.realm) = Some(realm);
            Ok(engine)
        });
        Ok(opened.await.map_err(|error| Fault::Internal { reason: error.to_string() })??)
    }

    /// What stops the reads of all realms when it is set: the process is about to end.
    #[must_use]
    pub fn reads_end(&self) -> Arc<AtomicBool> {
        self.shared.reads_end.clone()
    }

    /// A place for one more realm.
    async fn place(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        let limits = &self.shared.limits;
        let start = Instant::now();
        loop {
            if let Ok(place) = self.shared.places.clone().try_acquire_owned() {
                return Ok(place);
            }
            if let Some((gate, realm)) = self.least_used() {
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
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The open realm that was not used for longest and is not in use.
    fn least_used(&self) -> Option<(OwnedMutexGuard<()>, OpenRealm)> {
        let open = lock(&self.shared.open);
        let idle = open.realms.values().filter_map(|slot| Some((slot.idle_since()?, slot)));
        let (used, slot) = idle.min_by_key(|(used, _)| *used)?;
        slot.take_idle(used)
    }

    /// Whether a realm of that name has books.
    #[must_use]
    pub fn has_realm(&self, name: &RealmName) -> bool {
        self.path_of(name).exists()
    }

    /// Where a realm's books are.
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

    /// The names of the realms that are open now. Unlike handles, names keep no realm from being closed.
    pub(crate) fn open_names(&self) -> Vec<RealmName> {
        let open = lock(&self.shared.open);
        let is_open = |slot: &Mailbox| lock(&slot.realm).is_some();
        open.realms.iter().filter(|(_, slot)| is_open(slot)).map(|(name, _)| name.clone()).collect()
    }

    /// A realm if it is open, without counting as a use of it.
    pub(crate) fn if_open(&self, name: &RealmName) -> Option<Engine> {
        let slot = lock(&self.shared.open).realms.get(name)?.clone();
        slot.engine()
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
        for name in self.open_names() {
            let Some(engine) = self.if_open(&name) else { continue };
            engine.presences().sweep();
            // A sweep that found nothing has nothing more to find, whatever the rules say of its size.
            while let Ok(swept) = engine.submit(&Caller::office(), Sweep {}).await
                && swept.more
                && swept.deliveries + swept.reservations + swept.keys > 0
            {}
        }
        self.close_idle().await;
    }

    /// Closes the realms that are not in use, and forgets those that are closed.
    async fn close_idle(&self) {
        let patience = self.shared.limits.realm_idle;
        let idle: Vec<(OwnedMutexGuard<()>, OpenRealm)> = {
            let mut open = lock(&self.shared.open);
            // Callers on their way have a handle to the slot, which they got under this lock.
            open.realms.retain(|_, slot| Arc::strong_count(slot) > 1 || lock(&slot.realm).is_some());
            let old = |slot: &Arc<Mailbox>| {
                let used = slot.idle_since()?;
                if used.elapsed() > patience { slot.take_idle(used) } else { None }
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
        let (directory, mailboxes) = {
            let mut open = lock(&self.shared.open);
            (open.lock.take(), open.realms.drain().map(|(_, slot)| slot).collect::<Vec<_>>())
        };
        let mut gates = Vec::new();
        for slot in &mailboxes {
            gates.push(slot.gate.clone().lock_owned().await);
        }
        let realms: Vec<OpenRealm> = mailboxes.iter().filter_map(|slot| lock(&slot.realm).take()).collect();
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
pub fn database_path(directory: &Path, name: &RealmName) -> PathBuf {
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
