//! The latest events, kept in memory for feeds that keep up.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use crate::nouns::{Event, Seq};

/// Messages can be large: beyond this many bytes the oldest events are dropped, however few there are.
const RING_BYTES: usize = 8 << 20;

/// What a feed finds after its seq.
#[derive(Debug)]
pub(super) enum Ahead {
    /// The next events.
    Events(Vec<Arc<Event>>),
    /// The feed is at the head.
    Nothing,
    /// The next events are no longer in memory.
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
    /// The seq before the first event kept.
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

    /// Up to `limit` events after a seq.
    pub(super) fn after(&self, seq: Seq, limit: usize) -> Ahead {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if seq < kept.base {
            return Ahead::InDatabase;
        }
        // Seqs have no gaps, so the distance is the index.
        let start = usize::try_from(seq - kept.base).unwrap_or(usize::MAX);
        let events: Vec<_> = kept.events.iter().skip(start).take(limit).cloned().collect();
        if events.is_empty() { Ahead::Nothing } else { Ahead::Events(events) }
    }
}
