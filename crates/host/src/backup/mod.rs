//! Backups: the databases of one or all realms, the files that their messages carry and, if wanted, the keys of the data
//! directory, in one tar archive.
//!
//! The archive begins with [`HEAD`] (what it is), goes on with the files, and ends with [`MANIFEST`] (sizes and hashes of
//! all of them): one without a manifest was cut off.

mod container;
mod contents;
mod read;

mod write;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_engine::Fault;
use posthaste_engine::nouns::{Millis, RealmName};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

pub use self::container::Hash;
pub use self::contents::{Member, admin_key_name, key_files, visit_attachments};
pub use self::read::{Unpacked, check, is_database, read_head, unpack};
pub use self::write::{Plan, copy_database, private_file, write};

/// The first entry.
pub const HEAD: &str = "posthaste-backup.json";
/// The last entry.
pub const MANIFEST: &str = "manifest.json";
/// The version of the form that this program writes.
pub const VERSION: u32 = 1;

/// What an archive is. Its first entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Always `posthaste-backup`.
    pub format: String,
    pub version: u32,
    pub made_at: Millis,
    /// The program that wrote it.
    pub by: String,
    pub realms: Vec<RealmName>,
}

/// What an archive holds. Its last entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    pub realms: Vec<RealmPart>,
    /// Keys, by their path in the data directory; none unless they were asked for.
    #[serde(default)]
    pub keys: Vec<KeyPart>,
    /// Names the admin key of the data directory without telling it.
    #[serde(default)]
    pub admin_key: Option<String>,
}

/// One realm of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealmPart {
    pub name: RealmName,
    /// Size and hash of its database.
    pub bytes: u64,
    pub sha256: Hash,
    pub attachments: Attachments,
}

/// The files that the messages of a realm carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachments {
    pub files: u64,
    pub bytes: u64,
    /// Files that messages name and that were not there to be copied.
    pub missing: u64,
}

/// A key of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    pub path: String,
    pub bytes: u64,
    pub sha256: Hash,
}

/// Why a backup could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("interrupted; nothing was changed")]
    Stopped,
    #[error("{what} is damaged: {why}")]
    Damaged { what: String, why: String },
    #[error("{what} is not a backup of posthaste: {why}")]
    NotABackup { what: String, why: String },
    #[error("the backup has version {found}, and this program knows {VERSION}; use a newer posthaste")]
    Newer { found: u32 },
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    #[error(transparent)]
    Database(Fault),
}

impl From<rusqlite::Error> for BackupError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::OperationInterrupted) => Self::Stopped,
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Self::Damaged { what: "the database".to_owned(), why: error.to_string() }
            }
            Some(rusqlite::ErrorCode::DiskFull) => {
                let full = io::Error::new(io::ErrorKind::StorageFull, error.to_string());
                Self::Io { what: "the copy of the database".to_owned(), error: full }
            }
            _ => Self::Database(error.into()),
        }
    }
}

impl BackupError {
    fn io(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        let what = what.to_string();
        move |error| match error.kind() {
            // How a copy that was told to stop ends.
            io::ErrorKind::Interrupted => Self::Stopped,
            _ => Self::Io { what, error },
        }
    }
}

/// Progress and cancellation of long work.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "a borrowed closure has nothing to show")]
pub struct Watch<'a> {
    pub stop: &'a AtomicBool,
    /// What is being done, how much of it is done, and of how much.
    pub step: &'a (dyn Fn(&'static str, u64, u64) + Sync),
}

impl Watch<'_> {
    fn go_on(&self) -> io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), BackupError> {
        self.go_on().map_err(|_| BackupError::Stopped)
    }
}

/// Runs a long statement such that it ends when the watcher says so.
pub fn interruptibly<T>(db: &Connection, stop: &AtomicBool, work: impl FnOnce(&Connection) -> T) -> T {
    let (handle, done) = (db.get_interrupt_handle(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if stop.load(Ordering::Relaxed) {
                    handle.interrupt();
                }
                std::thread::park_timeout(std::time::Duration::from_millis(50));
            }
        });
        let result = work(db);
        done.store(true, Ordering::Release);
        watcher.thread().unpark();
        result
    })
}

/// Checks that a database is whole and a realm's.
pub fn check_database(db: &Connection, what: &str, watch: Watch<'_>) -> Result<(), BackupError> {
    let damaged = |why: String| BackupError::Damaged { what: what.to_owned(), why };
    let checked = interruptibly(db, watch.stop, posthaste_engine::store::check_integrity);
    watch.check()?;
    match checked {
        Ok(problems) if problems.is_empty() => {}
        Ok(problems) => {
            let first: Vec<String> = problems.into_iter().take(3).collect();
            return Err(damaged(first.join("; ").replace('\n', " ")));
        }
        Err(fault) => return Err(damaged(fault.to_string())),
    }
    let tables = "SELECT count(*) = 2 FROM sqlite_schema WHERE name IN ('meta', 'events')";
    match db.query_row(tables, [], |row| row.get::<_, bool>(0))? {
        true => Ok(()),
        false => {
            let why = "it is a database, but not of a realm".to_owned();
            Err(BackupError::NotABackup { what: what.to_owned(), why })
        }
    }
}
