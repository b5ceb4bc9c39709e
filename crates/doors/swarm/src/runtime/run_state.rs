//! A run in memory: each agent's history and queue, and the callers that wait for the end. All but the waiters can be loaded
//! from the database again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use posthaste_engine::nouns::{
    DeliveryState, Json, Message, MessageId, Millis, Run, RunPhase, Seq, Taken, Task, TaskId,
};
use posthaste_engine::views::RunRecord;
use posthaste_wire::mail::events::{self, ToolCalled};
use posthaste_wire::mail::{AddressType, MailMessage, MsgType};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::messages::{MessageMeta, to_mail};
use super::pending_replies::PendingReply;
use super::questions::{Questions, Unordered};

/// Maximum number of history entries of an agent in one task; older ones stay in the database.
const MAX_HISTORY: usize = 1_000;

/// Identifies a run: its instance and its name within the instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RunKey {
    pub(crate) instance: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl RunKey {
    pub(crate) fn new(instance: &str, name: &str) -> Self {
        Self { instance: Arc::from(instance), name: Arc::from(name) }
    }
}

/// The state that a run keeps in the database besides its messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SavedState {
    /// The agent that the user wrote to.
    pub(crate) entry: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_steps: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<Millis>,
    /// Open questions between this swarm and others.
    #[serde(skip_serializing_if = "Questions::is_empty")]
    pub(crate) questions: Questions,
    /// The breakpoint calls whose results the user is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) breakpoint: Option<Breakpoint>,
    /// Consecutive system messages about mistakes of agents.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) troubles: u32,
    /// The message of another door that the task is to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "letter")]
    pub(crate) source: Option<super::mail_tasks::SourceMessage>,
    /// Whether any agent's response to the user ends the task.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) direct: bool,
}

impl SavedState {
    /// Parses the state in the database, also in the form of older versions of the server.
    pub(crate) fn read(json: &Json) -> Self {
        let mut state: Self = serde_json::from_str(json.as_str()).unwrap_or_default();
        if state.questions.is_empty()
            && let Ok(older) = serde_json::from_str::<Unordered>(json.as_str())
        {
            state.questions = older.into_questions();
        }
        state
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Breakpoint calls that wait for results from the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Breakpoint {
    pub(crate) agent: String,
    /// Each call's id and tool.
    pub(crate) calls: Vec<(String, String)>,
}

/// A call that an agent made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) args: Value,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    pub(crate) call_id: String,
    pub(crate) content: String,
    /// Whether it is more than a confirmation, so that the agent is shown it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shown: bool,
}

/// A note about an agent's turn, stored with the step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Note {
    /// The events of the turn: name, description, details.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<(String, String, Value)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<ToolResult>,
    /// The message that the agent handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took: Option<MessageId>,
    /// The agent's reply while its actions are being carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending_reply: Option<PendingReply>,
}

impl Note {
    pub(crate) fn add_event(&mut self, name: &str, description: impl Into<String>, details: impl Serialize) {
        let details = serde_json::to_value(details).unwrap_or_default();
        self.events.push((name.to_owned(), description.into(), details));
    }

    pub(crate) fn to_json(&self) -> Option<Json> {
        serde_json::to_string(self).ok().and_then(|text| Json::new(text).ok())
    }

    pub(crate) fn read(json: &Json) -> Self {
        serde_json::from_str(json.as_str()).unwrap_or_default()
    }
}

/// An entry of an agent's history of a task.
#[derive(Clone, Debug)]
pub(crate) enum HistoryEntry {
    /// It received a message.
    Received(Arc<MailMessage>),
    /// It made calls, with these results.
    Called(Vec<ToolCall>, Vec<ToolResult>),
}

/// A message in the queue of a local agent.
#[derive(Clone, Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) id: MessageId,
    pub(crate) seq: Seq,
    pub(crate) tier: u8,
    pub(crate) mail: Arc<MailMessage>,
    pub(crate) resumed: bool,
}

