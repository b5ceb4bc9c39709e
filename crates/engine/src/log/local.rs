//! The embedded log: a fair queue in this process. Senders keep its bounds: commands in all, bytes in all, and commands of one
//! caller. A caller waits for room, then is told that the server is busy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::{Claim, Record, Source};
use crate::commit::{CallerKey, FairQueue, Marker, QueuedCommand, Room, TAKE_AT_ONCE, Wanted};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::quota::{CallerQuota, CommandKind};
use crate::verbs::Outcome;

/// Permits are counted in units of this many bytes, so that a large bound fits the semaphore.
const BYTES_PER_PERMIT: usize = 256;

/// On whose account a command is queued.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account<'a> {
    /// That of a token.
    Quota(&'a Arc<CallerQuota>),
    /// That of callers that carry no token.
    Uncounted,
    /// The server's own. Its commands cannot be withdrawn.
    Server,
}

impl Account<'_> {
    fn key(&self) -> CallerKey {
        match self {
            Self::Quota(quota) => quota.key(),
            Self::Uncounted | Self::Server => CallerKey::UNCOUNTED,
        }
    }
}

/// A queue with the given limits.
pub(crate) fn local(limits: &Limits) -> (Sender, Local) {
    let queue = Arc::new(FairQueue::default());
    let permits = u32::try_from(limits.queue_bytes / BYTES_PER_PERMIT).unwrap_or(u32::MAX).max(1);
    let sender = Shared {
        queue: queue.clone(),
        slots: Arc::new(Semaphore::new(limits.queue_commands.max(1))),
        bytes: Arc::new(Semaphore::new(permits as usize)),
        permits,
        queue_wait: limits.queue_wait,
        answer_wait: limits.answer_wait,
    };
    (Sender(Arc::new(sender)), Local { queue, markers: Vec::new() })
}

/// The callers' end. Cheap to clone; the writer ends after the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Arc<FairQueue>,
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// All permits of `bytes`.
    permits: u32,
    queue_wait: Duration,
    answer_wait: Duration,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Where the answer to a command comes.
#[derive(Debug)]
pub(crate) struct PendingAnswer {
    answer: oneshot::Receiver<Result<Outcome, EngineError>>,
    /// The command's state, and until when its caller waits for the writer to begin with it.
    claim: Option<(Claim, Instant)>,
}

impl PendingAnswer {
    /// Waits until the answer is durable. A command that the writer has not begun with in time is withdrawn and will not be
    /// carried out; one that it has begun with is waited for.
    pub(crate) async fn wait(mut self) -> Result<Outcome, EngineError> {
        if let Some((claim, until)) = self.claim {
            match tokio::time::timeout_at(until.into(), &mut self.answer).await {
                Ok(answer) => return answer.map_err(|_| Fault::Closing)?,
                Err(_) if claim.withdraw() => return Err(Refusal::Busy.into()),
                Err(_) => {}
            }
        }
        self.answer.await.map_err(|_| Fault::Closing)?
    }
}

/// Room in the queue for one command.
#[derive(Debug)]
pub(crate) struct QueueSlot<'a> {
    queue: &'a FairQueue,
    key: CallerKey,
    slot: OwnedSemaphorePermit,
    room: Room,
}

impl QueueSlot<'_> {
    /// Queues a command whose answer no caller waits for. Returns false if the queue was closed meanwhile.
    pub(crate) fn put(self, record: Record) -> bool {
        self.push(record, None, None)
    }

    fn push(
        self,
        record: Record,
        answer: Option<oneshot::Sender<Result<Outcome, EngineError>>>,
        claim: Option<Claim>,
    ) -> bool {
        let Self { queue, key, slot, room } = self;
        queue.push(key, QueuedCommand { record, answer, claim, slot: Some(slot), room: Some(room) })
    }
}

