//! Drivers: what answers for an agent when it gets a message. One file for each kind.

mod builtin;
mod command;
mod http;
mod model;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use posthaste_engine::nouns::Seq;
use posthaste_wire::mail::MailMessage;
use posthaste_wire::mail::driver::{self, ReplyCall, TurnReply, TurnRequest};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use command::without_secrets;

use super::definition::Swarm;
use super::run_state::{HistoryEntry, ToolCall, ToolResult};
use posthaste_host::http::outgoing::Outgoing;
use posthaste_wire::mail::definition::{AgentDefinition, DriverDefinition};

/// A turn of an agent, as its driver gets it.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) swarm: Arc<Swarm>,
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) task_id: Arc<str>,
    /// The message to answer.
    pub(crate) in_hand: Arc<MailMessage>,
    /// The agent's history of the task, with the message to answer unless it is resumed.
    pub(crate) memory: Vec<HistoryEntry>,
    /// The results of its last actions.
    pub(crate) results: Vec<ToolResult>,
    /// Whether it is called because of a breakpoint tool's result, without a new message.
    pub(crate) resumed: bool,
    /// Whether it has to complete the task now.
    pub(crate) must_complete: bool,
}

impl Turn {
    /// The turn as programs and web hooks get it.
    fn to_wire(&self, id: u64) -> TurnRequest<'_> {
        let result = |one: &'_ ToolResult| driver::ToolResult {
            call_id: Cow::Owned(one.call_id.clone()),
            content: Cow::Owned(one.content.clone()),
        };
        TurnRequest {
            id,
            agent: Cow::Borrowed(&self.agent.name),
            swarm: Cow::Borrowed(&self.swarm.name),
            boss: Cow::Borrowed(&self.swarm.entrypoint),
            task_id: Cow::Borrowed(&self.task_id),
            can_complete_tasks: self.agent.can_complete_tasks,
            comm_targets: Cow::Borrowed(&self.agent.comm_targets),
            tools: self.swarm.tools_of(&self.agent).map(Cow::Borrowed).collect(),
            actions: Cow::Borrowed(&self.agent.actions),
            inbox: self.heard().map(|mail| Cow::Borrowed(&**mail)).collect(),
            tool_results: self.results.iter().map(result).collect(),
            resumed: self.resumed,
            must_complete: self.must_complete,
        }
    }

    fn heard(&self) -> impl Iterator<Item = &Arc<MailMessage>> {
        self.memory.iter().filter_map(|one| match one {
            HistoryEntry::Received(mail) => Some(mail),
            HistoryEntry::Called(..) => None,
        })
    }
}

/// A reply of an agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) text: Option<String>,
}

/// Maximum number of calls in one reply.
const MAX_CALLS: usize = 256;

/// The reply of a program or a web hook.
fn from_wire(reply: TurnReply) -> Result<Reply, String> {
    if let Some(error) = reply.error {
        return Err(error);
    }
    if reply.calls.len() > MAX_CALLS {
        return Err(format!("more than {MAX_CALLS} calls in one reply"));
    }
    let call = |(n, call): (usize, ReplyCall)| {
        // Some programs write arguments as text that is JSON.
        let args = match &call.args {
            Value::String(text) => serde_json::from_str(text).unwrap_or(call.args),
            _ => call.args,
        };
        let call_id = call.call_id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{n}"));
        ToolCall { call_id, tool: call.tool, args }
    };
    Ok(Reply { calls: reply.calls.into_iter().enumerate().map(call).collect(), text: reply.text })
}

/// An agent's driver.
#[derive(Debug)]
pub(crate) enum Driver {
    Builtin(builtin::Own),
    Command(command::Program),
    Http(http::Hook),
    Model(model::Model),
    /// A client of another door.
    Connected,
}

impl Driver {
    /// Creates the driver of an agent. Programs are started at once.
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

    /// Calls the agent.
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

/// The turns of an agent that wait for its driver: a queue for each instance, by tier and then by seq, and the instances
/// served round robin.
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

    /// Waits until the driver may take another turn. Dropping the permit ends the turn.
    pub(crate) async fn acquire(self: &Arc<Self>, instance: &Arc<str>, tier: u8, seq: Seq) -> TurnPermit {
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

    /// Starts the next turn, or frees the capacity.
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

/// Capacity of a driver that a turn uses.
#[derive(Debug)]
pub(crate) struct TurnPermit {
    queue: Arc<AgentQueue>,
}

impl Drop for TurnPermit {
    fn drop(&mut self) {
        self.queue.release();
    }
}
