//! What the server says about itself: `/`, `/health`, `/status`, `/whoami`.

use axum::Json as Answered;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{Caller, TokenRole};
use posthaste_engine::stamp;
use posthaste_wire::mail::VERSION;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::errors::{Answer, Failure};
use super::who::{Admin, Json, Passer, User, swarm_name};
use crate::caller::Realm;
use crate::shared::{Offer, Shared};

/// The server's card; a browser is sent to the page.
pub(super) async fn root(
    _: Passer,
    State(shared): State<Shared>,
    Realm(engine): Realm,
    headers: HeaderMap,
) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return Redirect::temporary("ui").into_response();
    }
    let name = swarm_name(engine.realm());
    let swarm = match shared.runtime(engine.realm()).map(|runtime| runtime.swarm()) {
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
    Answered(json!({
        "name": "mail",
        "version": VERSION,
        "protocol_version": VERSION,
        "swarm": swarm,
        "status": "running",
        "uptime": shared.started().elapsed().as_secs_f64(),
    }))
    .into_response()
}

/// Needs no token: whoever watches over the office must be able to ask.
pub(super) async fn health(_: Passer, State(shared): State<Shared>, Realm(engine): Realm) -> Response {
    show_health(&shared, swarm_name(engine.realm())).await
}

async fn show_health(shared: &Shared, swarm: &str) -> Response {
    let report = shared.check_health().await;
    let word = match shared.health().word() {
        Some((word, _)) if report.problem.is_none() => word,
        _ => if report.problem.is_none() { "healthy" } else { "unhealthy" }.to_owned(),
    };
    let mut body = json!({
        "status": word,
        "swarm_name": swarm,
        // When this was checked: monitors take an old time for a server that hangs.
        "timestamp": to_rfc3339(stamp::now()),
        "version": env!("CARGO_PKG_VERSION"),
        // AIRC's clients look here, too.
        "protocol": "AIRC",
        "protocol_version": posthaste_wire::airc::PROTOCOL_VERSION,
        "safe_mode": shared.safe_mode() != Offer::Off,
    });
    match report.problem {
        None => Answered(body).into_response(),
        Some(problem) => {
            body["reason"] = Value::String(problem);
            (StatusCode::SERVICE_UNAVAILABLE, Answered(body)).into_response()
        }
    }
}

/// An administrator says how the server is, for as long as it is not worse.
pub(super) async fn set_health(Admin(who): Admin, State(shared): State<Shared>, Json(body): Json) -> Answer {
    let word = match body.get("status").and_then(Value::as_str) {
        Some(word) if !word.is_empty() && word.len() <= 64 && !word.chars().any(char::is_control) => word,
        _ => return Err(Failure::bad("field `status` is required: a word of 1 to 64 bytes")),
    };
    // One office, one health: who runs another realm of it has no say.
    if !shared.heeds(&who.engine, &who.identity) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "this needs the role admin of the office"));
    }
    shared.health().set_word(word);
    Ok(show_health(&shared, swarm_name(who.engine.realm())).await)
}

pub(super) async fn whoami(User(who): User) -> Answer {
    let name = who.identity.name.as_str();
    let role = match who.identity.role {
        TokenRole::Admin => "admin",
        TokenRole::User => "user",
        TokenRole::Agent => "agent",
    };
    Ok(Answered(json!({ "id": name, "username": name, "role": role })).into_response())
}

/// Where swarm and caller stand, and, for those who run the office, where that stands and how far it goes.
pub(super) async fn status(User(who): User, State(shared): State<Shared>) -> Answer {
    let (engine, caller) = (&who.engine, who.identity.caller("web"));
    let instance = who.owner().instance();
    let (stats, rules, history, users, ready) = engine
        .read(move |view| {
            let ready = !view.runs(&Caller::office(), &instance, "", 1)?.is_empty();
            let users = view.instances(&Caller::office(), "user:")?;
            Ok((view.stats(&caller)?, view.rules()?, view.history()?, users, ready))
        })
        .await?;
    let runtime = shared.runtime(engine.realm());
    let running = runtime.is_some_and(|runtime| runtime.is_running_for(&who.owner().instance()));
    Ok(Answered(json!({
        "swarm": { "name": swarm_name(engine.realm()), "status": if runtime.is_some() { "ready" } else { "none" } },
        "active_users": users,
        "user_mail_ready": ready,
        "user_task_running": running,
        "version": env!("CARGO_PKG_VERSION"),
        "realm": engine.realm().as_str(),
        "history": history,
        "uptime": shared.started().elapsed().as_secs_f64(),
        "agents": stats.agents,
        "events": stats.events,
        "active_conversations": stats.active_conversations,
        "open_tasks": stats.open_tasks,
        "reservations": stats.reservations,
        "bytes": stats.bytes,
        "queue": engine.queue_depth(),
        "live_tasks": runtime.map_or(0, crate::runtime::Runtime::live_count),
        "limits": limits_of(engine.limits(), &rules),
    }))
    .into_response())
}

/// The limits of the process and of the realm.
fn limits_of(limits: &Limits, rules: &Rules) -> Value {
    json!({
        "message_bytes": limits.message_bytes,
        "addresses": limits.addresses,
        "text_bytes": limits.text_bytes,
        "entry_bytes": limits.entry_bytes,
        "queue_commands": limits.queue_commands,
        "queue_bytes": limits.queue_bytes,
        "share_commands": limits.share_commands,
        "share_alone": limits.share_alone,
        "batch_commands": limits.batch_commands,
        "page": limits.page,
        "page_bytes": limits.page_bytes,
        "answer_bytes": limits.answer_bytes,
        "read_cpu_ms": limits.read_cpu.as_millis(),
        "share_readers": limits.share_readers,
        "share_patterns": limits.share_patterns,
        "share_broad": limits.share_broad,
        "search_phrases": limits.search_phrases,
        "search_rows": limits.search_rows,
        "replay_rows": limits.replay_rows,
        "live_events": limits.live_events,
        "slot_letters": limits.slot_letters,
        "slot_bytes": limits.slot_bytes,
        "slots_bytes": limits.slots_bytes,
        "open_realms": limits.open_realms,
        "rules": rules,
    })
}