impl QueuedMessage {
    pub(crate) fn of(message: &Message, mail: Arc<MailMessage>) -> Self {
        let resumed =
            mail.message.sender.address_type == AddressType::System && MessageMeta::of(message).resumed;
        Self { id: message.id, seq: message.seq, tier: message.priority.tier(), mail, resumed }
    }

    /// Whether it counts towards the limit of steps. System messages do not.
    pub(crate) fn counts(&self) -> bool {
        let payload = &self.mail.message;
        payload.sender.address_type != AddressType::System && !payload.subject.starts_with("::")
    }

    pub(crate) fn is_from_person(&self) -> bool {
        matches!(self.mail.message.sender.address_type, AddressType::User | AddressType::Admin)
    }
}

/// One agent's history and queue in a run.
#[derive(Debug, Default)]
pub(crate) struct AgentState {
    pub(crate) memory: Vec<HistoryEntry>,
    /// By tier, then by seq.
    queue: BTreeMap<(u8, Seq), QueuedMessage>,
    /// The message that it is handling.
    pub(crate) busy: Option<MessageId>,
    /// Number of messages that it got through another door and has not answered.
    pub(crate) unanswered: u32,
}

impl AgentState {
    pub(crate) fn push(&mut self, queued: QueuedMessage) {
        self.queue.insert((queued.tier, queued.seq), queued);
    }

    /// The next message, if the agent handles none.
    pub(crate) fn next(&mut self) -> Option<QueuedMessage> {
        if self.busy.is_some() {
            return None;
        }
        let (_, queued) = self.queue.pop_first()?;
        self.busy = Some(queued.id);
        Some(queued)
    }

    pub(crate) fn heard(&self) -> impl DoubleEndedIterator<Item = &Arc<MailMessage>> {
        self.memory.iter().filter_map(|one| match one {
            HistoryEntry::Received(mail) => Some(mail),
            HistoryEntry::Called(..) => None,
        })
    }

    /// The results of its last actions, which it has not seen.
    pub(crate) fn newest_results(&self) -> Vec<ToolResult> {
        let found = self.memory.iter().rev().find_map(|one| match one {
            HistoryEntry::Called(_, results) if results.iter().any(|result| result.shown) => Some(results),
            _ => None,
        });
        found.map(|results| results.iter().filter(|r| r.shown).cloned().collect()).unwrap_or_default()
    }

    fn is_idle(&self) -> bool {
        self.busy.is_none() && self.queue.is_empty() && self.unanswered == 0
    }
}

/// What executes an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentHost {
    /// The runtime, with a driver.
    Runtime,
    /// A client of another door.
    OtherDoor,
    /// It is no agent of this swarm.
    Foreign,
}

/// How a turn of a task ended.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    /// The message that ended it.
    pub(crate) mail: Arc<MailMessage>,
}

/// A caller that waits for the end of the turn that its message began.
#[derive(Debug)]
struct Waiter {
    message: MessageId,
    finish: oneshot::Sender<Finish>,
}

/// A run in memory.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) key: RunKey,
    pub(crate) task: TaskId,
    pub(crate) owner: String,
    pub(crate) contributors: Vec<String>,
    pub(crate) phase: RunPhase,
    pub(crate) steps: i64,
    pub(crate) state: SavedState,
    pub(crate) agents: HashMap<String, AgentState>,
    /// Replies that were being carried out when the server stopped, by agent and message.
    pub(crate) pending_replies: HashMap<(String, MessageId), PendingReply>,
    waiters: Vec<Waiter>,
}

impl RunState {
    /// A run that is not stored yet.
    pub(crate) fn fresh(key: RunKey, task: TaskId, owner: String) -> Self {
        Self {
            key,
            task,
            contributors: vec![owner.clone()],
            owner,
            phase: RunPhase::Ended,
            steps: 0,
            state: SavedState::default(),
            agents: HashMap::new(),
            pending_replies: HashMap::new(),
            waiters: Vec::new(),
        }
    }

