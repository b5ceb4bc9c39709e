//! StatusEvents of life for subscribers that ask for them by name: that the office is there, and how full it is. Neither is part of the
//! history.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use posthaste_engine::nouns::{Caller, Seq};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::map::{EventId, EventName, Pattern, Spec};
use serde_json::{Value, json};
use tokio::time::Interval;

use super::filters;

/// How often they come.
const EVERY: Duration = Duration::from_secs(15);

/// Which of them somebody asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusEvents {
    heartbeat: bool,
    capacity: bool,
}

impl StatusEvents {
    /// As a subscriber's filter and streams say.
    pub(super) fn asked_for(spec: &Spec, streams: &[Pattern]) -> Self {
        Self {
            heartbeat: filters::asks_for(spec, streams, EventName::Heartbeat),
            capacity: filters::asks_for(spec, streams, EventName::Capacity),
        }
    }

    /// Whether any come at all.
    pub(super) fn are_wanted(self) -> bool {
        self.heartbeat || self.capacity
    }

    /// When they come; the first time at once.
    pub(super) fn beat() -> Interval {
        tokio::time::interval(EVERY)
    }

    /// The members of their envelopes, as of now, for somebody who has been served up to a place.
    pub(super) async fn read(
        self,
        engine: &Engine,
        caller: &Caller,
        served: EventId,
    ) -> Result<Vec<String>, EngineError> {
        let mut status_events = Vec::new();
        if self.heartbeat {
            status_events.push(own_event(
                EventName::Heartbeat,
                served,
                json!({ "serverTime": stamp::now() }),
            ));
        }
        if self.capacity {
            let caller = caller.clone();
            let (agents, rules) =
                engine.read(move |view| Ok((view.agent_count(&caller)?, view.rules()?))).await?;
            // Nothing keeps more from registering, but a message to more than these is refused.
            let full = json!({ "agents": agents, "maxAgents": rules.recipients });
            status_events.push(own_event(EventName::Capacity, served, full));
        }
        Ok(status_events)
    }
}

/// The place that somebody has been served up to, by which what is not of the history is named: whoever goes on from the last
/// thing it heard misses nothing.
pub(super) async fn served(engine: &Engine, history: u16, seq: Seq) -> Result<EventId, EngineError> {
    let at = engine.read(move |view| view.time_of(seq)).await?;
    Ok(EventId { at: at.unwrap_or(0), log_tag: history, seq })
}

/// An event that is not of the history: about the subscription or the office, and of this moment.
pub(super) fn own_event(name: EventName, served: EventId, fields: Value) -> String {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let id = served.unlogged_ulid(NUMBER.fetch_add(1, Ordering::Relaxed));
    let now = stamp::now();
    let mut event = json!({ "id": id, "type": name.sdk(), "timestamp": now, "source": "posthaste" });
    if let Value::Object(fields) = &fields {
        for (name, value) in fields {
            event[name] = value.clone();
        }
    }
    event["data"] = fields;
    format!(r#""eventId":"{id}","timestamp":{now},"event":{event}"#)
}
