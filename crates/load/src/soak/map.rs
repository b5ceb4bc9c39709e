//! An agent by MAP over WebSocket: several calls on their way at once, letters and turns coming in between, and every way
//! to end a connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::chance::Chance;
use super::field::{Field, tick};
use super::ledger::{Outcome, Sitting};
use super::mark::{Channel, Mark};
use crate::clients::{Peer, answered};
use posthaste::cli::exit::Failure;

/// Longer than anything should take to be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one who leaves in good order waits for its answers.
const FAREWELL: Duration = Duration::from_secs(10);
/// Calls on their way at once.
const AT_ONCE: u64 = 4;

/// One connection of an agent's.
struct Seat<'a> {
    field: &'a Field,
    me: u32,
    peer: Peer,
    /// What has been called and not been answered.
    pending: HashMap<u64, Mark>,
    sitting: Sitting,
    /// How far it has followed the turns of its conversation.
    seen: HashMap<Channel, u64>,
}

/// How a connection ended.
enum End {
    /// The agent wanted it so.
    Chosen,
    /// It broke.
    Broken(Failure),
}

pub(super) async fn live(field: Arc<Field>, me: u32) {
    let mut chance = field.chance(me);
    // Not everybody at once.
    let mut there = field.rest(chance.millis(0, 2_000)).await;
    while there {
        let phase = field.phase();
        match take_seat(&field, me).await {
            Ok(seat) => {
                tick(&field.deeds.joins);
                if let End::Broken(why) = sit(seat, &mut chance).await {
                    field.connection_broke(me, phase, &why).await;
                }
            }
            Err(why) => field.connection_broke(me, phase, &why).await,
        }
        there = field.rest(chance.millis(50, 1_500)).await;
    }
}

/// Somebody who comes for a moment: registers, writes, and leaves the address book again.
pub(super) async fn visit(field: Arc<Field>, me: u32) {
    let mut chance = field.chance(me);
    while field.rest(chance.about(field.pause * 3)).await {
        let phase = field.phase();
        let mut seat = match take_seat(&field, me).await {
            Ok(seat) => seat,
            Err(why) => {
                field.connection_broke(me, phase, &why).await;
                continue;
            }
        };
        tick(&field.deeds.joins);
        let said = seat.write(&mut chance).await;
        let answered = match said {
            Ok(()) if chance.one_in(4) => Ok(()),
            Ok(()) => seat.wait_for_answers().await,
            Err(why) => Err(why),
        };
        if answered.is_ok() && seat.pending.is_empty() {
            let gone = seat.call("map/agents/unregister", &json!({ "agentId": field.plan.name(me) })).await;
            if gone.is_ok() {
                tick(&field.deeds.farewells);
            }
        } else {
            tick(&field.deeds.crashes);
        }
        seat.forget();
    }
}

/// Connects and registers.
async fn take_seat(field: &Field, me: u32) -> Result<Seat<'_>, Failure> {
    let agent = field.plan.agent(me);
    let url = format!("ws://{}/map?token={}", field.address, field.tokens[me as usize]);
    let peer = timeout(ANSWER_TIMEOUT, Peer::dial(&url)).await??;
    let (pending, seen, sitting) = (HashMap::new(), HashMap::new(), field.sitting());
    let mut seat = Seat { field, me, peer, pending, sitting, seen };
    seat.call("map/connect", &json!({ "protocolVersion": 1, "participantType": "agent" })).await?;
    let entry = json!({ "agentId": agent.name, "name": agent.name, "role": "soaker" });
    let mut tries = 0;
    while let Err(why) = seat.call("map/agents/register", &entry).await {
        // The office may not have noticed yet that the last connection is gone.
        tries += 1;
        if tries == 20 {
            return Err(why);
        }
        sleep(Duration::from_millis(100)).await;
    }
    if let Some(id) = agent.conversation.and_then(|of| field.conversations.get(of as usize)) {
        let filter = json!({ "eventTypes": ["mail.turn.added"], "mail": { "conversationId": id } });
        seat.call("map/subscribe", &json!({ "filter": filter })).await?;
    }
    Ok(seat)
}

/// Works until it is time to go, in whichever way.
async fn sit(mut seat: Seat<'_>, chance: &mut Chance) -> End {
    let field = seat.field;
    let leaves = Instant::now() + chance.millis(3_000, 25_000);
    let mut next = Instant::now() + chance.about(field.pause);
    let worked = loop {
        tokio::select! {
            biased;
            () = field.closing.cancelled() => break Ok(()),
            frame = seat.peer.frame() => match frame {
                Ok(text) => seat.take(&text),
                Err(why) => break Err(why),
            },
            () = sleep_until(next) => {
                next = Instant::now() + chance.about(field.pause);
                if field.ending.is_cancelled() {
                    continue;
                }
                if Instant::now() > leaves {
                    break Ok(());
                }
                if chance.one_in(40) {
                    // Reads nothing for a while; what it is sent has to wait somewhere.
                    tick(&field.deeds.naps);
                    sleep(chance.millis(1_000, 5_000)).await;
                }
                if let Err(why) = seat.write(chance).await {
                    break Err(why);
                }
            }
        }
    };
    if let Err(why) = worked {
        seat.forget();
        return End::Broken(why);
    }
    match chance.below(3) {
        0 if !field.closing.is_cancelled() => {
            tick(&field.deeds.crashes);
            seat.forget();
        }
        1 if !field.closing.is_cancelled() => {
            tick(&field.deeds.half_sent);
            seat.give_up_pending();
            seat.peer.break_off().await;
        }
        _ => {
            if let Err(why) = seat.wait_for_answers().await {
                seat.forget();
                return End::Broken(why);
            }
            tick(&field.deeds.farewells);
            // Whoever leaves has no use for the answer.
            let _ = seat.call("map/disconnect", &json!({ "reason": "done" })).await;
            seat.give_up_pending();
            seat.peer.close().await;
        }
    }
    End::Chosen
}

