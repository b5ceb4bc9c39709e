//! WebSockets on paths that no door has. Clients may be configured with any path, and only this door uses WebSockets.

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::ws;
use crate::Door;
use posthaste_host::http::errors::answer;

/// Serves a WebSocket; answers 404 to other requests.
pub async fn elsewhere(State(door): State<Door>, request: Request) -> Response {
    if is_socket(&request) {
        return ws::open.call(request, door).await;
    }
    answer(StatusCode::NOT_FOUND, "not_found", "there is no door here")
}

/// Whether a request asks for an upgrade to WebSocket.
pub fn is_socket(request: &Request) -> bool {
    let asked = request.headers().get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|asked| asked.trim().eq_ignore_ascii_case("websocket"))
}
