//! A MAP agent: a WebSocket that stays open, as the SDK's does.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use posthaste_wire::control::RefusalData;
use posthaste_wire::map::codes;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::cannot;
use crate::cli::demo::stage::Stage;
use crate::cli::demo::story::{Act, Part, Props};
use crate::cli::exit::{Exit, Failure, Refused};

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(in crate::cli::demo) struct MapPlayer {
    name: String,
    sink: SplitSink<WebSocketStream<TcpStream>, Message>,
    frames: SplitStream<WebSocketStream<TcpStream>>,
    calls: u64,
}

fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Unreachable, format!("the connection by MAP broke: {why}"))
}

impl MapPlayer {
    pub(super) async fn enter(stage: &Stage, part: &Part) -> Result<Self, Failure> {
        let Some(host) = stage.url().strip_prefix("http://") else {
            return Err(Failure::new(Exit::Usage, "the demo needs a server without TLS"));
        };
        let mut request =
            format!("ws://{host}/r/{}/map", stage.realm()).into_client_request().map_err(lost)?;
        let bearer = format!("Bearer {}", stage.token(part.name).await?).parse().map_err(lost)?;
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(host).await.map_err(lost)?;
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.map_err(lost)?;
        let (sink, frames) = socket.split();
        let mut player = Self { name: part.name.to_owned(), sink, frames, calls: 0 };
        player.call("map/connect", json!({ "protocolVersion": 1, "participantType": "agent" })).await?;
        let mut entry = json!({
            "agentId": part.name, "name": part.name, "role": part.role, "description": part.about,
            "scopes": part.scopes, "state": "active",
        });
        if let Some(parent) = part.parent {
            entry["parent"] = parent.into();
        }
        player.call("map/agents/register", entry).await?;
        Ok(player)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.calls += 1;
        let id = self.calls;
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        self.sink.send(Message::text(frame)).await.map_err(lost)?;
        loop {
            let frame = tokio::time::timeout(ANSWER_TIMEOUT, self.frames.next()).await.map_err(lost)?;
            let frame = frame.ok_or_else(|| lost("it was closed"))?.map_err(lost)?;
            let Message::Text(text) = frame else { continue };
            let mut frame: Value = serde_json::from_str(&text)?;
            // Messages and events in between are in the database, too.
            if frame["id"] != id || frame.get("method").is_some() {
                continue;
            }
            return match frame.get("error") {
                Some(error) => {
                    let word =
                        if error["code"] == codes::AGENT_EXISTS { "agent_exists" } else { "not_allowed" };
                    let message = error["message"].as_str().unwrap_or("refused");
                    let data = RefusalData { refusal: word.to_owned(), agent: None };
                    Err(Refused::failure(message.to_owned(), data))
                }
                None => Ok(frame["result"].take()),
            };
        }
    }

    pub(super) async fn perform(&mut self, props: &Props, act: &Act) -> Result<Option<String>, Failure> {
        match act {
            Act::Send(draft) => {
                let to: Vec<Value> = draft.to.iter().map(|to| address(to)).collect();
                let to = if let [one] = to.as_slice() { one.clone() } else { Value::Array(to) };
                let mut meta = json!({ "priority": word(draft.priority), "delivery": "guaranteed", "requireAck": draft.ack });
                if let Some(millis) = draft.expires_in {
                    meta["ttl"] = millis.into();
                }
                if let Some(name) = &draft.within {
                    meta["mail"] = json!({ "conversationId": props.id(name) });
                }
                let payload = json!({ "type": draft.kind, "subject": draft.subject, "text": draft.body });
                self.call("map/send", json!({ "to": to, "payload": payload, "meta": meta })).await?;
                Ok(None)
            }
            Act::Task { prop, title, about, assignee } => {
                let task = json!({ "id": prop, "title": title, "description": about, "assignee": assignee, "status": "open" });
                let made = self.call("map/tasks/create", json!({ "task": task })).await?;
                Ok(made["task"]["id"].as_str().map(str::to_owned))
            }
            Act::Move { task, status, result } => {
                let mut change = json!({ "taskId": props.id(task), "status": status });
                if let Some(result) = result {
                    change["result"] = json!({ "summary": result });
                }
                self.call("map/tasks/update", change).await?;
                Ok(None)
            }
            Act::Open { subject, with, first, .. } => {
                let with: Vec<Value> =
                    with.iter().map(|id| json!({ "id": id, "role": "assistant" })).collect();
                let params = json!({
                    "type": "multi-agent", "subject": subject, "initialParticipants": with,
                    "initialTurn": { "contentType": "text", "content": { "text": first } },
                });
                let made = self.call("mail/create", params).await?;
                Ok(made["conversation"]["id"].as_str().map(str::to_owned))
            }
            Act::Say { conversation, text, thread, only, .. } => {
                let mut params = json!({ "conversationId": props.id(conversation), "contentType": "text", "content": { "text": text } });
                if let Some(thread) = thread {
                    params["threadId"] = props.id(thread).into();
                }
                if let Some(only) = only {
                    params["visibility"] = json!({ "type": "participants", "ids": only });
                }
                let said = self.call("mail/turn", params).await?;
                Ok(said["turn"]["id"].as_str().map(str::to_owned))
            }
            Act::Thread { conversation, root, subject, .. } => {
                let params = json!({ "conversationId": props.id(conversation), "rootTurnId": props.id(root), "subject": subject });
                let made = self.call("mail/thread/create", params).await?;
                Ok(made["thread"]["id"].as_str().map(str::to_owned))
            }
            Act::State(state) => {
                self.call("map/agents/update", json!({ "agentId": self.name, "state": state })).await?;
                Ok(None)
            }
            Act::AnswerMail | Act::Reserve { .. } | Act::Release { .. } => Err(cannot(act)),
        }
    }
}

/// An address in MAP's form.
fn address(word: &str) -> Value {
    match word.split_once(':') {
        Some(("scope", id)) => json!({ "scope": id }),
        Some(("role", id)) => json!({ "role": id }),
        _ if word == "all" => json!({ "broadcast": true }),
        _ if word == "children" => json!({ "children": true }),
        _ => json!({ "agent": word }),
    }
}

fn word(priority: u8) -> &'static str {
    match priority {
        1 => "urgent",
        2 => "high",
        4 | 5 => "low",
        _ => "normal",
    }
}
