//! A caller's tasks: the list, one of them, its events, and taking one back.

use axum::Json as JsonBody;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use posthaste_engine::nouns::{Caller, Run, RunPhase, Task};
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::auth::{AuthedCaller, Json, User};
use super::errors::{DoorError, DoorResult};
use super::sse;
use crate::Door;
use crate::runtime::task_events::{self, Cursor};

/// Tasks of one answer; more are asked for with `after`.
const PAGE: usize = 200;

#[derive(Debug, Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    after: String,
}

/// The caller's tasks by their ids.
pub(super) async fn list(User(who): User, Query(page): Query<Page>) -> DoorResult {
    let instance = who.owner().instance();
    let found =
        who.engine.read(move |view| view.runs(&Caller::office(), &instance, &page.after, PAGE)).await?;
    let mut tasks = Map::new();
    for (run, task) in found {
        let name = run.name.clone();
        match shown(&who, &run, &task).await {
            Ok(shown) => drop(tasks.insert(name, shown)),
            // As many as one answer holds; the rest is asked for with `after`.
            Err(failure) if failure.status() == StatusCode::SERVICE_UNAVAILABLE && !tasks.is_empty() => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(JsonBody(Value::Object(tasks)).into_response())
}

/// One task, named in a JSON body as the reference's client does, or in the query.
pub(super) async fn one(
    User(who): User,
    Query(query): Query<std::collections::HashMap<String, String>>,
    body: axum::body::Bytes,
) -> DoorResult {
    let named = match query.get("task_id") {
        Some(id) => Some(id.clone()),
        None => match serde_json::from_slice::<Value>(&body) {
            Ok(value) => value.get("task_id").and_then(Value::as_str).map(str::to_owned),
            Err(_) => None,
        },
    };
    let Some(id) = named.filter(|id| !id.is_empty()) else {
        return Err(DoorError::bad("field `task_id` is required"));
    };
    let (run, task) = find(&who, &id).await?;
    Ok(JsonBody(shown(&who, &run, &task).await?).into_response())
}

/// Takes a task back.
pub(super) async fn cancel(User(who): User, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let Some(id) = body.get("task_id").and_then(Value::as_str) else {
        return Err(DoorError::bad("field `task_id` is required"));
    };
    let (run, _) = find(&who, id).await?;
    let cancelled = who.runtime(&door)?.cancel(&who.owner(), &run.name).await?;
    if !cancelled {
        return Err(DoorError::new(StatusCode::CONFLICT, "the task has ended already"));
    }
    Ok(JsonBody(json!({ "status": "cancelled", "task_id": run.name })).into_response())
}

/// A task's events from its beginning, or from the one the client saw last.
pub(super) async fn events(
    User(who): User,
    State(door): State<Door>,
    Path(params): Path<std::collections::HashMap<String, String>>,
    headers: HeaderMap,
) -> DoorResult {
    let id = params.get("task_id").map(String::as_str).unwrap_or_default();
    let after = sse::last_seen(&headers)?.unwrap_or(Cursor::before(0));
    sse::again(&door, &who, id, after).await
}

async fn find(who: &AuthedCaller, id: &str) -> Result<(Run, Task), DoorError> {
    let (instance, name) = (who.owner().instance(), id.to_lowercase());
    let found = who.engine.read(move |view| view.run(&Caller::office(), &instance, &name)).await?;
    found.ok_or_else(|| DoorError::new(StatusCode::NOT_FOUND, format!("task not found: {id}")))
}

async fn shown(who: &AuthedCaller, run: &Run, task: &Task) -> Result<Value, DoorError> {
    let events = task_events::read_all(&who.engine, &Caller::office(), &run.task, &run.name).await?;
    let own = who.engine.realm().as_str();
    let remote: Vec<&str> = task
        .contributors
        .iter()
        .filter_map(|one| one.rsplit_once('@').map(|(_, swarm)| swarm))
        .filter(|swarm| *swarm != own)
        .collect();
    Ok(json!({
        "task_id": run.name,
        "title": task.title,
        "task_owner": task.owner,
        "task_contributors": task.contributors,
        "start_time": to_rfc3339(task.created_at),
        "is_running": run.phase == RunPhase::Running,
        "completed": run.phase == RunPhase::Ended,
        "paused": run.phase == RunPhase::Paused,
        "remote_swarms": remote,
        "task_message_queue": [],
        "events": events.iter().map(sse::snapshot).collect::<Vec<_>>(),
    }))
}
