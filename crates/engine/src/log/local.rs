//! The queue inside one process, bounded in commands and in bytes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{Account, Claim, Company, Part, Record, Source, Work};
use crate::error::{EngineError, Fault, Refusal};
use crate::limits::Limits;
use crate::verbs::Outcome;

/// How long the writer waits for company when nobody waits for it: letters that their recipients have already share a
/// sync, and whoever asks for an answer ends the wait.
const COMPANY: Duration = Duration::from_millis(2);
/// So many are company enough: half of what one caller may have on its way, so that it brings the other half while these
/// are written.
const ENOUGH: usize = 128;

/// Permits are counted in these many bytes, so that a large budget fits the semaphore.
const GRAIN: usize = 256;

/// The writer's end.
#[derive(Debug)]
pub(crate) struct Local {
    queue: mpsc::Receiver<Item>,
    bell: Arc<Bell>,
    closed: bool,
    /// Those who wait for what stood before them, in the batch at hand or in one before it.
    bookmarks: Vec<oneshot::Sender<()>>,
}

/// What stands in the queue.
#[derive(Debug)]
enum Item {
    Work(Box<Work>),
    /// Somebody wants to know when everything before this is settled.
    Bookmark(oneshot::Sender<()>),
    /// Nothing that comes after this is taken.
    Close,
}

/// Wakes a writer that waits for company.
#[derive(Debug, Default)]
struct Bell {
    /// Whether the writer waits; nobody rings otherwise.
    waits: AtomicBool,
    /// How many more make it go on.
    wanted: AtomicUsize,
    writer: OnceLock<Thread>,
}

impl Bell {
    fn ring(&self) {
        if self.waits.swap(false, Ordering::SeqCst)
            && let Some(writer) = self.writer.get()
        {
            writer.unpark();
        }
    }

    /// One more has come that nobody waits for. The last who is wanted rings.
    fn count(&self) {
        if self.waits.load(Ordering::Acquire) && self.wanted.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.ring();
        }
    }

    /// Waits until somebody rings, but not for long.
    fn wait(&self) {
        self.writer.get_or_init(std::thread::current);
        let until = Instant::now() + COMPANY;
        while self.waits.load(Ordering::Acquire) {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                self.waits.store(false, Ordering::Release);
                return;
            };
            std::thread::park_timeout(left);
        }
    }
}

/// The callers' end. Cheap to clone; when the last is gone the writer ends.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    queue: mpsc::Sender<Item>,
    bell: Arc<Bell>,
    room: Arc<Semaphore>,
    room_in_all: u32,
    company: Arc<Company>,
    patience: Duration,
    answer_wait: Duration,
}

/// Where the answer to a command comes.
#[derive(Debug)]
pub(crate) struct AnswerSlip {
    answer: oneshot::Receiver<Result<Outcome, EngineError>>,
    /// The command's state, and until when its caller waits for the writer to take it up.
    claim: Option<(Claim, Instant)>,
}

impl AnswerSlip {
    /// Waits until the answer is durable. A command that the writer has not taken up in time is withdrawn and will not be
    /// carried out; one that it has is waited for.
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

/// A place in the queue that nobody else can take.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    place: mpsc::Permit<'a, Item>,
    room: OwnedSemaphorePermit,
    share: Option<Part>,
    bell: &'a Bell,
}

impl Place<'_> {
    /// Puts a command there whose answer nobody waits for.
    pub(crate) fn put(self, record: Record) {
        let Self { place, room, share, bell } = self;
        let work = Work { record, answer: None, claim: None, room: Some(room), share };
        place.send(Item::Work(Box::new(work)));
        bell.count();
    }
}

/// A queue of the given limits.
pub(crate) fn local(limits: &Limits) -> (Sender, Local) {
    let (sender, receiver) = mpsc::channel(limits.queue_commands.max(1));
    let room_in_all = u32::try_from(limits.queue_bytes / GRAIN).unwrap_or(u32::MAX).max(1);
    let room = Arc::new(Semaphore::new(room_in_all as usize));
    let bell = Arc::new(Bell::default());
    (
        Sender {
            queue: sender,
            bell: bell.clone(),
            room,
            room_in_all,
            company: Arc::default(),
            patience: limits.queue_wait,
            answer_wait: limits.answer_wait,
        },
        Local { queue: receiver, bell, closed: false, bookmarks: Vec::new() },
    )
}

