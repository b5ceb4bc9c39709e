//! Answers of the server about itself and the caller: `/`, `/health`, `/status`, `/whoami`.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_engine::nouns::{Caller, TokenRole};
use posthaste_engine::stamp;
use posthaste_wire::mail::HealthRequest;
use posthaste_wire::mail::answers::{Card, HealthAnswer, StatusAnswer, SwarmCard, SwarmStatus, WhoAmI};
use posthaste_wire::time::to_rfc3339;

use super::auth::{Admin, Json, Protocol, RateLimited, RequestedProtocol, User, swarm_name};
use super::errors::{DoorError, DoorResult};
use crate::Door;
use posthaste_host::Offer;
use posthaste_host::caller::Realm;

/// The server's card; browsers are redirected to the page. The reference's server and client use an object for `swarm` and a
/// member `protocol_version`; the specification's document has neither, and callers that ask for it get its form.
pub(super) async fn root(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    RequestedProtocol(protocol): RequestedProtocol,
    headers: HeaderMap,
) -> Response {
    if accepts(&headers).contains("text/html") {
        return Redirect::temporary("ui").into_response();
    }
    let name = swarm_name(engine.realm());
    let uptime = door.started().elapsed().as_secs_f64();
    if protocol == Some(Protocol::Mail) {
        return JsonBody(Card::by_document(name, uptime)).into_response();
    }
    let card = match door.runtime(engine.realm()).map(|runtime| runtime.swarm()) {
        Some(swarm) => SwarmCard {
            name: name.to_owned(),
            version: swarm.version.clone(),
            description: swarm.description.clone(),
            entrypoint: swarm.entrypoint.clone(),
            keywords: swarm.keywords.clone(),
            public: swarm.public,
        },
        None => SwarmCard {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..SwarmCard::default()
        },
    };
    JsonBody(Card::described(card, uptime)).into_response()
}

fn accepts(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Needs no token, because monitors have none.
pub(super) async fn health(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    RequestedProtocol(protocol): RequestedProtocol,
    headers: HeaderMap,
) -> Response {
    // Clients generated from MAIL's document ask for the type that it names; AIRC's ask for none.
    let by_type = accepts(&headers).trim().eq_ignore_ascii_case("application/json").then_some(Protocol::Mail);
    health_answer(&door, swarm_name(engine.realm()), protocol.or(by_type)).await
}

async fn health_answer(door: &Door, swarm: &str, protocol: Option<Protocol>) -> Response {
    let report = door.check_health().await;
    let status = match door.health().word() {
        Some((word, _)) if report.problem.is_none() => word,
        _ => if report.problem.is_none() { "healthy" } else { "unhealthy" }.to_owned(),
    };
    // MAIL's object is closed. Callers that did not choose a protocol get the members of both.
    let (mail, airc) = (protocol != Some(Protocol::Airc), protocol != Some(Protocol::Mail));
    let answer = HealthAnswer {
        status,
        swarm_name: mail.then(|| swarm.to_owned()),
        // The time of this check: monitors take an old one for a server that hangs.
        timestamp: mail.then(|| to_rfc3339(stamp::now())),
        version: airc.then(|| env!("CARGO_PKG_VERSION").to_owned()),
        protocol: airc.then(|| "AIRC".to_owned()),
        protocol_version: airc.then(|| posthaste_wire::airc::PROTOCOL_VERSION.to_owned()),
        safe_mode: airc.then(|| door.safe_mode() != Offer::Off),
        reason: report.problem,
    };
    let status = if answer.reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, JsonBody(answer)).into_response()
}

/// Sets the word that the server answers while it is healthy.
pub(super) async fn set_health(
    Admin(caller): Admin,
    State(door): State<Door>,
    Json(body): Json,
) -> DoorResult {
    let word = HealthRequest::read(&body)?.status;
    // All realms share the server's health, so administrators of other realms may not set it.
    if !door.may_administer(&caller.engine, &caller.identity) {
        return Err(DoorError::new(StatusCode::FORBIDDEN, "this needs the role admin of the server"));
    }
    door.health().set_status(&word);
    Ok(health_answer(&door, swarm_name(caller.engine.realm()), Some(Protocol::Mail)).await)
}

pub(super) async fn whoami(User(caller): User) -> DoorResult {
    let role = match caller.identity.role {
        TokenRole::Admin => "admin",
        TokenRole::User => "user",
        TokenRole::Agent => "agent",
    };
    Ok(JsonBody(WhoAmI { id: caller.identity.name.to_string(), role: role.to_owned() }).into_response())
}

/// The state of the swarm and of the caller: the specification's closed object. The server's own figures are at
/// `/x-posthaste/status`.
pub(super) async fn status(User(caller): User, State(door): State<Door>) -> DoorResult {
    let engine = &caller.engine;
    let instance = caller.owner().instance();
    let (users, ready) = engine
        .read(move |view| {
            let ready = !view.runs(&Caller::office(), &instance, "", 1)?.is_empty();
            Ok((view.instances(&Caller::office(), "user:")?, ready))
        })
        .await?;
    let runtime = door.runtime(engine.realm());
    let status = if runtime.is_some() { "ready" } else { "none" };
    let answer = StatusAnswer {
        swarm: SwarmStatus { name: swarm_name(engine.realm()).to_owned(), status: status.to_owned() },
        active_users: users,
        user_mail_ready: ready,
        user_task_running: runtime.is_some_and(|runtime| runtime.is_running_for(&caller.owner().instance())),
    };
    Ok(JsonBody(answer).into_response())
}