impl Seat<'_> {
    /// Several things at once: letters that are kept, letters that promise nothing, and turns. Nothing once the end has come,
    /// which one who napped or was still connecting may have missed: nobody would look for it any more.
    async fn write(&mut self, chance: &mut Chance) -> Result<(), Failure> {
        if self.field.ending.is_cancelled() {
            return Ok(());
        }
        let agent = self.field.plan.agent(self.me);
        for _ in 0..=chance.below(AT_ONCE.saturating_sub(self.pending.len() as u64)) {
            let talk =
                agent.conversation.and_then(|of| Some((of, self.field.conversations.get(of as usize)?)));
            let kind = chance.below(10);
            let (mark, method, params) = match (kind, talk) {
                (0..=2, Some((of, id))) => {
                    let mark = self.field.ledger.next(Channel::turns(self.me, of));
                    let content = json!({ "text": format!("{mark} {}", chance.prose()) });
                    tick(&self.field.deeds.turns);
                    (
                        mark,
                        "mail/turn",
                        json!({ "conversationId": id, "contentType": "text", "content": content }),
                    )
                }
                _ => {
                    let Some(&to) = chance.pick(&agent.circle) else { return Ok(()) };
                    let loose = kind > 6;
                    let channel =
                        if loose { Channel::loose(self.me, to) } else { Channel::kept(self.me, to) };
                    let mark = self.field.ledger.next(channel);
                    let delivery = if loose { "fire-and-forget" } else { "guaranteed" };
                    let meta = json!({ "delivery": delivery });
                    let payload =
                        json!({ "type": "note", "subject": mark.to_string(), "text": chance.prose() });
                    let to = json!({ "agent": self.field.plan.name(to) });
                    (mark, "map/send", json!({ "to": to, "payload": payload, "meta": meta }))
                }
            };
            match self.peer.put(method, &params.to_string()).await {
                Ok(id) => drop(self.pending.insert(id, mark)),
                Err(why) => {
                    self.field.settle(mark, Outcome::Unknown, "");
                    return Err(why);
                }
            }
        }
        self.peer.flush().await
    }

    /// Whatever has come.
    fn take(&mut self, text: &str) {
        if let Some(id) = answered(text) {
            if let Some(mark) = self.pending.remove(&id) {
                self.settle(mark, text);
            }
            return;
        }
        let Some(mark) = Mark::find(text) else { return };
        if text.contains(r#""method":"map/message""#) {
            self.field.ledger.at_reader(mark, self.sitting);
        } else if text.contains(r#""method":"map/event""#) {
            self.field.ledger.at_follower(mark, &mut self.seen);
        }
    }

    fn settle(&self, mark: Mark, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        let result = &answer["result"];
        let taken = match mark.channel.conversation() {
            Some(_) => result["turn"].is_object(),
            None => matches!(result["receipts"][0]["status"].as_str(), Some("delivered" | "queued")),
        };
        match taken {
            true => self.field.settle(mark, Outcome::Acked, ""),
            false => self.field.settle(mark, Outcome::Refused, text),
        }
    }

    /// Calls and waits; whatever else comes is taken meanwhile.
    async fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let id = self.peer.put(method, &params.to_string()).await?;
        self.peer.flush().await?;
        loop {
            let text = timeout(ANSWER_TIMEOUT, self.peer.frame()).await??;
            if answered(&text) != Some(id) {
                self.take(&text);
                continue;
            }
            let mut answer: Value = serde_json::from_str(&text)?;
            if let Some(error) = answer.get("error") {
                return Err(Failure::new(posthaste::cli::exit::Exit::Denied, format!("{method}: {error}")));
            }
            return Ok(answer["result"].take());
        }
    }

    async fn wait_for_answers(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + FAREWELL;
        while !self.pending.is_empty() && Instant::now() < end {
            let text = timeout(FAREWELL, self.peer.frame()).await??;
            self.take(&text);
        }
        Ok(())
    }

    /// What was not answered never will be.
    fn give_up_pending(&mut self) {
        for (_, mark) in self.pending.drain() {
            self.field.settle(mark, Outcome::Unknown, "");
        }
    }

    /// Drops the connection without a word.
    fn forget(mut self) {
        self.give_up_pending();
    }
}
