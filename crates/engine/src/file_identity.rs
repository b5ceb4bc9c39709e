//! Identity and size of an open database's files. Writes to a file that was deleted, replaced or truncated would be
//! lost.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The database and its WAL, as of the last check.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    db: PathBuf,
    wal: PathBuf,
    last: Mutex<LastCheck>,
}

#[derive(Debug, Default)]
struct LastCheck {
    /// Device and inode of each file.
    db: Option<(u64, u64)>,
    wal: Option<(u64, u64)>,
    /// The database grows with checkpoints and never shrinks.
    bytes: u64,
}

impl DatabaseFiles {
    pub(crate) fn new(db: &Path) -> Self {
        let mut wal = db.as_os_str().to_owned();
        wal.push("-wal");
        let files = Self { db: db.to_owned(), wal: wal.into(), last: Mutex::default() };
        // The files that exist now are the ones that are open.
        drop(files.check());
        files
    }

    /// Reports what happened to the files since they were opened, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((db, bytes)) = identity_and_size(&self.db) else {
            return Err(format!("{} was deleted", self.db.display()));
        };
        if *last.db.get_or_insert(db) != db {
            return Err(format!("{} was replaced by another file", self.db.display()));
        }
        if bytes < last.bytes {
            let before = last.bytes;
            return Err(format!("{} shrank from {before} to {bytes} bytes", self.db.display()));
        }
        last.bytes = bytes;
        match (identity_and_size(&self.wal), last.wal) {
            (Some((wal, _)), Some(known)) if wal != known => {
                Err(format!("{} was replaced by another file", self.wal.display()))
            }
            (None, Some(_)) => Err(format!("{} was deleted", self.wal.display())),
            (found, _) => {
                last.wal = found.map(|(wal, _)| wal);
                Ok(())
            }
        }
    }
}

/// Device and inode of the file at a path, and its size.
#[cfg(unix)]
fn identity_and_size(path: &Path) -> Option<((u64, u64), u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some(((file.dev(), file.ino()), file.len()))
}

#[cfg(not(unix))]
fn identity_and_size(path: &Path) -> Option<((u64, u64), u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some(((0, 0), file.len()))
}
