//! How `posthaste serve` gets the data directory from a server that another command runs inside: it leaves a file in the
//! directory, and the other one closes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::{Fault, Office, OfficeGuard};

use super::{Whereabouts, held};
use crate::cli::exit::Failure;

/// How long a file counts: longer than the other server may take to close.
const COUNTS_FOR: Duration = Duration::from_secs(12);
/// How often, and how long apart, the directory is tried.
const TRIES: u32 = 240;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

fn path(data: &Path) -> PathBuf {
    data.join("office.wanted")
}

/// Whether a server that is starting waits for the data directory.
pub(crate) fn is_wanted(data: &Path) -> bool {
    let written = fs::metadata(path(data)).and_then(|file| file.modified());
    // A file of the future was written before the clock was set back, just now.
    written.is_ok_and(|at| at.elapsed().map_or(true, |age| age < COUNTS_FOR))
}

/// Takes the data directory, from a server inside another command if need be.
pub(super) async fn open(data: &Path) -> Result<(Office, OfficeGuard), Failure> {
    let first = match Office::open(data, Limits::default()) {
        Err(fault @ Fault::Locked { .. }) if Whereabouts::live(data).is_some_and(|other| other.hosted) => {
            fault
        }
        taken => return taken.map_err(held),
    };
    fs::write(path(data), std::process::id().to_string())?;
    let mut taken = Err(first);
    for _ in 0..TRIES {
        tokio::time::sleep(BETWEEN_TRIES).await;
        taken = Office::open(data, Limits::default());
        if !matches!(taken, Err(Fault::Locked { .. })) {
            break;
        }
    }
    // One that is left behind counts for a few seconds only.
    drop(fs::remove_file(path(data)));
    taken.map_err(held)
}
