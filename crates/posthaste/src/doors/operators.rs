//! What those who run the office ask for: is it well, what has it done, what are its limits.

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use crate::caller::{AuthError, Realm, bearer};
use crate::http::errors::answer;
use crate::observe::metrics;
use crate::shared::Shared;

pub(super) fn router() -> Router<Shared> {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(show_metrics))
        .route("/status", get(status))
}

/// Needs no token: whoever watches over the office must be able to ask.
async fn health(State(shared): State<Shared>, Realm(engine): Realm) -> Response {
    let report = shared.check_health().await;
    let mut body = json!({
        "status": if report.problem.is_none() { "healthy" } else { "unhealthy" },
        "swarm_name": engine.realm().as_str(),
        "timestamp": to_rfc3339(report.since),
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": "AIRC",
        "protocol_version": posthaste_wire::airc::PROTOCOL_VERSION,
        "safe_mode": shared.safe_mode(),
    });
    match report.problem {
        None => Json(body).into_response(),
        Some(problem) => {
            body["reason"] = Value::String(problem);
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

async fn show_metrics(State(shared): State<Shared>) -> Response {
    let text = metrics::render(&shared).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Where the office stands and how far it goes, for anyone with a token.
async fn status(State(shared): State<Shared>, Realm(engine): Realm, headers: HeaderMap) -> Response {
    let identity = match shared.identify(&engine, bearer(&headers)).await {
        Ok(identity) => identity,
        Err(error @ (AuthError::Missing | AuthError::Invalid)) => {
            return answer(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string());
        }
        Err(AuthError::Failed(error)) => {
            return answer(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string());
        }
    };
    let caller = identity.caller("web");
    let seen = engine.read(move |view| Ok((view.stats(&caller)?, view.rules()?, view.history()?))).await;
    let (stats, rules, history) = match seen {
        Ok(seen) => seen,
        Err(error) => return answer(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()),
    };
    let limits = engine.limits();
    Json(json!({
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
        "limits": {
            "message_bytes": limits.message_bytes,
            "addresses": limits.addresses,
            "text_bytes": limits.text_bytes,
            "queue_commands": limits.queue_commands,
            "queue_bytes": limits.queue_bytes,
            "batch_commands": limits.batch_commands,
            "page": limits.page,
            "search_rows": limits.search_rows,
            "replay_rows": limits.replay_rows,
            "live_events": limits.live_events,
            "slot_letters": limits.slot_letters,
            "open_realms": limits.open_realms,
            "rules": rules,
        },
    }))
    .into_response()
}
