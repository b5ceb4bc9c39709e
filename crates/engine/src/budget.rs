//! The budget of one read: CPU time, wall-clock time and bytes, and whether its caller still waits.
//!
//! Every reader connection has a progress handler that checks the budget every [`OPS_PER_CHECK`] instructions of
//! SQLite's virtual machine; views that loop in Rust check it in every iteration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::task::futures::TaskLocalFuture;

use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;

/// Instructions of SQLite's virtual machine between two checks of the budget: some tens of microseconds.
const OPS_PER_CHECK: i32 = 1_000;

/// A request that runs longer than this, such as one that waits for mail, gets extra budget while it runs.
const EXTRA_BUDGET_AFTER: Duration = Duration::from_secs(5);
/// Extra CPU time: this fraction (one tenth) of the time beyond [`EXTRA_BUDGET_AFTER`].
const EXTRA_CPU_DIVISOR: u32 = 10;
/// Extra bytes for each second beyond [`EXTRA_BUDGET_AFTER`].
const EXTRA_BYTES_PER_SECOND: u64 = 1 << 20;

const HINT_NARROW_QUERY: &str = "narrow the query, or ask for fewer rows";
const HINT_SPLIT_REQUEST: &str = "one request has returned as much as it may; ask for the rest in another";

/// Limits of one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    /// Bytes that all pages of the read may return together. A single page is limited separately.
    pub(crate) bytes: u64,
}

/// Tells a read that its caller no longer waits: the flag is set when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// The flag that the read checks.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The remaining budget of one read. Created on the thread that reads, whose CPU time is measured.
#[derive(Debug)]
pub(crate) struct Budget {
    bounds: Option<Bounds>,
    cpu_at_start: Duration,
    started: Instant,
    bytes: AtomicUsize,
    bytes_returned: AtomicU64,
    gone: Arc<AtomicBool>,
    closing: Arc<AtomicBool>,
    end: AtomicU8,
}

const RUNNING: u8 = 0;
const EXHAUSTED: u8 = 1;
const CALLER_GONE: u8 = 2;
const CLOSING: u8 = 3;

impl Budget {
    /// For programs and tests that read on their own thread, without limits.
    pub(crate) fn unbounded(limits: &Limits) -> Arc<Self> {
        Self::new(None, limits.page_bytes, Arc::default(), Arc::default())
    }

    pub(crate) fn new(
        bounds: Option<Bounds>,
        bytes: usize,
        gone: Arc<AtomicBool>,
        closing: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            cpu_at_start: thread_cpu(),
            started: Instant::now(),
            bytes: AtomicUsize::new(bytes),
            bytes_returned: AtomicU64::new(0),
            gone,
            closing,
            end: AtomicU8::new(RUNNING),
        })
    }

    /// Makes a connection interrupt its statements when the budget is exhausted.
    pub(crate) fn watch(self: &Arc<Self>, db: &mut Connection) -> rusqlite::Result<()> {
        let budget = self.clone();
        db.progress_handler(OPS_PER_CHECK, Some(move || budget.is_over()))
    }

    /// Removes the progress handler from a connection.
    pub(crate) fn unwatch(db: &mut Connection) -> rusqlite::Result<()> {
        db.progress_handler(0, None::<fn() -> bool>)
    }

    /// Returns an error when the budget is exhausted. To be called in every loop over rows.
    pub(crate) fn checkpoint(&self) -> Result<(), EngineError> {
        match self.is_over() {
            true => Err(self.verdict().unwrap_or_else(|| Fault::Closing.into())),
            false => Ok(()),
        }
    }

    /// Why the read was stopped, if it was.
    pub(crate) fn verdict(&self) -> Option<EngineError> {
        match self.end.load(Ordering::Acquire) {
            RUNNING => None,
            EXHAUSTED => Some(Refusal::TooCostly { hint: HINT_NARROW_QUERY }.into()),
            _ => Some(Fault::Closing.into()),
        }
    }

    /// Whether half of the time is used: a view that can return a part and a cursor does so now.
    pub(crate) fn is_half_spent(&self) -> bool {
        self.bounds
            .is_some_and(|bounds| self.cpu() >= bounds.cpu / 2 || self.started.elapsed() >= bounds.wall / 2)
    }

    /// CPU time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        thread_cpu().saturating_sub(self.cpu_at_start)
    }

    /// Bytes returned so far.
    pub(crate) fn bytes_returned(&self) -> u64 {
        self.bytes_returned.load(Ordering::Relaxed)
    }

    /// Whether the answer has room for this many more bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.bytes.load(Ordering::Relaxed)
    }

    /// Lowers the limit of the answer to this many bytes.
    pub(crate) fn limit_bytes(&self, bytes: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(left.min(bytes), Ordering::Relaxed);
    }

    /// Whether the answer has reached its limit.
    pub(crate) fn is_full(&self) -> bool {
        !self.has_room(1)
    }

    /// Counts bytes that were added to the answer. A read that goes far beyond its limit is stopped.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(left.saturating_sub(bytes), Ordering::Relaxed);
        let bytes_returned = self.bytes_returned.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if self.bounds.is_some_and(|bounds| bytes_returned > bounds.bytes)
            && self.end.load(Ordering::Acquire) == RUNNING
        {
            self.end.store(EXHAUSTED, Ordering::Release);
        }
    }

    fn is_over(&self) -> bool {
        if self.end.load(Ordering::Acquire) != RUNNING {
            return true;
        }
        let end = if self.closing.load(Ordering::Acquire) {
            CLOSING
        } else if self.gone.load(Ordering::Acquire) {
            CALLER_GONE
        } else if self
            .bounds
            .is_some_and(|bounds| self.cpu() >= bounds.cpu || self.started.elapsed() >= bounds.wall)
        {
            EXHAUSTED
        } else {
            return false;
        };
        self.end.store(end, Ordering::Release);
        true
    }
}

