//! An agent with a mailbox of files only.

use std::path::PathBuf;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::{Arrived, Correspondent, Outgoing, find, text};
use crate::airc::word;
use crate::files::{drop_file, on};

pub(super) struct InFiles {
    mail: PathBuf,
    name: String,
}

impl InFiles {
    pub(super) fn new(mail: PathBuf, name: &str) -> Self {
        std::fs::create_dir_all(mail.join(name)).unwrap();
        Self { mail, name: name.to_owned() }
    }

    /// Writes a file as other implementations do, with posthaste's own fields.
    fn write(&self, to: &str, more: &Value) {
        let at = posthaste_wire::time::to_rfc3339(posthaste_engine::stamp::now());
        let mut file =
            json!({ "from": self.name, "to": to, "type": "coordination", "timestamp": at, "read": false });
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let name = format!("{}-{}{}.json", at.replace(':', "-"), self.name, &word()[..6]);
        drop_file(&self.mail, to, &name, &file.to_string());
    }
}

impl Correspondent for InFiles {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            // The file format has three priorities; posthaste's `importance` is the fourth.
            let (priority, importance) = match message.priority {
                "high" => ("urgent", json!("high")),
                other => (other, Value::Null),
            };
            let fields = json!({
                "subject": message.subject, "body": message.body, "thread_id": message.thread,
                "priority": priority, "importance": importance, "ack_required": message.wants_ack,
            });
            self.write(&message.to, &fields);
        }
        .boxed_local()
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            let raw = find(words, async || {
                for entry in std::fs::read_dir(self.mail.join(&self.name)).unwrap() {
                    let path = entry.unwrap().path();
                    // Files that are still being written have another extension.
                    if path.extension().is_none_or(|end| end != "json") {
                        continue;
                    }
                    let Ok(content) = std::fs::read_to_string(&path) else { continue };
                    let Ok(mut file) = serde_json::from_str::<Value>(&content) else { continue };
                    if file["body"].as_str().is_some_and(|body| body.contains(words)) {
                        file["file"] = path.file_name().unwrap().to_str().unwrap().into();
                        return Some(file);
                    }
                }
                None
            })
            .await;
            let priority = text(&raw["importance"]).or_else(|| text(&raw["priority"]));
            Arrived {
                from: text(&raw["from"]).unwrap(),
                subject: text(&raw["subject"]),
                body: text(&raw["body"]).unwrap(),
                thread: text(&raw["thread_id"]),
                priority,
                wants_ack: Some(raw["ack_required"] == "true" || raw["ack_required"] == true),
                raw,
            }
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, to: &'a Arrived, body: &'a str) -> LocalBoxFuture<'a, ()> {
        async move {
            let fields = json!({
                "subject": format!("Re: {}", to.subject.as_deref().unwrap_or_default()), "body": body,
                "priority": "normal", "thread_id": to.thread, "in_reply_to": to.raw["message_id"],
            });
            self.write(&to.from, &fields);
        }
        .boxed_local()
    }

    fn acknowledge<'a>(&'a mut self, message: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        async move {
            let who = format!("--agent={}", self.name);
            on(&self.mail, "read", &[&who, message.raw["file"].as_str().unwrap()]).ok();
        }
        .boxed_local()
    }

    fn hear_ack<'a>(&'a mut self, _: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        unreachable!("a mailbox of files shows its owner nothing of what it sent")
    }
}
