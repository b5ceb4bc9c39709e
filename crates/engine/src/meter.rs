//! The engine's own counters. Plain atomics; the program renders them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::nouns::Millis;
use crate::stamp;
use crate::verbs::Command;

/// Upper ends of the batch-size buckets.
pub const BATCH_BUCKETS: [u64; 8] = [1, 2, 4, 8, 16, 64, 256, 1_024];
/// Upper ends of the commit-time buckets, in microseconds.
pub const COMMIT_BUCKETS: [u64; 10] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// Counts how often values fall into buckets.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    ends: [u64; N],
    counts: [AtomicU64; N],
    count: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    fn new(ends: [u64; N]) -> Self {
        Self { ends, counts: std::array::from_fn(|_| AtomicU64::new(0)), count: 0.into(), sum: 0.into() }
    }

    fn record(&self, value: u64) {
        if let Some(bucket) = self.ends.iter().position(|end| value <= *end) {
            self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// How many values were at most each bucket's end.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut below = 0;
        let add = |(end, count): (&u64, &AtomicU64)| {
            below += count.load(Ordering::Relaxed);
            (*end, below)
        };
        self.ends.iter().zip(&self.counts).map(add).collect()
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// Results of the commands of one verb.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerbCount {
    /// Carried out.
    pub done: u64,
    /// Refused.
    pub refused: u64,
    /// Failed by a fault of the server.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Tally {
    done: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// The counters of one realm.
#[derive(Debug)]
pub struct Meter {
    verbs: BTreeMap<&'static str, Tally>,
    /// Commands per transaction.
    pub batches: Histogram<8>,
    /// Time from the first command of a batch to the end of its sync, in microseconds.
    pub commits: Histogram<10>,
    /// When a batch was last synced.
    synced_at: AtomicI64,
    /// Moving mean of the commit times, in microseconds.
    mean_commit_micros: AtomicU64,
    /// Events that feeds read from the database because they were behind.
    pub lagged: AtomicU64,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self {
            verbs: Command::WORDS.iter().map(|word| (*word, Tally::default())).collect(),
            batches: Histogram::new(BATCH_BUCKETS),
            commits: Histogram::new(COMMIT_BUCKETS),
            synced_at: 0.into(),
            mean_commit_micros: 0.into(),
            lagged: 0.into(),
        }
    }

    pub(crate) fn note_batch(&self, commands: usize, took: Duration) {
        self.batches.record(commands as u64);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.commits.record(took);
        // Only the writer calls this, so nothing comes between load and store. A moving mean over about eight batches.
        let before = self.mean_commit_micros.load(Ordering::Relaxed);
        let mean = if before == 0 { took } else { before - before / 8 + took / 8 };
        self.mean_commit_micros.store(mean, Ordering::Relaxed);
        self.synced_at.store(stamp::now(), Ordering::Relaxed);
    }

    /// When a batch was last synced, if one was, and the recent mean commit time.
    pub fn synced(&self) -> Option<(Millis, Duration)> {
        let at = self.synced_at.load(Ordering::Relaxed);
        (at > 0).then(|| (at, Duration::from_micros(self.mean_commit_micros.load(Ordering::Relaxed))))
    }

    pub(crate) fn note_answer(
        &self,
        verb: &'static str,
        answer: &Result<crate::verbs::Outcome, crate::EngineError>,
    ) {
        let Some(tally) = self.verbs.get(verb) else { return };
        let counter = match answer {
            Ok(_) => &tally.done,
            Err(crate::EngineError::Refused(_)) => &tally.refused,
            Err(crate::EngineError::Failed(_)) => &tally.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Results of all commands, by verb.
    pub fn verbs(&self) -> impl Iterator<Item = (&'static str, VerbCount)> + '_ {
        self.verbs.iter().map(|(word, tally)| {
            let count = VerbCount {
                done: tally.done.load(Ordering::Relaxed),
                refused: tally.refused.load(Ordering::Relaxed),
                failed: tally.failed.load(Ordering::Relaxed),
            };
            (*word, count)
        })
    }
}
