//! How `posthaste serve` takes the data directory over from a server inside another command: it writes a file into the
//! directory, and the other server closes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::{Fault, Office, OfficeGuard};

use super::{Whereabouts, held};
use crate::cli::exit::Failure;

/// How long the file is valid: longer than the other server may take to close.
const VALID_FOR: Duration = Duration::from_secs(12);
/// How often, and how long apart, the directory is tried.
const TRIES: u32 = 240;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

fn path(data: &Path) -> PathBuf {
    data.join("office.wanted")
}

/// Whether a server that is starting waits for the data directory.
pub(crate) fn is_wanted(data: &Path) -> bool {
    let written = fs::metadata(path(data)).and_then(|file| file.modified());
    // A time in the future means that the clock was set back after the file was written.
    written.is_ok_and(|at| at.elapsed().map_or(true, |age| age < VALID_FOR))
}

/// Opens the data directory, after a server inside another command has closed it if need be.
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
    // A file that is left behind is valid for a few seconds only.
    drop(fs::remove_file(path(data)));
    taken.map_err(held)
}
