//! A mail directory and its mailboxes, held by descriptors: if directories are renamed or replaced by links meanwhile, an
//! operation stays in the directory it began in.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use posthaste_wire::files::name::{self, ARCHIVE};
use posthaste_wire::files::{Stamp, check_agent};
use rustix::fs::{self as sys, AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::errors::FilesError;

/// Mailboxes kept open at once; others are opened again when needed.
const MAX_OPEN_MAILBOXES: usize = 4_096;
/// Concurrent syncs of one directory. The disk takes several at once, and queueing costs more.
const SYNCS_AT_ONCE: usize = 4;
/// The mode of directories that are made: for their owner.
const PRIVATE_DIRECTORY: Mode = Mode::from_raw_mode(0o700);

/// The directory that holds every agent's mailbox.
#[derive(Debug)]
pub struct MailDir {
    path: PathBuf,
    root: OwnedFd,
    open: Mutex<HashMap<String, Arc<Mailbox>>>,
    /// Batches in progress.
    pub(super) batches: AtomicUsize,
}

/// One agent's mailbox.
#[derive(Debug)]
pub struct Mailbox {
    agent: String,
    path: PathBuf,
    pub(super) directory: OwnedFd,
    pub(super) issued: Mutex<Issued>,
    sync: SharedSync,
}

/// The last stamps that were issued in a mailbox.
#[derive(Debug, Default)]
pub(super) struct Issued {
    /// By the clock.
    pub(super) now: Option<Stamp>,
    /// At a time that the sender named.
    pub(super) named: Option<Stamp>,
}

/// One sync of a directory serves all threads that wait for one.
#[derive(Debug, Default)]
struct SharedSync {
    state: Mutex<SyncState>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct SyncState {
    /// Number of requests so far.
    asked: u64,
    /// All requests up to this one are done.
    done: u64,
    /// Syncs in progress.
    busy: usize,
    /// All requests up to this one failed, with this error.
    failed: Option<(u64, Errno)>,
}

impl MailDir {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = sys::open(path, flags, Mode::empty()).map_err(|error| FilesError::at(path, error))?;
        Ok(Self { path: path.to_owned(), root, open: Mutex::default(), batches: AtomicUsize::new(0) })
    }

    /// Opens a directory, making it durably if it does not exist.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open_or_make(path: &Path) -> Result<Self, FilesError> {
        make_all(path).map_err(|error| FilesError::at(path, error))?;
        Self::open(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An agent's mailbox, if it has one.
    ///
    /// # Errors
    /// For an invalid name, and for a mailbox that is not a directory.
    pub fn mailbox(&self, agent: &str) -> Result<Option<Arc<Mailbox>>, FilesError> {
        check_agent(agent)?;
        if let Some(known) = lock(&self.open).get(agent) {
            return Ok(Some(known.clone()));
        }
        let path = self.path.join(agent);
        // A mailbox that is a link could lead anywhere.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match sys::openat(&self.root, agent, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(FilesError::at(path, error)),
        };
        let mailbox = Arc::new(Mailbox {
            agent: agent.to_owned(),
            path,
            directory,
            issued: Mutex::default(),
            sync: SharedSync::default(),
        });
        let mut open = lock(&self.open);
        if open.len() >= MAX_OPEN_MAILBOXES {
            open.clear();
        }
        Ok(Some(open.entry(agent.to_owned()).or_insert(mailbox).clone()))
    }

    /// An agent's mailbox, made durably if there is none.
    ///
    /// # Errors
    /// For an invalid name, and when it cannot be made.
    pub fn mailbox_or_make(&self, agent: &str) -> Result<Arc<Mailbox>, FilesError> {
        if let Some(mailbox) = self.mailbox(agent)? {
            return Ok(mailbox);
        }
        let path = self.path.join(agent);
        match sys::mkdirat(&self.root, agent, directory_mode(&self.root)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(FilesError::at(path, error)),
        }
        sys::fsync(&self.root).map_err(|error| FilesError::at(&self.path, error))?;
        self.mailbox(agent)?.ok_or_else(|| FilesError::at(path, Errno::NOENT))
    }

    /// The directory's owner and mode.
    pub(super) fn about(&self) -> Result<sys::Stat, FilesError> {
        sys::fstat(&self.root).map_err(|error| FilesError::at(&self.path, error))
    }

    /// Closes a mailbox whose directory was removed.
    pub(crate) fn forget(&self, agent: &str) {
        lock(&self.open).remove(agent);
    }

    /// The agents that have a mailbox, by name. Other files in the directory are ignored.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn agents(&self) -> Result<Vec<String>, FilesError> {
        let broken = |error: Errno| FilesError::at(&self.path, error);
        let mut agents = Vec::new();
        for entry in Dir::read_from(&self.root).map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if check_agent(name).is_ok() && self.is_directory(name) {
                agents.push(name.to_owned());
            }
        }
        agents.sort_unstable();
        Ok(agents)
    }

    fn is_directory(&self, name: &str) -> bool {
        sys::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|about| sys::FileType::from_raw_mode(about.st_mode).is_dir())
    }
}

