//! Between swarms: messages that open tasks here or go on with them, and a person's message to an agent elsewhere.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{AgentId, Caller};
use posthaste_wire::mail::{DirectRequest, FieldError, Interswarm, MailMessage, MsgType, Owner, split};
use serde_json::{Value, json};

use super::auth::{Agent, AuthedCaller, Json, User};
use super::errors::{DoorError, DoorResult};
use super::{message as messages, sse};
use crate::Door;
use crate::runtime::task_events;
use crate::runtime::{Runtime, TaskRequest};

/// How long another swarm may take over a person's message.
const PATIENCE: Duration = Duration::from_secs(3_600);

pub(super) async fn forward(Agent(who): Agent, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let wrapper = wrapped(&body)?;
    check_speaker(&who, &door, &wrapper).await?;
    let task_id = wrapper.payload.task_id.clone();
    let runtime = who.runtime(&door)?;
    let runner = runtime.forward(who.identity.name.as_str(), wrapper).await?;
    Ok(taken(runtime, &task_id, &runner))
}

pub(super) async fn back(Agent(who): Agent, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let wrapper = wrapped(&body)?;
    check_speaker(&who, &door, &wrapper).await?;
    let task_id = wrapper.payload.task_id.clone();
    let runtime = who.runtime(&door)?;
    let runner = runtime.back(who.identity.name.as_str(), wrapper).await?;
    Ok(taken(runtime, &task_id, &runner))
}

