//! A coding agent by MCP over plain HTTP. Its messages have no idempotency keys, so they are not sent again if the answer was
//! lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::http::{HttpClient, NoAnswer};
use super::ledger::{Outcome, ReaderSession};
use super::own::LAST_READ_EVERY;
use super::rng::Rng;
use super::shared::{REALM, Shared, tick};
use super::tag::{Channel, Tag};

struct Agent<'a> {
    shared: &'a Shared,
    me: u32,
    name: &'a str,
    rng: Rng,
    http: HttpClient<'a>,
    cursor: i64,
}

/// The request that calls a tool.
pub(super) fn call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The result of a tool, or the error as text.
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

pub(super) async fn live(shared: Arc<Shared>, me: u32) {
    let http = HttpClient::new(&shared, &shared.tokens[me as usize]);
    let (name, rng) = (shared.plan.name(me), shared.rng(me));
    let mut agent = Agent { shared: &shared, me, name, rng, http, cursor: 0 };
    while shared.rest(agent.rng.about(shared.pause)).await {
        let done = match agent.rng.below(10) {
            0..=5 => agent.send().await,
            6..=8 => agent.read().await,
            _ => agent.reserve().await,
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
        let message = json!({
            "project_key": REALM, "sender_name": self.name, "to": [self.shared.plan.name(to)],
            "subject": tag.to_string(), "body_md": self.rng.prose(),
            "ack_required": self.rng.one_in(4),
        });
        let body = call("send_message", &message);
        if self.rng.one_in(40) {
            let whole = self.rng.one_in(2);
            tick(if whole { &self.shared.actions.crashes } else { &self.shared.actions.half_sent });
            let _ = self.http.abandon("POST", "/mcp", &body, whole).await;
            self.shared.settle(tag, Outcome::Unknown, "");
            return Ok(());
        }
        match self.http.ask("POST", "/mcp", &body).await {
            Ok((_, answer)) => match result(answer) {
                Ok(_) => self.shared.settle(tag, Outcome::Acked, ""),
                Err(why) => self.shared.settle(tag, Outcome::Refused, &why),
            },
            Err(NoAnswer) => self.shared.settle(tag, Outcome::Unknown, ""),
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), NoAnswer> {
        let given = json!({
            "project_key": REALM, "agent_name": self.name, "limit": 1000, "after_id": self.cursor,
            "include_bodies": true,
        });
        let Some(messages) = self.ask("fetch_inbox", &given).await? else { return Ok(()) };
        // The newest is first.
        for message in messages.as_array().into_iter().flatten().rev() {
            let id = message["id"].as_i64().unwrap_or_default();
            self.cursor = self.cursor.max(id);
            let texts = [&message["subject"], &message["body_md"]];
            if let Some(tag) = texts.into_iter().filter_map(Value::as_str).find_map(Tag::find) {
                self.shared.ledger.at_reader(tag, ReaderSession::Durable);
            }
            if message["ack_required"] == true {
                let ack = json!({ "project_key": REALM, "agent_name": self.name, "message_id": id });
                if self.ask("acknowledge_message", &ack).await?.is_some() {
                    tick(&self.shared.acked[self.me as usize]);
                    tick(&self.shared.actions.acks);
                }
            }
        }
        Ok(())
    }

    /// Makes a reservation, or releases it.
    async fn reserve(&mut self) -> Result<(), NoAnswer> {
        let held = &self.shared.held[self.me as usize];
        let paths = [format!("src/{}/**", self.name)];
        let mut given = json!({ "project_key": REALM, "agent_name": self.name, "paths": paths });
        if held.load(Ordering::Relaxed) == 0 {
            given["ttl_seconds"] = json!(86_400);
            if self.ask("file_reservation_paths", &given).await?.is_some() {
                held.store(1, Ordering::Relaxed);
                tick(&self.shared.actions.reserved);
            }
        } else if self.ask("release_file_reservations", &given).await?.is_some() {
            held.store(0, Ordering::Relaxed);
            tick(&self.shared.actions.released);
        }
        Ok(())
    }

    /// Calls a tool that may be repeated. None if it failed, which is noted.
    async fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Option<Value>, NoAnswer> {
        let (_, answer) = self.http.ask_until_answered("POST", "/mcp", &call(tool, arguments)).await?;
        match result(answer) {
            Ok(answer) => Ok(Some(answer)),
            Err(why) => {
                self.shared.refused(&why, &format!("{} {tool}", self.name));
                Ok(None)
            }
        }
    }
}
