//! Mailboxes of connected agents: bounded queues between the writer and the connections. A mailbox that falls behind is filled
//! from the database.

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

/// Messages read from the database at a time.
const CATCH_UP_MESSAGES: usize = 64;
/// Bytes read from the database at a time, and at least one message: each connected agent may hold as much.
const CATCH_UP_BYTES: usize = 256 << 10;

/// The mailboxes of one realm.
#[derive(Debug)]
pub(super) struct Mailboxes {
    open: Mutex<HashMap<AgentId, Vec<Mailbox>>>,
    /// Agents in the map, for callers that need no lock.
    count: AtomicUsize,
    /// The seq up to which messages are committed and have been offered, or are about to be. Written under the lock.
    committed: AtomicI64,
    /// Bytes of messages in all queues. Only holders of the lock add to it.
    bytes: AtomicUsize,
    max_messages: usize,
    max_bytes: usize,
    max_bytes_in_all: usize,
}

#[derive(Debug)]
struct Mailbox {
    /// Boxed, because each queue keeps room for dozens and most are empty.
    queue: mpsc::Sender<Box<InboxMessage>>,
    state: Arc<State>,
    /// The door of the connection.
    via: String,
}

/// What the writer tells a stream besides messages. Either flag sends the stream to the database.
#[derive(Debug)]
struct State {
    /// The queue was full: the rest is in the database.
    is_behind: AtomicBool,
    /// The agent's entry changed: whether messages are still for this connection is in the database.
    must_recheck: AtomicBool,
    /// Bytes of messages in the queue.
    bytes: AtomicUsize,
}

impl State {
    fn is_current(&self) -> bool {
        !self.is_behind.load(Ordering::Acquire) && !self.must_recheck.load(Ordering::Acquire)
    }
}

