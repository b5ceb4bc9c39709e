//! Memory and handles of the server's process, and whether they stay flat.

use std::fs;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::clients::Process;

/// How much memory may grow under a steady load after the warm-up: a constant, and a share.
const GROWTH_BYTES: u64 = 24 << 20;
const GROWTH_SHARE: f64 = 0.15;
/// The share of a server's run that is warm-up: caches fill, agents come.
const WARM_UP: f64 = 0.4;
/// Handles other than sockets that may stay: database connections for reading are opened when they are first needed.
pub(super) const SPARE_FILES: u64 = 24;
/// The least number of samples after the warm-up that is compared.
const MIN_SAMPLES: usize = 8;

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Sample {
    pub(super) seconds: u64,
    /// How often the server had been killed before.
    pub(super) epoch: u64,
    /// Memory that is its own: neither files nor shared.
    pub(super) bytes: u64,
    pub(super) sockets: u64,
    pub(super) files: u64,
    pub(super) threads: u64,
}

impl Sample {
    /// A sample of a process; none where the system has no /proc.
    pub(super) fn take(process: Process, started: Instant, epoch: u64) -> Option<Self> {
        let id = process.id?;
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let number = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let (mut sockets, mut files) = (0, 0);
        for entry in fs::read_dir(format!("/proc/{id}/fd")).ok()?.flatten() {
            match fs::read_link(entry.path()) {
                Ok(to) if to.to_string_lossy().starts_with("socket:") => sockets += 1,
                Ok(_) => files += 1,
                // Closed while we were looking.
                Err(_) => {}
            }
        }
        let bytes = number("RssAnon:").or_else(|| number("VmRSS:"))? * 1_024;
        let threads = number("Threads:")?;
        Some(Self { seconds: started.elapsed().as_secs(), epoch, bytes, sockets, files, threads })
    }
}

/// Memory and files in the last run of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Trend {
    pub(super) samples: usize,
    pub(super) seconds: u64,
    /// The median of the first third after the warm-up, and of the last.
    pub(super) early_bytes: u64,
    pub(super) late_bytes: u64,
    pub(super) allowed_bytes: u64,
    pub(super) early_files: u64,
    pub(super) late_files: u64,
}

impl Trend {
    /// None if there are too few samples.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let epoch = samples.last()?.epoch;
        let all: Vec<&Sample> = samples.iter().filter(|sample| sample.epoch == epoch).collect();
        let warm = &all[(all.len() as f64 * WARM_UP) as usize..];
        if warm.len() < MIN_SAMPLES {
            return None;
        }
        let third = warm.len() / 3;
        let median = |part: &[&Sample], of: fn(&Sample) -> u64| {
            let mut values: Vec<u64> = part.iter().map(|sample| of(sample)).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
        let early_bytes = median(first, |sample| sample.bytes);
        Some(Self {
            samples: warm.len(),
            seconds: warm.last()?.seconds - warm.first()?.seconds,
            early_bytes,
            late_bytes: median(last, |sample| sample.bytes),
            allowed_bytes: early_bytes + GROWTH_BYTES + (early_bytes as f64 * GROWTH_SHARE) as u64,
            early_files: median(first, |sample| sample.files),
            late_files: median(last, |sample| sample.files),
        })
    }

    /// What has grown more than it may.
    pub(super) fn problem(&self) -> Option<String> {
        if self.late_bytes > self.allowed_bytes {
            return Some(format!(
                "memory went from {} to {} bytes in {} s; {} were allowed",
                self.early_bytes, self.late_bytes, self.seconds, self.allowed_bytes
            ));
        }
        if self.late_files > self.early_files + SPARE_FILES {
            return Some(format!("open files went from {} to {}", self.early_files, self.late_files));
        }
        None
    }
}

/// Whether the handles are those of an idle server, as at the start; it also keeps one for each new mailbox.
pub(super) fn is_at_rest(base: &Sample, now: &Sample, mailboxes: u64) -> bool {
    now.sockets <= base.sockets && now.files <= base.files + SPARE_FILES + mailboxes
}

/// How long handles may take to be closed after the fleet has left.
pub(super) const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(grows_by: u64, count: u64, epochs: u64) -> Vec<Sample> {
        (0..count)
            .map(|n| Sample {
                seconds: n,
                epoch: n * epochs / count,
                bytes: (50 << 20) + n * grows_by,
                files: 20,
                ..Sample::default()
            })
            .collect()
    }

    #[test]
    fn growth_is_distinguished_from_noise() {
        let flat = Trend::of(&run(0, 100, 1)).unwrap();
        assert_eq!((flat.problem(), flat.samples), (None, 60));
        // A megabyte each second, over forty seconds between the medians.
        let grown = Trend::of(&run(1 << 20, 100, 1)).unwrap();
        assert!(grown.problem().unwrap().starts_with("memory went from"));
        // Only the last run counts, and a short one has too few samples.
        assert_eq!(Trend::of(&run(0, 100, 4)).unwrap().samples, 15);
        assert_eq!(Trend::of(&run(0, 20, 2)), None);
        let mut leaking = run(0, 100, 1);
        for (n, sample) in (0..).zip(&mut leaking) {
            sample.files += n;
        }
        assert!(Trend::of(&leaking).unwrap().problem().unwrap().starts_with("open files"));
    }

    #[test]
    fn every_socket_must_come_back() {
        let base = Sample { sockets: 4, files: 30, ..Sample::default() };
        assert!(is_at_rest(&base, &Sample { files: 40, ..base }, 0));
        assert!(!is_at_rest(&base, &Sample { sockets: 5, ..base }, 50));
        assert!(!is_at_rest(&base, &Sample { files: 100, ..base }, 0));
        assert!(is_at_rest(&base, &Sample { files: 100, ..base }, 50));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_can_be_sampled() {
        let sample = Sample::take(Process { id: Some(std::process::id()) }, Instant::now(), 3).unwrap();
        assert!(sample.bytes > 0 && sample.files > 0 && sample.threads > 0 && sample.epoch == 3);
    }
}
