//! `/interswarm/…`: messages of other swarms, and a user's message to an agent of any swarm.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{AgentId, Caller};
use posthaste_wire::mail::answers::InterswarmAnswer;
use posthaste_wire::mail::tasks::{DirectAnswer, DirectEvents, PeerDirectAnswer};
use posthaste_wire::mail::{DirectRequest, InterswarmRequest, MailMessage, MsgType, Owner, split};

use super::auth::{Agent, AuthedCaller, Json, User};
use super::errors::{DoorError, DoorResult};
use super::{message as messages, sse};
use crate::Door;
use crate::runtime::task_events;
use crate::runtime::{Runtime, TaskRequest};

/// Time limit of a user's message that is passed on to another swarm.
const DIRECT_TIMEOUT: Duration = Duration::from_secs(3_600);

pub(super) async fn forward(Agent(caller): Agent, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let wrapper = InterswarmRequest::read(&body)?.message;
    check_source(&caller, &door, &wrapper.source_swarm).await?;
    let task_id = wrapper.payload.task_id.clone();
    let runtime = caller.runtime(&door)?;
    let runner = runtime.forward(caller.identity.name.as_str(), wrapper).await?;
    Ok(accepted(runtime, task_id, &runner))
}

pub(super) async fn back(Agent(caller): Agent, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let wrapper = InterswarmRequest::read(&body)?.message;
    check_source(&caller, &door, &wrapper.source_swarm).await?;
    let task_id = wrapper.payload.task_id.clone();
    let runtime = caller.runtime(&door)?;
    let runner = runtime.back(caller.identity.name.as_str(), wrapper).await?;
    Ok(accepted(runtime, task_id, &runner))
}

/// Checks that the token may send for the source swarm: it has that swarm's name, or both swarms were registered at one host
/// and the source swarm has no token of its own. Without authentication every caller is accepted.
async fn check_source(caller: &AuthedCaller, door: &Door, source: &str) -> Result<(), DoorError> {
    let token = caller.identity.name.as_str();
    if token == source || !door.needs_token() {
        return Ok(());
    }
    if let Ok(name) = AgentId::new(source)
        && caller.runtime(door)?.registry().share_a_host(token, source)
    {
        let (realm, bearer) = (caller.engine.realm().clone(), caller.identity.bearer());
        match caller.engine.read(move |view| view.may_claim(&realm, &bearer, &name)).await {
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

fn accepted(runtime: &Runtime, task_id: String, runner: &Owner) -> Response {
    let answer = InterswarmAnswer {
        swarm: runtime.swarm().name.clone(),
        task_id,
        status: "success".to_owned(),
        local_runner: runner.to_string(),
    };
    JsonBody(answer).into_response()
}

/// A user's message to agents of this swarm, or, with the user's token for it, of another.
pub(super) async fn message(User(caller): User, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let request = DirectRequest::read(&body)?;
    let runtime = caller.runtime(&door)?;
    let swarm = runtime.swarm();
    let mut remote: Vec<&str> = Vec::new();
    let mut local: Vec<String> = Vec::new();
    for target in &request.targets {
        match split(target) {
            (name, None) => local.push(name.to_owned()),
            (name, Some(other)) if other == swarm.name => local.push(name.to_owned()),
            (_, Some(other)) if remote.contains(&other) => {}
            (_, Some(other)) => remote.push(other),
        }
    }
    match (local.is_empty(), remote.as_slice()) {
        (true, [other]) => proxy(runtime, &request, other).await,
        (false, []) => run_locally(&door, &caller, runtime, request, local).await,
        _ => Err(DoorError::bad("field `targets` must name agents of one swarm")),
    }
}

async fn run_locally(
    door: &Door,
    caller: &AuthedCaller,
    runtime: &Runtime,
    request: DirectRequest,
    to: Vec<String>,
) -> DoorResult {
    let swarm = runtime.swarm();
    if let Some(unknown) = to.iter().find(|name| *name != "all" && swarm.agent(name).is_none()) {
        return Err(DoorError::new(
            StatusCode::NOT_FOUND,
            format!("there is no agent {unknown:?} in this swarm"),
        ));
    }
    if request.msg_type == MsgType::Request && to.iter().any(|name| name == "all") {
        return Err(DoorError::bad("field `targets` of a request must be one agent"));
    }
    let stream = request.stream;
    let opened = runtime
        .open_task(TaskRequest {
            owner: caller.owner(),
            task_id: request.task_id,
            kind: request.msg_type,
            to,
            subject: request.subject,
            body: request.body,
            routing_info: (!request.routing_info.is_empty()).then_some(request.routing_info),
            resume: None,
            results: Vec::new(),
            max_steps: None,
            timeout: None,
            direct: true,
            source: None,
        })
        .await?;
    let (task, task_id) = (opened.task.clone(), opened.task_id.clone());
    let finish = messages::wait(door, opened).await?;
    let mut events = None;
    if stream {
        let found = task_events::read_all(runtime.engine(), &Caller::office(), &task, &task_id).await?;
        events = Some(DirectEvents::Own(found.into_iter().map(sse::to_record).collect()));
    }
    Ok(JsonBody(DirectAnswer { response: MailMessage::clone(&finish.mail), events }).into_response())
}

/// Passes the message on to another swarm, once, with the user's token for it.
async fn proxy(runtime: &Runtime, request: &DirectRequest, swarm: &str) -> DoorResult {
    let Some(entry) = runtime.registry().get(swarm) else {
        return Err(DoorError::new(
            StatusCode::NOT_FOUND,
            format!("the swarm {swarm:?} is not registered here"),
        ));
    };
    let url = format!("{}/interswarm/message", entry.base_url);
    let answered = runtime.post_to(&url, &request.user_token, request, DIRECT_TIMEOUT).await;
    let gateway =
        |why: String| DoorError::new(StatusCode::BAD_GATEWAY, format!("the swarm {swarm:?}: {why}"));
    let answer = answered.map_err(|error| gateway(error.to_string()))?;
    if !answer.status.is_success() {
        return Err(gateway(format!("it answered {}", answer.status)));
    }
    let answer =
        PeerDirectAnswer::read(&answer.body).map_err(|_| gateway("its answer is not JSON".to_owned()))?;
    let response = MailMessage::read(&answer.response)
        .map_err(|error| gateway(format!("its answer is not MAIL: {error}")))?;
    let events = answer.events.map(DirectEvents::Foreign);
    Ok(JsonBody(DirectAnswer { response, events }).into_response())
}
