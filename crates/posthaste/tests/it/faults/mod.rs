//! Faults, and what is promised about each. The tests are named in `docs/RELIABILITY.md`.

mod clock;
mod crowd;
mod fairness;
mod half_open;
mod slow_disk;
mod vanishing;

use std::path::Path;
use std::time::Duration;

use crate::office::Office;

/// An office of this build, or of the program that POSTHASTE_FAULTS_PROGRAM names: figures are worth more from a release
/// build.
fn office(data: &Path) -> Office {
    match std::env::var_os("POSTHASTE_FAULTS_PROGRAM") {
        Some(program) => Office::open_program(Path::new(&program), data),
        None => Office::open(data),
    }
}

/// The value below which 99 of 100 lie.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

/// How many files and sockets a process has open, where the system tells.
fn handles(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}