impl Mailboxes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            open: Mutex::default(),
            count: AtomicUsize::new(0),
            committed: AtomicI64::new(0),
            bytes: AtomicUsize::new(0),
            max_messages: limits.mailbox_messages,
            max_bytes: limits.mailbox_bytes,
            max_bytes_in_all: limits.all_mailboxes_bytes,
        }
    }

    /// Whether a mailbox has room for that many bytes more. An empty mailbox takes one message of any size while there is room
    /// in all of them together.
    fn has_room(&self, mailbox: &Mailbox, bytes: usize) -> bool {
        let held = mailbox.state.bytes.load(Ordering::Acquire);
        (held == 0 || held + bytes <= self.max_bytes)
            && self.bytes.load(Ordering::Acquire) + bytes <= self.max_bytes_in_all
    }

    fn count_in(&self, mailbox: &Mailbox, bytes: usize) {
        mailbox.state.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn count_out(&self, state: &State, bytes: usize) {
        state.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn has(&self, agent: &AgentId) -> bool {
        self.lock().get(agent).is_some_and(|open| open.iter().any(|mailbox| !mailbox.queue.is_closed()))
    }

    /// The doors by which an agent is connected, each once.
    pub(super) fn doors(&self, agent: &AgentId) -> Vec<String> {
        let all = self.lock();
        let open = all.get(agent).into_iter().flatten().filter(|mailbox| !mailbox.queue.is_closed());
        let mut doors: Vec<String> = open.map(|mailbox| mailbox.via.clone()).collect();
        doors.sort();
        doors.dedup();
        doors
    }

    /// Offers a message to an agent's streams. Returns true if at least one of them queued it. A full stream does not count; it
    /// catches up from the database.
    pub(super) fn offer(&self, agent: &AgentId, message: impl Fn() -> InboxMessage) -> bool {
        let all = self.lock();
        let Some(open) = all.get(agent) else { return false };
        let mut queued = false;
        for mailbox in open {
            // Nothing is queued behind a gap, so that what is in the queue comes before what only the database has.
            if mailbox.state.is_behind.load(Ordering::Acquire) {
                continue;
            }
            let message = Box::new(message());
            let bytes = message.weight();
            if !self.has_room(mailbox, bytes) {
                mailbox.state.is_behind.store(true, Ordering::Release);
                continue;
            }
            // Counted before it is in the queue, so that the stream never takes out more than was counted.
            self.count_in(mailbox, bytes);
            match mailbox.queue.try_send(message) {
                Ok(()) => queued |= mailbox.state.is_current(),
                Err(error) => {
                    self.count_out(&mailbox.state, bytes);
                    if matches!(error, mpsc::error::TrySendError::Full(_)) {
                        mailbox.state.is_behind.store(true, Ordering::Release);
                    }
                }
            }
        }
        queued
    }

    /// Queues a message on every stream of these agents if each of them is current and has room; on none otherwise. Only holders
    /// of the lock fill queues, so room that was seen stays.
    pub(super) fn offer_all(&self, agents: &[AgentId], message: impl Fn(&AgentId) -> InboxMessage) -> bool {
        let Some(bytes) = agents.first().map(|agent| message(agent).weight()) else { return true };
        let all = self.lock();
        let can_take = |agent: &AgentId| {
            let open = all.get(agent).map_or(&[][..], Vec::as_slice);
            let has_room = |mailbox: &Mailbox| {
                !mailbox.queue.is_closed()
                    && mailbox.queue.capacity() > 0
                    && mailbox.state.is_current()
                    && self.has_room(mailbox, bytes)
            };
            !open.is_empty() && open.iter().all(has_room)
        };
        if !agents.iter().all(can_take) {
            return false;
        }
        for agent in agents {
            for mailbox in all.get(agent).into_iter().flatten() {
                let message = Box::new(message(agent));
                let bytes = message.weight();
                self.count_in(mailbox, bytes);
                // A stream that closed just now loses what it would have lost a moment later.
                if mailbox.queue.try_send(message).is_err() {
                    self.count_out(&mailbox.state, bytes);
                }
            }
        }
        true
    }

    /// Notes how far the database is, before the messages up to there are offered.
    pub(super) fn set_committed(&self, last: Seq) {
        let _held = self.lock();
        self.committed.store(last, Ordering::Release);
    }

    /// Makes a stream current again; returns the seq up to which it has to read the database. Everything after that comes through
    /// the queue.
    fn set_current(&self, state: &State) -> Seq {
        let _held = self.lock();
        state.is_behind.store(false, Ordering::Release);
        state.must_recheck.store(false, Ordering::Release);
        self.committed.load(Ordering::Acquire)
    }

    /// Makes an agent's streams read the database before they return the next message.
    pub(super) fn recheck(&self, agent: &AgentId) {
        for mailbox in self.lock().get(agent).into_iter().flatten() {
            mailbox.state.must_recheck.store(true, Ordering::Release);
        }
    }

    fn open(&self, agent: &AgentId, via: &str) -> (mpsc::Receiver<Box<InboxMessage>>, Arc<State>) {
        let (queue, messages) = mpsc::channel(self.max_messages.max(1));
        // What is queued does not count as delivered until the stream has read the database.
        let state = Arc::new(State {
            is_behind: AtomicBool::new(true),
            must_recheck: AtomicBool::new(false),
            bytes: AtomicUsize::new(0),
        });
        let mut all = self.lock();
        let mailbox = Mailbox { queue, state: state.clone(), via: via.to_owned() };
        all.entry(agent.clone()).or_default().push(mailbox);
        self.count.store(all.len(), Ordering::Release);
        (messages, state)
    }

    /// Ends all streams of an agent.
    pub(super) fn close_all(&self, agent: &AgentId) {
        let mut all = self.lock();
        all.remove(agent);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Removes an agent's streams that have ended.
    fn remove_closed(&self, agent: &AgentId) {
        let mut all = self.lock();
        if let Some(open) = all.get_mut(agent) {
            open.retain(|mailbox| !mailbox.queue.is_closed());
            if open.is_empty() {
                all.remove(agent);
            }
        }
        self.count.store(all.len(), Ordering::Release);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<AgentId, Vec<Mailbox>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent's messages as they come, undelivered ones first, each once and in the order they were sent. The holder marks them
/// delivered when the client has them.
#[derive(Debug)]
pub struct MailboxStream {
    engine: Engine,
    caller: Caller,
    agent: AgentId,
    messages: mpsc::Receiver<Box<InboxMessage>>,
    state: Arc<State>,
    /// The seq up to which the database has to be read; none when that is done.
    catching_up: Option<Seq>,
    /// Ready to be returned.
    ready: VecDeque<InboxMessage>,
    /// The seq of the last message that was returned.
    last: Seq,
}

impl MailboxStream {
    pub(crate) fn open(engine: Engine, caller: Caller, agent: AgentId, after: Seq) -> Self {
        let (messages, state) = engine.hub().mailboxes.open(&agent, &caller.via);
        // A new mailbox is behind, so the stream begins with the database.
        let (catching_up, ready) = (None, VecDeque::new());
        Self { engine, caller, agent, messages, state, catching_up, ready, last: after }
    }

    /// The agent whose messages these are.
    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The next message. Waits until there is one. Cancel safe.
    ///
    /// # Errors
    /// When the database cannot be read, or the agent was removed.
    pub async fn next(&mut self) -> Result<InboxMessage, EngineError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.last = self.last.max(message.message.seq);
                return Ok(message);
            }
            if let Some(up_to) = self.catching_up {
                // Boxed: most streams wait most of the time, and a waiting future should be small.
                Box::pin(self.catch_up(up_to)).await?;
                continue;
            }
            if !self.state.is_current() {
                // What is in the queue was queued before the flag was set, so it comes first.
                match self.messages.try_recv() {
                    Ok(message) => self.receive(*message),
                    Err(_) => {
                        self.catching_up = Some(self.engine.hub().mailboxes.set_current(&self.state));
                    }
                }
                continue;
            }
            match self.messages.recv().await {
                Some(message) => self.receive(*message),
                // The stream holds the engine open, so its mailbox was closed: the agent was removed or disconnected.
                None => {
                    let agent = self.agent.to_string();
                    return Err(Refusal::NoSuchAgent { agent, near: Vec::new() }.into());
                }
            }
        }
    }

    fn receive(&mut self, message: InboxMessage) {
        self.engine.hub().mailboxes.count_out(&self.state, message.weight());
        // A message of the fast path has no seq yet and is not in the database, so it cannot have been read there.
        let is_new = message.message.seq == NO_SEQ
            || (!self.state.must_recheck.load(Ordering::Acquire) && message.message.seq > self.last);
        if is_new {
            self.ready.push_back(message);
        }
    }

    async fn catch_up(&mut self, up_to: Seq) -> Result<(), EngineError> {
        let (caller, agent, last) = (self.caller.clone(), self.agent.clone(), self.last);
        let page = CATCH_UP_MESSAGES.min(self.engine.limits().page);
        let found = self.engine.read_patiently(move |view| {
            view.budget.limit_bytes(CATCH_UP_BYTES);
            view.waiting(&caller, &agent, last, page)
        });
        let found = found.await?;
        let is_last = found.is_last() || found.items.iter().any(|message| message.message.seq > up_to);
        self.ready.extend(found.items.into_iter().take_while(|message| message.message.seq <= up_to));
        if is_last {
            self.catching_up = None;
        }
        Ok(())
    }
}

impl Drop for MailboxStream {
    fn drop(&mut self) {
        self.messages.close();
        let mailboxes = &self.engine.hub().mailboxes;
        mailboxes.remove_closed(&self.agent);
        // Nothing is queued any more; what is left goes with the stream.
        mailboxes.count_out(&self.state, self.state.bytes.load(Ordering::Acquire));
    }
}
