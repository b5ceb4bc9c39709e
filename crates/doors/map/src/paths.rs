//! WebSockets on paths that no door has: clients in the field dial whatever their configuration says, and nobody else
//! here speaks over one.

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::ws;
use crate::Door;
use posthaste_host::http::errors::answer;

/// Opens the door to a WebSocket; there is nothing else here.
pub async fn elsewhere(State(door): State<Door>, request: Request) -> Response {
    if is_socket(&request) {
        return ws::open.call(request, door).await;
    }
    answer(StatusCode::NOT_FOUND, "not_found", "there is no door here")
}

/// Whether a request asks to go on as a WebSocket.
pub fn is_socket(request: &Request) -> bool {
    let asked = request.headers().get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|asked| asked.trim().eq_ignore_ascii_case("websocket"))
}
