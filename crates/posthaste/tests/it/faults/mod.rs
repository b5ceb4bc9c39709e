//! A file for each fault in `docs/RELIABILITY.md`, which names the tests.

mod clock;
mod damage;
mod fairness;
mod half_open;
mod idle_connections;
#[cfg(target_os = "linux")]
mod machine;
mod slow_disk;
mod vanishing;

use std::time::Duration;

/// The 99th percentile.
fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

/// The number of open files and sockets of a process, on systems with `/proc`.
fn handles(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}
