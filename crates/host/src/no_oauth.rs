//! OAuth, which there is none of: clients that look for it after a 401 read that they have to send a token, and where to get
//! one. The registration of OAuth clients (RFC 7591) has the path that AIRC has for its own, so AIRC's door asks here.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::http::errors::answer;

/// What a person who reads the error can do.
const INSTEAD: &str =
    "OAuth is disabled here: send `Authorization: Bearer TOKEN`; `posthaste token create` makes one";

/// The answer to a client that looks for an authorization server's metadata.
pub fn no_metadata() -> Response {
    answer(StatusCode::NOT_FOUND, "oauth_disabled", INSTEAD)
}

/// Whether a registration is that of an OAuth client, which has to name where it wants to be sent back to.
pub fn is_registration(members: &Map<String, Value>) -> bool {
    members.contains_key("redirect_uris")
}

/// The answer to it, in the form that OAuth clients show to their user (RFC 7591, section 3.2.2).
pub fn no_registration() -> Response {
    let body = json!({ "error": "invalid_request", "error_description": INSTEAD });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
