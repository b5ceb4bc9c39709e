//! Somebody who follows everything by MAP and reads slowly: events must come numbered without a gap, in order, and, from
//! the last that was seen on, across lost connections and killed offices.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::chance::Chance;
use super::field::{Field, tick};
use super::mark::{Channel, Mark};
use crate::clients::Peer;
use posthaste::cli::exit::Failure;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

struct Follower<'a> {
    field: &'a Field,
    me: u32,
    chance: Chance,
    /// How far it has come with each sender.
    seen: HashMap<Channel, u64>,
    /// The last event.
    last: Option<String>,
}

pub(super) async fn live(field: Arc<Field>, me: u32) {
    let chance = field.chance(me);
    let mut follower = Follower { field: &field, me, chance, seen: HashMap::new(), last: None };
    while field.linger(follower.chance.millis(50, 500)).await {
        let phase = field.phase();
        if let Err(why) = follower.follow().await {
            field.connection_broke(me, phase, &why).await;
        }
    }
}

impl Follower<'_> {
    /// One connection, until it is dropped on purpose.
    async fn follow(&mut self) -> Result<(), Failure> {
        let field = self.field;
        let url = format!("ws://{}/map?token={}", field.address, field.token);
        let mut peer = timeout(ANSWER_TIMEOUT, Peer::dial(&url)).await??;
        let name = field.plan.name(self.me);
        let hello = json!({ "protocolVersion": 1, "participantType": "client", "name": name });
        timeout(ANSWER_TIMEOUT, peer.call("map/connect", &hello)).await??;
        let filter = json!({ "eventTypes": ["message.sent", "mail.turn.added"] });
        let wish = json!({ "filter": filter, "replayFrom": self.last });
        peer.put("map/subscribe", &wish.to_string()).await?;
        peer.flush().await?;
        tick(&field.deeds.joins);
        let leaves = Instant::now() + self.chance.millis(8_000, 40_000);
        let mut nap = Instant::now() + self.chance.millis(1_000, 6_000);
        let mut number = 0;
        loop {
            tokio::select! {
                biased;
                () = field.closing.cancelled() => {
                    peer.close().await;
                    return Ok(());
                }
                () = sleep_until(leaves), if !field.ending.is_cancelled() => {
                    tick(&field.deeds.crashes);
                    return Ok(());
                }
                () = sleep_until(nap), if !field.ending.is_cancelled() => {
                    tick(&field.deeds.naps);
                    sleep(self.chance.millis(1_000, 6_000)).await;
                    nap = Instant::now() + self.chance.millis(2_000, 9_000);
                }
                frame = peer.frame() => self.take(&frame?, &mut number)?,
            }
        }
    }

    fn take(&mut self, text: &str, number: &mut u64) -> Result<(), Failure> {
        let frame: Value = serde_json::from_str(text)?;
        if let Some(error) = frame.get("error") {
            self.field.refused(&error.to_string(), "following");
        }
        if frame["method"] != "map/event" {
            return Ok(());
        }
        tick(&self.field.deeds.events_followed);
        let event = &frame["params"];
        let came = event["sequenceNumber"].as_u64().unwrap_or_default();
        if came != *number + 1 {
            self.field.ledger.find("follower: a gap in the numbers", format!("{came} after {number}"));
        }
        *number = came;
        let id = event["eventId"].as_str().unwrap_or_default();
        if self.last.as_deref().is_some_and(|last| last >= id) {
            let text = format!("event {id} after {:?}", self.last);
            self.field.ledger.find("follower: not in order", text);
        }
        self.last = Some(id.to_owned());
        // A letter that was also recorded as a turn would come twice under one mark; nobody here does that.
        if let Some(mark) = Mark::find(text) {
            self.field.ledger.at_follower(mark, &mut self.seen);
        }
        Ok(())
    }
}
