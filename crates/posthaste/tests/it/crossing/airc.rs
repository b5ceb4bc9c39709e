//! An AIRC identity: signed envelopes out, the inbox in.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::{Arrived, Correspondent, Outgoing, find, text};
use crate::airc::{Agent, soon, word};

pub(super) struct AtAirc {
    pub(super) agent: Agent,
    last: String,
}

impl AtAirc {
    pub(super) fn new(agent: Agent) -> Self {
        Self { agent, last: String::new() }
    }

    async fn post(&mut self, to: &str, payload: Value) {
        let reply = self.agent.send(to, payload).await;
        assert_eq!(reply.status, 201, "to {to}: {}", reply.text);
    }
}

impl Correspondent for AtAirc {
    fn name(&self) -> String {
        self.agent.handle.clone()
    }

    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            self.last = format!("mail-{}", word());
            let payload = json!({
                "type": "context:mailbox", "message_id": self.last, "subject": message.subject, "body_md": message.body,
                "priority": message.priority, "ack_required": message.wants_ack, "thread_id": message.thread,
            });
            self.post(&message.to, payload).await;
        }
        .boxed_local()
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            let raw = find(words, async || {
                let reply = self.agent.get("/messages/inbox?limit=200&payload_type=context:mailbox").await;
                let page = reply.body["messages"].as_array().cloned().unwrap_or_default();
                page.into_iter().find(|message| message["payload"].to_string().contains(words))
            })
            .await;
            let payload = &raw["payload"];
            Arrived {
                from: text(&raw["from"]).unwrap(),
                subject: text(&payload["subject"]),
                body: text(&payload["body_md"]).unwrap(),
                thread: text(&raw["thread_id"]).or_else(|| text(&payload["thread_id"])),
                priority: text(&payload["priority"]),
                wants_ack: payload["ack_required"].as_bool(),
                raw,
            }
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()> {
        async move {
            let payload = json!({
                "type": "context:mailbox", "message_id": format!("mail-{}", word()), "body_md": body,
                "subject": format!("Re: {}", to.subject.as_deref().unwrap_or_default()), "thread_id": to.thread,
            });
            self.post(&to.from, payload).await;
        }
        .boxed_local()
    }

    fn acknowledge<'a>(&'a mut self, message: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        async move {
            let id = &message.raw["payload"]["message_id"];
            let payload = json!({ "type": "context:mailbox_ack", "message_id": id, "ack_ts": soon(0) });
            self.post(&message.from, payload).await;
        }
        .boxed_local()
    }

    fn hear_ack<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            find("the acknowledgement", async || {
                let reply =
                    self.agent.get("/messages/inbox?payload_type=context:mailbox_ack&limit=200").await;
                let page = reply.body["messages"].as_array().cloned().unwrap_or_default();
                page.into_iter().find(|one| {
                    one["from"] == message.to.as_str() && one["payload"]["message_id"] == self.last.as_str()
                })
            })
            .await;
        }
        .boxed_local()
    }
}
