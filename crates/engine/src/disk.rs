//! Free disk space, checked at intervals. Writes of callers that are not administrators are refused while the operator
//! still has space to fix the problem, instead of failing when none is left.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::error::Refusal;

/// How often free space is read from the system.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The default reserve is a fiftieth of the file system within these bounds, but at most an eighth of it.
const MIN_RESERVE_BYTES: u64 = 64 << 20;
const MAX_RESERVE_BYTES: u64 = 1 << 30;

/// The file system that a database is on.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
    /// Bytes to keep free, if configured.
    reserve: Option<u64>,
    /// When free space was last checked, and the free bytes if they were too few.
    last_check: Mutex<Option<(Instant, Option<u64>)>>,
}

impl Disk {
    pub(crate) fn new(path: &Path, reserve: Option<u64>) -> Self {
        Self { path: path.to_owned(), reserve, last_check: Mutex::default() }
    }

    /// Refuses if too little space is free. Reads the system at most once per [`CHECK_INTERVAL`].
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut last = self.last_check.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let low = match *last {
            Some((at, low)) if at.elapsed() < CHECK_INTERVAL => low,
            _ => {
                let low = self.low_space();
                *last = Some((Instant::now(), low));
                low
            }
        };
        low.map_or(Ok(()), |free| Err(Refusal::DiskNearlyFull { free }))
    }

    /// The free bytes, if they are fewer than the reserve.
    #[cfg(unix)]
    fn low_space(&self) -> Option<u64> {
        let space = rustix::fs::statvfs(&self.path).ok()?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let total = space.f_blocks.saturating_mul(space.f_frsize);
        let reserve =
            self.reserve.unwrap_or((total / 50).clamp(MIN_RESERVE_BYTES, MAX_RESERVE_BYTES).min(total / 8));
        (free < reserve).then_some(free)
    }

    #[cfg(not(unix))]
    fn low_space(&self) -> Option<u64> {
        let _ = (&self.path, self.reserve, MIN_RESERVE_BYTES, MAX_RESERVE_BYTES);
        None
    }
}
