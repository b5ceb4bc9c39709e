//! Where connected agents wait for their mail: a small queue in memory for each, backed by the books.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::error::{EngineError, Refusal};
use crate::fast_path::NO_SEQ;
use crate::limits::Limits;
use crate::nouns::{AgentId, Caller, Seq};
use crate::views::{InboxMessage, Weigh};

/// Letters read from the books at a time.
const PAGE: usize = 64;
/// Bytes of messages read from the database at a time, and at least one message: each connected agent holds as much.
const PAGE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Mailboxes {
    waiting: Mutex<HashMap<AgentId, Vec<Mailbox>>>,
    /// How many agents wait; lets the writer skip the lock when nobody does.
    count: AtomicUsize,
    /// The place up to which letters are in the books and have been offered, or are about to be. Written under the lock.
    settled: AtomicI64,
    /// Bytes of all letters in the queues. Only holders of the lock add to it.
    bytes: AtomicUsize,
    capacity: usize,
    slot_bytes: usize,
    slots_bytes: usize,
}

#[derive(Debug)]
struct Mailbox {
    /// Boxed, because each queue keeps room for dozens, and most hold nothing.
    queue: mpsc::Sender<Box<InboxMessage>>,
    flags: Arc<Flags>,
    /// The door whose connection waits.
    via: String,
}

/// What the writer tells a mailslot besides letters. Either sends it to the books.
#[derive(Debug)]
struct Flags {
    /// The queue was full: the rest is in the books.
    behind: AtomicBool,
    /// The agent's entry changed: whether the mail is still for the one who waits is in the books.
    questioned: AtomicBool,
    /// Bytes of the letters in the queue.
    bytes: AtomicUsize,
}

impl Flags {
    fn are_down(&self) -> bool {
        !self.behind.load(Ordering::Acquire) && !self.questioned.load(Ordering::Acquire)
    }
}

