//! One process per data directory: a lock held by the operating system, which releases it when the process dies.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::Fault;

/// The lock of a data directory, held until this is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    // Kept open: closing the file is what releases the lock.
    _file: File,
}

/// Attempts while only probes ([`lock_holder`]) of other processes hold the lock, each for microseconds.
const PROBED_ATTEMPTS: u32 = 10_000;

/// The path of the lock file in a data directory.
#[must_use]
pub fn lock_path(directory: &Path) -> PathBuf {
    directory.join("office.lock")
}

impl DirectoryLock {
    /// Locks the directory, or reports at once which process holds it.
    ///
    /// # Errors
    /// When another process holds it, or the file cannot be made.
    pub fn take(directory: &Path) -> Result<Self, Fault> {
        let path = lock_path(directory);
        let broken =
            |error: std::io::Error| Fault::Database { reason: format!("{}: {error}", path.display()) };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(broken)?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                let directory = directory.display().to_string();
                return Err(Fault::Locked { directory, holder: holder(&mut file) });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(broken(error)),
        }
        // The next process reads this to name the holder; it is meaningless once the lock is free.
        file.set_len(0).map_err(broken)?;
        file.seek(SeekFrom::Start(0)).map_err(broken)?;
        write!(file, "{}", std::process::id()).map_err(broken)?;
        file.flush().map_err(broken)?;
        Ok(Self { _file: file })
    }
}

/// Locks the file unless another process has locked it for good.
fn try_lock(file: &File) -> Result<(), std::fs::TryLockError> {
    for _ in 0..PROBED_ATTEMPTS {
        match file.try_lock() {
            // A shared lock can be had beside probes, and not beside the holder's exclusive one.
            Err(std::fs::TryLockError::WouldBlock) => file.try_lock_shared()?,
            taken => return taken,
        }
        file.unlock().map_err(std::fs::TryLockError::Error)?;
        std::thread::yield_now();
    }
    Err(std::fs::TryLockError::WouldBlock)
}

/// The process that holds the directory's lock, if any. Creates no file.
#[must_use]
pub fn lock_holder(directory: &Path) -> Option<u32> {
    let mut file = File::open(lock_path(directory)).ok()?;
    match file.try_lock_shared() {
        // Free: closing the file releases it.
        Ok(()) => None,
        Err(std::fs::TryLockError::WouldBlock) => holder(&mut file).parse().ok(),
        Err(std::fs::TryLockError::Error(_)) => None,
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(64).read_to_string(&mut text);
    match read {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}
