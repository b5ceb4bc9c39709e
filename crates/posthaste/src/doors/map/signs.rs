//! Signs of life for those who ask for them by name: that the office is there, and how full it is. Neither is part of the
//! history.

use std::time::Duration;

use posthaste_engine::nouns::Caller;
use posthaste_engine::{Engine, EngineError, stamp};
use posthaste_wire::map::{EventName, Pattern, Spec};
use serde_json::{Value, json};
use tokio::time::Interval;

use super::filters;

/// How often they come.
const EVERY: Duration = Duration::from_secs(15);

/// Which of them somebody asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    heartbeat: bool,
    capacity: bool,
}

impl Signs {
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

    /// The members of their envelopes, as of now.
    pub(super) async fn read(self, engine: &Engine, caller: &Caller) -> Result<Vec<String>, EngineError> {
        let mut signs = Vec::new();
        if self.heartbeat {
            signs.push(own_event(EventName::Heartbeat, json!({ "serverTime": stamp::now() })));
        }
        if self.capacity {
            let caller = caller.clone();
            let (stats, rules) = engine.read(move |view| Ok((view.stats(&caller)?, view.rules()?))).await?;
            let full = json!({ "agents": stats.agents, "maxAgents": rules.recipients });
            signs.push(own_event(EventName::Capacity, full));
        }
        Ok(signs)
    }
}

/// An event that is not of the history: about the subscription or the office, and of this moment.
pub(super) fn own_event(name: EventName, fields: Value) -> String {
    let id = super::session::fresh("");
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
