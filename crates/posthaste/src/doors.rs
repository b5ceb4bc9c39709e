//! Mounts the doors: every door's paths for the default realm and, below `/r/{realm}`, for the others.

#[cfg(test)]
mod refusal_codes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::any;
use posthaste_control::Methods;
use posthaste_host::{Host, operators};
use posthaste_swarm::runtime::Runtime;
use {
    posthaste_airc as airc, posthaste_control as control, posthaste_map as map, posthaste_mcp as mcp,
    posthaste_swarm as swarm, posthaste_web as web,
};

/// What the doors are given besides the host.
#[derive(Debug, Default)]
pub struct Options {
    pub mcp: mcp::Options,
    /// Moves the tasks of the swarm that the default realm hosts.
    pub runtime: Option<Arc<Runtime>>,
}

/// The MAP door with posthaste's own methods.
pub(crate) fn map_door(host: &Host) -> map::Door {
    map::Door::new(host.clone(), map::Options { own_methods: Arc::new(Methods(host.clone())) })
}

/// Every door.
pub fn router(host: &Host, map_door: &map::Door, options: Options) -> Router {
    let swarm_door = swarm::Door::new(host.clone(), options.runtime);
    let card = swarm::card(swarm_door.clone()).layer(from_fn_with_state(map_door.clone(), sockets_to_map));
    let elsewhere = any(map::elsewhere).with_state(map_door.clone());
    let doors = Router::new()
        .route("/", card)
        .merge(operators::router(host.clone()))
        .merge(control::router(host.clone()))
        .merge(map::router(map_door.clone()))
        .merge(airc::router(airc::Door::new(host.clone())))
        .merge(swarm::router(swarm_door))
        .merge(mcp::router(mcp::Door::new(host.clone(), options.mcp)))
        .merge(web::router(host.clone()))
        .fallback_service(elsewhere.clone());
    Router::new()
        .nest("/r/{realm}", doors.clone())
        // Not a path of the nest, and no realm but this one's either.
        .route("/r/{realm}/", elsewhere)
        .merge(doors)
}

/// Clients in the field open MAP's WebSocket on whatever path their configuration says, `/` included.
async fn sockets_to_map(State(door): State<map::Door>, request: Request, next: Next) -> Response {
    match map::is_socket(&request) {
        true => map::elsewhere(State(door), request).await,
        false => next.run(request).await,
    }
}
