//! An AIRC identity: signs its messages, sends them again under the same id if no answer came, and acknowledges mail that
//! asks for it.

use std::sync::Arc;

use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::http::{HttpClient, NoAnswer};
use super::ledger::{Outcome, ReaderSession};
use super::own::LAST_READ_EVERY;
use super::rng::Rng;
use super::shared::{Shared, tick};
use super::tag::{Channel, Tag};
use crate::clients::Signer;

struct Agent<'a> {
    shared: &'a Shared,
    me: u32,
    signer: Signer,
    rng: Rng,
    http: HttpClient<'a>,
    cursor: String,
}

pub(super) async fn live(shared: Arc<Shared>, me: u32, signer: Signer) {
    let http = HttpClient::new(&shared, &signer.token);
    let rng = shared.rng(me);
    let mut agent = Agent { shared: &shared, me, signer, rng, http, cursor: String::new() };
    while shared.rest(agent.rng.about(shared.pause)).await {
        let done = match agent.rng.below(20) {
            0..=11 => agent.send().await,
            12..=18 => agent.read().await,
            _ => agent.show_presence().await,
        };
        if done.is_err() {
            break;
        }
    }
    while shared.linger(LAST_READ_EVERY).await {
        let _ = agent.read().await;
    }
}

impl Agent<'_> {
    async fn send(&mut self) -> Result<(), NoAnswer> {
        let Some(&to) = self.rng.pick(&self.shared.plan.agent(self.me).recipients) else { return Ok(()) };
        let tag = self.shared.ledger.next(Channel::kept(self.me, to));
        let payload = if self.rng.one_in(3) {
            json!({ "type": "text", "content": format!("{tag} {}", self.rng.prose()) })
        } else {
            json!({
                "type": "context:mailbox", "message_id": format!("mail-{}-{to}-{}", self.me, tag.n),
                "subject": tag.to_string(), "body_md": self.rng.prose(), "ack_required": self.rng.one_in(4),
            })
        };
        let envelope = self.signer.sign(self.shared.plan.name(to), &payload);
        match self.post(&envelope).await {
            Ok(None) => self.shared.settle(tag, Outcome::Acked, ""),
            Ok(Some(why)) => self.shared.settle(tag, Outcome::Refused, &why),
            Err(NoAnswer) => {
                self.shared.settle(tag, Outcome::Unknown, "");
                return Err(NoAnswer);
            }
        }
        Ok(())
    }

    /// Sends an envelope until there is an answer. None if it was accepted, else the refusal.
    async fn post(&mut self, envelope: &str) -> Result<Option<String>, NoAnswer> {
        let mut again = false;
        if self.rng.one_in(30) {
            tick(&self.shared.actions.crashes);
            let whole = self.rng.one_in(2);
            let _ = self.http.abandon("POST", "/messages", envelope, whole).await;
            again = true;
        }
        loop {
            match self.http.ask("POST", "/messages", envelope).await {
                Ok((201, _)) => return Ok(None),
                // It had been accepted, and only the answer was lost.
                Ok((409, answer))
                    if again
                        && (answer["error"] == "duplicate_message"
                            || answer["error"] == "replay_detected") =>
                {
                    return Ok(None);
                }
                Ok((503, _)) | Err(NoAnswer) => {}
                Ok((status, answer)) => return Ok(Some(format!("{status} {answer}"))),
            }
            again = true;
            if !self.shared.linger(self.rng.millis(50, 200)).await {
                return Err(NoAnswer);
            }
        }
    }

    async fn read(&mut self) -> Result<(), NoAnswer> {
        loop {
            let path = format!("/messages/inbox?limit=100&cursor={}", self.cursor);
            let path = if self.cursor.is_empty() { "/messages/inbox?limit=100" } else { &path };
            let (status, page) = self.http.ask_until_answered("GET", path, "").await?;
            if status != 200 {
                self.shared.refused(&format!("{status} {page}"), "reading an inbox");
                return Ok(());
            }
            let messages = page["messages"].as_array().cloned().unwrap_or_default();
            for message in &messages {
                let payload = &message["payload"];
                let text = [&payload["subject"], &payload["content"], &payload["body_md"]];
                let tag = text.into_iter().filter_map(Value::as_str).find_map(Tag::find);
                // Other payloads are searched as a whole.
                if let Some(tag) = tag.or_else(|| Tag::find(&payload.to_string())) {
                    self.shared.ledger.at_reader(tag, ReaderSession::Durable);
                }
                if payload["ack_required"] == true {
                    self.acknowledge(message).await?;
                }
            }
            if let Some(cursor) = page["cursor"].as_str() {
                cursor.clone_into(&mut self.cursor);
            }
            if messages.is_empty() {
                return Ok(());
            }
        }
    }

    async fn acknowledge(&mut self, message: &Value) -> Result<(), NoAnswer> {
        let from = message["from"].as_str().unwrap_or_default();
        let ack = json!({
            "type": "context:mailbox_ack", "message_id": message["payload"]["message_id"],
            "ack_ts": to_rfc3339(stamp::now()),
        });
        let envelope = self.signer.sign(from, &ack);
        match self.post(&envelope).await? {
            None => {
                tick(&self.shared.acked[self.me as usize]);
                tick(&self.shared.actions.acks);
            }
            Some(why) => self.shared.refused(&why, &format!("acknowledging {}", message["id"])),
        }
        Ok(())
    }

    async fn show_presence(&mut self) -> Result<(), NoAnswer> {
        let (status, answer) =
            self.http.ask_until_answered("POST", "/presence", r#"{"status":"online"}"#).await?;
        match status {
            200..=299 => tick(&self.shared.actions.presence),
            _ => self.shared.refused(&format!("{status} {answer}"), "presence"),
        }
        Ok(())
    }
}
