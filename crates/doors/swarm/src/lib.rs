//! MAIL 1.3: the HTTP API of a swarm server. Paths and their handlers; the runtime that executes tasks is in [`runtime`].

mod auth;
mod door;
mod errors;
mod interswarm;
mod message;
mod meta;
mod openapi;
mod registry;
pub mod runtime;
mod sse;
mod tasks;

#[doc(hidden)]
pub use errors::refused;

pub use door::Door;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

/// Every path of the door. `/health` is shared with AIRC and with operators; `/` is [`card`].
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/health", get(meta::health).post(meta::set_health))
        .route("/status", get(meta::status))
        .route("/whoami", get(meta::whoami))
        .route("/message", post(message::post))
        .route("/tasks", get(tasks::list))
        .route("/task", get(tasks::one))
        .route("/task/cancel", post(tasks::cancel))
        .route("/tasks/{task_id}/events", get(tasks::events))
        .route("/swarms", get(registry::list).post(registry::register))
        .route("/swarms/register", post(registry::register))
        .route("/swarms/dump", get(registry::dump))
        .route("/swarms/load", post(registry::load))
        .route("/interswarm/forward", post(interswarm::forward))
        .route("/interswarm/back", post(interswarm::back))
        .route("/interswarm/message", post(interswarm::message))
        .route("/openapi.json", get(openapi::document))
        .with_state(door)
}

/// The server's card, at `/`. Not part of the router, because another door answers WebSockets on that path.
pub fn card(door: Door) -> MethodRouter {
    get(meta::root).with_state(door)
}
