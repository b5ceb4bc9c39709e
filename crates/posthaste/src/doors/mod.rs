//! The doors: one protocol's way in each. A door parses, calls one verb or view of the engine, and renders.

pub(crate) mod acks;
pub mod address;
mod airc;
pub mod control;
pub(crate) mod download;
pub mod files;
mod map;
pub(crate) mod mcp;
mod no_oauth;
mod operators;
#[cfg(test)]
mod refusal_codes;
mod swarm;
mod web;
pub(crate) mod words;

use axum::Router;
use axum::routing::any;

use crate::shared::Shared;

pub(crate) use airc::{ActorCache, Challenges, Checks};
pub(crate) use map::{Halls, lines as map_lines, resolve_all as resolve_stale_agents, serve as serve_map};
pub(crate) use mcp::Desk as McpDesk;
#[doc(hidden)]
pub use mcp::read_arguments as mcp_arguments;
pub(crate) use web::PATH as WEB_PATH;

/// Which of an event's remembered forms belongs to which door. There are as many as the engine keeps.
pub(crate) mod slots {
    /// MAP in the SDK's vocabulary.
    pub(crate) const MAP_SDK: usize = 0;
    /// MAP in the draft's.
    pub(crate) const MAP_DRAFT: usize = 1;
}

/// Every door, for the default realm and, below `/r/{realm}`, for the others.
pub fn router(shared: Shared) -> Router {
    let doors = Router::new()
        .merge(operators::router())
        .merge(control::router())
        .merge(map::router())
        .merge(airc::router(&shared))
        .merge(swarm::router())
        .merge(mcp::router())
        .merge(web::router())
        .fallback(map::elsewhere);
    Router::new()
        .nest("/r/{realm}", doors.clone())
        // Not a path of the nest, and no realm but this one's either.
        .route("/r/{realm}/", any(map::elsewhere))
        .merge(doors)
        .with_state(shared)
}
