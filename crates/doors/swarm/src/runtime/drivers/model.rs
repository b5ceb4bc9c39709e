//! An agent that is a language model behind any endpoint that speaks OpenAI's chat protocol, with tool calls and
//! streaming.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use posthaste_wire::mail::{AddressType, MailMessage, tools};
use posthaste_wire::sse;
use serde_json::{Value, json};

use super::{Reply, Turn};
use crate::runtime::definition::{ModelDefinition, ModelEndpoint, from_environment};
use crate::runtime::run_state::{HistoryEntry, ToolCall};
use posthaste_host::http::outgoing::Outgoing;

/// The longest event of a stream.
const MAX_EVENT: usize = 4 << 20;
/// How often an endpoint that is busy or out of reach is asked.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// A model that answers for an agent.
#[derive(Debug)]
pub(crate) struct Model {
    endpoint: ModelEndpoint,
    outgoing: Outgoing,
}

impl Model {
    pub(super) fn new(given: &ModelDefinition, outgoing: &Outgoing) -> Self {
        Self { endpoint: given.model.clone(), outgoing: outgoing.clone() }
    }

    pub(super) async fn take(&self, turn: &Turn) -> Result<Reply, String> {
        let base = from_environment(&self.endpoint.url).map_err(|error| error.to_string())?;
        let name = from_environment(&self.endpoint.name).map_err(|error| error.to_string())?;
        let key = self.endpoint.key_env.as_ref().and_then(|name| std::env::var(name).ok());
        let url = format!("{}/chat/completions", base.trim_end_matches('/'));
        let body = self.question(turn, &name);
        let patience = Duration::from_secs_f64(self.endpoint.timeout.clamp(0.1, 86_400.0));
        let mut attempt = 0;
        let said = loop {
            attempt += 1;
            let last = attempt == TRIES;
            let why = match self.outgoing.stream_json(&url, key.as_deref(), &body, patience).await {
                Ok((status, answer)) if status.is_success() => break self.listen(answer).await?,
                Ok((status, _)) if last || !(status.as_u16() == 429 || status.is_server_error()) => {
                    return Err(format!("the model's endpoint answered {status}"));
                }
                Ok((status, _)) => status.to_string(),
                Err(error) if last || !error.is_passing() => {
                    return Err(format!("the model's endpoint: {error}"));
                }
                Err(error) => error.to_string(),
            };
            tracing::debug!(agent = turn.agent.name, why, "the model's endpoint is asked again");
            tokio::time::sleep(PAUSE * attempt).await;
        };
        Ok(said.into_reply(turn))
    }

    fn question(&self, turn: &Turn, model: &str) -> Value {
        let mut messages = vec![json!({ "role": "system", "content": self.instructions(turn) })];
        for memory in &turn.memory {
            match memory {
                HistoryEntry::Received(mail) => {
                    messages.push(json!({ "role": "user", "content": shown(mail) }))
                }
                HistoryEntry::Called(calls, results) => {
                    let known =
                        |call: &&ToolCall| results.iter().any(|result| result.call_id == call.call_id);
                    let made: Vec<Value> = calls.iter().filter(known).map(written).collect();
                    if !made.is_empty() {
                        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": made }));
                    }
                    for result in results {
                        let role = if calls.iter().any(|call| call.call_id == result.call_id) {
                            "tool"
                        } else {
                            "user"
                        };
                        let mut message = json!({ "role": role, "content": result.content });
                        if role == "tool" {
                            message["tool_call_id"] = Value::from(result.call_id.as_str());
                        }
                        messages.push(message);
                    }
                }
            }
        }
        let function = |name: &str, about: &str, parameters: Value| json!({ "type": "function", "function": { "name": name, "description": about, "parameters": parameters } });
        let mut offered: Vec<Value> = turn
            .swarm
            .tools_of(&turn.agent)
            .map(|tool| {
                function(tool, tools::description(tool), tools::parameters(tool, &turn.agent.comm_targets))
            })
            .collect();
        for action in turn.agent.actions.iter().filter_map(|name| turn.swarm.action(name)) {
            let parameters = match &action.parameters {
                Value::Object(_) => action.parameters.clone(),
                _ => json!({ "type": "object", "properties": {} }),
            };
            offered.push(function(&action.name, &action.description, parameters));
        }
        let choice = match turn.must_complete && turn.agent.can_complete_tasks {
            true => json!({ "type": "function", "function": { "name": "task_complete" } }),
            false => json!("auto"),
        };
        json!({ "model": model, "messages": messages, "tools": offered, "tool_choice": choice, "stream": self.endpoint.stream })
    }

