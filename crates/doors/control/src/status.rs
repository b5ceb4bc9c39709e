//! The server's own figures and limits, for people: how many agents, events and bytes the realm holds, and how far it goes.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::TokenRole;
use serde_json::{Value, json};

use super::methods::VIA;
use posthaste_host::Host;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;
use posthaste_host::services::HostedSwarm;

pub(super) async fn answer(State(shared): State<Host>, Realm(engine): Realm, headers: HeaderMap) -> Response {
    let (identity, pass) = match shared.recognise(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    };
    if identity.role == TokenRole::Agent {
        let why = "this needs a token with the role user or admin";
        return refuse(StatusCode::FORBIDDEN, "not_allowed", why);
    }
    if let Some(wait) = shared.bucket_of(&engine, &identity, pass.as_ref()).take().wait {
        let why = format!("too many requests; try again in {} s", wait.as_secs().max(1));
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", &why);
    }
    let engine = shared.engine_for(&engine, &identity, pass.as_ref());
    let caller = identity.caller(VIA);
    let found = engine.read(move |view| Ok((view.stats(&caller)?, view.rules()?, view.history()?))).await;
    let (stats, rules, history) = match found {
        Ok(found) => found,
        Err(error) => return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()),
    };
    let swarm = shared.swarm(engine.realm());
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
        "live_tasks": swarm.map_or(0, HostedSwarm::live_tasks),
        "limits": limits_of(engine.limits(), &rules),
    }))
    .into_response()
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
        "batch_commands": limits.batch_commands,
        "batch_open_ms": limits.batch_open.as_millis(),
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
        "slot_letters": limits.mailbox_messages,
        "slot_bytes": limits.mailbox_bytes,
        "slots_bytes": limits.all_mailboxes_bytes,
        "open_realms": limits.open_realms,
        "rules": rules,
    })
}
