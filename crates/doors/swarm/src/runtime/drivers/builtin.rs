//! The server's own agents, for tests and demonstrations: they echo, relay, or make the calls that the message lists.

use posthaste_wire::mail::tools::{CompleteArgs, NoArgs, SendArgs};
use posthaste_wire::mail::{AddressType, MailMessage, MsgType};
use serde::Serialize;
use serde_json::Value;

use super::{Reply, Turn};
use crate::runtime::run_state::{HistoryEntry, ToolCall};
use posthaste_wire::mail::definition::{Builtin, BuiltinDefinition};

/// One of the server's own agents.
#[derive(Debug)]
pub(crate) struct Own {
    kind: Builtin,
    to: String,
    /// Template of its answers: `{self}` is the agent's name, `{body}` the message's body.
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

    /// The answer to the message. Bodies of system messages are passed on unchanged.
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
            return send("send_request", &self.to, payload.subject.clone(), payload.body.clone());
        }
        if mail.msg_type == MsgType::Broadcast && payload.sender.address_type == AddressType::Agent {
            return one("acknowledge_broadcast", NoArgs {});
        }
        let said = self.worded(turn);
        if turn.agent.can_complete_tasks {
            return one("task_complete", CompleteArgs { finish_message: said.to_owned() });
        }
        // The answer goes to the sender of the latest request.
        let asker = turn.memory.iter().rev().find_map(|memory| match memory {
            HistoryEntry::Received(heard) if heard.msg_type == MsgType::Request => Some(heard),
            _ => None,
        });
        let target =
            asker.map_or(turn.swarm.entrypoint.as_str(), |asker| asker.message.sender.address.as_str());
        send("send_response", target, payload.subject.clone(), said)
    }
}

fn one(tool: &str, args: impl Serialize) -> Vec<(String, Value)> {
    vec![(tool.to_owned(), serde_json::to_value(args).unwrap_or_default())]
}

fn send(tool: &str, target: &str, subject: String, body: String) -> Vec<(String, Value)> {
    one(tool, SendArgs { target: target.to_owned(), subject, body })
}

fn echo(turn: &Turn, mail: &MailMessage, said: &str) -> Vec<(String, Value)> {
    let payload = &mail.message;
    if mail.msg_type == MsgType::Broadcast && payload.sender.address_type == AddressType::Agent {
        return one("acknowledge_broadcast", NoArgs {});
    }
    if turn.agent.can_complete_tasks {
        return one("task_complete", CompleteArgs { finish_message: said.to_owned() });
    }
    let target = match payload.sender.address_type {
        AddressType::System => turn.swarm.entrypoint.as_str(),
        _ => payload.sender.address.as_str(),
    };
    send("send_response", target, format!("Re: {}", payload.subject), said.to_owned())
}

/// Makes the calls that the message lists as `{"calls": [{"tool", "args"}]}`. Without such a list it answers with the body,
/// marked with its name; a supervisor completes the task with the body.
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
    if mail.msg_type == MsgType::Response {
        let target = &turn.swarm.entrypoint;
        return send("send_response", target, subject.clone(), format!("{me}<{body}"));
    }
    let mark = if mail.msg_type == MsgType::Interrupt { '!' } else { ':' };
    let target = &payload.sender.address;
    send("send_response", target, format!("Re: {subject}"), format!("{me}{mark}{body}"))
}
