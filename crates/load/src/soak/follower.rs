//! A slow subscriber to all events by MAP: events must be numbered without a gap, in order, and go on after the last one
//! across lost connections and kills.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::rng::Rng;
use super::shared::{Shared, tick};
use super::tag::{Channel, Tag};
use crate::clients::Peer;
use posthaste::cli::exit::Failure;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

struct Follower<'a> {
    shared: &'a Shared,
    me: u32,
    rng: Rng,
    /// How far it has come with each sender.
    seen: HashMap<Channel, u64>,
    /// The last event.
    last: Option<String>,
}

pub(super) async fn live(shared: Arc<Shared>, me: u32) {
    let rng = shared.rng(me);
    let mut follower = Follower { shared: &shared, me, rng, seen: HashMap::new(), last: None };
    while shared.linger(follower.rng.millis(50, 500)).await {
        let phase = shared.phase();
        if let Err(why) = follower.follow().await {
            shared.connection_broke(me, phase, &why).await;
        }
    }
}

impl Follower<'_> {
    /// One connection, until it is dropped on purpose.
    async fn follow(&mut self) -> Result<(), Failure> {
        let shared = self.shared;
        let url = format!("ws://{}/map?token={}", shared.address, shared.token);
        let mut peer = timeout(ANSWER_TIMEOUT, Peer::dial(&url)).await??;
        let name = shared.plan.name(self.me);
        let hello = json!({ "protocolVersion": 1, "participantType": "client", "name": name });
        timeout(ANSWER_TIMEOUT, peer.call("map/connect", &hello)).await??;
        let filter = json!({ "eventTypes": ["message.sent", "mail.turn.added"] });
        let wish = json!({ "filter": filter, "replayFrom": self.last });
        peer.put("map/subscribe", &wish.to_string()).await?;
        peer.flush().await?;
        tick(&shared.actions.joins);
        let leaves = Instant::now() + self.rng.millis(8_000, 40_000);
        let mut pause_at = Instant::now() + self.rng.millis(1_000, 6_000);
        let mut number = 0;
        loop {
            tokio::select! {
                biased;
                () = shared.closing.cancelled() => {
                    peer.close().await;
                    return Ok(());
                }
                () = sleep_until(leaves), if !shared.ending.is_cancelled() => {
                    tick(&shared.actions.crashes);
                    return Ok(());
                }
                () = sleep_until(pause_at), if !shared.ending.is_cancelled() => {
                    tick(&shared.actions.pauses);
                    sleep(self.rng.millis(1_000, 6_000)).await;
                    pause_at = Instant::now() + self.rng.millis(2_000, 9_000);
                }
                frame = peer.frame() => self.take(&frame?, &mut number)?,
            }
        }
    }

    fn take(&mut self, text: &str, number: &mut u64) -> Result<(), Failure> {
        let frame: Value = serde_json::from_str(text)?;
        if let Some(error) = frame.get("error") {
            self.shared.refused(&error.to_string(), "following");
        }
        if frame["method"] != "map/event" {
            return Ok(());
        }
        tick(&self.shared.actions.events_followed);
        let event = &frame["params"];
        let came = event["sequenceNumber"].as_u64().unwrap_or_default();
        if came != *number + 1 {
            self.shared.ledger.find("follower: a gap in the numbers", format!("{came} after {number}"));
        }
        *number = came;
        let id = event["eventId"].as_str().unwrap_or_default();
        if self.last.as_deref().is_some_and(|last| last >= id) {
            let text = format!("event {id} after {:?}", self.last);
            self.shared.ledger.find("follower: not in order", text);
        }
        self.last = Some(id.to_owned());
        // A message that is also recorded as a turn would come twice under one tag; the fleet sends none.
        if let Some(tag) = Tag::find(text) {
            self.shared.ledger.at_follower(tag, &mut self.seen);
        }
        Ok(())
    }
}
