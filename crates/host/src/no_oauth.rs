//! There is no OAuth: clients that look for it after a 401 are told to send a token, and how to get one. The registration of
//! OAuth clients (RFC 7591) has the same path as AIRC's registration, so AIRC's door uses this module.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::http::errors::answer;

/// What the user can do instead.
const INSTEAD: &str =
    "OAuth is disabled here: send `Authorization: Bearer TOKEN`; `posthaste token create` makes one";

/// The answer to a client that looks for an authorization server's metadata.
pub fn no_metadata() -> Response {
    answer(StatusCode::NOT_FOUND, "oauth_disabled", INSTEAD)
}

/// Whether a registration is that of an OAuth client, which must name its redirect addresses.
pub fn is_registration(members: &Map<String, Value>) -> bool {
    members.contains_key("redirect_uris")
}

/// The answer to it, in the form that OAuth clients show to their user (RFC 7591, section 3.2.2).
pub fn no_registration() -> Response {
    let body = OAuthError { error: "invalid_request", error_description: INSTEAD };
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// An error response of RFC 7591, section 3.2.2.
#[derive(Serialize)]
struct OAuthError {
    error: &'static str,
    error_description: &'static str,
}
