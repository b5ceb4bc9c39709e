//! An AIRC identity: signs what it sends, sends it again under the same id when no answer came, and acknowledges what
//! asks for it.

use std::sync::Arc;

use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::chance::Chance;
use super::field::{Field, tick};
use super::ledger::{Outcome, Sitting};
use super::mark::{Channel, Mark};
use super::own::LAST_LOOKS;
use super::phone::{Cut, Phone};
use crate::clients::Signer;

struct Agent<'a> {
    field: &'a Field,
    me: u32,
    signer: Signer,
    chance: Chance,
    phone: Phone<'a>,
    cursor: String,
}

pub(super) async fn live(field: Arc<Field>, me: u32, signer: Signer) {
    let phone = Phone::new(&field, &signer.token);
    let chance = field.chance(me);
    let mut agent = Agent { field: &field, me, signer, chance, phone, cursor: String::new() };
    while field.rest(agent.chance.about(field.pause)).await {
        let done = match agent.chance.below(20) {
            0..=11 => agent.send().await,
            12..=18 => agent.read().await,
            _ => agent.show_presence().await,
        };
        if done.is_err() {
            break;
        }
    }
    while field.linger(LAST_LOOKS).await {
        let _ = agent.read().await;
    }
}

impl Agent<'_> {
    async fn send(&mut self) -> Result<(), Cut> {
        let Some(&to) = self.chance.pick(&self.field.plan.agent(self.me).circle) else { return Ok(()) };
        let mark = self.field.ledger.next(Channel::kept(self.me, to));
        let payload = if self.chance.one_in(3) {
            json!({ "type": "text", "content": format!("{mark} {}", self.chance.prose()) })
        } else {
            json!({
                "type": "context:mailbox", "message_id": format!("mail-{}-{to}-{}", self.me, mark.n),
                "subject": mark.to_string(), "body_md": self.chance.prose(), "ack_required": self.chance.one_in(4),
            })
        };
        let envelope = self.signer.sign(self.field.plan.name(to), &payload);
        match self.post(&envelope).await {
            Ok(None) => self.field.settle(mark, Outcome::Acked, ""),
            Ok(Some(why)) => self.field.settle(mark, Outcome::Refused, &why),
            Err(Cut) => {
                self.field.settle(mark, Outcome::Unknown, "");
                return Err(Cut);
            }
        }
        Ok(())
    }

    /// Sends an envelope until there is an answer. Nothing if it was taken, else why not.
    async fn post(&mut self, envelope: &str) -> Result<Option<String>, Cut> {
        let mut again = false;
        if self.chance.one_in(30) {
            tick(&self.field.deeds.crashes);
            let whole = self.chance.one_in(2);
            let _ = self.phone.abandon("POST", "/messages", envelope, whole).await;
            again = true;
        }
        loop {
            match self.phone.ask("POST", "/messages", envelope).await {
                Ok((201, _)) => return Ok(None),
                // It had been taken, and only the answer was lost.
                Ok((409, answer))
                    if again
                        && (answer["error"] == "duplicate_message"
                            || answer["error"] == "replay_detected") =>
                {
                    return Ok(None);
                }
                Ok((503, _)) | Err(Cut) => {}
                Ok((status, answer)) => return Ok(Some(format!("{status} {answer}"))),
            }
            again = true;
            if !self.field.linger(self.chance.millis(50, 200)).await {
                return Err(Cut);
            }
        }
    }

    async fn read(&mut self) -> Result<(), Cut> {
        loop {
            let path = format!("/messages/inbox?limit=100&cursor={}", self.cursor);
            let path = if self.cursor.is_empty() { "/messages/inbox?limit=100" } else { &path };
            let (status, page) = self.phone.insist("GET", path, "").await?;
            if status != 200 {
                self.field.refused(&format!("{status} {page}"), "reading an inbox");
                return Ok(());
            }
            let letters = page["messages"].as_array().cloned().unwrap_or_default();
            for letter in &letters {
                let payload = &letter["payload"];
                let text = [&payload["subject"], &payload["content"], &payload["body_md"]];
                let mark = text.into_iter().filter_map(Value::as_str).find_map(Mark::find);
                // What has none of these fields is shown as it is.
                if let Some(mark) = mark.or_else(|| Mark::find(&payload.to_string())) {
                    self.field.ledger.at_reader(mark, Sitting::Lasting);
                }
                if payload["ack_required"] == true {
                    self.acknowledge(letter).await?;
                }
            }
            if let Some(cursor) = page["cursor"].as_str() {
                cursor.clone_into(&mut self.cursor);
            }
            if letters.is_empty() {
                return Ok(());
            }
        }
    }

    async fn acknowledge(&mut self, letter: &Value) -> Result<(), Cut> {
        let from = letter["from"].as_str().unwrap_or_default();
        let ack = json!({
            "type": "context:mailbox_ack", "message_id": letter["payload"]["message_id"],
            "ack_ts": to_rfc3339(stamp::now()),
        });
        let envelope = self.signer.sign(from, &ack);
        match self.post(&envelope).await? {
            None => {
                tick(&self.field.acked[self.me as usize]);
                tick(&self.field.deeds.acks);
            }
            Some(why) => self.field.refused(&why, &format!("acknowledging {}", letter["id"])),
        }
        Ok(())
    }

    async fn show_presence(&mut self) -> Result<(), Cut> {
        let (status, answer) = self.phone.insist("POST", "/presence", r#"{"status":"online"}"#).await?;
        match status {
            200..=299 => tick(&self.field.deeds.presence),
            _ => self.field.refused(&format!("{status} {answer}"), "presence"),
        }
        Ok(())
    }
}
