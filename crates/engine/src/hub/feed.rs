//! Event feeds: past and live events in one stream, without gaps or repetitions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::Filter;
use super::ring::Ahead;
use crate::acl;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::nouns::{Caller, Event, Seq};
use crate::sight;

/// Events read per step.
const EVENTS_PER_READ: usize = 128;

/// Events compared with a filter before the task yields to others on the thread.
const EVENTS_PER_YIELD: usize = 8;

/// Where a feed starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the next event.
    Now,
    /// After this seq.
    After(Seq),
}

/// The next item of a feed.
#[derive(Clone, Debug)]
pub enum Step {
    /// An event.
    Event {
        /// Its number in this feed; increases by one.
        number: u64,
        /// The event.
        event: Arc<Event>,
    },
    /// The subscriber paused the feed for too long, and events were skipped.
    Overflow(Overflow),
}

/// Skipped events. They are still in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Number of matching events.
    pub dropped: u64,
    /// The first of them.
    pub oldest: Seq,
    /// The last of them.
    pub newest: Seq,
}

/// One subscriber's stream of events. It pulls; a slow subscriber reads from the database and slows down no other.
#[derive(Debug)]
pub struct Feed {
    engine: Engine,
    /// The callers that it reads for: an event is returned if one of them may see it.
    callers: Vec<Caller>,
    /// Whether one of them has bounds, so that visibility needs the database.
    bounded: bool,
    filter: Filter,
    /// Whether the filter needs the database.
    by_database: bool,
    head: watch::Receiver<Seq>,
    /// The last seq that was read.
    seq: Seq,
    /// Matching events that are not yet returned.
    ready: VecDeque<Step>,
    /// Number of events returned so far.
    number: u64,
    acked: u64,
    /// Once the subscriber acknowledges: how many events may be unacknowledged.
    window: Option<u64>,
    /// How many events are kept while the feed is held.
    buffer: u64,
    paused: bool,
    /// Whether it was held since the last read.
    was_held: bool,
    /// Events that were skipped and not yet reported. Kept here, so that they are reported even if a read is cancelled.
    lost: Option<Overflow>,
}

impl Feed {
    pub(crate) fn new(
        engine: Engine,
        caller: Caller,
        bounded: bool,
        filter: Filter,
        seq: Seq,
        buffer: usize,
    ) -> Self {
        let head = engine.hub().wakeups.subscribe();
        let by_database = filter.needs_database();
        Self {
            engine,
            callers: vec![caller],
            bounded,
            filter,
            by_database,
            head,
            seq,
            ready: VecDeque::new(),
            number: 0,
            acked: 0,
            window: None,
            buffer: buffer as u64,
            paused: false,
            was_held: false,
            lost: None,
        }
    }

    /// Continues for other callers: from now on, an event is returned if one of them may see it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn listen_as(&mut self, callers: Vec<Caller>) -> Result<(), EngineError> {
        let agents: Vec<_> = callers.iter().map(|caller| caller.agent.clone()).collect();
        self.bounded = self
            .engine
            .read_patiently(move |view| {
                for agent in &agents {
                    if acl::bounds_of(view.db, agent)?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await?;
        self.callers = callers;
        Ok(())
    }

    /// The next event. Waits until there is one; while the feed is held it waits forever. Safe to cancel.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn next(&mut self) -> Result<Step, EngineError> {
        loop {
            if self.is_held() {
                self.was_held = true;
                std::future::pending::<()>().await;
            }
            if self.was_held {
                self.skip_to_head().await?;
                self.was_held = false;
            }
            if let Some(step) = self.ready.pop_front() {
                return Ok(self.numbered(step));
            }
            let at_head = *self.head.borrow_and_update() <= self.seq;
            if at_head {
                if self.head.changed().await.is_err() {
                    return Err(crate::error::Fault::Closing.into());
                }
                continue;
            }
            for event in self.read_ahead().await? {
                self.ready.push_back(Step::Event { number: 0, event });
            }
        }
    }

    /// Whether [`next`](Self::next) can return without waiting.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.is_held() && !self.was_held && !self.ready.is_empty()
    }

    /// The seq up to which all matching events have been returned, once [`Self::has_more`] is false.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Holds the feed until it is resumed.
    pub fn pause(&mut self) {
        self.paused = true;
        self.was_held = true;
    }

    /// Continues a paused feed.
    pub fn resume(&mut self) {
        self.paused = false;
    }

