//! An agent by MAP over WebSocket: several pending calls, messages and turns in between, and every way to end a connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::ledger::{Outcome, ReaderSession};
use super::rng::Rng;
use super::shared::{Shared, tick};
use super::tag::{Channel, Tag};
use crate::clients::{Peer, answered};
use posthaste::cli::exit::Failure;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an agent that disconnects gracefully waits for its answers.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Pending calls at a time.
const MAX_PENDING: u64 = 4;

/// One connection of an agent.
struct Session<'a> {
    shared: &'a Shared,
    me: u32,
    peer: Peer,
    /// Calls without an answer yet.
    pending: HashMap<u64, Tag>,
    session: ReaderSession,
    /// The last turn of each sender in its conversation.
    seen: HashMap<Channel, u64>,
}

/// How a connection ended.
enum End {
    /// On purpose.
    Chosen,
    /// It broke.
    Broken(Failure),
}

pub(super) async fn live(shared: Arc<Shared>, me: u32) {
    let mut rng = shared.rng(me);
    // Agents do not start all at once.
    let mut there = shared.rest(rng.millis(0, 2_000)).await;
    while there {
        let phase = shared.phase();
        match open_session(&shared, me).await {
            Ok(session) => {
                tick(&shared.actions.joins);
                if let End::Broken(why) = work_until_leaving(session, &mut rng).await {
                    shared.connection_broke(me, phase, &why).await;
                }
            }
            Err(why) => shared.connection_broke(me, phase, &why).await,
        }
        there = shared.rest(rng.millis(50, 1_500)).await;
    }
}

/// A visitor: registers, writes, and unregisters.
pub(super) async fn visit(shared: Arc<Shared>, me: u32) {
    let mut rng = shared.rng(me);
    while shared.rest(rng.about(shared.pause * 3)).await {
        let phase = shared.phase();
        let mut session = match open_session(&shared, me).await {
            Ok(session) => session,
            Err(why) => {
                shared.connection_broke(me, phase, &why).await;
                continue;
            }
        };
        tick(&shared.actions.joins);
        let said = session.write(&mut rng).await;
        let answered = match said {
            Ok(()) if rng.one_in(4) => Ok(()),
            Ok(()) => session.wait_for_answers().await,
            Err(why) => Err(why),
        };
        if answered.is_ok() && session.pending.is_empty() {
            let gone =
                session.call("map/agents/unregister", &json!({ "agentId": shared.plan.name(me) })).await;
            if gone.is_ok() {
                tick(&shared.actions.disconnects);
            }
        } else {
            tick(&shared.actions.crashes);
        }
        session.forget();
    }
}

/// Connects and registers.
async fn open_session(shared: &Shared, me: u32) -> Result<Session<'_>, Failure> {
    let agent = shared.plan.agent(me);
    let url = format!("ws://{}/map?token={}", shared.address, shared.tokens[me as usize]);
    let peer = timeout(ANSWER_TIMEOUT, Peer::dial(&url)).await??;
    let (pending, seen, session) = (HashMap::new(), HashMap::new(), shared.session());
    let mut session = Session { shared, me, peer, pending, session, seen };
    session.call("map/connect", &json!({ "protocolVersion": 1, "participantType": "agent" })).await?;
    let entry = json!({ "agentId": agent.name, "name": agent.name, "role": "soaker" });
    let mut tries = 0;
    while let Err(why) = session.call("map/agents/register", &entry).await {
        // The server may not have noticed yet that the last connection is closed.
        tries += 1;
        if tries == 20 {
            return Err(why);
        }
        sleep(Duration::from_millis(100)).await;
    }
    if let Some(id) = agent.conversation.and_then(|of| shared.conversations.get(of as usize)) {
        let filter = json!({ "eventTypes": ["mail.turn.added"], "mail": { "conversationId": id } });
        session.call("map/subscribe", &json!({ "filter": filter })).await?;
    }
    Ok(session)
}

