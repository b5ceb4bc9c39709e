//! `POST /message`: a user's message to the swarm. The answer is what the task ends with, or a stream of its events.

use std::sync::Arc;
use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use posthaste_engine::nouns::Caller;
use posthaste_wire::mail::tasks::MessageAnswer;
use posthaste_wire::mail::{FieldError, MessageRequest, MsgType, ResumeFrom};

use super::auth::{Json, User};
use super::errors::{DoorError, DoorResult};
use super::sse;
use crate::Door;
use crate::runtime::task_events::{self, Cursor};
use crate::runtime::{Finish, OpenedTask, TaskRequest};

pub(super) async fn post(
    User(caller): User,
    State(door): State<Door>,
    headers: HeaderMap,
    Json(body): Json,
) -> DoorResult {
    let request = MessageRequest::read(&body)?;
    let runtime = caller.runtime(&door)?;
    // A client whose stream broke sends the request again with the last event that it saw. Its message is stored already.
    if let (true, Some(task_id), Some(seen)) = (request.stream, &request.task_id, sse::last_seen(&headers)?) {
        return sse::again(&door, &caller, task_id, seen).await;
    }
    let stream = request.stream;
    let task = to_task_request(&caller, &runtime.swarm(), &request)?;
    let waited = runtime.open_task(task).await?;
    if stream {
        let after = Cursor::before(waited.place);
        return Ok(sse::stream(&door, &caller, waited, after));
    }
    let (task, task_id) = (waited.task.clone(), waited.task_id.clone());
    let finish = wait(&door, waited).await?;
    let mut events = None;
    if request.show_events {
        let found = task_events::read_all(runtime.engine(), &Caller::office(), &task, &task_id).await?;
        events = Some(found.into_iter().map(sse::to_record).collect());
    }
    Ok(JsonBody(MessageAnswer { response: finish.mail.message.body.clone(), events }).into_response())
}

/// Waits until the task ends.
pub(super) async fn wait(door: &Door, waited: OpenedTask) -> Result<Finish, DoorError> {
    let closing = || {
        let why = "the server is closing; the task goes on when it is back, under the task_id ".to_owned();
        DoorError::new(StatusCode::SERVICE_UNAVAILABLE, why + &waited.task_id)
    };
    tokio::select! {
        () = door.stop().cancelled() => Err(closing()),
        finish = waited.finish => finish.map_err(|_| closing()),
    }
}

fn to_task_request(
    caller: &super::auth::AuthedCaller,
    swarm: &Arc<crate::runtime::definition::Swarm>,
    request: &MessageRequest,
) -> Result<TaskRequest, DoorError> {
    let field =
        |name: &str, problem: &str| FieldError { field: name.to_owned(), problem: problem.to_owned() };
    let entry = request.entrypoint.clone().unwrap_or_else(|| swarm.entrypoint.clone());
    match swarm.agent(&entry) {
        None => return Err(field("entrypoint", "names no agent of this swarm").into()),
        Some(agent) if !agent.enable_entrypoint => {
            return Err(field("entrypoint", "names an agent that takes no messages from users").into());
        }
        Some(_) => {}
    }
    let results = match request.resume_from {
        Some(ResumeFrom::BreakpointToolCall) => request.breakpoint_results()?,
        _ => Vec::new(),
    };
    Ok(TaskRequest {
        owner: caller.owner(),
        task_id: request.task_id.clone(),
        kind: request.msg_type,
        to: match request.msg_type {
            MsgType::Broadcast => vec!["all".to_owned()],
            _ => vec![entry],
        },
        subject: request.subject.clone().unwrap_or_else(|| "New Message".to_owned()),
        body: request.body.clone(),
        routing_info: None,
        resume: request.resume_from,
        results,
        max_steps: request.max_steps()?,
        timeout: request.timeout()?.map(|seconds| Duration::from_secs_f64(seconds.min(1e9))),
        direct: false,
        source: None,
    })
}
