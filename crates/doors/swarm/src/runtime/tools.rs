//! Turns the calls of an agent's reply into messages and events: the protocol's tools, actions, breakpoints, and system messages
//! about calls that cannot be carried out.

use posthaste_engine::nouns::RealmName;
use posthaste_wire::mail::events::{
    self, ActionEnded, ActionRefused, CallNamed, NoDetails, Reason, ToolCalled,
};
use posthaste_wire::mail::subjects;
use posthaste_wire::mail::tools::{self, Call, FunctionCall};
use posthaste_wire::mail::{AddressType, MailAddress, MailMessage, MsgType, split};

use super::definition::Swarm;
use super::messages::{MessageDraft, MessageMeta};
use super::run_state::{Note, RunState, ToolCall, ToolResult};
use posthaste_wire::mail::definition::AgentDefinition;

/// The result of an agent's reply.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) note: Note,
    pub(crate) drafts: Vec<MessageDraft>,
    /// The text that the task is completed with.
    pub(crate) complete: Option<String>,
    /// An answer to the user that ends a task of one question.
    pub(crate) answer: Option<MessageDraft>,
    /// Calls whose results the user is asked for.
    pub(crate) breakpoint: Vec<ToolCall>,
    /// Whether the handled broadcast is left out of the agent's history.
    pub(crate) forget: bool,
    /// Number of system messages about mistakes in the reply.
    pub(crate) troubles: u32,
}

/// What a reply is planned with.
pub(crate) struct ReplyPlanner<'a> {
    pub(crate) swarm: &'a Swarm,
    pub(crate) agent: &'a AgentDefinition,
    pub(crate) live: &'a RunState,
    pub(crate) in_hand: &'a MailMessage,
    /// Whether a swarm is registered.
    pub(crate) knows_swarm: &'a dyn Fn(&str) -> bool,
}

/// Results of the reply's actions, by call id.
pub(crate) type ActionResults = std::collections::HashMap<String, Result<String, String>>;

