//! The latest events, kept in memory for followers that keep up.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use crate::nouns::{Event, Seq};

/// Letters can be large; beyond this many bytes the oldest events go, however few they are.
const RING_BYTES: usize = 8 << 20;

/// What a follower finds after its place.
#[derive(Debug)]
pub(super) enum Ahead {
    /// These come next.
    Events(Vec<Arc<Event>>),
    /// It has seen everything.
    Nothing,
    /// What comes next is no longer in memory.
    InDatabase,
}

#[derive(Debug)]
pub(super) struct Ring {
    kept: RwLock<Kept>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The place before the first event kept.
    base: Seq,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { kept: RwLock::default(), capacity }
    }

    pub(super) fn start_at(&self, last: Seq) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        *kept = Kept { base: last, ..Kept::default() };
    }

    pub(super) fn push(&self, events: Vec<Arc<Event>>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            kept.bytes += event.weight();
            kept.events.push_back(event);
        }
        while kept.events.len() > self.capacity || (kept.bytes > RING_BYTES && kept.events.len() > 1) {
            let Some(oldest) = kept.events.pop_front() else { break };
            kept.bytes -= oldest.weight();
            kept.base = oldest.seq;
        }
    }

    /// Up to `limit` events after a place.
    pub(super) fn after(&self, place: Seq, limit: usize) -> Ahead {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if place < kept.base {
            return Ahead::InDatabase;
        }
        // Places have no gaps, so the distance is the index.
        let start = usize::try_from(place - kept.base).unwrap_or(usize::MAX);
        let events: Vec<_> = kept.events.iter().skip(start).take(limit).cloned().collect();
        if events.is_empty() { Ahead::Nothing } else { Ahead::Events(events) }
    }
}
