//! MAIL 1.3: a server for swarms. Paths, who may use them, and where each is answered.

mod errors;
mod interswarm;
mod message;
mod meta;
mod openapi;
mod registry;
mod sse;
mod tasks;
mod who;

#[cfg(test)]
pub(crate) use errors::refused;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{get, post};

use super::map;
use crate::shared::Shared;

/// Every path of the door. `/health` is shared with AIRC and with operators.
pub(super) fn router() -> Router<Shared> {
    Router::new()
        .route("/", get(root))
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
}

/// The server's card. A WebSocket is MAP's here as on any other path.
async fn root(State(shared): State<Shared>, request: Request) -> Response {
    match map::is_socket(&request) {
        true => map::elsewhere(State(shared), request).await,
        false => meta::root.call(request, shared).await,
    }
}
