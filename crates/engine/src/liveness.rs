//! Liveness of a realm's writer and readers. Plain atomics, so that a health check waits for neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// When the writer started its current batch, and how busy the readers are.
#[derive(Debug)]
pub(crate) struct Liveness {
    opened: Instant,
    /// Milliseconds after `opened` at which the writer started its batch, plus one; zero while it has none.
    batch_since: AtomicU64,
    readers: usize,
    reading: AtomicUsize,
    /// Milliseconds after `opened` at which a read last began or ended.
    read_changed: AtomicU64,
}

/// A read in progress, from the moment it has a reader until it returns it.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Liveness>);

impl Liveness {
    pub(crate) fn new(readers: usize) -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            batch_since: AtomicU64::new(0),
            readers,
            reading: AtomicUsize::new(0),
            read_changed: AtomicU64::new(0),
        })
    }

    /// Called when the writer starts a batch. A retry of the same batch keeps the first time.
    pub(crate) fn batch_begins(&self) {
        let since = self.millis() + 1;
        // Only the writer calls this; an earlier start stays.
        let _ = self.batch_since.compare_exchange(0, since, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Called when a batch is committed or given up for good, but not when it is to be retried.
    pub(crate) fn batch_ends(&self) {
        self.batch_since.store(0, Ordering::Release);
    }

    /// Called when a read gets a reader connection.
    pub(crate) fn read_begins(self: &Arc<Self>) -> Reading {
        self.reading.fetch_add(1, Ordering::AcqRel);
        self.read_changed.store(self.millis(), Ordering::Release);
        Reading(self.clone())
    }

    /// Describes what has been stuck for at least this long.
    pub(crate) fn stuck(&self, after: Duration) -> Option<String> {
        let now = self.millis();
        let age = |since: u64| Duration::from_millis(now.saturating_sub(since));
        let batch = self.batch_since.load(Ordering::Acquire);
        if batch > 0 && age(batch - 1) >= after {
            let seconds = age(batch - 1).as_secs();
            return Some(format!("the writer has been at one batch of commands for {seconds} s"));
        }
        let idle = age(self.read_changed.load(Ordering::Acquire));
        if self.reading.load(Ordering::Acquire) >= self.readers && idle >= after {
            return Some(format!("all {} readers have been busy for {} s", self.readers, idle.as_secs()));
        }
        None
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.reading.fetch_sub(1, Ordering::AcqRel);
        self.0.read_changed.store(self.0.millis(), Ordering::Release);
    }
}