    /// A run from the database, with the deliveries of an ended run that no agent will handle.
    pub(crate) fn load(
        key: RunKey,
        run: &Run,
        task: &Task,
        record: &RunRecord,
        swarm: &str,
        host: impl Fn(&str) -> AgentHost,
    ) -> (Self, Vec<Taken>) {
        let state = run.state.as_ref().map(SavedState::read).unwrap_or_default();
        let mut live = Self::fresh(key, run.task.clone(), task.owner.clone());
        live.contributors = task.contributors.clone();
        (live.phase, live.steps, live.state) = (run.phase, run.steps, state);
        let mut stale = Vec::new();
        let mut notes = record.notes.iter().peekable();
        for row in &record.messages {
            while let Some(note) = notes.next_if(|note| note.before <= row.message.seq) {
                live.recall(note.agent.as_str(), &Note::read(&note.note));
            }
            let mail = Arc::new(to_mail(&row.message, &live.key.name, swarm));
            if let Some(agent_state) = live.agents.get_mut(row.message.from.as_str()) {
                agent_state.unanswered = 0;
            }
            for (agent, delivery, remembered) in &row.deliveries {
                match host(agent.as_str()) {
                    AgentHost::Runtime => {}
                    AgentHost::OtherDoor => {
                        live.agents.entry(agent.to_string()).or_default().unanswered += 1;
                        continue;
                    }
                    AgentHost::Foreign => continue,
                }
                let queued = QueuedMessage::of(&row.message, mail.clone());
                let agent_state = live.agents.entry(agent.to_string()).or_default();
                match delivery {
                    DeliveryState::Queued | DeliveryState::Delivered if live.phase != RunPhase::Ended => {
                        agent_state.push(queued);
                    }
                    DeliveryState::Queued | DeliveryState::Delivered => {
                        stale.push(Taken { agent: agent.clone(), message: row.message.id });
                    }
                    DeliveryState::Read | DeliveryState::Acked if *remembered && !queued.resumed => {
                        agent_state.memory.push(HistoryEntry::Received(mail.clone()));
                    }
                    _ => {}
                }
            }
        }
        for note in notes {
            live.recall(note.agent.as_str(), &Note::read(&note.note));
        }
        (live, stale)
    }

    fn recall(&mut self, agent: &str, note: &Note) {
        if let Some(piece) = &note.pending_reply {
            let known = self.pending_replies.entry((agent.to_owned(), piece.message));
            known.and_modify(|pending_reply| pending_reply.add(piece)).or_insert_with(|| piece.clone());
        }
        if let Some(took) = note.took {
            self.pending_replies.remove(&(agent.to_owned(), took));
        }
        let calls: Vec<ToolCall> = note.events.iter().filter_map(|(name, _, x)| call_of(name, x)).collect();
        if calls.is_empty() && note.results.is_empty() {
            return;
        }
        let agent_state = self.agents.entry(agent.to_owned()).or_default();
        agent_state.memory.push(HistoryEntry::Called(calls, note.results.clone()));
    }

    /// Queues a message for a local agent.
    pub(crate) fn enqueue(&mut self, agent: &str, queued: QueuedMessage) {
        self.agents.entry(agent.to_owned()).or_default().push(queued);
    }

    /// Adds an entry to an agent's history.
    pub(crate) fn remember(&mut self, agent: &str, memory: HistoryEntry) {
        let agent_state = self.agents.entry(agent.to_owned()).or_default();
        agent_state.memory.push(memory);
        if agent_state.memory.len() > MAX_HISTORY {
            // The first message, which is the task, stays.
            agent_state.memory.remove(1);
        }
    }

    /// Adds a handled message and the calls that it led to to an agent's history.
    pub(crate) fn add_turn(
        &mut self,
        agent: &str,
        queued: QueuedMessage,
        forget: bool,
        calls: Vec<ToolCall>,
        results: Vec<ToolResult>,
    ) {
        if !forget && !queued.resumed {
            self.remember(agent, HistoryEntry::Received(queued.mail));
        }
        self.remember(agent, HistoryEntry::Called(calls, results));
    }

