//! Room on the disk, looked at now and then: writes of plain callers are refused while there is still enough for the
//! operator to set things right, instead of failing when there is none.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::Refusal;

/// How often the system is asked.
const EVERY: Duration = Duration::from_secs(2);
/// What is kept free, unless that is more than an eighth of the file system: a fiftieth of it within these bounds.
const LEAST: u64 = 64 << 20;
const MOST: u64 = 1 << 30;

/// The file system that a database is on.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    /// What is kept free, if that was said.
    reserve: Option<u64>,
    /// When it was last looked at, and what was free if that was too little.
    seen: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Disk {
    pub(crate) fn of(path: &Path, reserve: Option<u64>) -> Self {
        Self { path: path.to_owned(), reserve, seen: Mutex::default() }
    }

    /// Refuses if too little is free.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let low = match *seen {
            Some((at, low)) if at.elapsed() < EVERY => low,
            _ => {
                let low = self.look();
                *seen = Some((Instant::now(), low));
                low
            }
        };
        low.map_or(Ok(()), |free| Err(Refusal::DiskNearlyFull { free }))
    }

    #[cfg(unix)]
    fn look(&self) -> Option<u64> {
        let space = rustix::fs::statvfs(&self.path).ok()?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let total = space.f_blocks.saturating_mul(space.f_frsize);
        let reserve = self.reserve.unwrap_or((total / 50).clamp(LEAST, MOST).min(total / 8));
        (free < reserve).then_some(free)
    }

    #[cfg(not(unix))]
    fn look(&self) -> Option<u64> {
        let _ = (&self.path, self.reserve, LEAST, MOST);
        None
    }
}