impl Sender {
    /// Queues a command and returns where its answer will come.
    pub(crate) async fn put(
        &self,
        record: Record,
        bytes: usize,
        account: Account<'_>,
    ) -> Result<PendingAnswer, EngineError> {
        let until = Instant::now() + self.0.answer_wait;
        let claim = (!matches!(account, Account::Server)).then(Claim::default);
        let (answer, wait) = oneshot::channel();
        let kind = if record.command.is_broad() { CommandKind::Broad } else { CommandKind::Plain };
        let slot = self.reserve_for(bytes, account, kind).await?;
        if !slot.push(record, Some(answer), claim.clone()) {
            return Err(Fault::Closing.into());
        }
        Ok(PendingAnswer { answer: wait, claim: claim.map(|claim| (claim, until)) })
    }

    /// Waits for room for a command of that size whose answer no caller will wait for.
    pub(crate) async fn reserve(
        &self,
        bytes: usize,
        account: Account<'_>,
    ) -> Result<QueueSlot<'_>, EngineError> {
        self.reserve_for(bytes, account, CommandKind::WriteBehind).await
    }

    async fn reserve_for(
        &self,
        bytes: usize,
        account: Account<'_>,
        kind: CommandKind,
    ) -> Result<QueueSlot<'_>, EngineError> {
        let shared = &*self.0;
        let bytes = u32::try_from(bytes / BYTES_PER_PERMIT + 1).unwrap_or(u32::MAX).min(shared.permits);
        let room = async {
            // The caller's own bound first: what is above it does not stand before other callers.
            let quota = match account {
                Account::Quota(quota) => Some(quota.command(kind, || shared.queue.hurry()).await?),
                Account::Uncounted | Account::Server => None,
            };
            let bytes = shared.bytes.clone().acquire_many_owned(bytes).await.ok()?;
            let slot = shared.slots.clone().acquire_owned().await.ok()?;
            let room = Room { _bytes: bytes, _quota: quota };
            Some(QueueSlot { queue: &shared.queue, key: account.key(), slot, room })
        };
        match tokio::time::timeout(shared.queue_wait, room).await {
            Ok(Some(slot)) => Ok(slot),
            Ok(None) => Err(Fault::Closing.into()),
            Err(_) => Err(Refusal::Busy.into()),
        }
    }

    /// Waits until everything that was queued on the same account so far is committed, or the writer has ended.
    pub(crate) async fn flush(&self, account: Account<'_>) {
        let (marker, reached) = oneshot::channel();
        self.0.queue.push_marker(account.key(), marker);
        // A marker behind the end of the queue is dropped.
        let _ = reached.await;
    }

    /// Lets the writer end once it has answered everything that is queued now.
    pub(crate) fn close(&self) {
        self.0.queue.close();
    }

    /// How many commands are queued.
    pub(crate) fn depth(&self) -> usize {
        self.0.queue.len()
    }
}

/// The writer's end.
#[derive(Debug)]
pub(crate) struct Local {
    queue: Arc<FairQueue>,
    /// Markers whose commands are in the batch at hand, or in one before it.
    markers: Vec<Marker>,
}

impl Source for Local {
    fn take(&mut self, batch: &mut Vec<QueuedCommand>, limit: usize) -> bool {
        loop {
            for marker in self.markers.drain(..) {
                // A caller that went away need not be told.
                let _ = marker.send(());
            }
            if !self.queue.wait_for_first() {
                return false;
            }
            self.top_up(batch, limit);
            if !batch.is_empty() {
                return true;
            }
        }
    }

    fn top_up(&mut self, batch: &mut Vec<QueuedCommand>, limit: usize) {
        let room = limit.saturating_sub(batch.len()).min(TAKE_AT_ONCE);
        self.queue.take(room, batch, &mut self.markers);
    }

    fn wait_until(&mut self, deadline: Instant, wanted: Wanted) {
        self.queue.wait_until(deadline, wanted);
    }

    fn is_awaited(&self) -> bool {
        !self.markers.is_empty() || self.queue.is_hurried()
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}
