//! The last known position, in a small file beside the database: what was acknowledged can be missed when it is gone.
//!
//! The position is written after the commit that it names is durable, never ahead of it, so a database that is whole is
//! always at it or beyond. It may lag behind by seconds.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::wal;
use crate::error::Fault;
use crate::nouns::Seq;

/// Where a database was known to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Which history.
    pub(crate) history: String,
    /// The last event that was durable.
    pub(crate) seq: Seq,
}

impl Position {
    fn file(books: &Path) -> PathBuf {
        beside(books, ".pos")
    }

    /// The position that was noted for a database. One that cannot be read says nothing.
    fn read(books: &Path) -> Option<Self> {
        let text = fs::read(Self::file(books)).ok()?;
        match serde_json::from_slice(&text) {
            Ok(position) => Some(position),
            Err(error) => {
                tracing::warn!(file = %Self::file(books).display(), %error, "the noted position cannot be read");
                None
            }
        }
    }

    /// Notes the position, all or nothing.
    pub(crate) fn write(&self, books: &Path, sync: bool) -> std::io::Result<()> {
        let fresh = beside(books, ".pos-new");
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        file.write_all(&serde_json::to_vec(self).unwrap_or_default())?;
        if sync {
            file.sync_data()?;
        }
        fs::rename(&fresh, Self::file(books))
    }
}

/// Checks that a database holds everything that it is known to have acknowledged. Changes nothing.
///
/// # Errors
/// [`Fault::Lost`] says what is missing.
pub fn check_position(books: &Path) -> Result<(), Fault> {
    let lost = |found: String| Fault::Lost { path: books.display().to_string(), found };
    if let Some(damage) = wal::lost_frames(&beside(books, "-wal")) {
        return Err(lost(damage));
    }
    let Some(noted) = Position::read(books) else { return Ok(()) };
    if !books.exists() {
        return Err(lost(format!("the file is gone; it had {} events", noted.seq)));
    }
    // A file that cannot be read at all is refused where it is opened, with SQLite's reason.
    let Ok(found) = present(books) else { return Ok(()) };
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

/// Goes on with what is left: the log is kept under another name, so that it can be searched, and the noted position
/// is forgotten. Says where the log was kept.
///
/// # Errors
/// When the files cannot be written.
pub fn accept_loss(books: &Path) -> std::io::Result<Option<PathBuf>> {
    let log = beside(books, "-wal");
    let mut kept = None;
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let name = (1..).map(|n: u32| beside(books, &format!("-wal.lost-{n}"))).find(|name| !name.exists());
        if let Some(name) = name {
            fs::copy(&log, &name)?;
            kept = Some(name);
        }
    }
    forget_position(books)?;
    wal::cut(&log)?;
    Ok(kept)
}

/// Forgets the position of a database that is put in another's place.
///
/// # Errors
/// When the file cannot be removed.
pub fn forget_position(books: &Path) -> std::io::Result<()> {
    match fs::remove_file(Position::file(books)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn beside(books: &Path, suffix: &str) -> PathBuf {
    let mut name = books.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Where a database is, nothing if it has no tables. Leaves the log as it is.
fn present(books: &Path) -> rusqlite::Result<Option<Position>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let books = Connection::open_with_flags(books, flags)?;
    books.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let tables: i64 = books.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('meta', 'events')",
        [],
        |row| row.get(0),
    )?;
    if tables < 2 {
        return Ok(None);
    }
    let named = "SELECT value FROM meta WHERE key = 'history'";
    let Some(history) = books.query_row(named, [], |row| row.get(0)).optional()? else { return Ok(None) };
    let seq = books.query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))?;
    Ok(Some(Position { history, seq }))
}