    /// Whether all local agents are idle: they handle no message, and none is queued.
    pub(crate) fn is_idle(&self) -> bool {
        self.agents.values().all(AgentState::is_idle)
    }

    /// Whether the agents are idle and no question is open, so that nothing happens without a message from outside.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_idle() && self.state.questions.are_settled()
    }

    /// Whether a message for the agent may come: another agent is not idle, or an answer of another swarm is to come.
    pub(crate) fn awaits_something(&self, agent: &str) -> bool {
        let others = self.agents.iter().any(|(name, agent_state)| match name == agent {
            true => !agent_state.queue.is_empty() || agent_state.unanswered > 0,
            false => !agent_state.is_idle(),
        });
        others || self.state.questions.awaits_an_answer()
    }

    /// Whether a message of a user is queued.
    pub(crate) fn has_unread_user_message(&self) -> bool {
        self.agents.values().any(|agent_state| agent_state.queue.values().any(QueuedMessage::is_from_person))
    }

    /// Empties the queues, except for messages of users. Returns the messages that are dropped, or handled by an agent, except
    /// for one.
    pub(crate) fn abandon(&mut self, except: Option<MessageId>) -> Vec<Taken> {
        let mut left = Vec::new();
        for (name, agent_state) in &mut self.agents {
            let Ok(agent) = posthaste_engine::nouns::AgentId::new(name) else { continue };
            agent_state.queue.retain(|_, queued| {
                if !queued.is_from_person() {
                    left.push(Taken { agent: agent.clone(), message: queued.id });
                }
                queued.is_from_person()
            });
            if let Some(busy) = agent_state.busy.filter(|busy| Some(*busy) != except) {
                left.push(Taken { agent: agent.clone(), message: busy });
            }
            agent_state.unanswered = 0;
        }
        left
    }

    /// Waits for the end of the turn that a message began.
    pub(crate) fn wait_for(&mut self, message: MessageId) -> oneshot::Receiver<Finish> {
        let (finish, wait) = oneshot::channel();
        self.waiters.retain(|waiter| !waiter.finish.is_closed());
        self.waiters.push(Waiter { message, finish });
        wait
    }

    /// Sends the end of the turn to the callers whose messages were handled.
    pub(crate) fn finish(&mut self, finish: &Finish) {
        let unread: Vec<MessageId> = self
            .agents
            .values()
            .flat_map(|agent_state| agent_state.queue.values().map(|one| one.id))
            .collect();
        let (waiting, done) = self.waiters.drain(..).partition(|waiter| unread.contains(&waiter.message));
        self.waiters = waiting;
        for waiter in done {
            // A caller that is gone can read the end in the database.
            drop(waiter.finish.send(finish.clone()));
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.waiters.iter().any(|waiter| !waiter.finish.is_closed())
    }

    /// The state as it is stored.
    pub(crate) fn state_json(&self) -> Option<Json> {
        serde_json::to_string(&self.state).ok().and_then(|text| Json::new(text).ok())
    }

    /// The id of the latest request of another agent, which a response repeats.
    pub(crate) fn request_of(&self, agent: &str, from: &str) -> Option<String> {
        let agent_state = self.agents.get(agent)?;
        let request = agent_state
            .heard()
            .rev()
            .find(|mail| mail.msg_type == MsgType::Request && mail.message.sender.address == from)?;
        Some(request.message.own_id.clone())
    }
}

/// The call that an event is about.
fn call_of(name: &str, details: &Value) -> Option<ToolCall> {
    if name != events::TOOL_CALL {
        return None;
    }
    let ToolCalled { tool_name, tool_args, tool_call_id } = ToolCalled::deserialize(details).ok()?;
    Some(ToolCall { call_id: tool_call_id, tool: tool_name, args: tool_args })
}
