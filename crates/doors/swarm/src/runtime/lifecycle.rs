//! Opening, continuing, resuming, cancelling and timing out tasks.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::nouns::{AgentId, MessageId, RunPhase, Seq, Taken, TaskId};
use posthaste_engine::stamp::{self, Stamp};
use posthaste_engine::verbs::runs::{Advance, Advanced, Opening};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::mail::events::BreakpointEnded;
use posthaste_wire::mail::{AddressType, FieldError, MailAddress, MsgType, Owner, OwnerRole, ResumeFrom};
use posthaste_wire::mail::{events, subjects};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::definition::Swarm;
use super::mail_tasks::SourceMessage;
use super::messages::{MessageDraft, MessageMeta, principal};
use super::open_runs::{MAX_RUNS, MAX_RUNS_BY_MESSAGE};
use super::run_state::{Finish, HistoryEntry, Note, RunKey, RunState, SavedState, ToolResult};
use super::steps::{StepDraft, step_of};
use super::{RunCell, Runtime, Slot, uninterrupted};

/// Maximum number of runs in memory; each takes a few kilobytes.
const MAX_OPEN_RUNS: usize = 100_000;

/// A request to open or continue a task.
#[derive(Debug)]
pub(crate) struct TaskRequest {
    pub(crate) owner: Owner,
    /// The task; a new one if absent.
    pub(crate) task_id: Option<String>,
    pub(crate) kind: MsgType,
    /// The recipients; `all` is every agent.
    pub(crate) to: Vec<String>,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) routing_info: Option<Map<String, Value>>,
    pub(crate) resume: Option<ResumeFrom>,
    /// Results of the calls that the task waits for.
    pub(crate) results: Vec<(Option<String>, String)>,
    pub(crate) max_steps: Option<i64>,
    pub(crate) timeout: Option<Duration>,
    /// Whether any agent's response to the owner ends the task.
    pub(crate) direct: bool,
    /// The message of another door that the task is to answer.
    pub(crate) source: Option<SourceMessage>,
}

/// A task that was opened or continued.
#[derive(Debug)]
pub(crate) struct OpenedTask {
    pub(crate) task_id: String,
    pub(crate) task: TaskId,
    pub(crate) cell: Arc<RunCell>,
    /// The seq at which this turn of the task begins.
    pub(crate) place: Seq,
    pub(crate) finish: oneshot::Receiver<Finish>,
}

/// The first step of a turn of the task.
struct Started {
    place: Seq,
    message: MessageId,
}

