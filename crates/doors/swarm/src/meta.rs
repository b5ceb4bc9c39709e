//! What the server says about itself: `/`, `/health`, `/status`, `/whoami`.

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_engine::nouns::{Caller, TokenRole};
use posthaste_engine::stamp;
use posthaste_wire::mail::VERSION;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::auth::{Admin, Json, Protocol, RateLimited, RequestedProtocol, User, swarm_name};
use super::errors::{DoorError, DoorResult};
use crate::Door;
use posthaste_host::Offer;
use posthaste_host::caller::Realm;

/// The server's card; a browser is sent to the page. The reference's server and client use an object for `swarm` and a
/// member `protocol_version`; the specification's document has neither, and callers that ask for it get its form.
pub(super) async fn root(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    RequestedProtocol(chosen): RequestedProtocol,
    headers: HeaderMap,
) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return Redirect::temporary("ui").into_response();
    }
    let name = swarm_name(engine.realm());
    let uptime = door.started().elapsed().as_secs_f64();
    if chosen == Some(Protocol::Mail) {
        let card = json!({
            "name": "mail", "version": VERSION, "swarm": name, "status": "running", "uptime": uptime,
        });
        return JsonBody(card).into_response();
    }
    let swarm = match door.runtime(engine.realm()).map(|runtime| runtime.swarm()) {
        Some(swarm) => json!({
            "name": name,
            "version": swarm.version,
            "description": swarm.description,
            "entrypoint": swarm.entrypoint,
            "keywords": swarm.keywords,
            "public": swarm.public,
        }),
        None => json!({
            "name": name,
            "version": env!("CARGO_PKG_VERSION"),
            "description": "",
            "entrypoint": "",
            "keywords": [],
            "public": false,
        }),
    };
    JsonBody(json!({
        "name": "mail",
        "version": VERSION,
        "protocol_version": VERSION,
        "swarm": swarm,
        "status": "running",
        "uptime": uptime,
    }))
    .into_response()
}

/// Needs no token, so that monitors can ask.
pub(super) async fn health(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    RequestedProtocol(chosen): RequestedProtocol,
    headers: HeaderMap,
) -> Response {
    // Clients that are made from MAIL's document name the type that it gives; AIRC's take whatever comes.
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let by_type = accepts.trim().eq_ignore_ascii_case("application/json").then_some(Protocol::Mail);
    show_health(&door, swarm_name(engine.realm()), chosen.or(by_type)).await
}

async fn show_health(door: &Door, swarm: &str, chosen: Option<Protocol>) -> Response {
    let report = door.check_health().await;
    let word = match door.health().word() {
        Some((word, _)) if report.problem.is_none() => word,
        _ => if report.problem.is_none() { "healthy" } else { "unhealthy" }.to_owned(),
    };
    // MAIL's object is closed. Callers that did not choose get both protocols' members.
    let now = to_rfc3339(stamp::now());
    // The time of this check: monitors take an old one for a server that hangs.
    let mail = json!({ "status": word, "swarm_name": swarm, "timestamp": now });
    let airc = json!({
        "status": word,
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": "AIRC",
        "protocol_version": posthaste_wire::airc::PROTOCOL_VERSION,
        "safe_mode": door.safe_mode() != Offer::Off,
    });
    let mut body = match chosen {
        Some(Protocol::Mail) => mail,
        Some(Protocol::Airc) => airc,
        None => merged(mail, airc),
    };
    match report.problem {
        None => JsonBody(body).into_response(),
        Some(problem) => {
            body["reason"] = Value::String(problem);
            (StatusCode::SERVICE_UNAVAILABLE, JsonBody(body)).into_response()
        }
    }
}

/// An administrator says how the server is, for as long as it is not worse.
pub(super) async fn set_health(Admin(who): Admin, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let word = match body.get("status").and_then(Value::as_str) {
        Some(word) if !word.is_empty() && word.len() <= 64 && !word.chars().any(char::is_control) => word,
        _ => return Err(DoorError::bad("field `status` is required: a word of 1 to 64 bytes")),
    };
    // One office, one health: who runs another realm of it has no say.
    if !door.heeds(&who.engine, &who.identity) {
        return Err(DoorError::new(StatusCode::FORBIDDEN, "this needs the role admin of the office"));
    }
    door.health().set_word(word);
    Ok(show_health(&door, swarm_name(who.engine.realm()), Some(Protocol::Mail)).await)
}

/// One object with the members of two.
fn merged(mut one: Value, mut other: Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object_mut()) {
        one.append(other);
    }
    one
}

pub(super) async fn whoami(User(who): User) -> DoorResult {
    let name = who.identity.name.as_str();
    let role = match who.identity.role {
        TokenRole::Admin => "admin",
        TokenRole::User => "user",
        TokenRole::Agent => "agent",
    };
    Ok(JsonBody(json!({ "id": name, "role": role })).into_response())
}

/// Where swarm and caller stand, as the specification's closed object says it. The server's own figures are at
/// `/x-posthaste/status`.
pub(super) async fn status(User(who): User, State(door): State<Door>) -> DoorResult {
    let engine = &who.engine;
    let instance = who.owner().instance();
    let (users, ready) = engine
        .read(move |view| {
            let ready = !view.runs(&Caller::office(), &instance, "", 1)?.is_empty();
            Ok((view.instances(&Caller::office(), "user:")?, ready))
        })
        .await?;
    let runtime = door.runtime(engine.realm());
    let running = runtime.is_some_and(|runtime| runtime.is_running_for(&who.owner().instance()));
    Ok(JsonBody(json!({
        "swarm": { "name": swarm_name(engine.realm()), "status": if runtime.is_some() { "ready" } else { "none" } },
        "active_users": users,
        "user_mail_ready": ready,
        "user_task_running": running,
    }))
    .into_response())
}
