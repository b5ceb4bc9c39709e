//! Other swarms, and the description of this one: `/swarms…`.

use axum::Extension;
use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use posthaste_engine::stamp;
use posthaste_wire::mail::{LoadRequest, RegisterRequest, VERSION};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::auth::{Admin, Json, RateLimited, own_url, swarm_name};
use super::errors::{DoorError, DoorResult};
use crate::Door;
use crate::runtime::Entry;
use posthaste_host::caller::Realm;
use posthaste_host::http::listen::Peer;

/// The public ones, without anything that is nobody's business.
pub(super) async fn list(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> DoorResult {
    let Some(runtime) = door.runtime(engine.realm()) else {
        return Ok(JsonBody(json!({ "swarms": [] })).into_response());
    };
    let mut swarms: Vec<Value> =
        runtime.registry().all().iter().filter(|entry| entry.about.public).map(shown).collect();
    let own = runtime.swarm();
    if own.public {
        let secure = peer.is_some_and(|Extension(peer)| peer.tls);
        swarms.insert(
            0,
            json!({
                "swarm_name": own.name,
                "base_url": own_url(&headers, secure),
                "version": VERSION,
                "last_seen": to_rfc3339(stamp::now()),
                "is_active": true,
                "swarm_description": own.description,
                "keywords": own.keywords,
            }),
        );
    }
    Ok(JsonBody(json!({ "swarms": swarms })).into_response())
}

/// The members of the specification's closed object; those without a value are left out.
fn shown(entry: &Entry) -> Value {
    let mut shown = json!({
        "swarm_name": entry.name.as_str(),
        "base_url": entry.base_url,
        "version": entry.about.version,
        "is_active": entry.active,
        "swarm_description": entry.about.description,
        "keywords": entry.about.keywords,
    });
    if let Some(at) = entry.seen_at {
        shown["last_seen"] = Value::from(to_rfc3339(at));
    }
    if let Some(metadata) = &entry.about.metadata {
        shown["metadata"] = Value::Object(metadata.clone());
    }
    shown
}

pub(super) async fn register(Admin(who): Admin, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let request = RegisterRequest::read(&body)?;
    let by_operator = who.identity.runs_office();
    let name = who.runtime(&door)?.register(request, by_operator).await?;
    Ok(JsonBody(json!({ "status": "registered", "swarm_name": name })).into_response())
}

/// Writes the swarm's agents into the log.
pub(super) async fn dump(Admin(who): Admin, State(door): State<Door>) -> DoorResult {
    let swarm = who.runtime(&door)?.swarm();
    for agent in &swarm.agents {
        tracing::info!(
            swarm = swarm.name,
            agent = agent.name,
            entrypoint = agent.enable_entrypoint,
            supervisor = agent.can_complete_tasks,
            comm_targets = ?agent.comm_targets,
            "an agent of the swarm"
        );
    }
    Ok(JsonBody(json!({ "status": "dumped", "swarm_name": swarm_name(who.engine.realm()) })).into_response())
}

/// Puts another description in the place of the present one, until the server starts again.
pub(super) async fn load(Admin(who): Admin, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let request = LoadRequest::read(&body)?;
    let name = who.runtime(&door)?.replace(&request.json).await.map_err(DoorError::bad)?;
    Ok(JsonBody(json!({ "status": "success", "swarm_name": name })).into_response())
}
