//! What one caller may have under way at once, on however many connections: commands, reads, patterns of subscriptions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::commit::CallerKey;
use crate::limits::Limits;

/// CPU time of one read that is not counted: nearly all reads take less.
const UNCOUNTED_READ_CPU: Duration = Duration::from_millis(20);
/// Counted CPU time that a caller may owe before its next read waits.
const READ_CREDIT_CPU: Duration = Duration::from_millis(250);
/// Counted CPU time is paid off at this fraction of the time that passes.
const READ_PAYOFF_DIVISOR: u32 = 2;

/// Write-behind commands per command that a caller may have under way: no caller waits for these.
const WRITE_BEHIND_FACTOR: usize = 4;

/// What a command draws on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// A caller waits for it.
    Plain,
    /// A caller waits for it, and it may take long.
    Broad,
    /// No caller waits for it.
    WriteBehind,
}

/// One caller's quota. A caller that wants more waits for its own commands to finish; other callers do not.
#[derive(Debug)]
pub struct CallerQuota {
    key: CallerKey,
    commands: Arc<Semaphore>,
    /// Commands that may take long.
    broad: Arc<Semaphore>,
    /// Commands that no caller waits for.
    write_behind: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    patterns: Arc<Semaphore>,
    /// CPU time of expensive reads that the caller has not paid off.
    debt: Arc<Mutex<ReadDebt>>,
}

#[derive(Debug)]
struct ReadDebt {
    cpu: Duration,
    at: Instant,
}

impl ReadDebt {
    /// What is owed now.
    fn settle(&mut self, now: Instant) -> Duration {
        self.cpu = self.cpu.saturating_sub(now.saturating_duration_since(self.at) / READ_PAYOFF_DIVISOR);
        self.at = now;
        self.cpu
    }
}

/// What one read, or the patterns of one subscription, hold of a quota.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    _permit: OwnedSemaphorePermit,
    /// Keeps the quota known while it is used.
    quota: Arc<CallerQuota>,
}

/// What one command holds of a quota.
#[derive(Debug)]
pub(crate) struct CommandPermit {
    _broad: Option<OwnedSemaphorePermit>,
    _command: OwnedSemaphorePermit,
    /// Keeps the quota known while it is used.
    _quota: Arc<CallerQuota>,
}

impl QuotaPermit {
    /// Counts what a read has cost. The caller's next reads wait until it is paid off.
    pub(crate) fn charge(&self, cpu: Duration) {
        let counted = cpu.saturating_sub(UNCOUNTED_READ_CPU);
        if !counted.is_zero() {
            let mut debt = self.quota.debt();
            debt.settle(Instant::now());
            debt.cpu += counted;
        }
    }
}

impl CallerQuota {
    /// An unused quota.
    #[must_use]
    pub fn new(limits: &Limits) -> Arc<Self> {
        static KEYS: AtomicU64 = AtomicU64::new(CallerKey::UNCOUNTED.0 + 1);
        // One reader is always left to other callers.
        let reads = limits.share_readers.min(limits.readers.saturating_sub(1)).max(1);
        let commands = limits.share_commands.max(1);
        Arc::new(Self {
            key: CallerKey(KEYS.fetch_add(1, Ordering::Relaxed)),
            commands: Arc::new(Semaphore::new(commands)),
            write_behind: Arc::new(Semaphore::new(commands.saturating_mul(WRITE_BEHIND_FACTOR))),
            broad: Arc::new(Semaphore::new(limits.share_broad.max(1))),
            reads: Arc::new(Semaphore::new(reads)),
            patterns: Arc::new(Semaphore::new(limits.share_patterns)),
            debt: Arc::new(Mutex::new(ReadDebt { cpu: Duration::ZERO, at: Instant::now() })),
        })
    }

    /// The same quota under a handle of its own, so that the handle's users can be counted apart from the quota's.
    #[must_use]
    pub fn branch(&self) -> Arc<Self> {
        Arc::new(Self {
            key: self.key,
            commands: self.commands.clone(),
            broad: self.broad.clone(),
            write_behind: self.write_behind.clone(),
            reads: self.reads.clone(),
            patterns: self.patterns.clone(),
            debt: self.debt.clone(),
        })
    }

    pub(crate) fn key(&self) -> CallerKey {
        self.key
    }