/// Why a task was not opened or continued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("{0}")]
    Field(#[from] FieldError),
    #[error("{0}")]
    Bad(String),
    #[error("task not found: {0}")]
    NoSuchTask(String),
    #[error("the server has too many tasks at once; try again later")]
    Busy,
    #[error(
        "you have {most} tasks open here, which is as many as may be; wait until one ends, or cancel one"
    )]
    TooMany { most: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Runtime {
    /// Opens a task, or continues one. Completes even if the caller drops the call.
    pub(crate) async fn open_task(&self, ask: TaskRequest) -> Result<OpenedTask, TaskError> {
        let runtime = self.clone();
        uninterrupted(async move { runtime.open_or_continue(ask).await }).await
    }

    async fn open_or_continue(&self, ask: TaskRequest) -> Result<OpenedTask, TaskError> {
        if self.live_count() >= MAX_OPEN_RUNS {
            return Err(TaskError::Busy);
        }
        let swarm = self.swarm();
        let known = ask.task_id.is_some();
        let task_id = ask.task_id.clone().unwrap_or_else(|| Stamp::new().id.to_string());
        let sender = sender_of(&ask, &swarm);
        let (person, kind) = principal(&swarm, &sender);
        self.enter(person.clone(), kind).await?;
        let key = RunKey::new(&ask.owner.instance(), &task_id);
        let most = if ask.source.is_some() { MAX_RUNS_BY_MESSAGE } else { MAX_RUNS };
        let guard = self.hold_within(&key, most).await;
        let (cell, mut guard) = guard.ok_or(TaskError::TooMany { most })?;
        // An id that was just made up cannot be in the database.
        let stale = if known { self.load(&key, &mut guard).await? } else { None };
        let existed = stale.is_some();
        let stale = stale.unwrap_or_default();
        if let Slot::Empty = *guard {
            let task =
                TaskId::new(&task_id).map_err(|error| TaskError::Engine(Refusal::from(error).into()))?;
            *guard = Slot::Loaded(Box::new(RunState::fresh(key.clone(), task, ask.owner.to_string())));
        }
        let Slot::Loaded(live) = &mut *guard else { return Err(TaskError::Busy) };
        let begun = match ask.resume {
            Some(_) if !existed => Err(TaskError::NoSuchTask(task_id.clone())),
            Some(ResumeFrom::BreakpointToolCall) => {
                // Messages that were queued when the task paused stay queued.
                self.resume(&cell, live, &ask).await
            }
            _ => self.send_to_swarm(&cell, live, &ask, person, stale).await,
        };
        let result = match begun {
            Ok(Started { place, message }) => {
                let task = live.task.clone();
                let finish = live.wait_for(message);
                self.start_turns(&cell, live);
                Ok(OpenedTask { task_id, task, cell: cell.clone(), place, finish })
            }
            Err(error) => {
                // Nothing was written, so the run need not stay in memory.
                if !existed {
                    live.phase = RunPhase::Ended;
                }
                self.retire(&cell, &mut guard);
                Err(error)
            }
        };
        drop(guard);
        result
    }

    /// Sends a user's message to the swarm.
    async fn send_to_swarm(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        ask: &TaskRequest,
        person: AgentId,
        stale: Vec<Taken>,
    ) -> Result<Started, TaskError> {
        let swarm = self.swarm();
        let all = ask.to.iter().any(|name| name == "all");
        let names: Vec<String> = match all {
            true => swarm.agents.iter().map(|agent| agent.name.clone()).collect(),
            false => ask.to.clone(),
        };
        let recipients = match all {
            true => vec![MailAddress::all()],
            false => names.iter().map(MailAddress::agent).collect(),
        };
        let before = (live.state.clone(), live.phase, live.steps);
        let goes_on = live.phase == RunPhase::Running;
        self.forget_deadline(live);
        let timeout = ask.timeout.unwrap_or_else(|| swarm.timeout());
        live.state = SavedState {
            entry: names.first().cloned().unwrap_or_default(),
            max_steps: ask.max_steps,
            deadline: Some(stamp::now() + i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX / 2)),
            questions: std::mem::take(&mut live.state.questions),
            direct: ask.direct,
            source: ask.source.clone(),
            ..SavedState::default()
        };
        let draft = MessageDraft {
            kind: ask.kind,
            sender: sender_of(ask, &swarm),
            recipients,
            here: names,
            subject: ask.subject.clone(),
            body: ask.body.clone(),
            own_id: None,
            key: ask.source.as_ref().map(|source| source.message.to_string()),
            extra: MessageMeta { routing_info: ask.routing_info.clone(), ..MessageMeta::default() },
        };
        let title = Some(ask.subject.chars().take(200).collect());
        let step = Advance {
            open: Some(Opening { owner: ask.owner.to_string(), title }),
            agent: person,
            gave_up: stale,
            messages: vec![draft.into_message(&swarm)],
            phase: Some(RunPhase::Running),
            state: live.state_json(),
            ..step_of(&live.key)
        };
        match self.advance(step).await {
            Ok(advanced) => {
                let message = first_of(&advanced);
                if !goes_on {
                    live.steps = 0;
                }
                self.settle(cell, live, &advanced);
                self.note_deadline(live);
                Ok(Started { place: advanced.place, message })
            }
            Err(error) => {
                (live.state, live.phase, live.steps) = before;
                self.note_deadline(live);
                Err(error.into())
            }
        }
    }

    /// Resumes a task that is paused at a breakpoint tool.
    async fn resume(
        &self,
        cell: &Arc<RunCell>,
        live: &mut RunState,
        ask: &TaskRequest,
    ) -> Result<Started, TaskError> {
        let swarm = self.swarm();
        let Some(breakpoint) = live.state.breakpoint.clone().filter(|_| live.phase == RunPhase::Paused)
        else {
            return Err(TaskError::Bad("the task does not wait for a tool's result".to_owned()));
        };
        let results = match_results(&breakpoint.calls, &ask.results)?;
        let before = live.state.clone();
        self.forget_deadline(live);
        let timeout = ask.timeout.unwrap_or_else(|| swarm.timeout());
        live.state.deadline = Some(stamp::now() + i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX / 2));
        live.state.breakpoint = None;
        let mut note = Note { results: results.clone(), ..Note::default() };
        for result in &results {
            let details =
                BreakpointEnded { tool_call_id: result.call_id.clone(), result: result.content.clone() };
            note.add_event(events::BREAKPOINT_COMPLETE, "a result came from outside", details);
        }
        let to = [breakpoint.agent.as_str()];
        let (kind, subject) = (MsgType::Broadcast, subjects::ACTION_COMPLETE_BROADCAST);
        let mut draft =
            MessageDraft::system(&swarm.name, kind, &to, subject, "the results you waited for have come");
        draft.extra.resumed = true;
        let step = Advance {
            open: Some(Opening { owner: live.owner.clone(), title: None }),
            agent: AgentId::new(&breakpoint.agent).unwrap_or_else(|_| AgentId::office()),
            note: note.to_json(),
            messages: vec![draft.into_message(&swarm)],
            phase: Some(RunPhase::Running),
            state: live.state_json(),
            ..step_of(&live.key)
        };
        match self.advance(step).await {
            Ok(advanced) => {
                let message = first_of(&advanced);
                live.remember(&breakpoint.agent, HistoryEntry::Called(Vec::new(), results));
                self.settle(cell, live, &advanced);
                self.note_deadline(live);
                Ok(Started { place: advanced.place, message })
            }
            Err(error) => {
                live.state = before;
                self.note_deadline(live);
                Err(error.into())
            }
        }
    }

    /// Cancels a task. False if it is not running. Completes even if the caller drops the call.
    pub(crate) async fn cancel(&self, owner: &Owner, task_id: &str) -> Result<bool, EngineError> {
        let (runtime, key) = (self.clone(), RunKey::new(&owner.instance(), task_id));
        uninterrupted(async move { runtime.cancel_run(key).await }).await
    }

    async fn cancel_run(&self, key: RunKey) -> Result<bool, EngineError> {
        let (cell, mut guard) = self.hold(&key).await;
        let found = self.load(&key, &mut guard).await?;
        let mut ended = false;
        if found.is_some()
            && let Slot::Loaded(live) = &mut *guard
            && live.phase != RunPhase::Ended
        {
            self.end_by_system(
                &cell,
                live,
                subjects::CANCELLED,
                "the task was cancelled",
                StepDraft::default(),
            )
            .await;
            ended = true;
        } else if let Slot::Empty = *guard {
            super::lock(&self.inner.runs).remove(&key);
            *guard = Slot::Retired;
        }
        self.retire(&cell, &mut guard);
        Ok(ended)
    }

    /// Ends a task whose deadline has passed.
    pub(super) async fn time_out(&self, key: &RunKey, at: i64) {
        let (cell, mut guard) = self.hold(key).await;
        if let Slot::Loaded(live) = &mut *guard {
            if live.phase == RunPhase::Running && live.state.deadline == Some(at) {
                let why = "the task took longer than it may";
                self.end_by_system(&cell, live, subjects::TASK_TIMEOUT, why, StepDraft::default()).await;
            }
            self.retire(&cell, &mut guard);
        } else if let Slot::Empty = *guard {
            super::lock(&self.inner.runs).remove(key);
            *guard = Slot::Retired;
        }
    }
}

