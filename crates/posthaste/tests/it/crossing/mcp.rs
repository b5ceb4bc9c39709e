//! An agent at the MCP door.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::server::REALM;
use super::{Arrived, Correspondent, Outgoing, find, text};
use crate::mcp::client::Mcp;

pub(super) struct AtMcp {
    pub(super) mcp: Mcp,
    name: String,
    last: Value,
}

impl AtMcp {
    pub(super) fn new(mcp: Mcp, name: &str) -> Self {
        Self { mcp, name: name.to_owned(), last: Value::Null }
    }

    /// Calls a tool under this agent's name.
    pub(super) async fn call(&self, tool: &str, mut given: Value) -> Value {
        let who = match tool {
            "send_message" | "reply_message" => "sender_name",
            _ => "agent_name",
        };
        given["project_key"] = REALM.into();
        given[who] = self.name.as_str().into();
        self.mcp.call(tool, given).await
    }
}

impl Correspondent for AtMcp {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            let given = json!({
                "to": [message.to], "subject": message.subject, "body_md": message.body, "thread_id": message.thread,
                "importance": message.priority, "ack_required": message.wants_ack,
            });
            let sent = self.call("send_message", given).await;
            self.last = sent["deliveries"][0]["payload"]["id"].clone();
        }
        .boxed_local()
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            let raw = find(words, async || {
                let page = self.call("fetch_inbox", json!({ "include_bodies": true, "limit": 100 })).await;
                let mut page = page.as_array().unwrap().iter();
                page.find(|message| message["body_md"].as_str().unwrap().contains(words)).cloned()
            })
            .await;
            Arrived {
                from: text(&raw["from"]).unwrap(),
                subject: text(&raw["subject"]),
                body: text(&raw["body_md"]).unwrap(),
                thread: text(&raw["thread_id"]),
                priority: text(&raw["importance"]),
                wants_ack: raw["ack_required"].as_bool(),
                raw,
            }
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()> {
        async move {
            self.call("reply_message", json!({ "message_id": to.raw["id"], "body_md": body })).await;
        }
        .boxed_local()
    }

    fn acknowledge<'a>(&'a mut self, message: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        async move {
            self.call("acknowledge_message", json!({ "message_id": message.raw["id"] })).await;
        }
        .boxed_local()
    }

    fn hear_ack<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            let uri = format!("resource://outbox/{}?project={REALM}&limit=100", self.name);
            find("the acknowledgement", async || {
                let outbox = self.mcp.resource(&uri).await;
                let sent = outbox["messages"].as_array().unwrap().clone();
                let sent = sent.into_iter().find(|sent| sent["id"] == self.last).unwrap();
                let acks = sent["acknowledgements"].as_array().unwrap().clone();
                acks.into_iter().find(|ack| ack["agent"] == message.to.as_str())
            })
            .await;
        }
        .boxed_local()
    }
}