    fn instructions(&self, turn: &Turn) -> String {
        let (agent, swarm) = (&turn.agent, &turn.swarm);
        let given =
            [&self.endpoint.system, agent.agent_params.get("system").and_then(Value::as_str).unwrap_or("")]
                .into_iter()
                .find(|text| !text.is_empty());
        let mut text = given.unwrap_or_default().to_owned();
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!(
            "You are the agent {} of the swarm {}. You work on tasks together with other agents by sending each other \
             messages. Each message that comes for you is shown to you; answer with calls of your tools only. \
             You may write to: {}.",
            agent.name,
            swarm.name,
            agent.comm_targets.join(", ")
        ));
        if agent.can_complete_tasks {
            text.push_str(" When the task is done, call task_complete with what the user is to be told.");
        } else {
            text.push_str(" DoorResult requests with send_response to the agent that asked you.");
        }
        text
    }

    async fn listen(
        &self,
        answer: impl Stream<Item = reqwest::Result<axum::body::Bytes>>,
    ) -> Result<Said, String> {
        let mut answer = std::pin::pin!(answer);
        let mut said = Said::default();
        if !self.endpoint.stream {
            let mut whole = Vec::new();
            while let Some(piece) = answer.next().await {
                let piece = piece.map_err(|error| error.without_url().to_string())?;
                if whole.len() + piece.len() > MAX_EVENT {
                    return Err("the model's answer is too long".to_owned());
                }
                whole.extend_from_slice(&piece);
            }
            let value: Value = serde_json::from_slice(&whole)
                .map_err(|error| format!("the model's answer cannot be read: {error}"))?;
            said.add(&value["choices"][0]["message"]);
            return Ok(said);
        }
        let mut parser = sse::Parser::new(MAX_EVENT);
        let mut events = Vec::new();
        while let Some(piece) = answer.next().await {
            let piece = piece.map_err(|error| error.without_url().to_string())?;
            parser.feed(&piece, &mut events).map_err(|_| "the model's answer is too long".to_owned())?;
            for event in events.drain(..) {
                if event.data.trim() == "[DONE]" {
                    return Ok(said);
                }
                let value: Value = serde_json::from_str(&event.data)
                    .map_err(|error| format!("the model's answer cannot be read: {error}"))?;
                if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
                    return Err(format!("the model's endpoint: {error}"));
                }
                said.add(&value["choices"][0]["delta"]);
            }
        }
        Ok(said)
    }
}

/// What a model said, put together from its pieces.
#[derive(Debug, Default)]
struct Said {
    text: String,
    /// By their place in the answer: id, name, and arguments as text.
    calls: BTreeMap<u64, (String, String, String)>,
}

impl Said {
    fn add(&mut self, piece: &Value) {
        self.text.push_str(piece["content"].as_str().unwrap_or_default());
        for (n, call) in piece["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let at = call["index"].as_u64().unwrap_or(n as u64);
            let (id, name, arguments) = self.calls.entry(at).or_default();
            id.push_str(call["id"].as_str().unwrap_or_default());
            name.push_str(call["function"]["name"].as_str().unwrap_or_default());
            arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
        }
    }

    /// Models that only write text mean it for whoever asked.
    fn into_reply(self, turn: &Turn) -> Reply {
        let mut calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .filter(|(_, (_, name, _))| !name.is_empty())
            .map(|(at, (id, tool, arguments))| {
                let args = match arguments.trim() {
                    "" => json!({}),
                    text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
                };
                let call_id = if id.is_empty() { format!("call_{at}") } else { id };
                ToolCall { call_id, tool, args }
            })
            .collect();
        let text = self.text.trim();
        if calls.is_empty() && !text.is_empty() {
            let payload = &turn.in_hand.message;
            let call = match payload.sender.address_type {
                _ if turn.agent.can_complete_tasks => {
                    Some(("task_complete", json!({ "finish_message": text })))
                }
                AddressType::Agent => {
                    let subject = format!("Re: {}", payload.subject);
                    let args = json!({ "target": payload.sender.address, "subject": subject, "body": text });
                    Some(("send_response", args))
                }
                _ => None,
            };
            let call_id = "call_text".to_owned();
            calls.extend(call.map(|(tool, args)| ToolCall { call_id, tool: tool.to_owned(), args }));
        }
        Reply { calls, text: Some(self.text) }
    }
}

fn written(call: &ToolCall) -> Value {
    json!({
        "id": call.call_id,
        "type": "function",
        "function": { "name": call.tool, "arguments": call.args.to_string() },
    })
}

/// A message as a model reads it.
fn shown(mail: &MailMessage) -> String {
    let payload = &mail.message;
    let to: Vec<&str> = payload.recipients.iter().map(|one| one.address.as_str()).collect();
    format!(
        "{} from {} {} to {} at {}\nSubject: {}\n\n{}",
        mail.msg_type.as_str(),
        payload.sender.address_type.as_str(),
        payload.sender.address,
        to.join(", "),
        mail.timestamp,
        payload.subject,
        payload.body
    )
}
