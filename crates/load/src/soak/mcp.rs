//! A coding agent by MCP over plain HTTP. Its letters have no keys: one whose answer was lost is not sent again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::chance::Chance;
use super::field::{Field, REALM, tick};
use super::ledger::{Outcome, Sitting};
use super::mark::{Channel, Mark};
use super::own::LAST_LOOKS;
use super::phone::{Cut, Phone};

struct Agent<'a> {
    field: &'a Field,
    me: u32,
    name: &'a str,
    chance: Chance,
    phone: Phone<'a>,
    cursor: i64,
}

/// A call of a tool, as it is posted.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// What a tool answered, or why it failed.
pub(super) fn result(mut answer: Value) -> Result<Value, String> {
    let result = &mut answer["result"];
    if result["isError"] != false {
        let text = result["content"][0]["text"].as_str().map(str::to_owned);
        return Err(text.unwrap_or_else(|| answer.to_string()));
    }
    Ok(match result["structuredContent"].take() {
        Value::Object(mut found) if found.len() == 1 && found.contains_key("result") => {
            found["result"].take()
        }
        found => found,
    })
}

pub(super) async fn live(field: Arc<Field>, me: u32) {
    let phone = Phone::new(&field, &field.tokens[me as usize]);
    let (name, chance) = (field.plan.name(me), field.chance(me));
    let mut agent = Agent { field: &field, me, name, chance, phone, cursor: 0 };
    while field.rest(agent.chance.about(field.pause)).await {
        let done = match agent.chance.below(10) {
            0..=5 => agent.send().await,
            6..=8 => agent.read().await,
            _ => agent.reserve().await,
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
        let letter = json!({
            "project_key": REALM, "sender_name": self.name, "to": [self.field.plan.name(to)],
            "subject": mark.to_string(), "body_md": self.chance.prose(),
            "ack_required": self.chance.one_in(4),
        });
        let body = call("send_message", &letter);
        if self.chance.one_in(40) {
            let whole = self.chance.one_in(2);
            tick(if whole { &self.field.deeds.crashes } else { &self.field.deeds.half_sent });
            let _ = self.phone.abandon("POST", "/mcp", &body, whole).await;
            self.field.settle(mark, Outcome::Unknown, "");
            return Ok(());
        }
        match self.phone.ask("POST", "/mcp", &body).await {
            Ok((_, answer)) => match result(answer) {
                Ok(_) => self.field.settle(mark, Outcome::Acked, ""),
                Err(why) => self.field.settle(mark, Outcome::Refused, &why),
            },
            Err(Cut) => self.field.settle(mark, Outcome::Unknown, ""),
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Cut> {
        let given = json!({
            "project_key": REALM, "agent_name": self.name, "limit": 1000, "after_id": self.cursor,
            "include_bodies": true,
        });
        let Some(letters) = self.ask("fetch_inbox", &given).await? else { return Ok(()) };
        // The newest is first.
        for letter in letters.as_array().into_iter().flatten().rev() {
            let id = letter["id"].as_i64().unwrap_or_default();
            self.cursor = self.cursor.max(id);
            let texts = [&letter["subject"], &letter["body_md"]];
            if let Some(mark) = texts.into_iter().filter_map(Value::as_str).find_map(Mark::find) {
                self.field.ledger.at_reader(mark, Sitting::Lasting);
            }
            if letter["ack_required"] == true {
                let ack = json!({ "project_key": REALM, "agent_name": self.name, "message_id": id });
                if self.ask("acknowledge_message", &ack).await?.is_some() {
                    tick(&self.field.acked[self.me as usize]);
                    tick(&self.field.deeds.acks);
                }
            }
        }
        Ok(())
    }

    /// Takes a reservation, or gives it back.
    async fn reserve(&mut self) -> Result<(), Cut> {
        let held = &self.field.held[self.me as usize];
        let paths = [format!("src/{}/**", self.name)];
        let mut given = json!({ "project_key": REALM, "agent_name": self.name, "paths": paths });
        if held.load(Ordering::Relaxed) == 0 {
            given["ttl_seconds"] = json!(86_400);
            if self.ask("file_reservation_paths", &given).await?.is_some() {
                held.store(1, Ordering::Relaxed);
                tick(&self.field.deeds.reserved);
            }
        } else if self.ask("release_file_reservations", &given).await?.is_some() {
            held.store(0, Ordering::Relaxed);
            tick(&self.field.deeds.released);
        }
        Ok(())
    }

    /// A tool that may be called twice. Nothing if it failed, which is told.
    async fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Option<Value>, Cut> {
        let (_, answer) = self.phone.insist("POST", "/mcp", &call(tool, arguments)).await?;
        match result(answer) {
            Ok(answer) => Ok(Some(answer)),
            Err(why) => {
                self.field.refused(&why, &format!("{} {tool}", self.name));
                Ok(None)
            }
        }
    }
}
