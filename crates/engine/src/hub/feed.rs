//! Following the history: what has happened and what happens, in one stream without gap or repetition.

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

/// Events looked at in one go.
const STRETCH: usize = 128;

/// Events compared with a filter before others have their turn on the thread.
const PAUSE_AFTER: usize = 8;

/// Where to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what happens next.
    Now,
    /// With what came after this place.
    After(Seq),
}

/// What a follower gets next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Something happened.
    Event {
        /// Its number in this feed; rises by one.
        number: u64,
        /// What happened.
        event: Arc<Event>,
    },
    /// The follower held the feed up for too long, and this was passed over.
    Overflow(Overflow),
}

/// What was passed over. It is still in the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// How many events that the follower wanted.
    pub dropped: u64,
    /// The first of them.
    pub oldest: Seq,
    /// The last of them.
    pub newest: Seq,
}

/// One follower's way through the history. It pulls; a slow one falls back on the books and slows nobody.
#[derive(Debug)]
pub struct Feed {
    engine: Engine,
    /// For whom it looks: what any of them may see is handed out.
    callers: Vec<Caller>,
    /// Whether one of them is kept to some of what others may see, so that the books must be asked.
    bounded: bool,
    filter: Filter,
    /// Whether the filter must ask the books.
    by_database: bool,
    head: watch::Receiver<Seq>,
    /// The last place looked at.
    place: Seq,
    /// Wanted and not yet handed out.
    ready: VecDeque<Step>,
    /// Numbers handed out so far.
    number: u64,
    acked: u64,
    /// Once the follower acknowledges: how many events may be out unacknowledged, and how many wait beyond that.
    window: Option<u64>,
    buffer: u64,
    paused: bool,
    /// Whether it was held up since it last looked.
    was_held: bool,
    /// What has been passed over and not yet reported. Kept here, so that nothing goes unreported when looking ahead is
    /// broken off.
    lost: Option<Overflow>,
}

impl Feed {
    pub(crate) fn new(
        engine: Engine,
        caller: Caller,
        bounded: bool,
        filter: Filter,
        place: Seq,
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
            place,
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

    /// Goes on for other callers: from here on, what one of them may see is handed out.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub async fn listen_as(&mut self, callers: Vec<Caller>) -> Result<(), EngineError> {
        let asking: Vec<_> = callers.iter().map(|caller| caller.agent.clone()).collect();
        self.bounded = self
            .engine
            .read_patiently(move |view| {
                for agent in &asking {
                    if acl::of(view.db, agent)?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
            .await?;
        self.callers = callers;
        Ok(())
    }

    /// The next event. Waits until there is one; while the feed is held up it waits for ever. Safe to cancel.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub async fn next(&mut self) -> Result<Step, EngineError> {
        loop {
            if self.is_held() {
                self.was_held = true;
                std::future::pending::<()>().await;
            }
            if self.was_held {
                self.pass_over().await?;
                self.was_held = false;
            }
            if let Some(step) = self.ready.pop_front() {
                return Ok(self.hand_out(step));
            }
            let at_head = *self.head.borrow_and_update() <= self.place;
            if at_head {
                if self.head.changed().await.is_err() {
                    return Err(crate::error::Fault::Closing.into());
                }
                continue;
            }
            for event in self.look_ahead().await? {
                self.ready.push_back(Step::Event { number: 0, event });
            }
        }
    }

    /// Whether [`next`](Self::next) has something to hand out without waiting.
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.is_held() && !self.was_held && !self.ready.is_empty()
    }

    /// The place up to which everything wanted has been handed out, once nothing is ready.
    #[must_use]
    pub fn place(&self) -> Seq {
        self.place
    }

    /// Holds the feed up until it is resumed.
    pub fn pause(&mut self) {
        self.paused = true;
        self.was_held = true;
    }

    /// Lets the feed go on.
    pub fn resume(&mut self) {
        self.paused = false;
    }

    /// Says that everything up to a number has been dealt with. The first time, it turns flow control on.
    pub fn ack(&mut self, up_to: u64) {
        self.window = Some(self.buffer.max(1));
        self.acked = self.acked.max(up_to.min(self.number));
    }

    /// Whether nothing is handed out at present.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.paused || self.window.is_some_and(|window| self.number - self.acked >= window)
    }

    fn hand_out(&mut self, step: Step) -> Step {
        match step {
            Step::Event { event, .. } => {
                self.number += 1;
                Step::Event { number: self.number, event }
            }
            overflow @ Step::Overflow(_) => overflow,
        }
    }

    /// After a hold: as much as the buffer holds is kept, the rest is passed over and reported.
    async fn pass_over(&mut self) -> Result<(), EngineError> {
        let end = *self.head.borrow_and_update();
        while self.place < end {
            for event in self.look_ahead().await? {
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

    /// The next stretch of history, as far as it is wanted and may be seen. Moves the place on.
    async fn look_ahead(&mut self) -> Result<Vec<Arc<Event>>, EngineError> {
        let ahead = self.engine.hub().ring.after(self.place, STRETCH);
        let (events, live) = match ahead {
            Ahead::Nothing => return Ok(Vec::new()),
            Ahead::Events(events) => (events, true),
            Ahead::InDatabase => {
                let place = self.place;
                let events = self.engine.read_patiently(move |view| view.stretch(place, STRETCH)).await?;
                self.engine.meter().lagged.fetch_add(events.len() as u64, Ordering::Relaxed);
                (events, false)
            }
        };
        let Some(last) = events.last().map(|event| event.seq) else { return Ok(Vec::new()) };
        let wanted = self.choose(events, live).await?;
        self.place = last;
        Ok(wanted)
    }

    /// Whether one of the callers may see an event, where that can be told without the books.
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

    async fn choose(&self, events: Vec<Arc<Event>>, live: bool) -> Result<Vec<Arc<Event>>, EngineError> {
        let by_database = self.by_database;
        let mut wanted = Vec::new();
        let mut to_ask = Vec::new();
        for (n, event) in events.into_iter().enumerate() {
            // A filter of many patterns takes a while, and others wait for this thread.
            if n % PAUSE_AFTER == PAUSE_AFTER - 1 {
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
                    // The rest is asked for anew, so that no stretch is too costly for one read.
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
