//! The bounded fair queue in front of the writer: one FIFO per caller, served round robin, so that a caller with thousands of
//! queued commands delays another caller's first command by at most one turn. Bounds are kept by the senders (`log::local`).

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::EngineError;
use crate::log::{Claim, Record};
use crate::quota::CommandPermit;
use crate::verbs::Outcome;

/// Commands taken at a time, so that a command of another caller that arrives meanwhile is at most this far away.
pub(crate) const TAKE_AT_ONCE: usize = 16;

/// Who queues commands: callers with one key share one FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallerKey(pub(crate) u64);

impl CallerKey {
    /// The server itself, and callers that carry no token.
    pub(crate) const UNCOUNTED: Self = Self(0);
}

/// A command on its way to the writer.
#[derive(Debug)]
pub(crate) struct QueuedCommand {
    /// The stamped command.
    pub(crate) record: Record,
    /// Where the answer goes; none for commands whose caller does not wait.
    pub(crate) answer: Option<oneshot::Sender<Result<Outcome, EngineError>>>,
    /// Whether the caller has withdrawn it; none if it cannot.
    pub(crate) claim: Option<Claim>,
    /// Its room in the queue, in commands: free once it is taken.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    /// Its room in bytes and in its caller's quota: free once it is answered.
    pub(crate) room: Option<Room>,
}

/// What a command holds from before it is queued until it is answered.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) _bytes: OwnedSemaphorePermit,
    pub(crate) _quota: Option<CommandPermit>,
}

impl QueuedCommand {
    /// A command without bounds.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn unbounded(
        record: Record,
        answer: Option<oneshot::Sender<Result<Outcome, EngineError>>>,
    ) -> Self {
        Self { record, answer, claim: None, slot: None, room: None }
    }

    /// The writer begins with it; false if the caller has withdrawn it.
    pub(crate) fn begin(&self) -> bool {
        self.claim.as_ref().is_none_or(Claim::take_up)
    }
}

/// Told once everything that its caller queued before it is committed.
pub(crate) type Marker = oneshot::Sender<()>;

#[derive(Debug)]
enum Item {
    Command(Box<QueuedCommand>),
    Marker(Marker),
}

/// The queue. Shared by senders and the writer.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Callers with something queued.
    callers: HashMap<CallerKey, VecDeque<Item>>,
    /// The same callers, the next to be served first.
    turns: VecDeque<CallerKey>,
    commands: usize,
    /// Queued commands and markers whose callers wait.
    awaited: usize,
    closed: bool,
    /// What the writer sleeps for, while it does.
    sleeps_for: Option<Wanted>,
    /// Whether a sender waits for room that the writer's batch holds.
    hurried: bool,
}

/// What ends the writer's sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// This many queued commands.
    pub(crate) commands: usize,
    /// Any command or marker whose caller waits.
    pub(crate) caller: bool,
}