    /// Acknowledges all events up to a number. The first call turns flow control on.
    pub fn ack(&mut self, up_to: u64) {
        self.window = Some(self.buffer.max(1));
        self.acked = self.acked.max(up_to.min(self.number));
    }

    /// Whether the feed returns nothing at present.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.paused || self.window.is_some_and(|window| self.number - self.acked >= window)
    }

    /// Gives an event its number in this feed.
    fn numbered(&mut self, step: Step) -> Step {
        match step {
            Step::Event { event, .. } => {
                self.number += 1;
                Step::Event { number: self.number, event }
            }
            overflow @ Step::Overflow(_) => overflow,
        }
    }

    /// After a hold: keeps as many events as the buffer holds, and skips and reports the rest.
    async fn skip_to_head(&mut self) -> Result<(), EngineError> {
        let end = *self.head.borrow_and_update();
        while self.seq < end {
            for event in self.read_ahead().await? {
                if (self.ready.len() as u64) < self.buffer {
                    self.ready.push_back(Step::Event { number: 0, event });
                    continue;
                }
                let first = Overflow { dropped: 0, oldest: event.seq, newest: event.seq };
                let lost = self.lost.get_or_insert(first);
                lost.dropped += 1;
                lost.newest = event.seq;
            }
        }
        self.ready.extend(self.lost.take().map(Step::Overflow));
        Ok(())
    }

    /// Reads the next events and returns those that match and are visible. Advances the seq.
    async fn read_ahead(&mut self) -> Result<Vec<Arc<Event>>, EngineError> {
        let ahead = self.engine.hub().ring.after(self.seq, EVENTS_PER_READ);
        let (events, live) = match ahead {
            Ahead::Nothing => return Ok(Vec::new()),
            Ahead::Events(events) => (events, true),
            Ahead::InDatabase => {
                let seq = self.seq;
                let read =
                    self.engine.read_patiently(move |view| view.all_events_after(seq, EVENTS_PER_READ));
                let events = read.await?;
                self.engine.meter().lagged.fetch_add(events.len() as u64, Ordering::Relaxed);
                (events, false)
            }
        };
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(Vec::new()) };
        let wanted = self.matching(events, live).await?;
        self.seq = last;
        Ok(wanted)
    }

    /// Whether one of the callers may see an event; `None` if that needs the database.
    fn admits(&self, event: &Event) -> Option<bool> {
        let mut decided = Some(false);
        for caller in &self.callers {
            match event.sight.admits(caller) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => decided = None,
            }
        }
        decided
    }

    /// The events that match the filter and that one of the callers may see, in order.
    async fn matching(&self, events: Vec<Arc<Event>>, live: bool) -> Result<Vec<Arc<Event>>, EngineError> {
        let by_database = self.by_database;
        let mut wanted = Vec::new();
        let mut to_ask = Vec::new();
        for (n, event) in events.into_iter().enumerate() {
            // A filter with many patterns takes a while, and other tasks wait for this thread.
            if n % EVENTS_PER_YIELD == EVENTS_PER_YIELD - 1 {
                tokio::task::yield_now().await;
            }
            if !by_database && !self.filter.matches(&event, None) {
                continue;
            }
            match if live && !self.bounded { self.admits(&event) } else { None } {
                Some(false) => {}
                Some(true) if !by_database => wanted.push(event),
                seen => to_ask.push((event, seen)),
            }
        }
        while !to_ask.is_empty() {
            let (callers, filter) = (self.callers.clone(), self.filter.clone());
            let asking = std::mem::take(&mut to_ask);
            let asked = self.engine.read_patiently(move |view| {
                let mut fitting = Vec::new();
                let mut asking = asking.into_iter();
                for (event, seen) in asking.by_ref() {
                    let fits = !by_database || filter.matches(&event, Some(view));
                    if fits && (seen == Some(true) || sight::any_sees(view.db, &callers, &event, view.now)?) {
                        fitting.push(event);
                    }
                    // The rest is checked in another read, so that none exceeds its budget.
                    if view.budget.is_half_spent() {
                        break;
                    }
                }
                Ok((fitting, asking.collect()))
            });
            let fitting;
            (fitting, to_ask) = asked.await?;
            wanted.extend(fitting);
        }
        wanted.sort_by_key(|event| event.seq);
        Ok(wanted)
    }
}