impl Mailboxes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
            settled: AtomicI64::new(0),
            bytes: AtomicUsize::new(0),
            capacity: limits.slot_letters,
            slot_bytes: limits.slot_bytes,
            slots_bytes: limits.slots_bytes,
        }
    }

    /// Whether a queue has room for that many bytes more. One message alone is always taken by an empty queue while there is room
    /// in all of them together.
    fn has_room(&self, slot: &Mailbox, bytes: usize) -> bool {
        let held = slot.flags.bytes.load(Ordering::Acquire);
        (held == 0 || held + bytes <= self.slot_bytes)
            && self.bytes.load(Ordering::Acquire) + bytes <= self.slots_bytes
    }

    fn note_in(&self, slot: &Mailbox, bytes: usize) {
        slot.flags.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn note_out(&self, flags: &Flags, bytes: usize) {
        flags.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, agent: &AgentId) -> bool {
        self.lock().get(agent).is_some_and(|mailboxes| mailboxes.iter().any(|slot| !slot.queue.is_closed()))
    }

    /// The doors by which an agent's mail is waited for, each once.
    pub(super) fn doors(&self, agent: &AgentId) -> Vec<String> {
        let waiting = self.lock();
        let open = waiting.get(agent).into_iter().flatten().filter(|slot| !slot.queue.is_closed());
        let mut doors: Vec<String> = open.map(|slot| slot.via.clone()).collect();
        doors.sort();
        doors.dedup();
        doors
    }

    /// Offers a letter to whoever waits for an agent's mail. True if it is in somebody's hands now; a full queue does
    /// not count, although its owner will find the letter in the books.
    pub(super) fn offer(&self, agent: &AgentId, letter: impl Fn() -> InboxMessage) -> bool {
        let waiting = self.lock();
        let Some(mailboxes) = waiting.get(agent) else { return false };
        let mut handed = false;
        for slot in mailboxes {
            // Its owner will look into the books. Nothing is put behind the gap, so that what is in the queue can be handed
            // out before what only the books have.
            if slot.flags.behind.load(Ordering::Acquire) {
                continue;
            }
            let letter = Box::new(letter());
            let bytes = letter.weight();
            if !self.has_room(slot, bytes) {
                slot.flags.behind.store(true, Ordering::Release);
                continue;
            }
            // Noted before it is in the queue, so that its owner never takes out more than was noted.
            self.note_in(slot, bytes);
            match slot.queue.try_send(letter) {
                Ok(()) => handed |= slot.flags.are_down(),
                Err(error) => {
                    self.note_out(&slot.flags, bytes);
                    if matches!(error, mpsc::error::TrySendError::Full(_)) {
                        slot.flags.behind.store(true, Ordering::Release);
                    }
                }
            }
        }
        handed
    }

    /// Hands a letter to everyone waiting for these agents' mail, if each has room and is not behind. All or nobody:
    /// only holders of the lock fill queues, so room that was seen stays.
    pub(super) fn offer_all(&self, agents: &[AgentId], letter: impl Fn(&AgentId) -> InboxMessage) -> bool {
        let Some(bytes) = agents.first().map(|agent| letter(agent).weight()) else { return true };
        let waiting = self.lock();
        let can_take = |agent: &AgentId| {
            let mailboxes = waiting.get(agent).map_or(&[][..], Vec::as_slice);
            let open = |slot: &Mailbox| {
                !slot.queue.is_closed()
                    && slot.queue.capacity() > 0
                    && slot.flags.are_down()
                    && self.has_room(slot, bytes)
            };
            !mailboxes.is_empty() && mailboxes.iter().all(open)
        };
        if !agents.iter().all(can_take) {
            return false;
        }
        for agent in agents {
            for slot in waiting.get(agent).into_iter().flatten() {
                let letter = Box::new(letter(agent));
                let bytes = letter.weight();
                self.note_in(slot, bytes);
                // One that closed just now loses what it would have lost a moment later.
                if slot.queue.try_send(letter).is_err() {
                    self.note_out(&slot.flags, bytes);
                }
            }
        }
        true
    }

    /// Notes how far the books have come, before the letters up to there are offered.
    pub(super) fn settle(&self, last: Seq) {
        let _held = self.lock();
        self.settled.store(last, Ordering::Release);
    }

    /// Takes a slot's flags down and says up to where its owner has to look into the books: everything beyond comes
    /// through the queue.
    fn take_down(&self, flags: &Flags) -> Seq {
        let _held = self.lock();
        flags.behind.store(false, Ordering::Release);
        flags.questioned.store(false, Ordering::Release);
        self.settled.load(Ordering::Acquire)
    }

    /// Makes whoever waits for an agent's mail look into the books before it takes the next letter.
    pub(super) fn question(&self, agent: &AgentId) {
        for slot in self.lock().get(agent).into_iter().flatten() {
            slot.flags.questioned.store(true, Ordering::Release);
        }
    }

    fn open(&self, agent: &AgentId, via: &str) -> (mpsc::Receiver<Box<InboxMessage>>, Arc<Flags>) {
        let (queue, letters) = mpsc::channel(self.capacity.max(1));
        // Until its owner has looked into the books, nothing that is put into the queue is in its hands.
        let flags = Arc::new(Flags {
            behind: AtomicBool::new(true),
            questioned: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
        });
        let mut waiting = self.lock();
        waiting.entry(agent.clone()).or_default().push(Mailbox {
            queue,
            flags: flags.clone(),
            via: via.to_owned(),
        });
        self.count.store(waiting.len(), Ordering::Release);
        (letters, flags)
    }

    /// Lets go of everyone who waits for an agent's mail.
    pub(super) fn shut(&self, agent: &AgentId) {
        let mut waiting = self.lock();
        waiting.remove(agent);
        self.count.store(waiting.len(), Ordering::Release);
    }

    fn close(&self, agent: &AgentId) {
        let mut waiting = self.lock();
        if let Some(mailboxes) = waiting.get_mut(agent) {
            mailboxes.retain(|slot| !slot.queue.is_closed());
            if mailboxes.is_empty() {
                waiting.remove(agent);
            }
        }
        self.count.store(waiting.len(), Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AgentId, Vec<Mailbox>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent's letters as they come, the ones kept for it first, each once and in the order they were sent. The holder
/// marks them delivered when they are really handed over.
#[derive(Debug)]
pub struct MailboxStream {
    engine: Engine,
    caller: Caller,
    agent: AgentId,
    letters: mpsc::Receiver<Box<InboxMessage>>,
    flags: Arc<Flags>,
    /// Up to where the books have to be looked at; nothing when everything there was seen.
    catching_up: Option<Seq>,
    /// Read from the books and not yet handed out.
    ready: VecDeque<InboxMessage>,
    /// The last letter that was handed out.
    last: Seq,
}

impl MailboxStream {
    pub(crate) fn open(engine: Engine, caller: Caller, agent: AgentId, after: Seq) -> Self {
        let (letters, flags) = engine.hub().mailboxes.open(&agent, &caller.via);
        // What was kept before the slot was opened is in the books; the flags are up from the start.
        Self { engine, caller, agent, letters, flags, catching_up: None, ready: VecDeque::new(), last: after }
    }

    /// Whose mail this is.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The next letter. Waits until there is one. Safe to cancel: nothing is lost.
    ///
    /// # Errors
    /// When the books cannot be read, or the agent is gone.
    pub async fn next(&mut self) -> Result<InboxMessage, EngineError> {
        loop {
            if let Some(letter) = self.ready.pop_front() {
                self.last = self.last.max(letter.message.seq);
                return Ok(letter);
            }
            if let Some(up_to) = self.catching_up {
                // Boxed: most mailslots wait most of the time, and what waits should be small.
                Box::pin(self.catch_up(up_to)).await?;
                continue;
            }
            if !self.flags.are_down() {
                // What is in the queue was put there before the flag went up, so it comes first.
                match self.letters.try_recv() {
                    Ok(letter) => self.take(*letter),
                    Err(_) => self.catching_up = Some(self.engine.hub().mailboxes.take_down(&self.flags)),
                }
                continue;
            }
            match self.letters.recv().await {
                Some(letter) => self.take(*letter),
                // This slot holds a handle to the office, so the agent has left or was let go of.
                None => {
                    let agent = self.agent.to_string();
                    return Err(Refusal::NoSuchAgent { agent, near: Vec::new() }.into());
                }
            }
        }
    }

    fn take(&mut self, letter: InboxMessage) {
        self.engine.hub().mailboxes.note_out(&self.flags, letter.weight());
        let wanted = self.wanted(letter);
        self.ready.extend(wanted);
    }

    /// A letter out of the queue, unless it has been handed out or the books have to be asked about it.
    fn wanted(&self, letter: InboxMessage) -> Option<InboxMessage> {
        // What came by the fast lane is not in the books yet, so it cannot have been found there.
        if letter.message.seq == NO_SEQ {
            return Some(letter);
        }
        let questioned = self.flags.questioned.load(Ordering::Acquire);
        (!questioned && letter.message.seq > self.last).then_some(letter)
    }

    async fn catch_up(&mut self, up_to: Seq) -> Result<(), EngineError> {
        let (caller, agent, last) = (self.caller.clone(), self.agent.clone(), self.last);
        let page = PAGE.min(self.engine.limits().page);
        let found = self.engine.read_patiently(move |view| {
            view.budget.keep_to(PAGE_BYTES);
            view.waiting(&caller, &agent, last, page)
        });
        let found = found.await?;
        let is_last = found.is_last() || found.items.iter().any(|letter| letter.message.seq > up_to);
        self.ready.extend(found.items.into_iter().take_while(|letter| letter.message.seq <= up_to));
        if is_last {
            self.catching_up = None;
        }
        Ok(())
    }
}

impl Drop for MailboxStream {
    fn drop(&mut self) {
        self.letters.close();
        let mailboxes = &self.engine.hub().mailboxes;
        mailboxes.close(&self.agent);
        // Nothing is put into the queue any more; what is left in it goes with it.
        mailboxes.note_out(&self.flags, self.flags.bytes.load(Ordering::Acquire));
    }
}
