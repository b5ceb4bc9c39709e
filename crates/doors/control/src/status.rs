//! `/x-posthaste/status`: the server's figures and limits, for users and administrators.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::TokenRole;
use posthaste_host::Host;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;
use posthaste_host::services::HostedSwarm;
use posthaste_wire::control as wire;

use super::{VIA, to_wire};

pub(super) async fn answer(State(host): State<Host>, Realm(engine): Realm, headers: HeaderMap) -> Response {
    let (identity, pass) = match host.authenticate(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    };
    if identity.role == TokenRole::Agent {
        let why = "this needs a token with the role user or admin";
        return refuse(StatusCode::FORBIDDEN, "not_allowed", why);
    }
    if let Some(wait) = host.bucket_of(&engine, &identity, pass.as_ref()).take().wait {
        let why = format!("too many requests; try again in {} s", wait.as_secs().max(1));
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", &why);
    }
    let engine = host.engine_for(&engine, &identity, pass.as_ref());
    let caller = identity.caller(VIA);
    let found = engine.read(move |view| Ok((view.stats(&caller)?, view.rules()?, view.history()?))).await;
    let (stats, rules, history) = match found {
        Ok(found) => found,
        Err(error) => return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()),
    };
    let swarm = host.swarm(engine.realm());
    Json(wire::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        realm: engine.realm().to_string(),
        history,
        uptime: host.started().elapsed().as_secs_f64(),
        agents: stats.agents,
        events: stats.events,
        active_conversations: stats.active_conversations,
        open_tasks: stats.open_tasks,
        reservations: stats.reservations,
        bytes: stats.bytes,
        queue: engine.queue_depth() as u64,
        live_tasks: swarm.map_or(0, HostedSwarm::live_tasks) as u64,
        limits: to_wire::limits(engine.limits(), rules),
    })
    .into_response()
}
