//! The answer given before a request has reached any door, hence in no protocol's own form.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// `{"error": {"code": …, "message": …}}` with this status.
pub fn answer(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
}
