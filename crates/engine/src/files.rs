//! The files of an open database, watched: one that is deleted, replaced or cut short would take writes into the void.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The database and its log, as they were when they were last looked at.
#[derive(Debug)]
pub(crate) struct Files {
    db: PathBuf,
    log: PathBuf,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Device and number of each file.
    db: Option<(u64, u64)>,
    log: Option<(u64, u64)>,
    /// The database grows when its log is folded, and never shrinks.
    bytes: u64,
}

impl Files {
    pub(crate) fn of(db: &Path) -> Self {
        let mut log = db.as_os_str().to_owned();
        log.push("-wal");
        let files = Self { db: db.to_owned(), log: log.into(), seen: Mutex::default() };
        // Whatever is there now is what is open.
        drop(files.check());
        files
    }

    /// Says what has happened to the files since they were opened, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((db, bytes)) = look(&self.db) else {
            return Err(format!("{} was deleted", self.db.display()));
        };
        if *seen.db.get_or_insert(db) != db {
            return Err(format!("{} was replaced by another file", self.db.display()));
        }
        if bytes < seen.bytes {
            let before = seen.bytes;
            return Err(format!("{} shrank from {before} to {bytes} bytes", self.db.display()));
        }
        seen.bytes = bytes;
        match (look(&self.log), seen.log) {
            (Some((log, _)), Some(known)) if log != known => {
                Err(format!("{} was replaced by another file", self.log.display()))
            }
            (None, Some(_)) => Err(format!("{} was deleted", self.log.display())),
            (found, _) => {
                seen.log = found.map(|(log, _)| log);
                Ok(())
            }
        }
    }
}

/// Which file has that name, and how large it is.
#[cfg(unix)]
fn look(path: &Path) -> Option<((u64, u64), u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some(((file.dev(), file.ino()), file.len()))
}

#[cfg(not(unix))]
fn look(path: &Path) -> Option<((u64, u64), u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some(((0, 0), file.len()))
}
