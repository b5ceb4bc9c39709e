//! Where connected agents wait for their mail: a small queue in memory for each, backed by the books.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::error::{EngineError, Refusal};
use crate::nouns::{AgentId, Caller, Seq};
use crate::views::Letter;

/// Letters read from the books at a time.
const PAGE: usize = 64;

#[derive(Debug)]
pub(super) struct Slots {
    waiting: Mutex<HashMap<AgentId, Vec<Slot>>>,
    /// How many agents wait; lets the writer skip the lock when nobody does.
    count: AtomicUsize,
    capacity: usize,
}

#[derive(Debug)]
struct Slot {
    queue: mpsc::Sender<Letter>,
    flags: Arc<Flags>,
}

/// What the writer tells a mailslot besides letters. Either sends it to the books.
#[derive(Debug)]
struct Flags {
    /// The queue was full: the rest is in the books.
    behind: AtomicBool,
    /// The agent's entry changed: whether the mail is still for the one who waits is in the books.
    questioned: AtomicBool,
}

impl Flags {
    fn are_down(&self) -> bool {
        !self.behind.load(Ordering::Acquire) && !self.questioned.load(Ordering::Acquire)
    }

    fn take_down(&self) {
        self.behind.store(false, Ordering::Release);
        self.questioned.store(false, Ordering::Release);
    }
}

impl Slots {
    pub(super) fn new(capacity: usize) -> Self {
        Self { waiting: Mutex::default(), count: AtomicUsize::new(0), capacity }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, agent: &AgentId) -> bool {
        self.lock().get(agent).is_some_and(|slots| slots.iter().any(|slot| !slot.queue.is_closed()))
    }

    /// Offers a letter to whoever waits for an agent's mail. True if it is in somebody's hands now; a full queue does
    /// not count, although its owner will find the letter in the books.
    pub(super) fn offer(&self, agent: &AgentId, letter: impl Fn() -> Letter) -> bool {
        let waiting = self.lock();
        let Some(slots) = waiting.get(agent) else { return false };
        let mut handed = false;
        for slot in slots {
            match slot.queue.try_send(letter()) {
                Ok(()) => handed |= slot.flags.are_down(),
                Err(mpsc::error::TrySendError::Full(_)) => slot.flags.behind.store(true, Ordering::Release),
                Err(mpsc::error::TrySendError::Closed(_)) => {}
            }
        }
        handed
    }

    /// Makes whoever waits for an agent's mail look into the books before it takes the next letter.
    pub(super) fn question(&self, agent: &AgentId) {
        for slot in self.lock().get(agent).into_iter().flatten() {
            slot.flags.questioned.store(true, Ordering::Release);
        }
    }

    fn open(&self, agent: &AgentId) -> (mpsc::Receiver<Letter>, Arc<Flags>) {
        let (queue, letters) = mpsc::channel(self.capacity.max(1));
        // Until its owner has looked into the books, nothing that is put into the queue is in its hands.
        let flags = Arc::new(Flags { behind: AtomicBool::new(true), questioned: AtomicBool::new(false) });
        let mut waiting = self.lock();
        waiting.entry(agent.clone()).or_default().push(Slot { queue, flags: flags.clone() });
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
        if let Some(slots) = waiting.get_mut(agent) {
            slots.retain(|slot| !slot.queue.is_closed());
            if slots.is_empty() {
                waiting.remove(agent);
            }
        }
        self.count.store(waiting.len(), Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AgentId, Vec<Slot>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent's letters as they come, the ones kept for it first, each once and in the order they were sent. The holder
/// marks them delivered when they are really handed over.
#[derive(Debug)]
pub struct Mailslot {
    engine: Engine,
    caller: Caller,
    agent: AgentId,
    letters: mpsc::Receiver<Letter>,
    flags: Arc<Flags>,
    /// Whether the books have to be looked at, or looked at again: there is more, or the last look was broken off.
    catching_up: bool,
    /// Read from the books and not yet handed out.
    ready: VecDeque<Letter>,
    /// The last letter that was handed out.
    last: Seq,
}

impl Mailslot {
    pub(crate) fn open(engine: Engine, caller: Caller, agent: AgentId, after: Seq) -> Self {
        let (letters, flags) = engine.hub().slots.open(&agent);
        // What was kept before the slot was opened is in the books.
        let catching_up = true;
        Self { engine, caller, agent, letters, flags, catching_up, ready: VecDeque::new(), last: after }
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
    pub async fn next(&mut self) -> Result<Letter, EngineError> {
        loop {
            if let Some(letter) = self.ready.pop_front() {
                self.last = letter.message.seq;
                return Ok(letter);
            }
            if self.catching_up || !self.flags.are_down() {
                self.catch_up().await?;
                continue;
            }
            match self.letters.recv().await {
                // It is in the books too, and there we learn whether it is still for us.
                Some(_) if self.flags.questioned.load(Ordering::Acquire) => {}
                // What was also found in the books has been handed out already.
                Some(letter) if letter.message.seq > self.last => {
                    self.last = letter.message.seq;
                    return Ok(letter);
                }
                Some(_) => {}
                // This slot holds a handle to the office, so only the agent's leaving can have shut it.
                None => {
                    let agent = self.agent.to_string();
                    return Err(Refusal::NoSuchAgent { agent, near: Vec::new() }.into());
                }
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), EngineError> {
        self.catching_up = true;
        // The flags are taken down before reading: what happens meanwhile raises them again.
        self.flags.take_down();
        let (caller, agent, last) = (self.caller.clone(), self.agent.clone(), self.last);
        let page = PAGE.min(self.engine.limits().page);
        let found = self.engine.read(move |view| view.waiting(&caller, &agent, last, page)).await?;
        self.catching_up = found.len() >= page;
        self.ready.extend(found);
        Ok(())
    }
}

impl Drop for Mailslot {
    fn drop(&mut self) {
        self.letters.close();
        self.engine.hub().slots.close(&self.agent);
    }
}
