//! An agent that is a language model behind any endpoint that speaks OpenAI's chat protocol, with tool calls and
//! streaming.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use posthaste_wire::mail::tools::{self, CompleteArgs, SendArgs};
use posthaste_wire::mail::{AddressType, MailMessage};
use posthaste_wire::model::{self, ChatMessage, ChatRequest, Completion, DONE, Piece, Tool, ToolChoice};
use posthaste_wire::sse;
use serde_json::{Map, Value};

use super::{Reply, Turn};
use crate::runtime::definition::from_environment;
use crate::runtime::run_state::{HistoryEntry, ToolCall, ToolResult};
use posthaste_host::http::outgoing::Outgoing;
use posthaste_wire::mail::definition::{ActionDefinition, ModelDefinition, ModelEndpoint};

/// Maximum size of an answer, or of an event of a stream, in bytes.
const MAX_EVENT: usize = 4 << 20;
/// Number of attempts at an endpoint that is busy or unreachable.
const MAX_ATTEMPTS: u32 = 4;
/// Pause after the first attempt; later ones are longer.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

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
        let body = self.request(turn, name);
        let timeout = Duration::from_secs_f64(self.endpoint.timeout.clamp(0.1, 86_400.0));
        let mut attempt = 0;
        let said = loop {
            attempt += 1;
            let last = attempt == MAX_ATTEMPTS;
            let why = match self.outgoing.stream_json(&url, key.as_deref(), &body, timeout).await {
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
            tokio::time::sleep(RETRY_PAUSE * attempt).await;
        };
        Ok(said.into_reply(turn))
    }

    fn request(&self, turn: &Turn, model: String) -> ChatRequest {
        let mut messages = vec![ChatMessage::text("system", self.instructions(turn))];
        for entry in &turn.memory {
            match entry {
                HistoryEntry::Received(mail) => messages.push(ChatMessage::text("user", mail_text(mail))),
                HistoryEntry::Called(calls, results) => {
                    let answered =
                        |call: &&ToolCall| results.iter().any(|result| result.call_id == call.call_id);
                    let made: Vec<_> = calls.iter().filter(answered).map(to_wire).collect();
                    if !made.is_empty() {
                        messages.push(ChatMessage::calls(made));
                    }
                    for ToolResult { call_id, content, .. } in results {
                        messages.push(match calls.iter().any(|call| call.call_id == *call_id) {
                            true => ChatMessage::result(call_id, content),
                            false => ChatMessage::text("user", content),
                        });
                    }
                }
            }
        }
        let targets = &turn.agent.comm_targets;
        let tool = |name| Tool::function(name, tools::description(name), tools::parameters(name, targets));
        let actions = turn.agent.actions.iter().filter_map(|name| turn.swarm.action(name));
        let action = |action: &ActionDefinition| {
            let parameters = match &action.parameters {
                Value::Object(_) => action.parameters.clone(),
                _ => tools::no_parameters(),
            };
            Tool::function(&action.name, &action.description, parameters)
        };
        let must_complete = turn.must_complete && turn.agent.can_complete_tasks;
        ChatRequest {
            model,
            messages,
            tools: turn.swarm.tools_of(&turn.agent).map(tool).chain(actions.map(action)).collect(),
            tool_choice: match must_complete {
                true => ToolChoice::function("task_complete"),
                false => ToolChoice::auto(),
            },
            stream: self.endpoint.stream,
        }
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
            text.push_str(" Answer requests with send_response to the agent that asked you.");
        }
        text
    }

    async fn listen(
        &self,
        answer: impl Stream<Item = reqwest::Result<axum::body::Bytes>>,
    ) -> Result<Answer, String> {
        let mut answer = std::pin::pin!(answer);
        let mut said = Answer::default();
        if !self.endpoint.stream {
            let mut whole = Vec::new();
            while let Some(piece) = answer.next().await {
                let piece = piece.map_err(|error| error.without_url().to_string())?;
                if whole.len() + piece.len() > MAX_EVENT {
                    return Err("the model's answer is too long".to_owned());
                }
                whole.extend_from_slice(&piece);
            }
            let completion = Completion::read(&whole)
                .map_err(|error| format!("the model's answer cannot be read: {error}"))?;
            said.add(completion.into_first().message);
            return Ok(said);
        }
        let mut parser = sse::Parser::new(MAX_EVENT);
        let mut events = Vec::new();
        while let Some(piece) = answer.next().await {
            let piece = piece.map_err(|error| error.without_url().to_string())?;
            parser.feed(&piece, &mut events).map_err(|_| "the model's answer is too long".to_owned())?;
            for event in events.drain(..) {
                if event.data.trim() == DONE {
                    return Ok(said);
                }
                let completion = Completion::read(event.data.as_bytes())
                    .map_err(|error| format!("the model's answer cannot be read: {error}"))?;
                if let Some(error) = &completion.error {
                    return Err(format!("the model's endpoint: {error}"));
                }
                said.add(completion.into_first().delta);
            }
        }
        Ok(said)
    }
}

/// An answer, assembled from its pieces.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    /// By their index in the answer: id, name, and arguments as text.
    calls: BTreeMap<u64, (String, String, String)>,
}

impl Answer {
    fn add(&mut self, piece: Piece) {
        self.text.push_str(&piece.content);
        for (n, call) in piece.tool_calls.into_iter().enumerate() {
            let (id, name, arguments) = self.calls.entry(call.index.unwrap_or(n as u64)).or_default();
            id.push_str(&call.id);
            name.push_str(&call.function.name);
            arguments.push_str(&call.function.arguments);
        }
    }

    /// A model that only writes text answers the sender, or completes the task.
    fn into_reply(self, turn: &Turn) -> Reply {
        let mut calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .filter(|(_, (_, name, _))| !name.is_empty())
            .map(|(at, (id, tool, arguments))| {
                let args = match arguments.trim() {
                    "" => Value::Object(Map::new()),
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
                    let args = CompleteArgs { finish_message: text.to_owned() };
                    Some(("task_complete", serde_json::to_value(args)))
                }
                AddressType::Agent => {
                    let subject = format!("Re: {}", payload.subject);
                    let target = payload.sender.address.clone();
                    let args = SendArgs { target, subject, body: text.to_owned() };
                    Some(("send_response", serde_json::to_value(args)))
                }
                _ => None,
            };
            let call_id = "call_text".to_owned();
            calls.extend(call.map(|(tool, args)| {
                let (tool, args) = (tool.to_owned(), args.unwrap_or_default());
                ToolCall { call_id, tool, args }
            }));
        }
        Reply { calls, text: Some(self.text) }
    }
}

fn to_wire(call: &ToolCall) -> model::ToolCall {
    model::ToolCall::new(&call.call_id, &call.tool, call.args.to_string())
}

/// A message as text for the model.
fn mail_text(mail: &MailMessage) -> String {
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