impl FairQueue {
    /// Queues a command; returns false if the queue is closed.
    pub(crate) fn push(&self, caller: CallerKey, command: QueuedCommand) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let waits = command.answer.is_some();
        state.push(caller, Item::Command(Box::new(command)));
        self.wake(state, waits);
        true
    }

    /// Queues a marker behind everything that the caller has queued. Dropped if the queue is closed.
    pub(crate) fn push_marker(&self, caller: CallerKey, marker: Marker) {
        let mut state = self.lock();
        if !state.closed {
            state.push(caller, Item::Marker(marker));
            self.wake(state, true);
        }
    }

    /// A sender waits for room: the writer should close its batch soon.
    pub(crate) fn hurry(&self) {
        let mut state = self.lock();
        state.hurried = true;
        self.wake(state, true);
    }

    /// Nothing more is queued; what is there is still taken.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(state, true);
    }

    /// How many commands are queued.
    pub(crate) fn len(&self) -> usize {
        self.lock().commands
    }

    /// Waits for the first item. False if the queue is closed and empty.
    pub(crate) fn wait_for_first(&self) -> bool {
        let mut state = self.lock();
        while state.turns.is_empty() && !state.closed {
            state.sleeps_for = Some(Wanted { commands: 1, caller: true });
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.sleeps_for = None;
        state.hurried = false;
        !state.turns.is_empty()
    }

    /// Waits until a deadline, or until what is wanted has arrived.
    pub(crate) fn wait_until(&self, deadline: Instant, wanted: Wanted) {
        let mut state = self.lock();
        let has_arrived = |state: &State| {
            state.commands >= wanted.commands
                || state.closed
                || (wanted.caller && (state.hurried || state.awaited > 0))
        };
        while !has_arrived(&state) {
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            state.sleeps_for = Some(wanted);
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.sleeps_for = None;
    }

    /// Whether a sender waits for room that the batch at hand holds.
    pub(crate) fn is_hurried(&self) -> bool {
        self.lock().hurried
    }

    /// Moves up to `limit` commands into a batch, one from each caller in turn, and the markers before them.
    pub(crate) fn take(&self, limit: usize, batch: &mut Vec<QueuedCommand>, markers: &mut Vec<Marker>) {
        let mut state = self.lock();
        let mut taken = 0;
        while taken < limit
            && let Some(item) = state.pop()
        {
            match item {
                Item::Command(mut command) => {
                    command.slot = None;
                    batch.push(*command);
                    taken += 1;
                }
                Item::Marker(marker) => markers.push(marker),
            }
        }
    }

    /// Wakes the writer if it sleeps and this is what it sleeps for. Waking it for each command would cost more than the
    /// command.
    fn wake(&self, mut state: MutexGuard<'_, State>, caller_waits: bool) {
        let Some(wanted) = state.sleeps_for else { return };
        if state.commands >= wanted.commands || (wanted.caller && caller_waits) {
            state.sleeps_for = None;
            drop(state);
            self.arrived.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, caller: CallerKey, item: Item) {
        self.commands += usize::from(item.is_command());
        self.awaited += usize::from(item.is_awaited());
        let fifo = self.callers.entry(caller).or_default();
        if fifo.is_empty() {
            self.turns.push_back(caller);
        }
        fifo.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        let caller = self.turns.pop_front()?;
        let fifo = self.callers.get_mut(&caller)?;
        let item = fifo.pop_front();
        if fifo.is_empty() {
            self.callers.remove(&caller);
        } else {
            self.turns.push_back(caller);
        }
        let item = item?;
        self.commands -= usize::from(item.is_command());
        self.awaited -= usize::from(item.is_awaited());
        Some(item)
    }
}

impl Item {
    fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// Whether a caller waits for it.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Command(command) => command.answer.is_some(),
            Self::Marker(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nouns::Caller;
    use crate::verbs::{Verb, office::Sweep};

    fn command() -> QueuedCommand {
        QueuedCommand::unbounded(Record::new(Caller::office(), Sweep {}.into_command()), None)
    }

    /// A command that can be told apart by its stamp.
    fn push(queue: &FairQueue, caller: u64) -> uuid::Uuid {
        let command = command();
        let id = command.record.stamp.id;
        assert!(queue.push(CallerKey(caller), command), "the queue is open");
        id
    }

    fn take(queue: &FairQueue, limit: usize) -> Vec<uuid::Uuid> {
        let (mut batch, mut markers) = (Vec::new(), Vec::new());
        queue.take(limit, &mut batch, &mut markers);
        batch.iter().map(|command| command.record.stamp.id).collect()
    }

    #[test]
    fn first_command_of_another_caller_is_in_the_next_batch() {
        let queue = FairQueue::default();
        for _ in 0..10_000 {
            push(&queue, 1);
        }
        let other = push(&queue, 2);
        assert_eq!(take(&queue, 2)[1], other);
        assert_eq!(queue.len(), 9_999);
    }

    #[test]
    fn callers_are_served_in_turn_and_each_in_its_own_order() {
        let queue = FairQueue::default();
        let [a1, a2, a3] = [(); 3].map(|()| push(&queue, 1));
        let [b1, b2] = [(); 2].map(|()| push(&queue, 2));
        let c1 = push(&queue, 3);
        assert_eq!(take(&queue, 4), [a1, b1, c1, a2]);
        let c2 = push(&queue, 3);
        assert_eq!(take(&queue, 10), [b2, a3, c2]);
        assert_eq!(queue.len(), 0);
        assert!(queue.lock().callers.is_empty() && queue.lock().turns.is_empty(), "nothing is left behind");
    }

    #[test]
    fn marker_comes_after_what_its_caller_queued_before() {
        let queue = FairQueue::default();
        for _ in 0..3 {
            push(&queue, 1);
        }
        push(&queue, 2);
        queue.push_marker(CallerKey(1), oneshot::channel().0);
        let (mut batch, mut markers) = (Vec::new(), Vec::new());
        queue.take(3, &mut batch, &mut markers);
        assert!(markers.is_empty(), "one command of the caller is still queued");
        queue.take(10, &mut batch, &mut markers);
        assert_eq!((batch.len(), markers.len()), (4, 1));
    }

    #[test]
    fn closed_queue_refuses_and_is_drained() {
        let queue = FairQueue::default();
        push(&queue, 1);
        queue.close();
        assert!(!queue.push(CallerKey(1), command()));
        assert!(queue.wait_for_first(), "one command is left");
        assert_eq!(take(&queue, 10).len(), 1);
        assert!(!queue.wait_for_first());
    }

    #[test]
    fn writer_sleeps_until_enough_commands_or_a_waiting_caller() {
        let deadline = Instant::now() + std::time::Duration::from_secs(600);
        let queue = std::sync::Arc::new(FairQueue::default());
        let is_awake = || queue.lock().sleeps_for.is_none();
        let sleep = |wanted| {
            let sleeping_queue = queue.clone();
            let sleeping = std::thread::spawn(move || sleeping_queue.wait_until(deadline, wanted));
            while !sleeping.is_finished() && is_awake() {
                std::thread::yield_now();
            }
            sleeping
        };
        let wanted = Wanted { commands: 2, caller: true };
        let sleeping = sleep(wanted);
        push(&queue, 1);
        assert!(!sleeping.is_finished() && !is_awake(), "one is not enough");
        push(&queue, 1);
        sleeping.join().expect("a writer");
        take(&queue, 10);
        let sleeping = sleep(wanted);
        queue.push_marker(CallerKey(1), oneshot::channel().0);
        sleeping.join().expect("a writer");
        take(&queue, 10);
        let sleeping = sleep(wanted);
        queue.hurry();
        sleeping.join().expect("a writer");
    }
}
