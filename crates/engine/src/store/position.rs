//! The last known position, in a small file beside the database: detects that acknowledged events are missing.
//!
//! The position is written after the commit that it names is durable, never before, so an undamaged database is always at
//! or beyond it. It may lag behind by seconds.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::wal;
use crate::error::Fault;
use crate::nouns::Seq;

/// The position that a database is known to have reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The event log's id.
    pub(crate) history: String,
    /// The last event that was durable.
    pub(crate) seq: Seq,
}

impl Position {
    fn file(db: &Path) -> PathBuf {
        beside(db, ".pos")
    }

    /// The stored position of a database. A file that cannot be read counts as none.
    fn read(db: &Path) -> Option<Self> {
        let text = fs::read(Self::file(db)).ok()?;
        match serde_json::from_slice(&text) {
            Ok(position) => Some(position),
            Err(error) => {
                tracing::warn!(file = %Self::file(db).display(), %error, "the noted position cannot be read");
                None
            }
        }
    }

    /// Writes the position, atomically.
    pub(crate) fn write(&self, db: &Path, sync: bool) -> std::io::Result<()> {
        let fresh = beside(db, ".pos-new");
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(&serde_json::to_vec(self).unwrap_or_default())?;
        if sync {
            file.sync_data()?;
        }
        fs::rename(&fresh, Self::file(db))
    }
}

/// Checks that a database contains everything that it is known to have acknowledged. Changes nothing.
///
/// # Errors
/// [`Fault::Lost`] says what is missing.
pub fn check_position(db: &Path) -> Result<(), Fault> {
    let lost = |found: String| Fault::Lost { path: db.display().to_string(), found };
    if let Some(damage) = wal::lost_frames(&beside(db, "-wal")) {
        return Err(lost(damage));
    }
    let Some(noted) = Position::read(db) else { return Ok(()) };
    if !db.exists() {
        return Err(lost(format!("the file is gone; it had {} events", noted.seq)));
    }
    // A file that cannot be read at all is refused where it is opened, with SQLite's reason.
    let Ok(found) = present(db) else { return Ok(()) };
    match found {
        Some(found) if found.history != noted.history => {
            Err(lost("the file was replaced by that of another history".to_owned()))
        }
        Some(found) if found.seq >= noted.seq => Ok(()),
        found => {
            let seq = found.map_or(0, |found| found.seq);
            Err(lost(format!("it ends at event {seq}, and event {} was acknowledged", noted.seq)))
        }
    }
}

/// Continues with what is left: the WAL is copied under another name, so that it can be searched, and the stored
/// position is removed. Returns where the WAL was copied to.
///
/// # Errors
/// When the files cannot be written.
pub fn accept_loss(db: &Path) -> std::io::Result<Option<PathBuf>> {
    let log = beside(db, "-wal");
    let mut kept = None;
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let name = (1..).map(|n: u32| beside(db, &format!("-wal.lost-{n}"))).find(|name| !name.exists());
        if let Some(name) = name {
            fs::copy(&log, &name)?;
            kept = Some(name);
        }
    }
    forget_position(db)?;
    wal::cut(&log)?;
    Ok(kept)
}

/// Removes the stored position of a database that is replaced by another.
///
/// # Errors
/// When the file cannot be removed.
pub fn forget_position(db: &Path) -> std::io::Result<()> {
    match fs::remove_file(Position::file(db)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn beside(db: &Path, suffix: &str) -> PathBuf {
    let mut name = db.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The position of a database, `None` if it has no tables. Leaves the WAL as it is.
fn present(db: &Path) -> rusqlite::Result<Option<Position>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(db, flags)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let tables: i64 =
        db.query_row("SELECT count(*) FROM sqlite_schema WHERE name IN ('meta', 'events')", [], |row| {
            row.get(0)
        })?;
    if tables < 2 {
        return Ok(None);
    }
    let named = "SELECT value FROM meta WHERE key = 'history'";
    let Some(history) = db.query_row(named, [], |row| row.get(0)).optional()? else { return Ok(None) };
    let seq = db.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
    Ok(Some(Position { history, seq }))
}
