//! An agent by posthaste's own methods: every message has an idempotency key, so that it can be sent again if the answer was
//! lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_engine::stamp;
use posthaste_wire::control::{
    Delivery, InboxMessage, InboxOrder, InboxParams, InboxResult, MarkParams, Message, PageSize,
    ReleaseParams, ReleaseResult, ReserveParams, ReserveResult, SearchParams, SearchResult, SendParams,
    SendResult,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::to_raw_value;

use super::http::{HttpClient, NoAnswer};
use super::ledger::{Outcome, ReaderSession};
use super::rng::Rng;
use super::shared::{Shared, tick};
use super::tag::{Channel, Tag};
use crate::clients::own_request;
use posthaste_wire::control;

/// How often the inbox is read after the work has ended.
pub(super) const LAST_READ_EVERY: Duration = Duration::from_millis(300);

/// Messages of one page.
const PAGE: usize = 200;
/// The scope of the agents' reservations.
const SCOPE: &str = "project:own";

struct Agent<'a> {
    shared: &'a Shared,
    me: u32,
    name: &'a str,
    rng: Rng,
    http: HttpClient<'a>,
    /// The last message it has read.
    cursor: i64,
}

pub(super) async fn live(shared: Arc<Shared>, me: u32) {
    let http = HttpClient::new(&shared, &shared.token);
    let (name, rng) = (shared.plan.name(me), shared.rng(me));
    let mut agent = Agent { shared: &shared, me, name, rng, http, cursor: 0 };
    while shared.rest(agent.rng.about(shared.pause)).await {
        // Fails only if agents are to leave.
        let done = match agent.rng.below(10) {
            0..=5 => agent.send().await,
            6..=7 => agent.read().await,
            8 => agent.reserve().await,
            _ => agent.search().await,
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
        let params = SendParams {
            from: Some(self.name.to_owned()),
            to: vec![self.shared.plan.name(to).to_owned()],
            cc: Vec::new(),
            bcc: Vec::new(),
            kind: String::new(),
            subject: Some(tag.to_string()),
            body: to_raw_value(&self.rng.prose()).map_err(|_| NoAnswer)?,
            priority: None,
            ack_required: self.rng.one_in(4),
            expires_at: None,
            conversation: None,
            in_reply_to: None,
            key: Some(tag.to_string()),
            attachments: Vec::new(),
        };
        if self.rng.one_in(30) {
            // A crash: the message is sent again under the same key.
            tick(&self.shared.actions.crashes);
            let body = own_request("send", &params).map_err(|_| NoAnswer)?;
            let whole = self.rng.one_in(2);
            let _ = self.http.abandon("POST", control::PATH, &body, whole).await;
        }
        match self.http.own_until_answered::<SendResult>("send", &params).await {
            Ok(Ok(_)) => self.shared.settle(tag, Outcome::Acked, ""),
            Ok(Err(why)) => self.shared.settle(tag, Outcome::Refused, &why),
            Err(NoAnswer) => {
                self.shared.settle(tag, Outcome::Unknown, "");
                return Err(NoAnswer);
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), NoAnswer> {
        loop {
            let params = InboxParams {
                agent: Some(self.name.to_owned()),
                after: Some(self.cursor),
                order: InboxOrder::Oldest,
                limit: PageSize(PAGE),
                ..InboxParams::default()
            };
            let Some(page) = self.ask::<InboxResult>("inbox", &params).await? else { return Ok(()) };
            for InboxMessage { message, .. } in &page.messages {
                self.cursor = message.seq;
                if let Some(tag) = tag_of(message) {
                    self.shared.ledger.at_reader(tag, ReaderSession::Durable);
                }
                if message.ack_required {
                    let ack = MarkParams {
                        agent: Some(self.name.to_owned()),
                        message: message.id.clone(),
                        response: None,
                    };
                    if self.ask::<Delivery>("ack", &ack).await?.is_some() {
                        tick(&self.shared.acked[self.me as usize]);
                        tick(&self.shared.actions.acks);
                    }
                }
            }
            if page.messages.is_empty() {
                return Ok(());
            }
        }
    }

    /// Makes a reservation, or releases it.
    async fn reserve(&mut self) -> Result<(), NoAnswer> {
        let held = &self.shared.held[self.me as usize];
        if held.load(Ordering::Relaxed) == 0 {
            let params = ReserveParams {
                agent: Some(self.name.to_owned()),
                // Its own key makes the request safe to repeat.
                key: Some(format!("soak-{:x}", self.rng.next())),
                scope: SCOPE.to_owned(),
                directory: None,
                paths: vec![format!("src/{}/**", self.name)],
                exclusive: true,
                reason: None,
                expires_at: stamp::now() + 24 * 3_600_000,
            };
            if self.ask::<ReserveResult>("reserve", &params).await?.is_some() {
                held.store(1, Ordering::Relaxed);
                tick(&self.shared.actions.reserved);
            }
            return Ok(());
        }
        let params = ReleaseParams {
            agent: Some(self.name.to_owned()),
            scope: Some(SCOPE.to_owned()),
            ..ReleaseParams::default()
        };
        if self.ask::<ReleaseResult>("release", &params).await?.is_some() {
            held.store(0, Ordering::Relaxed);
            tick(&self.shared.actions.released);
        }
        Ok(())
    }

    async fn search(&mut self) -> Result<(), NoAnswer> {
        let params = SearchParams {
            agent: Some(self.name.to_owned()),
            query: "tests files".to_owned(),
            newest: true,
            limit: PageSize(5),
            ..SearchParams::default()
        };
        self.ask::<SearchResult>("search", &params).await?;
        tick(&self.shared.actions.searches);
        Ok(())
    }

    /// Calls a method that may be repeated. None if it was refused, which is noted.
    async fn ask<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Option<R>, NoAnswer> {
        match self.http.own_until_answered(method, params).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(why) => {
                self.shared.refused(&why, &format!("{} {method}", self.name));
                Ok(None)
            }
        }
    }
}

/// The tag of a message in an answer of posthaste's own methods.
pub(super) fn tag_of(message: &Message) -> Option<Tag> {
    message.subject.as_deref().and_then(Tag::find).or_else(|| match &message.body {
        Value::String(text) => Tag::find(text),
        other => Tag::find(&other.to_string()),
    })
}
