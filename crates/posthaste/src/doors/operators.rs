//! What those who run the office ask for: what has it done. Whether it is well and where it stands is answered by
//! the swarm door, which owns `/health` and `/status`.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::observe::metrics;
use crate::shared::Shared;

pub(super) fn router() -> Router<Shared> {
    Router::new().route("/metrics", get(show_metrics))
}

async fn show_metrics(State(shared): State<Shared>) -> Response {
    let text = metrics::render(&shared).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
