//! `POST /message`: a person's message to the swarm, and what comes of it, at the end or as it happens.

use std::sync::Arc;
use std::time::Duration;

use axum::Json as Answered;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use posthaste_engine::nouns::Caller;
use posthaste_wire::mail::{FieldError, MessageRequest, MsgType, ResumeFrom};
use serde_json::json;

use super::errors::{Answer, Failure};
use super::sse;
use super::who::{Json, User};
use crate::Door;
use crate::runtime::record::{self, Cursor};
use crate::runtime::{Ask, Ended, Finish, Waited};

pub(super) async fn post(
    User(who): User,
    State(shared): State<Door>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    let request = MessageRequest::read(&body)?;
    let runtime = who.runtime(&shared)?;
    // A client whose stream broke asks again with what it saw last; its message is there already.
    if let (true, Some(task_id), Some(seen)) = (request.stream, &request.task_id, sse::last_seen(&headers)?) {
        return sse::again(&shared, &who, task_id, seen).await;
    }
    let stream = request.stream;
    let ask = to_ask(&who, &runtime.swarm(), &request)?;
    let waited = runtime.ask(ask).await?;
    if stream {
        let after = Cursor::before(waited.place);
        return Ok(sse::stream(&shared, &who, waited, after));
    }
    let (task, task_id) = (waited.task.clone(), waited.task_id.clone());
    let finish = wait(&shared, waited).await?;
    let mut answer = json!({ "response": finish.mail.message.body });
    if request.show_events {
        let found = record::read_all(runtime.engine(), &Caller::office(), &task, &task_id).await?;
        answer["events"] = found.iter().map(sse::snapshot).collect();
    }
    Ok(Answered(answer).into_response())
}

/// Waits until the task ends.
pub(super) async fn wait(shared: &Door, waited: Waited) -> Result<Finish, Failure> {
    let closing = || {
        let why = "the server is closing; the task goes on when it is back, under the task_id ".to_owned();
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, why + &waited.task_id)
    };
    let finish = match waited.finish {
        Ended::Already(finish) => return Ok(finish),
        Ended::Later(finish) => finish,
    };
    tokio::select! {
        () = shared.stop().cancelled() => Err(closing()),
        finish = finish => finish.map_err(|_| closing()),
    }
}

fn to_ask(
    who: &super::who::Who,
    swarm: &Arc<crate::runtime::definition::Swarm>,
    request: &MessageRequest,
) -> Result<Ask, Failure> {
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
    Ok(Ask {
        owner: who.owner(),
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
        letter: None,
    })
}