/// The id of the message with which a turn of the task begins.
fn first_of(advanced: &Advanced) -> MessageId {
    advanced.messages.first().map_or(MessageId(uuid::Uuid::nil()), |(message, _)| message.id)
}

fn sender_of(ask: &TaskRequest, swarm: &Swarm) -> MailAddress {
    let owner = &ask.owner;
    let address_type = match owner.role {
        // An agent of the swarm that writes through another door is the sender itself.
        OwnerRole::User if ask.source.is_some() && swarm.agent(&owner.id).is_some() => AddressType::Agent,
        OwnerRole::Admin => AddressType::Admin,
        OwnerRole::User | OwnerRole::Swarm => AddressType::User,
    };
    MailAddress { address_type, address: owner.id.clone() }
}

/// Matches results with the calls that they belong to.
fn match_results(
    calls: &[(String, String)],
    given: &[(Option<String>, String)],
) -> Result<Vec<ToolResult>, TaskError> {
    let field = "kwargs.breakpoint_tool_call_result";
    let wrong = |problem: String| TaskError::Bad(format!("field `{field}` {problem}"));
    let result = |call: &str, content: &str| ToolResult {
        call_id: call.to_owned(),
        content: content.to_owned(),
        shown: true,
    };
    match (calls, given) {
        ([(call, _)], [(None, content)]) => Ok(vec![result(call, content)]),
        (calls, given) => {
            let mut results = Vec::new();
            for (call, _) in calls {
                let found = given.iter().find(|(id, _)| id.as_deref() == Some(call));
                let (_, content) =
                    found.ok_or_else(|| wrong(format!("must hold a result with the call_id {call:?}")))?;
                results.push(result(call, content));
            }
            Ok(results)
        }
    }
}
