//! Signs of life of a realm's writer and readers. Plain atomics, so that asking for them waits for neither.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// When the writer took up what it is at, and how busy the readers are.
#[derive(Debug)]
pub(crate) struct Vitals {
    opened: Instant,
    /// Milliseconds after `opened` at which the writer took up its batch, plus one; zero while it has none.
    batch_since: AtomicU64,
    readers: usize,
    reading: AtomicUsize,
    /// Milliseconds after `opened` at which a read last began or ended.
    read_changed: AtomicU64,
}

/// A read that goes on, from the moment it has a reader until it gives it back.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Vitals>);

impl Vitals {
    pub(crate) fn new(readers: usize) -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            batch_since: AtomicU64::new(0),
            readers,
            reading: AtomicUsize::new(0),
            read_changed: AtomicU64::new(0),
        })
    }

    /// The writer has taken up a batch, unless it is still trying to get one done.
    pub(crate) fn batch_begins(&self) {
        let since = self.millis() + 1;
        // One writer notes; if it has begun before, that time stays.
        let _ = self.batch_since.compare_exchange(0, since, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The writer has got a batch done, or given up for good. A batch that was turned away is neither.
    pub(crate) fn batch_ends(&self) {
        self.batch_since.store(0, Ordering::Release);
    }

    /// A read has got a reader.
    pub(crate) fn read_begins(self: &Arc<Self>) -> Reading {
        self.reading.fetch_add(1, Ordering::AcqRel);
        self.read_changed.store(self.millis(), Ordering::Release);
        Reading(self.clone())
    }

    /// What has been stuck for at least that long.
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