    /// Waits until the caller may have one more command under way; calls `must_wait` if it has to wait.
    pub(crate) async fn command(
        self: &Arc<Self>,
        kind: CommandKind,
        must_wait: impl Fn(),
    ) -> Option<CommandPermit> {
        let broad = match kind {
            CommandKind::Broad => Some(acquire(&self.broad, &must_wait).await?),
            CommandKind::Plain | CommandKind::WriteBehind => None,
        };
        let commands = match kind {
            CommandKind::WriteBehind => &self.write_behind,
            CommandKind::Plain | CommandKind::Broad => &self.commands,
        };
        let command = acquire(commands, &must_wait).await?;
        Some(CommandPermit { _broad: broad, _command: command, _quota: self.clone() })
    }

    /// Waits until the caller may begin one more read: until it has fewer than it may, and has paid off what its reads have
    /// cost lately.
    pub(crate) async fn read(self: &Arc<Self>) -> Option<QuotaPermit> {
        let permit = self.reads.clone().acquire_owned().await.ok()?;
        loop {
            let owed = self.debt().settle(Instant::now());
            let Some(over) = owed.checked_sub(READ_CREDIT_CPU).filter(|over| !over.is_zero()) else { break };
            tokio::time::sleep(over * READ_PAYOFF_DIVISOR).await;
        }
        Some(QuotaPermit { _permit: permit, quota: self.clone() })
    }

    /// Takes that many patterns for a subscription, if they are left.
    pub(crate) fn hold_patterns(self: &Arc<Self>, count: usize) -> Option<QuotaPermit> {
        let count = u32::try_from(count).ok()?;
        let permit = self.patterns.clone().try_acquire_many_owned(count).ok()?;
        Some(QuotaPermit { _permit: permit, quota: self.clone() })
    }

    fn debt(&self) -> std::sync::MutexGuard<'_, ReadDebt> {
        self.debt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn acquire(semaphore: &Arc<Semaphore>, must_wait: &impl Fn()) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = semaphore.clone().try_acquire_owned() {
        return Some(permit);
    }
    must_wait();
    // Quotas are never closed.
    semaphore.clone().acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a future that is ready at once.
    async fn now<T>(wanted: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            found = wanted => Some(found),
            () = std::future::ready(()) => None,
        }
    }

    /// Before, sixteen messages of one caller to ten thousand agents each stood before those of other callers.
    #[tokio::test]
    async fn few_broad_commands_are_under_way_at_once() {
        let quota = CallerQuota::new(&Limits { share_broad: 2, ..Limits::default() });
        let first = quota.command(CommandKind::Broad, || ()).await;
        let _second = quota.command(CommandKind::Broad, || ()).await;
        assert!(now(quota.command(CommandKind::Broad, || ())).await.is_none());
        assert!(
            now(quota.branch().command(CommandKind::Broad, || ())).await.is_none(),
            "in all realms together"
        );
        assert!(now(quota.command(CommandKind::Plain, || ())).await.is_some(), "its other commands go on");
        drop(first);
        assert!(now(quota.command(CommandKind::Broad, || ())).await.is_some());
    }

    #[tokio::test]
    async fn commands_of_one_caller_are_bounded_and_its_wait_is_reported() {
        let [one, other] =
            [0, 1].map(|_| CallerQuota::new(&Limits { share_commands: 2, ..Limits::default() }));
        let _held =
            [one.command(CommandKind::Plain, || ()).await, one.command(CommandKind::Plain, || ()).await];
        let waited = std::cell::Cell::new(false);
        assert!(now(one.command(CommandKind::Plain, || waited.set(true))).await.is_none());
        assert!(waited.get());
        assert!(now(one.command(CommandKind::WriteBehind, || ())).await.is_some(), "these are counted apart");
        assert!(
            now(other.command(CommandKind::Plain, || ())).await.is_some(),
            "another caller has its own bound"
        );
        assert_ne!(one.key(), other.key());
        assert_eq!(one.key(), one.branch().key());
    }

    #[tokio::test]
    async fn expensive_reads_are_paid_off_before_the_next() {
        let [one, other] = [0, 1].map(|_| CallerQuota::new(&Limits::default()));
        let read = async |quota: &Arc<CallerQuota>, cpu| {
            now(quota.read()).await.flatten().map(|permit| permit.charge(cpu))
        };
        for _ in 0..1_000 {
            assert!(read(&one, UNCOUNTED_READ_CPU).await.is_some(), "cheap reads are not counted");
        }
        assert!(read(&one, Duration::from_secs(60)).await.is_some());
        assert!(read(&one, UNCOUNTED_READ_CPU).await.is_none(), "it owes CPU time");
        assert!(read(&other, UNCOUNTED_READ_CPU).await.is_some(), "another caller does not");
        one.debt().at -= Duration::from_secs(60) * READ_PAYOFF_DIVISOR;
        assert!(read(&one, UNCOUNTED_READ_CPU).await.is_some(), "paid off");
    }
}
