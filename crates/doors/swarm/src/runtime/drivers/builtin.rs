//! The office's own agents: they say back, pass on, or do what the message lists. For trying things out.

use posthaste_wire::mail::{AddressType, MailMessage, MsgType, split};
use serde_json::{Value, json};

use super::{Reply, Turn};
use crate::runtime::definition::{Builtin, BuiltinDefinition};
use crate::runtime::run_state::{HistoryEntry, ToolCall};

/// One of the office's own agents.
#[derive(Debug)]
pub(crate) struct Own {
    kind: Builtin,
    to: String,
    /// How an answer is worded: `{self}` is the agent's name, `{body}` what it heard.
    say: Option<String>,
}

impl Own {
    pub(super) fn new(given: &BuiltinDefinition) -> Self {
        Self { kind: given.builtin, to: given.to.clone().unwrap_or_default(), say: given.say.clone() }
    }

    pub(crate) fn take(&self, turn: &Turn) -> Reply {
        let calls = match self.kind {
            Builtin::Echo => echo(turn, &turn.in_hand, &self.worded(turn)),
            Builtin::Relay => self.relay(turn),
            Builtin::Script => script(turn),
        };
        let name = |(n, (tool, args)): (usize, (String, Value))| ToolCall {
            call_id: format!("call_{n}"),
            tool,
            args,
        };
        Reply { calls: calls.into_iter().enumerate().map(name).collect(), text: None }
    }

    /// What the agent says to what it heard. The system's own words are passed on as they are.
    fn worded(&self, turn: &Turn) -> String {
        let payload = &turn.in_hand.message;
        match &self.say {
            Some(say) if payload.sender.address_type != AddressType::System => {
                say.replace("{self}", &turn.agent.name).replace("{body}", &payload.body)
            }
            _ => payload.body.clone(),
        }
    }

    fn relay(&self, turn: &Turn) -> Vec<(String, Value)> {
        let (mail, payload) = (&turn.in_hand, &turn.in_hand.message);
        let asks = mail.msg_type == MsgType::Request || mail.msg_type == MsgType::Interrupt;
        if payload.sender.address_type != AddressType::System && asks && !turn.must_complete {
            return one(
                "send_request",
                json!({ "target": self.to, "subject": payload.subject, "body": payload.body }),
            );
        }
        if mail.msg_type == MsgType::Broadcast && payload.sender.address_type == AddressType::Agent {
            return one("acknowledge_broadcast", json!({}));
        }
        let said = self.worded(turn);
        if turn.agent.can_complete_tasks {
            return one("task_complete", json!({ "finish_message": said }));
        }
        // The answer goes to whoever asked before this came.
        let asker = turn.memory.iter().rev().find_map(|memory| match memory {
            HistoryEntry::Received(heard) if heard.msg_type == MsgType::Request => Some(heard),
            _ => None,
        });
        let target =
            asker.map_or(turn.swarm.entrypoint.as_str(), |asker| asker.message.sender.address.as_str());
        one("send_response", json!({ "target": target, "subject": payload.subject, "body": said }))
    }
}

fn one(tool: &str, args: Value) -> Vec<(String, Value)> {
    vec![(tool.to_owned(), args)]
}

fn echo(turn: &Turn, mail: &MailMessage, said: &str) -> Vec<(String, Value)> {
    let payload = &mail.message;
    if mail.msg_type == MsgType::Broadcast && payload.sender.address_type == AddressType::Agent {
        return one("acknowledge_broadcast", json!({}));
    }
    if turn.agent.can_complete_tasks {
        return one("task_complete", json!({ "finish_message": said }));
    }
    let target = match payload.sender.address_type {
        AddressType::System => turn.swarm.entrypoint.as_str(),
        _ => payload.sender.address.as_str(),
    };
    one(
        "send_response",
        json!({ "target": target, "subject": format!("Re: {}", payload.subject), "body": said }),
    )
}

/// Makes the calls that the message lists as `{"calls": [{"tool", "args"}]}`; without such a list it says back what it
/// is told, marked with its name, and the supervisor completes the task with what it is told.
fn script(turn: &Turn) -> Vec<(String, Value)> {
    let (mail, payload) = (&turn.in_hand, &turn.in_hand.message);
    let is_agent = payload.sender.address_type != AddressType::System;
    if is_agent
        && payload.body.starts_with('{')
        && let Ok(Value::Object(mut script)) = serde_json::from_str(&payload.body)
        && let Some(Value::Array(calls)) = script.remove("calls")
    {
        let read = |call: Value| {
            let tool = call.get("tool")?.as_str()?.to_owned();
            Some((tool, call.get("args").cloned().unwrap_or_default()))
        };
        return calls.into_iter().filter_map(read).collect();
    }
    if turn.agent.can_complete_tasks || (mail.msg_type == MsgType::Broadcast && is_agent) {
        return echo(turn, mail, &payload.body);
    }
    let (me, body, subject) = (&turn.agent.name, &payload.body, &payload.subject);
    let args = match (mail.msg_type, split(&payload.sender.address)) {
        (MsgType::Response, _) => {
            json!({ "target": turn.swarm.entrypoint, "subject": subject, "body": format!("{me}<{body}") })
        }
        (kind, _) => {
            let mark = if kind == MsgType::Interrupt { '!' } else { ':' };
            let target = payload.sender.address.as_str();
            json!({ "target": target, "subject": format!("Re: {subject}"), "body": format!("{me}{mark}{body}") })
        }
    };
    one("send_response", args)
}