impl Sender {
    /// Puts a command into the queue and gives back where its answer will come. The office's own commands wait for as long
    /// as it takes.
    pub(crate) async fn put(
        &self,
        record: Record,
        bytes: usize,
        account: Account<'_>,
    ) -> Result<AnswerSlip, EngineError> {
        let until = Instant::now() + self.answer_wait;
        let claim = (!matches!(account, Account::House)).then(Claim::default);
        let (answer, wait) = oneshot::channel();
        let broad = record.command.is_broad();
        let Place { place, room, share, .. } = self.reserve_for(bytes, account, broad).await?;
        let work = Work { record, answer: Some(answer), claim: claim.clone(), room: Some(room), share };
        place.send(Item::Work(Box::new(work)));
        self.bell.ring();
        Ok(AnswerSlip { answer: wait, claim: claim.map(|claim| (claim, until)) })
    }

    /// Keeps a place in the queue for a command of that size. Waits a while for room, then says that the office is busy.
    pub(crate) async fn reserve(&self, bytes: usize, account: Account<'_>) -> Result<Place<'_>, EngineError> {
        self.reserve_for(bytes, account, false).await
    }

    async fn reserve_for(
        &self,
        bytes: usize,
        account: Account<'_>,
        broad: bool,
    ) -> Result<Place<'_>, EngineError> {
        let grains = u32::try_from(bytes / GRAIN + 1).unwrap_or(u32::MAX).min(self.room_in_all);
        let place = async {
            let share = match account {
                // What it waits for may be in the hands of a writer that waits for company.
                Account::CallerQuota(share) if broad => {
                    Some(share.broad_command(&self.company, || self.bell.ring()).await?)
                }
                Account::CallerQuota(share) => Some(share.command(&self.company, || self.bell.ring()).await?),
                Account::Guest => {
                    self.company.meet_guest();
                    None
                }
                Account::House => None,
            };
            let room = self.room.clone().acquire_many_owned(grains).await.ok()?;
            let place = self.queue.reserve().await.ok()?;
            Some(Place { place, room, share, bell: &self.bell })
        };
        match tokio::time::timeout(self.patience, place).await {
            Ok(Some(place)) => Ok(place),
            Ok(None) => Err(Fault::Closing.into()),
            Err(_) => Err(Refusal::Busy.into()),
        }
    }

    /// Waits until everything that stands in the queue now has been applied, or the writer has ended.
    pub(crate) async fn flush(&self) {
        let (bookmark, reached) = oneshot::channel();
        if self.queue.send(Item::Bookmark(bookmark)).await.is_ok() {
            self.bell.ring();
            // One that is dropped was put behind the end.
            let _ = reached.await;
        }
    }

    /// Lets the writer end once it has answered everything that stands in the queue now, whoever still holds a handle.
    pub(crate) async fn close(&self) {
        // If the queue is gone, so is the writer.
        drop(self.queue.send(Item::Close).await);
        self.bell.ring();
    }

    /// How many commands are waiting.
    pub(crate) fn depth(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }
}

impl Source for Local {
    fn take(&mut self, batch: &mut Vec<Work>, limit: usize) -> bool {
        while batch.is_empty() {
            // Whatever was taken before has been answered by now.
            for bookmark in self.bookmarks.drain(..) {
                // Who has gone away need not be told.
                let _ = bookmark.send(());
            }
            if self.closed {
                return false;
            }
            match self.queue.blocking_recv() {
                Some(Item::Work(work)) => batch.push(*work),
                Some(Item::Bookmark(bookmark)) => self.bookmarks.push(bookmark),
                // Closed, or nobody is left who could ask for anything.
                Some(Item::Close) | None => {
                    self.closed = true;
                    return false;
                }
            }
        }
        self.top_up(batch, limit);
        let nobody_waits = |bookmarks: &[_], batch: &[Work]| {
            bookmarks.is_empty() && batch.iter().all(|work| work.answer.is_none())
        };
        if !self.closed && batch.len() < limit.min(ENOUGH) && nobody_waits(&self.bookmarks, batch) {
            self.bell.wanted.store(ENOUGH - batch.len(), Ordering::Release);
            // Raised before the queue is looked at once more: whoever comes later sees it and rings.
            self.bell.waits.swap(true, Ordering::SeqCst);
            let before = batch.len();
            self.top_up(batch, limit);
            if !nobody_waits(&self.bookmarks, &batch[before..]) || self.closed {
                self.bell.waits.store(false, Ordering::Release);
            }
            self.bell.wait();
            self.top_up(batch, limit);
        }
        true
    }

    fn top_up(&mut self, batch: &mut Vec<Work>, limit: usize) {
        while batch.len() < limit && !self.closed {
            match self.queue.try_recv() {
                Ok(Item::Work(work)) => batch.push(*work),
                Ok(Item::Bookmark(bookmark)) => self.bookmarks.push(bookmark),
                Ok(Item::Close) => self.closed = true,
                Err(_) => return,
            }
        }
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}
