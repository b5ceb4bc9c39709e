//! What one read may cost: CPU time, wall-clock time and bytes, and whether its caller still waits for it.
//!
//! Every reader connection has a progress handler that asks the budget every [`OPS`] instructions of SQLite's virtual
//! machine; views that loop in Rust ask at each turn of the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::task::futures::TaskLocalFuture;

use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;

/// Instructions of SQLite's virtual machine between two looks at the budget: some tens of microseconds.
const OPS: i32 = 1_000;

/// A request that goes on for longer than this, like one that waits for mail, earns more as it goes on: so much of the time
/// that passes as CPU time.
const LONG_REQUEST: Duration = Duration::from_secs(5);
const EARNED: u32 = 10;
/// The same for bytes, for each second.
const EARNED_BYTES: u64 = 1 << 20;

const NARROWER: &str = "narrow the query, or ask for fewer rows";
const ALONE: &str = "one request has brought all that it may; ask for the rest in another";

/// How long a read may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    /// How much it may bring in all. A page ends earlier than that; this is for views that read many pages.
    pub(crate) bytes: u64,
}

/// Set when a caller no longer waits for its read. Dropping it says so.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// What the read looks at.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What one read may still cost. Made on the thread that reads, whose CPU time is measured.
#[derive(Debug)]
pub(crate) struct Budget {
    bounds: Option<Bounds>,
    cpu_at_start: Duration,
    started: Instant,
    bytes: AtomicUsize,
    brought: AtomicU64,
    gone: Arc<AtomicBool>,
    closing: Arc<AtomicBool>,
    end: AtomicU8,
}

const OPEN: u8 = 0;
const SPENT: u8 = 1;
const GONE: u8 = 2;
const CLOSING: u8 = 3;

impl Budget {
    /// For programs and tests that read on their own thread and their own account.
    pub(crate) fn unbounded(limits: &Limits) -> Arc<Self> {
        Self::of(None, limits.page_bytes, Arc::default(), Arc::default())
    }

    pub(crate) fn of(
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
            brought: AtomicU64::new(0),
            gone,
            closing,
            end: AtomicU8::new(OPEN),
        })
    }

    /// Has a connection stop what it runs when the budget is over.
    pub(crate) fn watch(self: &Arc<Self>, db: &mut Connection) -> rusqlite::Result<()> {
        let budget = self.clone();
        db.progress_handler(OPS, Some(move || budget.is_over()))
    }

    /// Takes the watch off a connection.
    pub(crate) fn unwatch(db: &mut Connection) -> rusqlite::Result<()> {
        db.progress_handler(0, None::<fn() -> bool>)
    }

    /// Refuses to go on when the budget is over. To be asked in every loop over rows.
    pub(crate) fn checkpoint(&self) -> Result<(), EngineError> {
        match self.is_over() {
            true => Err(self.verdict().unwrap_or_else(|| Fault::Closing.into())),
            false => Ok(()),
        }
    }

    /// Why the read was stopped, if it was.
    pub(crate) fn verdict(&self) -> Option<EngineError> {
        match self.end.load(Ordering::Acquire) {
            OPEN => None,
            SPENT => Some(Refusal::TooCostly { hint: NARROWER }.into()),
            _ => Some(Fault::Closing.into()),
        }
    }

    /// Whether half of the time is used: a view that can hand out a part and a cursor does so now.
    pub(crate) fn is_half_spent(&self) -> bool {
        self.bounds
            .is_some_and(|bounds| self.cpu() >= bounds.cpu / 2 || self.started.elapsed() >= bounds.wall / 2)
    }

    /// CPU time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        thread_cpu().saturating_sub(self.cpu_at_start)
    }

    /// Bytes handed out so far.
    pub(crate) fn brought(&self) -> u64 {
        self.brought.load(Ordering::Relaxed)
    }

    /// Whether the answer has room for that many bytes more.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps the answer to fewer bytes than it may hold otherwise.
    pub(crate) fn keep_to(&self, bytes: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(left.min(bytes), Ordering::Relaxed);
    }

    /// Whether the answer holds all that it may.
    pub(crate) fn is_full(&self) -> bool {
        !self.has_room(1)
    }

    /// Notes bytes that were added to the answer. A read that goes on for long after it is full is stopped.
    pub(crate) fn bring(&self, bytes: usize) {
        let left = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(left.saturating_sub(bytes), Ordering::Relaxed);
        let brought = self.brought.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if self.bounds.is_some_and(|bounds| brought > bounds.bytes)
            && self.end.load(Ordering::Acquire) == OPEN
        {
            self.end.store(SPENT, Ordering::Release);
        }
    }

    fn is_over(&self) -> bool {
        if self.end.load(Ordering::Acquire) != OPEN {
            return true;
        }
        let end = if self.closing.load(Ordering::Acquire) {
            CLOSING
        } else if self.gone.load(Ordering::Acquire) {
            GONE
        } else if self
            .bounds
            .is_some_and(|bounds| self.cpu() >= bounds.cpu || self.started.elapsed() >= bounds.wall)
        {
            SPENT
        } else {
            return false;
        };
        self.end.store(end, Ordering::Release);
        true
    }
}

/// The CPU time of this thread: unlike the time of day it does not grow while others have the processor.
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

/// What the reads of one request have cost together.
#[derive(Debug)]
pub struct Request {
    started: Instant,
    cpu_micros: AtomicU64,
    bytes: AtomicU64,
}

impl Request {
    /// The request that this task is at work on, if a door has said where one begins and ends.
    pub(crate) fn current() -> Option<Arc<Self>> {
        REQUEST.try_with(Arc::clone).ok()
    }

    /// The bounds of its next read.
    ///
    /// # Errors
    /// Refused if the reads before it have used everything up.
    pub(crate) fn next_read(&self, bounds: Bounds, limits: &Limits) -> Result<(Bounds, usize), EngineError> {
        let age = self.started.elapsed().saturating_sub(LONG_REQUEST);
        let used = Duration::from_micros(self.cpu_micros.load(Ordering::Relaxed));
        let cpu = (bounds.cpu + age / EARNED).saturating_sub(used).min(bounds.cpu);
        let may_bring = (limits.answer_bytes as u64).saturating_add(age.as_secs() * EARNED_BYTES);
        let bytes = may_bring.saturating_sub(self.bytes.load(Ordering::Relaxed));
        if cpu.is_zero() || bytes == 0 {
            return Err(Refusal::TooCostly { hint: ALONE }.into());
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(limits.page_bytes);
        Ok((Bounds { cpu, ..bounds }, bytes))
    }

    /// Notes what a read has cost.
    pub(crate) fn charge(&self, cpu: Duration, bytes: u64) {
        let micros = u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX);
        self.cpu_micros.fetch_add(micros, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What [`one_request`] gives back.
pub type OneRequest<F> = TaskLocalFuture<Arc<Request>, F>;

/// Runs what one request asks for. All reads in it, of however many calls, share the bounds of one. Within a request it
/// changes nothing.
pub fn one_request<F: Future>(work: F) -> OneRequest<F> {
    let begin = || {
        let (cpu_micros, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Request { started: Instant::now(), cpu_micros, bytes })
    };
    REQUEST.scope(Request::current().unwrap_or_else(begin), work)
}
