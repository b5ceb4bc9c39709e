//! Drivers: who answers for an agent when it is handed a message. One file for each kind.

mod builtin;
mod command;
mod http;
mod model;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use posthaste_engine::nouns::Seq;
use posthaste_wire::mail::MailMessage;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use command::without_secrets;

use super::definition::{AgentDefinition, DriverDefinition, Swarm};
use super::run_state::{HistoryEntry, ToolCall, ToolResult};
use posthaste_host::http::outgoing::Outgoing;

/// One turn of an agent: what it is handed.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) swarm: Arc<Swarm>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) task_id: Arc<str>,
    /// The message in hand.
    pub(crate) in_hand: Arc<MailMessage>,
    /// Everything it remembers of the task, the message in hand included unless it is only being woken.
    pub(crate) memory: Vec<HistoryEntry>,
    /// What its last actions gave.
    pub(crate) results: Vec<ToolResult>,
    /// Whether it is woken by a tool's result instead of a message.
    pub(crate) resumed: bool,
    /// Whether nothing but completing the task is of use.
    pub(crate) must_complete: bool,
}

impl Turn {
    /// As programs and web hooks get it.
    fn to_json(&self, id: u64) -> Value {
        let inbox: Vec<Value> = self.heard().map(|mail| mail.to_json()).collect();
        let results: Vec<Value> = self
            .results
            .iter()
            .map(|result| json!({ "call_id": result.call_id, "content": result.content }))
            .collect();
        json!({
            "id": id,
            "agent": self.agent.name,
            "swarm": self.swarm.name,
            "boss": self.swarm.entrypoint,
            "task_id": &*self.task_id,
            "can_complete_tasks": self.agent.can_complete_tasks,
            "comm_targets": self.agent.comm_targets,
            "tools": self.swarm.tools_of(&self.agent).collect::<Vec<_>>(),
            "actions": self.agent.actions,
            "inbox": inbox,
            "tool_results": results,
            "resumed": self.resumed,
            "must_complete": self.must_complete,
        })
    }

    fn heard(&self) -> impl Iterator<Item = &Arc<MailMessage>> {
        self.memory.iter().filter_map(|one| match one {
            HistoryEntry::Received(mail) => Some(mail),
            HistoryEntry::Called(..) => None,
        })
    }
}

/// What an agent answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) text: Option<String>,
}

/// A reply as programs and web hooks write it.
#[derive(Debug, Deserialize)]
struct WrittenReply {
    #[serde(default)]
    calls: Vec<WrittenCall>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WrittenCall {
    #[serde(default, alias = "tool_call_id")]
    call_id: Option<String>,
    #[serde(alias = "tool_name", alias = "name")]
    tool: String,
    #[serde(default, alias = "tool_args", alias = "arguments")]
    args: Value,
}

/// Calls that are taken from one reply.
const MAX_CALLS: usize = 256;

impl WrittenReply {
    fn into_reply(self) -> Result<Reply, String> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.calls.len() > MAX_CALLS {
            return Err(format!("more than {MAX_CALLS} calls in one reply"));
        }
        let calls = self.calls.into_iter().enumerate().map(|(n, call)| call.into_call(n)).collect();
        Ok(Reply { calls, text: self.text })
    }
}

impl WrittenCall {
    fn into_call(self, n: usize) -> ToolCall {
        // Some programs write arguments as text that is JSON.
        let args = match &self.args {
            Value::String(text) => serde_json::from_str(text).unwrap_or(self.args),
            _ => self.args,
        };
        let call_id = self.call_id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{n}"));
        ToolCall { call_id, tool: self.tool, args }
    }
}

/// An agent's driver.
#[derive(Debug)]
pub(crate) enum Driver {
    Builtin(builtin::Own),
    Command(command::Program),
    Http(http::Hook),
    Model(model::Model),
    /// It reads its mail by another door.
    Connected,
}

impl Driver {
    /// Makes the driver of an agent; programs are started at once.
    pub(crate) fn start(
        agent: &AgentDefinition,
        here: &Path,
        outgoing: &Outgoing,
        stop: &CancellationToken,
    ) -> Self {
        match &agent.driver {
            DriverDefinition::Builtin(given) => Self::Builtin(builtin::Own::new(given)),
            DriverDefinition::Command(given) => {
                Self::Command(command::Program::start(&agent.name, given, here, stop))
            }
            DriverDefinition::Http(given) => Self::Http(http::Hook::new(given, outgoing)),
            DriverDefinition::Model(given) => Self::Model(model::Model::new(given, outgoing)),
            DriverDefinition::Connected => Self::Connected,
        }
    }

    fn turns(agent: &AgentDefinition) -> usize {
        match &agent.driver {
            DriverDefinition::Command(given) => given.turns.max(1),
            DriverDefinition::Http(given) => given.turns.max(1),
            DriverDefinition::Model(given) => given.turns.max(1),
            DriverDefinition::Builtin(_) | DriverDefinition::Connected => usize::MAX,
        }
    }

    /// Has the agent take its turn.
    pub(crate) async fn take(&self, turn: &Turn) -> Result<Reply, String> {
        match self {
            Self::Builtin(own) => Ok(own.take(turn)),
            Self::Command(program) => program.take(turn).await,
            Self::Http(hook) => hook.take(turn).await,
            Self::Model(model) => model.take(turn).await,
            Self::Connected => Err("the agent reads its mail elsewhere".to_owned()),
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self, Self::Connected)
    }
}

/// Where an agent's turns wait when its driver has its state full: a queue for each instance, by tier and then by
/// time, and the instances in turn.
#[derive(Debug)]
pub(crate) struct AgentQueue {
    pub(crate) driver: Driver,
    state: Mutex<QueueState>,
}

#[derive(Debug)]
struct QueueState {
    free: usize,
    waiting: HashMap<Arc<str>, BTreeMap<(u8, Seq), CancellationToken>>,
    order: VecDeque<Arc<str>>,
}

impl AgentQueue {
    pub(crate) fn new(agent: &AgentDefinition, driver: Driver) -> Self {
        let free = Driver::turns(agent);
        Self {
            driver,
            state: Mutex::new(QueueState { free, waiting: HashMap::new(), order: VecDeque::new() }),
        }
    }

    /// Waits for a free hand. The hand is free again when what this gives is dropped.
    pub(crate) async fn hand(self: &Arc<Self>, instance: &Arc<str>, tier: u8, seq: Seq) -> TurnPermit {
        let called = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                None
            } else {
                let called = CancellationToken::new();
                let queue = state.waiting.entry(instance.clone()).or_default();
                let first = queue.is_empty();
                queue.insert((tier, seq), called.clone());
                if first {
                    state.order.push_back(instance.clone());
                }
                Some(called)
            }
        };
        if let Some(called) = called {
            called.cancelled().await;
        }
        TurnPermit { queue: self.clone() }
    }

    /// Calls the next turn, or keeps the hand free.
    fn release(&self) {
        let mut state = self.lock();
        let Some(instance) = state.order.pop_front() else {
            state.free = state.free.saturating_add(1);
            return;
        };
        let Some(queue) = state.waiting.get_mut(&instance) else { return };
        let called = queue.pop_first();
        if queue.is_empty() {
            state.waiting.remove(&instance);
        } else {
            state.order.push_back(instance);
        }
        match called {
            Some((_, called)) => called.cancel(),
            None => state.free = state.free.saturating_add(1),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hand of a driver that is in use.
#[derive(Debug)]
pub(crate) struct TurnPermit {
    queue: Arc<AgentQueue>,
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        self.queue.release();
    }
}
