//! Opening the database: the pragmas that make an answer durable, and connections for reading.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;
use crate::error::Fault;

/// Prepared statements cached per connection; more than the engine has, so none is compiled twice.
const CACHED_STATEMENTS: usize = 512;
/// Page cache of the writer, in KiB. It mostly writes at the end of a few tables; a larger cache made nothing faster
/// (docs/BENCH.md).
const WRITER_CACHE_KIB: i64 = 6 << 10;
/// Dirty pages of one transaction that stay in memory before SQLite spills some to the WAL, which writes them twice.
const CACHE_SPILL_PAGES: i64 = 4_096;
/// Page cache of each reader, in KiB. Every commit invalidates it, so a larger cache would seldom help.
const READER_CACHE_KIB: i64 = 1 << 10;

/// Opens the database for the one writer, creating or upgrading it.
///
/// # Errors
/// When the file cannot be used, or its version is not known to this program.
pub fn open_writer(path: &Path) -> Result<Connection, Fault> {
    make_private(path).map_err(|error| Fault::Database { reason: format!("{}: {error}", path.display()) })?;
    let mut db = Connection::open(path)?;
    db.busy_timeout(Duration::from_secs(5))?;
    let mode: String = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Database { reason: format!("the file system does not support WAL (got {mode})") });
    }
    // FULL syncs the WAL on every commit: an acknowledged command survives a power cut, not only a crash.
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update(None, "wal_autocheckpoint", 4_000)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    tune(&db, WRITER_CACHE_KIB)?;
    db.pragma_update(None, "cache_spill", CACHE_SPILL_PAGES)?;
    let found = schema::version_of(&db)?;
    if found != schema::VERSION {
        let upgrade = db.transaction()?;
        schema::migrate(&upgrade, found)?;
        upgrade.commit()?;
    }
    Ok(db)
}

/// Creates the file before SQLite does, so that only its owner can read it, whatever the umask. SQLite gives its WAL
/// the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Opens the database for reading only. A reader sees one snapshot and never waits for the writer.
///
/// # Errors
/// When the file cannot be used, or its version is not known to this program.
pub fn open_reader(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::from_secs(5))?;
    tune(&db, READER_CACHE_KIB)?;
    schema::version_of(&db)?;
    Ok(db)
}

/// Opens the database for checkpoints, beside the writer.
pub(crate) fn open_checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.pragma_update(None, "synchronous", "full")?;
    // Only a connection that has read from the file knows of the WAL.
    db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
    Ok(db)
}

/// Checkpoints as much of the WAL as possible without blocking; returns the pages in the WAL, and how many of them are
/// checkpointed.
pub(crate) fn passive_checkpoint(db: &Connection) -> rusqlite::Result<(i32, i32)> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))
}

/// The problems that SQLite finds in the file; empty if there are none.
///
/// # Errors
/// When the check cannot be run.
pub fn check_integrity(db: &Connection) -> Result<Vec<String>, Fault> {
    let mut check = db.prepare("PRAGMA integrity_check")?;
    let found: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// All pages are in order.
    Whole,
    /// The problem, in SQLite's words.
    Damaged(String),
    /// No problem was found before the time was up.
    Unfinished,
}

/// Checks a file for damaged pages while `go_on` returns true. Changes nothing.
pub(crate) fn inspect(path: &Path, mut go_on: impl FnMut() -> bool + Send + 'static) -> Inspection {
    // A file that cannot be opened (no free descriptor, no memory) may still be whole.
    let Ok(mut db) = open_reader(path) else { return Inspection::Unfinished };
    // Called about every millisecond.
    if db.progress_handler(10_000, Some(move || !go_on())).is_err() {
        return Inspection::Unfinished;
    }
    let found: rusqlite::Result<String> = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match found {
        Ok(found) if found == "ok" => Inspection::Whole,
        Ok(found) => Inspection::Damaged(found.replace('\n', " ")),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure) => {
                Inspection::Damaged(error.to_string())
            }
            _ => Inspection::Unfinished,
        },
    }
}

fn tune(db: &Connection, cache_kib: i64) -> Result<(), Fault> {
    db.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Query plans depend on the statement only, never on bound values. Otherwise SQLite recompiles every statement with
    // a bound LIMIT, and some others, on each use.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.pragma_update(None, "cache_size", -cache_kib)?;
    // No memory map: an IO error on a mapped file would kill the process instead of being returned, and pages cost the
    // same without it (docs/BENCH.md).
    db.pragma_update(None, "mmap_size", 0)?;
    db.pragma_update(None, "temp_store", "memory")?;
    // Events outlive the rows that they refer to; the verbs keep references valid.
    db.pragma_update(None, "foreign_keys", false)?;
    Ok(())
}