/// Works until it is time to leave, then leaves in one of several ways.
async fn work_until_leaving(mut session: Session<'_>, rng: &mut Rng) -> End {
    let shared = session.shared;
    let leaves = Instant::now() + rng.millis(3_000, 25_000);
    let mut next = Instant::now() + rng.about(shared.pause);
    let worked = loop {
        tokio::select! {
            biased;
            () = shared.closing.cancelled() => break Ok(()),
            frame = session.peer.frame() => match frame {
                Ok(text) => session.take(&text),
                Err(why) => break Err(why),
            },
            () = sleep_until(next) => {
                next = Instant::now() + rng.about(shared.pause);
                if shared.ending.is_cancelled() {
                    continue;
                }
                if Instant::now() > leaves {
                    break Ok(());
                }
                if rng.one_in(40) {
                    // Reads nothing for a while, so that the server has to queue.
                    tick(&shared.actions.pauses);
                    sleep(rng.millis(1_000, 5_000)).await;
                }
                if let Err(why) = session.write(rng).await {
                    break Err(why);
                }
            }
        }
    };
    if let Err(why) = worked {
        session.forget();
        return End::Broken(why);
    }
    match rng.below(3) {
        0 if !shared.closing.is_cancelled() => {
            tick(&shared.actions.crashes);
            session.forget();
        }
        1 if !shared.closing.is_cancelled() => {
            tick(&shared.actions.half_sent);
            session.give_up_pending();
            session.peer.break_off().await;
        }
        _ => {
            if let Err(why) = session.wait_for_answers().await {
                session.forget();
                return End::Broken(why);
            }
            tick(&shared.actions.disconnects);
            // The answer does not matter.
            let _ = session.call("map/disconnect", &json!({ "reason": "done" })).await;
            session.give_up_pending();
            session.peer.close().await;
        }
    }
    End::Chosen
}

impl Session<'_> {
    /// Sends several things at once: durable messages, fire-and-forget messages, and turns. Sends nothing after the end, which an
    /// agent that paused or was connecting may have missed, because the checks would not cover it.
    async fn write(&mut self, rng: &mut Rng) -> Result<(), Failure> {
        if self.shared.ending.is_cancelled() {
            return Ok(());
        }
        let agent = self.shared.plan.agent(self.me);
        for _ in 0..=rng.below(MAX_PENDING.saturating_sub(self.pending.len() as u64)) {
            let conversation =
                agent.conversation.and_then(|of| Some((of, self.shared.conversations.get(of as usize)?)));
            let kind = rng.below(10);
            let (tag, method, params) = match (kind, conversation) {
                (0..=2, Some((of, id))) => {
                    let tag = self.shared.ledger.next(Channel::turns(self.me, of));
                    let content = json!({ "text": format!("{tag} {}", rng.prose()) });
                    tick(&self.shared.actions.turns);
                    (
                        tag,
                        "mail/turn",
                        json!({ "conversationId": id, "contentType": "text", "content": content }),
                    )
                }
                _ => {
                    let Some(&to) = rng.pick(&agent.recipients) else { return Ok(()) };
                    let loose = kind > 6;
                    let channel =
                        if loose { Channel::loose(self.me, to) } else { Channel::kept(self.me, to) };
                    let tag = self.shared.ledger.next(channel);
                    let delivery = if loose { "fire-and-forget" } else { "guaranteed" };
                    let meta = json!({ "delivery": delivery });
                    let payload = json!({ "type": "note", "subject": tag.to_string(), "text": rng.prose() });
                    let to = json!({ "agent": self.shared.plan.name(to) });
                    (tag, "map/send", json!({ "to": to, "payload": payload, "meta": meta }))
                }
            };
            match self.peer.put(method, &params.to_string()).await {
                Ok(id) => drop(self.pending.insert(id, tag)),
                Err(why) => {
                    self.shared.settle(tag, Outcome::Unknown, "");
                    return Err(why);
                }
            }
        }
        self.peer.flush().await
    }

    /// Handles a frame: an answer, a message or an event.
    fn take(&mut self, text: &str) {
        if let Some(id) = answered(text) {
            if let Some(tag) = self.pending.remove(&id) {
                self.settle(tag, text);
            }
            return;
        }
        let Some(tag) = Tag::find(text) else { return };
        if text.contains(r#""method":"map/message""#) {
            self.shared.ledger.at_reader(tag, self.session);
        } else if text.contains(r#""method":"map/event""#) {
            self.shared.ledger.at_follower(tag, &mut self.seen);
        }
    }

    fn settle(&self, tag: Tag, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        let result = &answer["result"];
        let taken = match tag.channel.conversation() {
            Some(_) => result["turn"].is_object(),
            None => matches!(result["receipts"][0]["status"].as_str(), Some("delivered" | "queued")),
        };
        match taken {
            true => self.shared.settle(tag, Outcome::Acked, ""),
            false => self.shared.settle(tag, Outcome::Refused, text),
        }
    }

    /// Calls and waits for the answer; handles other frames meanwhile.
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
        let end = Instant::now() + LAST_ANSWERS_TIMEOUT;
        while !self.pending.is_empty() && Instant::now() < end {
            let text = timeout(LAST_ANSWERS_TIMEOUT, self.peer.frame()).await??;
            self.take(&text);
        }
        Ok(())
    }

    /// Notes that pending calls got no answer.
    fn give_up_pending(&mut self) {
        for (_, tag) in self.pending.drain() {
            self.shared.settle(tag, Outcome::Unknown, "");
        }
    }

    /// Drops the connection.
    fn forget(mut self) {
        self.give_up_pending();
    }
}
