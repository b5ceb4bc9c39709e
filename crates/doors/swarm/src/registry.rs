//! `/swarms…`: other swarms, and the definition of this one.

use axum::Extension;
use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use posthaste_engine::stamp;
use posthaste_wire::mail::answers::{ListedSwarm, OwnSwarm, PeerSwarm, SwarmAnswer, SwarmList};
use posthaste_wire::mail::{LoadRequest, RegisterRequest, VERSION};
use posthaste_wire::time::to_rfc3339;

use super::auth::{Admin, Json, RateLimited, own_url, swarm_name};
use super::errors::{DoorError, DoorResult};
use crate::Door;
use crate::runtime::Entry;
use posthaste_host::caller::Realm;
use posthaste_host::http::listen::Peer;

/// The public swarms, without tokens and other details of their registration.
pub(super) async fn list(
    _: RateLimited,
    State(door): State<Door>,
    Realm(engine): Realm,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> DoorResult {
    let Some(runtime) = door.runtime(engine.realm()) else {
        return Ok(JsonBody(SwarmList::default()).into_response());
    };
    let mut swarms = Vec::new();
    let own = runtime.swarm();
    if own.public {
        let secure = peer.is_some_and(|Extension(peer)| peer.tls);
        swarms.push(ListedSwarm::Own(OwnSwarm {
            swarm_name: own.name.clone(),
            base_url: own_url(&headers, secure),
            version: VERSION.to_owned(),
            last_seen: to_rfc3339(stamp::now()),
            is_active: true,
            swarm_description: own.description.clone(),
            keywords: own.keywords.clone(),
        }));
    }
    let peers = runtime.registry().all().into_iter().filter(|entry| entry.about.public);
    swarms.extend(peers.map(|entry| ListedSwarm::Peer(to_wire(entry))));
    Ok(JsonBody(SwarmList { swarms }).into_response())
}

/// The members of the specification's closed object; members without a value are left out.
fn to_wire(entry: Entry) -> PeerSwarm {
    PeerSwarm {
        swarm_name: entry.name.to_string(),
        base_url: entry.base_url,
        version: entry.about.version,
        is_active: entry.active,
        swarm_description: entry.about.description,
        keywords: entry.about.keywords,
        last_seen: entry.seen_at.map(to_rfc3339),
        metadata: entry.about.metadata,
    }
}

pub(super) async fn register(Admin(caller): Admin, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let request = RegisterRequest::read(&body)?;
    let by_operator = caller.identity.is_operator();
    let name = caller.runtime(&door)?.register(request, by_operator).await?;
    Ok(JsonBody(SwarmAnswer::new("registered", name)).into_response())
}

/// Writes the swarm's agents into the log.
pub(super) async fn dump(Admin(caller): Admin, State(door): State<Door>) -> DoorResult {
    let swarm = caller.runtime(&door)?.swarm();
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
    Ok(JsonBody(SwarmAnswer::new("dumped", swarm_name(caller.engine.realm()))).into_response())
}

/// Replaces the definition until the server starts again.
pub(super) async fn load(Admin(caller): Admin, State(door): State<Door>, Json(body): Json) -> DoorResult {
    let request = LoadRequest::read(&body)?;
    let name = caller.runtime(&door)?.replace(&request.json).await.map_err(DoorError::bad)?;
    Ok(JsonBody(SwarmAnswer::new("success", name)).into_response())
}