impl Mailbox {
    /// The agent that it belongs to.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names in the mailbox that could be messages, sorted.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn names(&self) -> Result<Vec<String>, FilesError> {
        names(&self.directory).map_err(|error| FilesError::at(&self.path, error))
    }

    /// The names in the archive that could be messages, sorted; empty if there is no archive.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn archived(&self) -> Result<Vec<String>, FilesError> {
        match self.archive()? {
            Some(archive) => names(&archive).map_err(|error| FilesError::at(self.path.join(ARCHIVE), error)),
            None => Ok(Vec::new()),
        }
    }

    /// The archive, if there is one.
    pub(super) fn archive(&self) -> Result<Option<OwnedFd>, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match sys::openat(&self.directory, ARCHIVE, flags, Mode::empty()) {
            Ok(archive) => Ok(Some(archive)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(FilesError::at(self.path.join(ARCHIVE), error)),
        }
    }

    /// The archive, made if there is none.
    pub(super) fn archive_or_make(&self) -> Result<OwnedFd, FilesError> {
        match sys::mkdirat(&self.directory, ARCHIVE, directory_mode(&self.directory)) {
            Ok(()) => self.sync_names()?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(FilesError::at(self.path.join(ARCHIVE), error)),
        }
        self.archive()?.ok_or_else(|| FilesError::at(self.path.join(ARCHIVE), Errno::NOENT))
    }

    /// Makes earlier renames in this directory durable. Callers that arrive while syncs are in progress share the next one.
    ///
    /// # Errors
    /// When the system reports a failure.
    pub fn sync_names(&self) -> Result<(), FilesError> {
        self.sync.wait(&self.directory).map_err(|error| FilesError::at(&self.path, error))
    }

    /// The account that owns the directory.
    pub(super) fn owner(&self) -> Option<u32> {
        sys::fstat(&self.directory).ok().map(|about| about.st_uid)
    }

    /// When the directory last changed, in nanoseconds; nothing if it is gone.
    pub(super) fn changed(&self) -> Option<i128> {
        let about = sys::fstat(&self.directory).ok()?;
        (about.st_nlink > 0)
            .then(|| i128::from(about.st_mtime) * 1_000_000_000 + i128::from(about.st_mtime_nsec))
    }

    /// The size of the directory itself; a hint of how many files it has.
    pub(super) fn list_bytes(&self) -> u64 {
        sys::fstat(&self.directory).map_or(0, |about| u64::try_from(about.st_size).unwrap_or(0))
    }
}

impl SharedSync {
    fn wait(&self, directory: &OwnedFd) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        state.asked += 1;
        let mine = state.asked;
        while state.done < mine {
            if state.busy >= SYNCS_AT_ONCE {
                state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // This sync covers all requests so far.
            let covers = state.asked;
            state.busy += 1;
            drop(state);
            let synced = sys::fsync(directory);
            state = lock(&self.state);
            state.busy -= 1;
            state.done = state.done.max(covers);
            if let Err(error) = synced {
                // The system reports a failure once, so requests of the meantime may not see it in another sync.
                state.failed = Some((state.asked, error));
            }
            self.done.notify_all();
        }
        match state.failed {
            Some((up_to, error)) if mine <= up_to => Err(error),
            _ => Ok(()),
        }
    }
}

/// The mode of a directory made in another: for its owner, and for accounts that can enter the other.
fn directory_mode(parent: &OwnedFd) -> Mode {
    let open = sys::fstat(parent).map_or(0, |about| about.st_mode & 0o055);
    Mode::from_raw_mode(0o700 | open)
}

/// The mode of a file: for its owner, and readable for accounts that can list its directory.
pub(super) fn file_mode(directory: &OwnedFd) -> Mode {
    let open = sys::fstat(directory).map_or(0, |about| about.st_mode & 0o044);
    Mode::from_raw_mode(0o600 | open)
}

/// Gives a file another name unless that name is taken.
pub(super) fn rename_new(from: (&OwnedFd, &str), to: (&OwnedFd, &str)) -> Result<(), Errno> {
    match sys::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Not every file system supports this; a link and an unlink have the same effect.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            sys::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            sys::unlinkat(from.0, from.1, AtFlags::empty())
        }
        done => done,
    }
}

/// Replaces a file that must still exist. The old one is then under the new one's former name.
pub(super) fn exchange(directory: &OwnedFd, new: &str, old: &str) -> Result<(), Errno> {
    match sys::renameat_with(directory, new, directory, old, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            sys::statat(directory, old, AtFlags::SYMLINK_NOFOLLOW)?;
            sys::renameat(directory, new, directory, old)
        }
        done => done,
    }
}

fn names(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        if let Ok(text) = entry?.file_name().to_str()
            && name::is_candidate(text)
        {
            names.push(text.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Makes a directory and those above it, each durable before the next.
pub(super) fn make_all(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_all(parent)?;
    }
    match sys::mkdir(path, PRIVATE_DIRECTORY) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(sys::fsync(sys::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?)?)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
