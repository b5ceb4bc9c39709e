//! `GET /openapi.json`: the specification's description of the server, with posthaste's additions.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::auth::RateLimited;

/// Made from the specification's `openapi.yaml` and schemas; a test compares them.
pub(super) const DOCUMENT: &str = include_str!("openapi.json");

pub(super) async fn document(_: RateLimited) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}
