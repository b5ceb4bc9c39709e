//! MAP without a connection: `POST /map/rpc` and `POST /map/batch`.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::map::codes;
use posthaste_wire::rpc::{self, RequestId};

use super::connection::Connection;
use super::errors::DoorError;
use super::{MAX_BATCH, MAX_MESSAGE, connect, ws};
use crate::Door;
use posthaste_host::caller::Realm;

/// Answers the calls of one request, in the name on the caller's token.
pub(super) async fn rpc(
    State(door): State<Door>,
    Realm(engine): Realm,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refuse = |status, failure: &DoorError| {
        (status, json_type(), rpc::write_error(&RequestId::null(), &failure.object())).into_response()
    };
    let identity = match ws::identify(&door, &engine, &headers, &query).await {
        Ok(identity) => identity,
        Err(response) if response.status() == StatusCode::UNAUTHORIZED => {
            let failure = DoorError::new(codes::AUTH_FAILED, "this token is unknown, expired or revoked");
            return refuse(StatusCode::UNAUTHORIZED, &failure);
        }
        Err(response) => return *response,
    };
    let Some(known) = identity else {
        let failure = DoorError::new(codes::AUTH_REQUIRED, "a token is needed: Authorization: Bearer TOKEN");
        return refuse(StatusCode::UNAUTHORIZED, &failure);
    };
    if body.len() > MAX_MESSAGE {
        let failure = DoorError::new(codes::QUOTA_EXCEEDED, format!("at most {MAX_MESSAGE} bytes"));
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, &failure);
    }
    let Ok(body) = std::str::from_utf8(&body) else {
        return refuse(StatusCode::BAD_REQUEST, &DoorError::new(rpc::PARSE_ERROR, "not UTF-8"));
    };
    let session = connect::passing(&door, &known.0);
    let mut connection = Connection::passing(door, engine, known, session);
    let mut lines = Vec::new();
    for item in rpc::parse(body, MAX_BATCH) {
        lines.extend(connection.once(item).await);
    }
    match lines.is_empty() {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (json_type(), lines.join("\n")).into_response(),
    }
}

fn json_type() -> [(header::HeaderName, &'static str); 1] {
    [(header::CONTENT_TYPE, "application/json")]
}
