//! Heartbeat and capacity events, for subscribers that ask for them by name. Neither is in the event log.

use std::time::Duration;

use posthaste_engine::nouns::{Caller, Seq};
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::map::event::{CapacityData, HeartbeatData};
use posthaste_wire::map::{EventId, EventName, Pattern, Spec};
use tokio::time::Interval;

use super::events::{Rendered, render_unlogged};
use super::filters;

/// How often they come.
const EVERY: Duration = Duration::from_secs(15);

/// Which of them a subscriber asked for.
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

    /// The events that are due now, for a subscriber that was served up to a seq.
    pub(super) async fn read(
        self,
        engine: &Engine,
        caller: &Caller,
        served: EventId,
    ) -> Result<Vec<Rendered>, EngineError> {
        let mut status_events = Vec::new();
        if self.heartbeat {
            let data = HeartbeatData { server_time: stamp::now() };
            status_events.push(render_unlogged(EventName::Heartbeat, served, &data));
        }
        if self.capacity {
            let caller = caller.clone();
            let (agents, rules) =
                engine.read(move |view| Ok((view.agent_count(&caller)?, view.rules()?))).await?;
            // Nothing keeps more from registering, but a message to more than these is refused.
            let data = CapacityData { agents, max_agents: rules.recipients };
            status_events.push(render_unlogged(EventName::Capacity, served, &data));
        }
        Ok(status_events)
    }
}

/// The id of the last event that a subscriber was sent. Events that are not in the log have ids after it, so that a client that
/// continues after the last id it saw misses nothing.
pub(super) async fn served(engine: &Engine, history: u16, seq: Seq) -> Result<EventId, EngineError> {
    let at = engine.read(move |view| view.time_of(seq)).await?;
    Ok(EventId { at: at.unwrap_or(0), log_tag: history, seq })
}