/// The CPU time of this thread: unlike wall-clock time it does not grow while other threads run.
fn thread_cpu() -> Duration {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
    #[cfg(not(unix))]
    {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed()
    }
}

tokio::task_local! {
    static REQUEST: Arc<Request>;
}

/// The cost of all reads of one request.
#[derive(Debug)]
pub struct Request {
    started: Instant,
    cpu_micros: AtomicU64,
    bytes: AtomicU64,
}

impl Request {
    /// The request that the current task works on, if a door has marked its beginning and end.
    pub(crate) fn current() -> Option<Arc<Self>> {
        REQUEST.try_with(Arc::clone).ok()
    }

    /// The limits of the request's next read.
    ///
    /// # Errors
    /// Refused if earlier reads have used up the budget.
    pub(crate) fn next_read(&self, bounds: Bounds, limits: &Limits) -> Result<(Bounds, usize), EngineError> {
        let age = self.started.elapsed().saturating_sub(EXTRA_BUDGET_AFTER);
        let used = Duration::from_micros(self.cpu_micros.load(Ordering::Relaxed));
        let cpu = (bounds.cpu + age / EXTRA_CPU_DIVISOR).saturating_sub(used).min(bounds.cpu);
        let allowed_bytes =
            (limits.answer_bytes as u64).saturating_add(age.as_secs() * EXTRA_BYTES_PER_SECOND);
        let bytes = allowed_bytes.saturating_sub(self.bytes.load(Ordering::Relaxed));
        if cpu.is_zero() || bytes == 0 {
            return Err(Refusal::TooCostly { hint: HINT_SPLIT_REQUEST }.into());
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(limits.page_bytes);
        Ok((Bounds { cpu, ..bounds }, bytes))
    }

    /// Adds the cost of a read.
    pub(crate) fn charge(&self, cpu: Duration, bytes: u64) {
        let micros = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        self.cpu_micros.fetch_add(micros, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The future that [`one_request`] returns.
pub type OneRequest<F> = TaskLocalFuture<Arc<Request>, F>;

/// Runs one request: all reads in it, of any number of calls, share one budget. Has no effect inside another request.
pub fn one_request<F: Future>(work: F) -> OneRequest<F> {
    let begin = || {
        let (cpu_micros, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Request { started: Instant::now(), cpu_micros, bytes })
    };
    REQUEST.scope(Request::current().unwrap_or_else(begin), work)
}