impl ReplyPlanner<'_> {
    /// Plans all calls of a reply, in order.
    pub(crate) fn plan(&self, calls: &[ToolCall], text: Option<&str>, actions: &ActionResults) -> Plan {
        let mut plan = Plan::default();
        for call in calls {
            plan.note.add_event(
                events::TOOL_CALL,
                format!("agent {} called {}", self.agent.name, call.tool),
                called(call),
            );
            if plan.complete.is_some() || plan.answer.is_some() {
                self.after_the_end(&mut plan, call);
                continue;
            }
            if self.plan_one(&mut plan, call, actions) == Flow::End {
                break;
            }
        }
        if calls.is_empty() {
            let said = match text {
                Some(text) if !text.is_empty() => "only text was written",
                _ => "nothing was called",
            };
            self.add_error(
                &mut plan,
                None,
                subjects::TOOL_CALL_ERROR,
                format!("no tool was called ({said}), so the task would stand still; call one of your tools"),
            );
        }
        // Messages of one reply are delivered in the order of their tiers.
        plan.drafts.sort_by_key(|draft| draft.priority().tier());
        plan
    }

    fn after_the_end(&self, plan: &mut Plan, call: &ToolCall) {
        if call.tool == "task_complete" {
            let details = CallNamed { tool_call_id: call.call_id.clone() };
            plan.note.add_event(events::TASK_COMPLETE_DUPLICATE, "the task is complete already", details);
        }
        confirm(plan, call, "ignored: the task is complete");
    }

    fn plan_one(&self, plan: &mut Plan, call: &ToolCall, actions: &ActionResults) -> Flow {
        let granted = self.agent.actions.contains(&call.tool);
        // The runtime carries out nothing for them, so every agent may call them.
        if self.swarm.is_breakpoint(&call.tool) {
            let details = called(call);
            plan.note.add_event(
                events::BREAKPOINT,
                format!("{} waits for a result from outside", call.tool),
                details,
            );
            plan.breakpoint.push(call.clone());
            return Flow::Go;
        }
        let read = match Call::read(&call.tool, &call.args) {
            Ok(Some(read)) => read,
            Ok(None) => {
                self.action(plan, call, granted, actions);
                return Flow::Go;
            }
            Err(error) => {
                let why = format!("{}: {error}", call.tool);
                self.add_error(plan, Some(call), subjects::TOOL_CALL_ERROR, why);
                return Flow::Go;
            }
        };
        if self.excluded(&call.tool) {
            let why = format!("{} is not among your tools", call.tool);
            self.add_error(plan, Some(call), subjects::TOOL_CALL_ERROR, why);
            return Flow::Go;
        }
        match read {
            Call::Send { kind, target, subject, body } => {
                self.send(plan, call, kind, &target, subject, body);
            }
            Call::Broadcast { subject, body, targets } => self.broadcast(plan, call, &targets, subject, body),
            Call::Complete { finish_message } => self.complete(plan, call, finish_message),
            Call::Acknowledge { note: _ } | Call::Ignore { .. } => self.note_broadcast(plan, call, read),
            Call::Await { reason } => {
                let details = Reason { reason };
                plan.note.add_event(
                    events::AWAIT_MESSAGE,
                    format!("agent {} waits for a message", self.agent.name),
                    details,
                );
                let sent = plan.drafts.iter().any(|draft| draft.sender.address_type == AddressType::Agent);
                if sent || !plan.breakpoint.is_empty() || self.live.awaits_something(&self.agent.name) {
                    confirm(plan, call, "waiting");
                } else {
                    let why = "await_message: no message can come, because no other agent has anything to do in this task";
                    self.add_error(plan, Some(call), subjects::TOOL_CALL_ERROR, why.to_owned());
                }
                return Flow::End;
            }
            Call::Help { summary, identity, tools, full } => {
                let text = self.help(summary, identity, &tools, full);
                plan.note.add_event(
                    events::HELP_CALLED,
                    format!("agent {} asked for help", self.agent.name),
                    NoDetails {},
                );
                let to = [self.agent.name.as_str()];
                let kind = MsgType::Response;
                plan.drafts.push(MessageDraft::system(
                    &self.swarm.name,
                    kind,
                    &to,
                    subjects::HELP,
                    text.clone(),
                ));
                plan.note.results.push(ToolResult {
                    call_id: call.call_id.clone(),
                    content: text,
                    shown: true,
                });
            }
        }
        Flow::Go
    }

    /// Whether a tool is taken away from the agent. Tools of supervisors are checked where they are used.
    fn excluded(&self, tool: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|name| name == tool);
        among(&self.swarm.exclude_tools) || among(&self.agent.exclude_tools)
    }

    fn send(
        &self,
        plan: &mut Plan,
        call: &ToolCall,
        kind: MsgType,
        target: &str,
        subject: String,
        body: String,
    ) {
        if self.is_the_user(target) {
            return self.to_the_user(plan, call, kind, target, subject, body);
        }
        let recipient = match self.reach(target) {
            Ok(recipient) => recipient,
            Err((about, why)) => return self.add_error(plan, Some(call), about, why),
        };
        let answered = (kind == MsgType::Response).then(|| self.live.request_of(&self.agent.name, target));
        let here = match split(&recipient.address) {
            (name, None) => vec![name.to_owned()],
            _ => Vec::new(),
        };
        let sender = MailAddress::agent(&self.agent.name);
        let own_id = answered.flatten();
        let (extra, key) = (MessageMeta::default(), None);
        let recipients = vec![recipient];
        plan.drafts.push(MessageDraft { kind, sender, recipients, here, subject, body, own_id, key, extra });
        confirm(plan, call, "sent");
    }

    /// The address of a recipient that the agent may write to.
    fn reach(&self, target: &str) -> Result<MailAddress, (&'static str, String)> {
        let (name, elsewhere) = match split(target) {
            (name, Some(swarm)) if swarm == self.swarm.name => (name, None),
            other => other,
        };
        let allowed = self.agent.comm_targets.iter().any(|listed| match (split(listed), elsewhere) {
            ((listed, None), None) => listed == name,
            ((listed, Some(swarm)), None) => swarm == self.swarm.name && listed == name,
            ((listed, Some(listed_swarm)), Some(swarm)) => listed == name && listed_swarm == swarm,
            ((_, None), Some(_)) => false,
        });
        let invalid = |why: String| Err((subjects::INVALID_RECIPIENT, why));
        match elsewhere {
            None if self.swarm.agent(name).is_none() => invalid(format!("there is no agent {name:?}")),
            _ if !allowed => invalid(format!("{target:?} is not among your comm_targets")),
            None => Ok(MailAddress::agent(name)),
            Some(_) if !self.swarm.enable_interswarm || !self.agent.enable_interswarm => {
                invalid(format!("{target:?}: you may not write to other swarms"))
            }
            Some(swarm) if RealmName::new(swarm).is_err() || !(self.knows_swarm)(swarm) => {
                Err((subjects::ROUTER_ERROR, format!("{target:?}: the swarm {swarm:?} is not known here")))
            }
            Some(_) => Ok(MailAddress::agent(target)),
        }
    }

    fn is_the_user(&self, target: &str) -> bool {
        let owner = posthaste_wire::mail::Owner::parse(&self.live.owner);
        let is_person = |owner: &posthaste_wire::mail::Owner| {
            owner.swarm == self.swarm.name && owner.id == target && self.swarm.agent(target).is_none()
        };
        owner.as_ref().is_some_and(is_person)
    }

    fn to_the_user(
        &self,
        plan: &mut Plan,
        call: &ToolCall,
        kind: MsgType,
        target: &str,
        subject: String,
        body: String,
    ) {
        if !self.live.state.direct || kind != MsgType::Response {
            let why = "users get what `task_complete` says; answer the agent that asked you instead";
            return self.add_error(plan, Some(call), subjects::IMPROPER_RESPONSE, why.to_owned());
        }
        let address_type = match self.live.owner.starts_with("admin:") {
            true => AddressType::Admin,
            false => AddressType::User,
        };
        plan.answer = Some(MessageDraft {
            kind,
            sender: MailAddress::agent(&self.agent.name),
            recipients: vec![MailAddress { address_type, address: target.to_owned() }],
            here: Vec::new(),
            subject,
            body,
            own_id: self.live.request_of(&self.agent.name, target),
            key: None,
            extra: MessageMeta::default(),
        });
        confirm(plan, call, "sent");
    }

    fn broadcast(&self, plan: &mut Plan, call: &ToolCall, targets: &[String], subject: String, body: String) {
        let all = targets.is_empty() || targets.iter().any(|target| target == "all");
        let (recipients, here) = if all {
            let others = self.swarm.agents.iter().map(|agent| agent.name.clone());
            let others: Vec<String> = others.filter(|name| *name != self.agent.name).collect();
            if others.is_empty() {
                let why = "send_broadcast: there is no other agent in this swarm".to_owned();
                return self.add_error(plan, Some(call), subjects::INVALID_RECIPIENT, why);
            }
            (vec![MailAddress::all()], others)
        } else {
            let mut recipients = Vec::new();
            for target in targets {
                match self.reach(target) {
                    Ok(recipient) if recipients.contains(&recipient) => {}
                    Ok(recipient) => recipients.push(recipient),
                    Err((about, why)) => return self.add_error(plan, Some(call), about, why),
                }
            }
            let local = |address: &MailAddress| split(&address.address).1.is_none();
            let here = recipients.iter().filter(|a| local(a)).map(|a| a.address.clone()).collect();
            (recipients, here)
        };
        plan.drafts.push(MessageDraft {
            kind: MsgType::Broadcast,
            sender: MailAddress::agent(&self.agent.name),
            recipients,
            here,
            subject,
            body,
            own_id: None,
            key: None,
            extra: MessageMeta::default(),
        });
        confirm(plan, call, "sent");
    }

    fn complete(&self, plan: &mut Plan, call: &ToolCall, finish_message: String) {
        if !self.agent.can_complete_tasks {
            let why =
                "task_complete: only supervisors complete tasks; answer the agent that asked you".to_owned();
            return self.add_error(plan, Some(call), subjects::TOOL_CALL_ERROR, why);
        }
        plan.note.add_event(
            events::TASK_COMPLETE_CALL,
            format!("agent {} completed the task", self.agent.name),
            CallNamed { tool_call_id: call.call_id.clone() },
        );
        plan.complete = Some(finish_message);
        confirm(plan, call, "the task is complete");
    }

    fn note_broadcast(&self, plan: &mut Plan, call: &ToolCall, read: Call) {
        if self.in_hand.msg_type != MsgType::Broadcast {
            let why = format!("{}: what you were handed is no broadcast", call.tool);
            return self.add_error(plan, Some(call), subjects::TOOL_CALL_ERROR, why);
        }
        if let Call::Ignore { reason } = read {
            plan.forget = true;
            let details = Reason { reason };
            let what = format!("agent {} ignored a broadcast", self.agent.name);
            plan.note.add_event(events::BROADCAST_IGNORED, what, details);
        }
        confirm(plan, call, "noted");
    }

    fn action(&self, plan: &mut Plan, call: &ToolCall, granted: bool, actions: &ActionResults) {
        let details = || ActionRefused { tool_name: call.tool.clone(), tool_call_id: call.call_id.clone() };
        let Some(result) = actions.get(&call.call_id).filter(|_| granted) else {
            let why = match self.swarm.action(&call.tool) {
                Some(_) => format!("the action {:?} is not granted to you", call.tool),
                None => format!("there is no tool or action {:?}", call.tool),
            };
            plan.note.add_event(events::ACTION_ERROR, why.clone(), details());
            return self.add_error(plan, Some(call), subjects::ACTION_ERROR, why);
        };
        let arguments = called(call);
        plan.note.add_event(events::ACTION_CALL, format!("action {} was called", call.tool), arguments);
        let content = match result {
            Ok(text) => format!("SUCCESS: {text}"),
            Err(why) => format!("ERROR: {why}"),
        };
        let ActionRefused { tool_name, tool_call_id } = details();
        let outcome = ActionEnded { tool_name, tool_call_id, result: content.clone() };
        plan.note.add_event(events::ACTION_COMPLETE, format!("action {} has ended", call.tool), outcome);
        let to = [self.agent.name.as_str()];
        let body = format!("the action {} has ended: {content}", call.tool);
        let kind = MsgType::Broadcast;
        plan.drafts.push(MessageDraft::system(&self.swarm.name, kind, &to, subjects::ACTION_COMPLETE, body));
        plan.note.results.push(ToolResult { call_id: call.call_id.clone(), content, shown: true });
    }

    /// Adds a system message about a mistake.
    fn add_error(&self, plan: &mut Plan, call: Option<&ToolCall>, subject: &str, why: String) {
        plan.troubles += 1;
        if let Some(call) = call {
            let content = format!("ERROR: {why}");
            plan.note.results.push(ToolResult { call_id: call.call_id.clone(), content, shown: false });
        }
        let to = [self.agent.name.as_str()];
        plan.drafts.push(MessageDraft::system(&self.swarm.name, MsgType::Response, &to, subject, why));
    }

    fn help(&self, summary: bool, identity: bool, asked: &[String], full: bool) -> String {
        let mut text = String::new();
        if summary || full {
            text.push_str(
                "You are one of several agents that work on tasks by sending each other messages. \
                 You are called with each message that comes for you, and answer with calls of tools.\n",
            );
        }
        if identity || full {
            let (name, swarm) = (&self.agent.name, &self.swarm.name);
            text.push_str(&format!(
                "You are the agent {name} of the swarm {swarm}; your address is {name}@{swarm}. "
            ));
            text.push_str(&format!("You may write to: {}.\n", self.agent.comm_targets.join(", ")));
        }
        let listed: Vec<&str> = match full {
            true => self.swarm.tools_of(self.agent).collect(),
            false => asked.iter().map(String::as_str).collect(),
        };
        for tool in listed {
            let what = match tools::description(tool) {
                "" => self.swarm.action(tool).map_or("there is no such tool", |action| &action.description),
                known => known,
            };
            text.push_str(&format!("{tool}: {what}\n"));
        }
        text
    }
}

/// Whether later calls of the same reply are handled.
#[derive(PartialEq, Eq)]
enum Flow {
    Go,
    End,
}

fn confirm(plan: &mut Plan, call: &ToolCall, word: &str) {
    let content = format!("SUCCESS: {word}");
    plan.note.results.push(ToolResult { call_id: call.call_id.clone(), content, shown: false });
}

/// The breakpoint calls, in the form that the reference's clients expect.
pub(crate) fn breakpoint_body(calls: &[ToolCall]) -> String {
    let form = |call: &ToolCall| FunctionCall {
        arguments: call.args.to_string(),
        call_id: call.call_id.clone(),
        name: call.tool.clone(),
        kind: "function_call".to_owned(),
        id: format!("fc_{}", call.call_id),
        status: "completed".to_owned(),
    };
    serde_json::to_string(&calls.iter().map(form).collect::<Vec<_>>()).unwrap_or_default()
}

/// The details of an event about a call.
fn called(call: &ToolCall) -> ToolCalled {
    ToolCalled {
        tool_name: call.tool.clone(),
        tool_args: call.args.clone(),
        tool_call_id: call.call_id.clone(),
    }
}
