//! An agent that speaks MAP.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::{Arrived, Correspondent, Outgoing, text};
use crate::map::client::Client;

pub(super) struct AtMap {
    pub(super) client: Client,
    pub(super) name: String,
    last: Value,
}

impl AtMap {
    pub(super) async fn connect(url: &str, token: &str, name: &str) -> Self {
        let mut client = Client::agent_at(url, token, name).await;
        let filter = json!({ "filter": { "eventTypes": ["message_acknowledged"] } });
        client.call("map/subscribe", filter).await.unwrap();
        Self { client, name: name.to_owned(), last: Value::Null }
    }

    /// Sends a payload and a meta unchanged.
    pub(super) async fn send_raw(&mut self, to: &str, payload: Value, meta: Value) -> Value {
        let params = json!({ "to": { "agent": to }, "payload": payload, "meta": meta });
        self.client.call("map/send", params).await.unwrap()
    }
}

impl Correspondent for AtMap {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            let payload = json!({ "subject": message.subject, "body": message.body });
            let meta = json!({
                "priority": message.priority, "requireAck": message.wants_ack,
                "mail": { "conversationId": message.thread },
            });
            self.last = self.send_raw(&message.to, payload, meta).await;
            let receipt = &self.last["receipts"][0];
            assert!(
                receipt["agentId"] == message.to.as_str() && receipt["status"] != "failed",
                "{}",
                self.last
            );
        }
        .boxed_local()
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            let wanted = |frame: &Value| {
                frame["method"] == "map/message"
                    && frame["params"]["message"]["payload"].to_string().contains(words)
            };
            let raw = self.client.next(wanted).await["params"]["message"].take();
            let (payload, meta) = (&raw["payload"], &raw["meta"]);
            Arrived {
                from: text(&raw["from"]).unwrap(),
                subject: text(&payload["subject"]),
                body: text(&payload["body"]).unwrap_or_else(|| payload.to_string()),
                thread: text(&meta["mail"]["conversationId"]),
                priority: text(&meta["priority"]),
                wants_ack: Some(meta["requireAck"] == true),
                raw,
            }
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()> {
        async move {
            let subject = format!("Re: {}", to.subject.as_deref().unwrap_or_default());
            let meta = json!({ "mail": { "conversationId": to.thread } });
            self.send_raw(&to.from, json!({ "subject": subject, "body": body }), meta).await;
        }
        .boxed_local()
    }

    fn acknowledge<'a>(&'a mut self, _: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        // MAP acknowledges when the message is delivered.
        async {}.boxed_local()
    }

    fn hear_ack<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            let id = self.last["messageId"].clone();
            let wanted = |frame: &Value| {
                let event = &frame["params"]["event"];
                frame["method"] == "map/event"
                    && event["type"] == "message_acknowledged"
                    && event["data"]["messageId"] == id
                    && event["data"]["agentId"] == message.to.as_str()
            };
            self.client.next(wanted).await;
        }
        .boxed_local()
    }
}
