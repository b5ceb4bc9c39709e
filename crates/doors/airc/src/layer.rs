//! What every response of this door carries: headers for web pages, and the caller's rate limits.

use std::ops::ControlFlow::{Break, Continue};

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::errors::DoorError;
use crate::Door;
use posthaste_host::caller::bearer;
use posthaste_host::http::early_reject::CheckAndMap;
use posthaste_host::http::listen::Peer;
use posthaste_host::http::rate::Turn;
use posthaste_host::keys;

/// Counts the request and answers preflights; puts the door's headers on every response.
pub(super) fn around(routes: Router<Door>, door: Door) -> Router<Door> {
    routes.layer(CheckAndMap(move |request: &Request| {
        let origin = request.headers().get(header::ORIGIN).cloned();
        if request.method() == Method::OPTIONS {
            return Break(with_cors(StatusCode::NO_CONTENT.into_response(), origin, true));
        }
        let turn = count(&door, request);
        if !turn.is_granted() {
            return Break(with_cors(DoorError::too_often(turn, "requests").into_response(), origin, false));
        }
        Continue(move |response| with_headers(response, turn, origin))
    }))
}

fn with_headers(mut response: Response, turn: Turn, origin: Option<HeaderValue>) -> Response {
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && response.body().size_hint().exact() == Some(0) {
        let allowed = response.headers().get(header::ALLOW).cloned();
        response =
            DoorError::new(405, "method_not_allowed", "this path does not take this method").into_response();
        if let Some(allowed) = allowed {
            response.headers_mut().insert(header::ALLOW, allowed);
        }
    }
    // A handler with a narrower limit has set these headers already.
    if !response.headers().contains_key("x-ratelimit-limit") {
        turn.write(response.headers_mut());
    }
    with_cors(response, origin, false)
}

/// Counts by token, so that agents behind one address do not use up each other's limit; by address without a token, and
/// with one that is not known to be valid: otherwise a new one with each request would never be counted.
fn count(door: &Door, request: &Request) -> Turn {
    let quota = door.rates().requests;
    let token = bearer(request.headers()).filter(|token| is_known(door, token));
    match (token, request.extensions().get::<Peer>()) {
        (Some(token), _) => door.limiter().take("requests", &keys::short_name(token), quota),
        (None, Some(peer)) => door.limiter().take_from("requests", peer.address.ip(), quota),
        (None, None) => Turn::FREE,
    }
}

/// Whether a token was valid when it was last looked up. The first request with one counts for its address.
fn is_known(door: &Door, token: &str) -> bool {
    let hash = keys::hash(token);
    door.admin().has_hash(&hash)
        || door.token_cache().has_met(&hash)
        || door.jwt().is_some_and(|key| key.identify(token, door.default_realm()).is_some())
}

/// The guard has checked the `Origin` of a page before, so the page may read the response. A request without `Origin` does
/// not come from a page of another site.
fn with_cors(mut response: Response, origin: Option<HeaderValue>, preflight: bool) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    let allowed = origin.unwrap_or(HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let mut put = |name, value| drop(headers.insert(name, HeaderValue::from_static(value)));
    if preflight {
        put(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE, OPTIONS");
        put(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, X-AIRC-Signature, X-AIRC-Identity, X-AIRC-PublicKey, X-AIRC-Public-Key",
        );
        put(header::ACCESS_CONTROL_MAX_AGE, "600");
    } else {
        put(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, ETag, X-Request-Id",
        );
    }
    response
}
