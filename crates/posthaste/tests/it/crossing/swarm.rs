//! Agents that the server hosts: `boss`, which carries out a user's tasks, and `parrot`, which answers.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::server::Turns;
use super::{Arrived, Correspondent, Outgoing, find, text};

/// The agent `boss` and the user who gives it tasks.
pub(super) struct InSwarm {
    http: reqwest::Client,
    url: String,
    token: String,
    tasks: Vec<(String, JoinHandle<Value>)>,
}

impl InSwarm {
    pub(super) fn new(url: &str, token: String) -> Self {
        Self { http: reqwest::Client::new(), url: url.to_owned(), token, tasks: Vec::new() }
    }
}

impl Correspondent for InSwarm {
    fn name(&self) -> String {
        "boss".to_owned()
    }

    fn send<'a>(&'a mut self, message: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        async move {
            let args = json!({ "target": message.to, "subject": message.subject, "body": message.body });
            let script = json!({ "calls": [{ "tool": "send_request", "args": args }] }).to_string();
            let body = json!({ "body": script, "subject": "errand", "task_id": message.thread });
            let request =
                self.http.post(format!("{}/message", self.url)).bearer_auth(&self.token).json(&body);
            let task = tokio::spawn(async move { request.send().await.unwrap().json().await.unwrap() });
            self.tasks.push((message.thread.clone(), task));
        }
        .boxed_local()
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            // The answer ends the task.
            let (task, answer) = self.tasks.pop().expect("a running task");
            let raw =
                tokio::time::timeout(super::CROSSING_TIMEOUT, answer).await.expect("the task ends").unwrap();
            let events = self.http.get(format!("{}/task?task_id={task}", self.url)).bearer_auth(&self.token);
            let record: Value = events.send().await.unwrap().json().await.unwrap();
            let mail = messages_in(&record).into_iter().rev().find(|mail| {
                mail["message"]["body"].as_str().is_some_and(|body| body.contains(words))
                    && mail["msg_type"] == "response"
            });
            let mail = mail.unwrap_or_else(|| panic!("{words} is not in {record}"));
            assert!(raw["response"].as_str().unwrap().contains(words), "{raw}");
            Arrived { thread: Some(task), ..mail_of(&mail) }
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, _: &'a Arrived, _: &'a str) -> LocalBoxFuture<'a, ()> {
        unreachable!("boss only sends")
    }

    fn acknowledge<'a>(&'a mut self, _: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        unreachable!("boss only sends")
    }

    fn hear_ack<'a>(&'a mut self, _: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        unreachable!("MAIL has no acknowledgements of requests")
    }
}

/// All messages in a task's record, at any depth.
fn messages_in(record: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    let mut open = vec![record];
    while let Some(value) = open.pop() {
        if value["msg_type"].is_string() && value["message"]["body"].is_string() {
            found.push(value.clone());
        }
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found.sort_by_key(|mail| mail["timestamp"].to_string());
    found
}

fn mail_of(mail: &Value) -> Arrived {
    let payload = &mail["message"];
    let outside = &payload["routing_info"];
    let words = ["", "urgent", "high", "normal", "low", "bulk"];
    Arrived {
        from: text(&payload["sender"]["address"]).unwrap(),
        subject: text(&payload["subject"]),
        body: text(&payload["body"]).unwrap(),
        thread: text(&outside["thread_id"]).or_else(|| text(&payload["task_id"])),
        priority: outside["priority"].as_u64().map(|tier| words[tier as usize].to_owned()),
        wants_ack: outside["door"].is_string().then_some(outside["ack_required"] == true),
        raw: mail.clone(),
    }
}

/// The agent `parrot`, an HTTP program: it received what its turns contain, and answers by itself.
pub(super) struct Hosted {
    turns: Turns,
}

impl Hosted {
    pub(super) fn new(turns: Turns) -> Self {
        Self { turns }
    }
}

impl Correspondent for Hosted {
    fn name(&self) -> String {
        "parrot".to_owned()
    }

    fn send<'a>(&'a mut self, _: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        unreachable!("parrot only answers")
    }

    fn receive<'a>(&'a mut self, words: &'a str) -> LocalBoxFuture<'a, Arrived> {
        async move {
            find(words, async || {
                let turns = self.turns.lock().unwrap();
                let mail = turns.iter().filter_map(|turn| turn["inbox"].as_array()?.last());
                mail.map(mail_of).find(|mail| mail.body.contains(words))
            })
            .await
        }
        .boxed_local()
    }

    fn reply<'a>(&'a mut self, _: &'a Arrived, _: &'a str) -> LocalBoxFuture<'a, ()> {
        async {}.boxed_local()
    }

    fn acknowledge<'a>(&'a mut self, _: &'a Arrived) -> LocalBoxFuture<'a, ()> {
        async {}.boxed_local()
    }

    fn hear_ack<'a>(&'a mut self, _: &'a Outgoing) -> LocalBoxFuture<'a, ()> {
        unreachable!("parrot only answers")
    }
}