/// A token speaks for the swarm that has its name. Swarms that an administrator registered at one host may share a token:
/// for a swarm there without a token of its own, that of another counts. Without authentication every caller is believed.
async fn check_speaker(who: &AuthedCaller, door: &Door, wrapper: &Interswarm) -> Result<(), DoorError> {
    let (token, source) = (who.identity.name.as_str(), wrapper.source_swarm.as_str());
    if token == source || !door.needs_token() {
        return Ok(());
    }
    if let Ok(name) = AgentId::new(source)
        && who.runtime(door)?.registry().share_a_host(token, source)
    {
        let (realm, bearer) = (who.engine.realm().clone(), who.identity.bearer());
        match who.engine.read(move |view| view.may_claim(&realm, &bearer, &name)).await {
            Ok(()) => return Ok(()),
            // The swarm has a token of its own.
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let why = format!(
        "field `message.source_swarm` is {source:?}, but this token speaks for the swarm {token:?}; \
         `posthaste token create --role agent --name {source}` makes one for it"
    );
    Err(DoorError::new(StatusCode::FORBIDDEN, why))
}

fn wrapped(body: &Value) -> Result<Interswarm, DoorError> {
    let Some(wrapper) = body.get("message").filter(|value| !value.is_null()) else {
        return Err(DoorError::bad("field `message` is required"));
    };
    Interswarm::read(wrapper).map_err(|error| {
        let field = match error.field.as_str() {
            "" => "message".to_owned(),
            inner => format!("message.{inner}"),
        };
        FieldError { field, ..error }.into()
    })
}

fn taken(runtime: &Runtime, task_id: &str, runner: &Owner) -> axum::response::Response {
    JsonBody(json!({
        "swarm": runtime.swarm().name,
        "task_id": task_id,
        "status": "success",
        "local_runner": runner.to_string(),
    }))
    .into_response()
}

/// A person's message to an agent: of this swarm, or, with the person's token there, of another.
pub(super) async fn message(User(who): User, State(door): State<Door>, Json(body): Json) -> DoorResult {
    if body.get("user_token").is_none_or(|token| token.as_str().is_some_and(str::is_empty) || token.is_null())
    {
        return Err(DoorError::bad("field `user_token` is required"));
    }
    let request = DirectRequest::read(&body)?;
    let runtime = who.runtime(&door)?;
    let swarm = runtime.swarm();
    let mut elsewhere: Vec<&str> = Vec::new();
    let mut here: Vec<String> = Vec::new();
    for target in &request.targets {
        match split(target) {
            (name, None) => here.push(name.to_owned()),
            (name, Some(other)) if other == swarm.name => here.push(name.to_owned()),
            (_, Some(other)) if elsewhere.contains(&other) => {}
            (_, Some(other)) => elsewhere.push(other),
        }
    }
    match (here.is_empty(), elsewhere.as_slice()) {
        (true, [other]) => proxy(runtime, &request, other).await,
        (false, []) => run_here(&door, &who, runtime, request, here).await,
        _ => Err(DoorError::bad("field `targets` must name agents of one swarm")),
    }
}

async fn run_here(
    door: &Door,
    who: &AuthedCaller,
    runtime: &Runtime,
    request: DirectRequest,
    here: Vec<String>,
) -> DoorResult {
    let swarm = runtime.swarm();
    if let Some(unknown) = here.iter().find(|name| *name != "all" && swarm.agent(name).is_none()) {
        return Err(DoorError::new(
            StatusCode::NOT_FOUND,
            format!("there is no agent {unknown:?} in this swarm"),
        ));
    }
    if request.msg_type == MsgType::Request && here.iter().any(|name| name == "all") {
        return Err(DoorError::bad("field `targets` of a request must be one agent"));
    }
    let ask = TaskRequest {
        owner: who.owner(),
        task_id: request.task_id.clone(),
        kind: request.msg_type,
        to: here,
        subject: request.subject.clone(),
        body: request.body.clone(),
        routing_info: (!request.routing_info.is_empty()).then(|| request.routing_info.clone()),
        resume: None,
        results: Vec::new(),
        max_steps: None,
        timeout: None,
        direct: true,
        source: None,
    };
    let waited = runtime.open_task(ask).await?;
    let (task, task_id) = (waited.task.clone(), waited.task_id.clone());
    let finish = messages::wait(door, waited).await?;
    let mut answer = json!({ "response": finish.mail.to_json() });
    if request.stream {
        let found = task_events::read_all(runtime.engine(), &Caller::office(), &task, &task_id).await?;
        answer["events"] = found.iter().map(sse::snapshot).collect();
    }
    Ok(JsonBody(answer).into_response())
}

/// Passes the message on, once, under the person's own token there.
async fn proxy(runtime: &Runtime, request: &DirectRequest, swarm: &str) -> DoorResult {
    let Some(entry) = runtime.registry().get(swarm) else {
        return Err(DoorError::new(
            StatusCode::NOT_FOUND,
            format!("the swarm {swarm:?} is not registered here"),
        ));
    };
    let mut body = json!({
        "user_token": request.user_token,
        "body": request.body,
        "targets": request.targets,
        "subject": request.subject,
        "msg_type": request.msg_type.as_str(),
        "routing_info": request.routing_info,
        "stream": request.stream,
        "ignore_stream_pings": request.ignore_stream_pings,
    });
    if let Some(id) = &request.task_id {
        body["task_id"] = Value::from(id.as_str());
    }
    let url = format!("{}/interswarm/message", entry.base_url);
    let answered = runtime.post_to(&url, &request.user_token, &body, PATIENCE).await;
    let gateway =
        |why: String| DoorError::new(StatusCode::BAD_GATEWAY, format!("the swarm {swarm:?}: {why}"));
    let answer = answered.map_err(|error| gateway(error.to_string()))?;
    if !answer.status.is_success() {
        return Err(gateway(format!("it answered {}", answer.status)));
    }
    let value: Value =
        serde_json::from_slice(&answer.body).map_err(|_| gateway("its answer is not JSON".to_owned()))?;
    // Some servers wrap the answer of those behind them once more.
    let mut response = &value["response"];
    while response.get("response").is_some() {
        response = &response["response"];
    }
    let mail =
        MailMessage::read(response).map_err(|error| gateway(format!("its answer is not MAIL: {error}")))?;
    let mut answer = json!({ "response": mail.to_json() });
    if let Some(events) = value.get("events").filter(|events| events.is_array()) {
        answer["events"] = events.clone();
    }
    Ok(JsonBody(answer).into_response())
}
