//! An agent by the office's own methods: every letter has a key, so that one whose answer was lost is sent again and
//! counts once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::chance::Chance;
use super::field::{Field, tick};
use super::ledger::{Outcome, Sitting};
use super::mark::{Channel, Mark};
use super::phone::{Cut, Phone};
use posthaste_wire::control;

/// How often the inbox is looked into when there is nothing else to do any more.
pub(super) const LAST_LOOKS: Duration = Duration::from_millis(300);

struct Agent<'a> {
    field: &'a Field,
    me: u32,
    name: &'a str,
    chance: Chance,
    phone: Phone<'a>,
    /// The last letter it has read.
    cursor: i64,
}

pub(super) async fn live(field: Arc<Field>, me: u32) {
    let phone = Phone::new(&field, &field.token);
    let (name, chance) = (field.plan.name(me), field.chance(me));
    let mut agent = Agent { field: &field, me, name, chance, phone, cursor: 0 };
    while field.rest(agent.chance.about(field.pause)).await {
        // Only the end of everything interrupts it in the middle.
        let done = match agent.chance.below(10) {
            0..=5 => agent.send().await,
            6..=7 => agent.read().await,
            8 => agent.reserve().await,
            _ => agent.search().await,
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
            "from": self.name, "to": [self.field.plan.name(to)], "subject": mark.to_string(),
            "body": self.chance.prose(), "key": mark.to_string(),
            "ack_required": self.chance.one_in(4),
        });
        if self.chance.one_in(30) {
            // It forgets that it has asked, and asks again under the same key.
            tick(&self.field.deeds.crashes);
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("{}send", control::PREFIX), "params": letter });
            let whole = self.chance.one_in(2);
            let _ = self.phone.abandon("POST", control::PATH, &body.to_string(), whole).await;
        }
        match self.phone.own_surely("send", &letter).await {
            Ok(Ok(_)) => self.field.settle(mark, Outcome::Acked, ""),
            Ok(Err(why)) => self.field.settle(mark, Outcome::Refused, &why),
            Err(Cut) => {
                self.field.settle(mark, Outcome::Unknown, "");
                return Err(Cut);
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Cut> {
        loop {
            let page = json!({ "agent": self.name, "after": self.cursor, "order": "oldest", "limit": 200 });
            let Some(page) = self.ask("inbox", &page).await? else { return Ok(()) };
            let letters = page["messages"].as_array().cloned().unwrap_or_default();
            for letter in &letters {
                self.cursor = letter["seq"].as_i64().unwrap_or(self.cursor);
                if let Some(mark) = mark_of(letter) {
                    self.field.ledger.at_reader(mark, Sitting::Lasting);
                }
                if letter["ack_required"] == true {
                    let ack = json!({ "agent": self.name, "message": letter["id"] });
                    if self.ask("ack", &ack).await?.is_some() {
                        tick(&self.field.acked[self.me as usize]);
                        tick(&self.field.deeds.acks);
                    }
                }
            }
            if letters.is_empty() {
                return Ok(());
            }
        }
    }

    /// Takes a reservation, or gives it back.
    async fn reserve(&mut self) -> Result<(), Cut> {
        let held = &self.field.held[self.me as usize];
        if held.load(Ordering::Relaxed) == 0 {
            // A name for each, which makes asking again harmless.
            let key = format!("soak-{:x}", self.chance.next());
            let given = json!({
                "agent": self.name, "key": key, "scope": "project:own", "paths": [format!("src/{}/**", self.name)],
                "expires_at": stamp::now() + 24 * 3_600_000,
            });
            if self.ask("reserve", &given).await?.is_some() {
                held.store(1, Ordering::Relaxed);
                tick(&self.field.deeds.reserved);
            }
        } else if self.ask("release", &json!({ "agent": self.name, "scope": "project:own" })).await?.is_some()
        {
            held.store(0, Ordering::Relaxed);
            tick(&self.field.deeds.released);
        }
        Ok(())
    }

    async fn search(&mut self) -> Result<(), Cut> {
        let query = json!({ "agent": self.name, "query": "tests files", "newest": true, "limit": 5 });
        self.ask("search", &query).await?;
        tick(&self.field.deeds.searches);
        Ok(())
    }

    /// Something that may be asked twice. Nothing if it was refused, which is told.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Cut> {
        match self.phone.own_surely(method, params).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(why) => {
                self.field.refused(&why, &format!("{} {method}", self.name));
                Ok(None)
            }
        }
    }
}

/// The mark of a letter as the office's own methods show it.
pub(super) fn mark_of(letter: &Value) -> Option<Mark> {
    letter["subject"].as_str().and_then(Mark::find).or_else(|| match &letter["body"] {
        Value::String(text) => Mark::find(text),
        other => Mark::find(&other.to_string()),
    })
}
