//! Faults, and what is promised about each. The tests are named in `docs/RELIABILITY.md`.

mod clock;
mod crowd;
mod damage;
mod fairness;
mod half_open;
#[cfg(target_os = "linux")]
mod machine;
mod slow_disk;
mod vanishing;

use std::time::Duration;

/// The value below which 99 of 100 lie.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

/// How many files and sockets a process has open, where the system tells.
fn handles(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}
