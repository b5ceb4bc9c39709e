//! A caller's tasks: the list, one task, its events, and cancellation.

use axum::Json as JsonBody;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use posthaste_engine::nouns::{Caller, Run, RunPhase, Task};
use posthaste_wire::mail::TaskRef;
use posthaste_wire::mail::tasks::{CancelAnswer, TaskList, TaskRecord};
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;

use super::auth::{AuthedCaller, Json, User};
use super::errors::{DoorError, DoorResult};
use super::sse;
use crate::Door;
use crate::runtime::task_events::{self, Cursor};

/// Maximum number of tasks in one answer; `after` continues the list.
const MAX_TASKS: usize = 200;

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    after: String,
}

/// The caller's tasks by their ids.
pub(super) async fn list(User(caller): User, Query(page): Query<Page>) -> DoorResult {
    let instance = caller.owner().instance();
    let found = caller
        .engine
        .read(move |view| view.runs(&Caller::office(), &instance, &page.after, MAX_TASKS))
        .await?;
    let mut tasks = Vec::new();
    for (run, task) in found {
        match to_record(&caller, &run, task).await {
            Ok(record) => tasks.push(record),
            // The request has used up what it may read; `after` continues the list.
            Err(failure) if failure.status() == StatusCode::SERVICE_UNAVAILABLE && !tasks.is_empty() => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(JsonBody(TaskList(tasks)).into_response())
}

/// One task, named in a JSON body as the reference's client does, or in the query.
pub(super) async fn one(
    User(caller): User,
    Query(query): Query<std::collections::HashMap<String, String>>,
    body: axum::body::Bytes,
) -> DoorResult {
    let named = match query.get("task_id") {
        Some(id) => Some(id.clone()),
        None => serde_json::from_slice::<TaskRef>(&body).ok().map(|body| body.task_id),
    };
    let Some(id) = named.filter(|id| !id.is_empty()) else {
        return Err(DoorError::bad("field `task_id` is required"));
    };
    let (run, task) = find(&caller, &id).await?;
    Ok(JsonBody(to_record(&caller, &run, task).await?).into_response())
}

/// Cancels a task.
pub(super) async fn cancel(User(caller): User, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let id = TaskRef::read(&body)?.task_id;
    let (run, _) = find(&caller, &id).await?;
    let cancelled = caller.runtime(&door)?.cancel(&caller.owner(), &run.name).await?;
    if !cancelled {
        return Err(DoorError::new(StatusCode::CONFLICT, "the task has ended already"));
    }
    Ok(JsonBody(CancelAnswer { status: "cancelled".to_owned(), task_id: run.name }).into_response())
}

/// A task's events from its beginning, or after the last one that the client saw.
pub(super) async fn events(
    User(caller): User,
    State(door): State<Door>,
    Path(params): Path<std::collections::HashMap<String, String>>,
    headers: HeaderMap,
) -> DoorResult {
    let id = params.get("task_id").map(String::as_str).unwrap_or_default();
    let after = sse::last_seen(&headers)?.unwrap_or(Cursor::before(0));
    sse::again(&door, &caller, id, after).await
}

async fn find(caller: &AuthedCaller, id: &str) -> Result<(Run, Task), DoorError> {
    let (instance, name) = (caller.owner().instance(), id.to_lowercase());
    let found = caller.engine.read(move |view| view.run(&Caller::office(), &instance, &name)).await?;
    found.ok_or_else(|| DoorError::new(StatusCode::NOT_FOUND, format!("task not found: {id}")))
}

async fn to_record(caller: &AuthedCaller, run: &Run, task: Task) -> Result<TaskRecord, DoorError> {
    let events = task_events::read_all(&caller.engine, &Caller::office(), &run.task, &run.name).await?;
    let own = caller.engine.realm().as_str();
    let swarms = task.contributors.iter().filter_map(|one| one.rsplit_once('@').map(|(_, swarm)| swarm));
    let remote_swarms = swarms.filter(|swarm| *swarm != own).map(str::to_owned).collect();
    Ok(TaskRecord {
        task_id: run.name.clone(),
        title: task.title,
        task_owner: task.owner,
        task_contributors: task.contributors,
        start_time: to_rfc3339(task.created_at),
        is_running: run.phase == RunPhase::Running,
        completed: run.phase == RunPhase::Ended,
        paused: run.phase == RunPhase::Paused,
        remote_swarms,
        task_message_queue: Vec::new(),
        events: events.into_iter().map(sse::to_record).collect(),
    })
}
