//! MCP over HTTP: who is asking, and whether the answer is plain or rmcp's to give.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::rpc::{self, ErrorObject, INVALID_REQUEST, Item, Message, PARSE_ERROR, RequestId};
use serde_json::json;

use super::call::{Call, VIA, Visitor};
use super::rpc::{Glimpse, reply};
use super::sessions::{MOST_HANDSHAKE, SESSION, gone};
use crate::Door;
use posthaste_host::caller::{AuthError, Realm, account_of, bearer};
use posthaste_host::http::errors::answer as plain_error;
use posthaste_host::http::local::Local;
use posthaste_host::http::rate::Turn;

/// The header by which newer clients say which revision they speak.
const REVISION: &str = "mcp-protocol-version";
/// From here on there are no sessions, and every request says what it needs.
const MODERN: &str = "2026-07-28";
/// Calls in one request.
const MOST_CALLS: usize = 100;

pub(super) async fn answer(State(shared): State<Door>, Realm(engine): Realm, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (identity, pass) = match shared.recognise(&engine, bearer(&parts.headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refused(&error),
    };
    let Local(local) = Local::of(&parts);
    let turn = shared.bucket_of(&engine, &identity, pass.as_ref()).take();
    if !turn.is_granted() {
        return too_often(turn);
    }
    let engine = shared.engine_for(&engine, &identity, pass.as_ref());
    let account = account_of(&engine, &identity, pass.as_ref());
    let visitor = Visitor { identity, home: engine.clone(), local, account };
    let session = parts.headers.get(SESSION);
    let response = match parts.method {
        // A client that ended its session has to open another one. Ids that are merely unknown, such as those from before a
        // restart, do not stop a plain call.
        _ if session.is_some_and(|id| shared.sessions().is_terminated(id.as_bytes())) => gone(),
        Method::POST => {
            let answer = post(shared.clone(), visitor, parts, body);
            let answer = shared.unless_void(&engine, pass.as_ref(), answer).await;
            answer.unwrap_or_else(|| refused(&AuthError::Invalid))
        }
        Method::GET | Method::DELETE if session.is_some() => {
            shared.sessions().hand_over(visitor, parts, Bytes::new()).await
        }
        _ => {
            let allow = [(header::ALLOW, "POST")];
            let text = "MCP is spoken by POST here; a stream of notifications needs a session";
            (StatusCode::METHOD_NOT_ALLOWED, allow, text).into_response()
        }
    };
    shared.while_good(&engine, pass.as_ref(), response)
}

async fn post(shared: Door, visitor: Visitor, parts: Parts, body: Body) -> Response {
    // The layers around all doors have bounded the body already.
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(_) => {
            return plain_error(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                "the request is too large or broke off",
            );
        }
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return refuse_with(StatusCode::BAD_REQUEST, PARSE_ERROR, "the request is not UTF-8");
    };
    let mut items = rpc::parse(text, MOST_CALLS);
    let (Some(item), true) = (items.pop(), items.is_empty()) else {
        return refuse(StatusCode::BAD_REQUEST, "the body must be one JSON-RPC message");
    };
    let call = Call::new(shared.clone(), visitor.clone());
    match item {
        Item::Single(message) => single(shared, call, visitor, parts, bytes.clone(), message).await,
        Item::Batch(messages) => {
            let mut answers = Vec::new();
            for message in messages {
                answers.extend(line(&call, message).await);
            }
            match rpc::write_batch(&answers) {
                Some(text) => json_answer(text),
                None => StatusCode::ACCEPTED.into_response(),
            }
        }
    }
}

async fn single(
    shared: Door,
    call: Call,
    visitor: Visitor,
    parts: Parts,
    bytes: Bytes,
    message: Message,
) -> Response {
    let sessions = shared.sessions();
    let in_session = parts.headers.contains_key(SESSION);
    let (method, glimpse) = match &message {
        Message::Request { method, params, .. } => (method.as_str(), Glimpse::of(method, params.as_deref())),
        Message::Notification { .. } | Message::Response { .. } if in_session => {
            return sessions.notify(visitor, parts, bytes).await;
        }
        // Without a session there is nobody to tell.
        Message::Notification { .. } | Message::Response { .. } => {
            return StatusCode::ACCEPTED.into_response();
        }
        Message::Invalid { .. } => ("", Glimpse::default()),
    };
    let is_modern = glimpse.is_modern
        || parts
            .headers
            .get(REVISION)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value >= MODERN);
    match method {
        "initialize" if bytes.len() > MOST_HANDSHAKE => {
            let why = format!("the handshake has {} bytes; {MOST_HANDSHAKE} is the limit", bytes.len());
            let Message::Request { id, .. } = &message else { return refuse(StatusCode::BAD_REQUEST, &why) };
            let text = rpc::write_error(id, &ErrorObject::new(INVALID_REQUEST, &why));
            (StatusCode::PAYLOAD_TOO_LARGE, [(header::CONTENT_TYPE, "application/json")], text)
                .into_response()
        }
        "initialize" => sessions.greet(visitor, parts, bytes).await,
        "resources/subscribe" | "resources/unsubscribe" if in_session => {
            sessions.hand_over(visitor, accepting(parts), bytes).await
        }
        "server/discover" | "subscriptions/listen" => sessions.once(visitor, accepting(parts), bytes).await,
        _ if is_modern => sessions.once(visitor, accepting(parts), bytes).await,
        _ if glimpse.wants_progress && accepts_streams(&parts.headers) => {
            sessions.once(visitor, accepting(parts), bytes).await
        }
        _ => match line(&call, message).await {
            Some(text) => json_answer(text),
            None => StatusCode::ACCEPTED.into_response(),
        },
    }
}

async fn line(call: &Call, message: Message) -> Option<String> {
    match message {
        Message::Request { id, method, params } => {
            Some(match reply(call, &method, params.as_deref()).await {
                // The result is JSON that was just written.
                Ok(result) => rpc::write_result_text(&id, &result),
                Err(error) => rpc::write_error(&id, &error),
            })
        }
        Message::Invalid { id, error } => Some(rpc::write_error(&id, &error)),
        Message::Notification { .. } | Message::Response { .. } => None,
    }
}

fn accepts_streams(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.contains("text/event-stream")
}

/// rmcp insists on headers that hooks leave out; whoever comes this far gets what it can read.
pub(super) fn accepting(mut parts: Parts) -> Parts {
    let both = HeaderValue::from_static("application/json, text/event-stream");
    parts.headers.insert(header::ACCEPT, both);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts
}

fn json_answer(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn too_often(turn: Turn) -> Response {
    let mut response =
        refuse(StatusCode::TOO_MANY_REQUESTS, "too many calls with this token; try again later");
    turn.write(response.headers_mut());
    response
}

fn refuse(status: StatusCode, why: &str) -> Response {
    refuse_with(status, INVALID_REQUEST, why)
}

fn refuse_with(status: StatusCode, code: i64, why: &str) -> Response {
    let text = rpc::write_error(&RequestId::null(), &ErrorObject::new(code, why));
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn refused(error: &AuthError) -> Response {
    match error {
        AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. } => {
            let body = json!({
                "jsonrpc": "2.0",
                "id": null,
                "error": { "code": -32_001, "message": error.to_string() },
            });
            // RFC 6750, section 3: only a request that came with a token is told that its token is bad.
            let challenge = match error {
                AuthError::Missing => "Bearer",
                _ => r#"Bearer error="invalid_token""#,
            };
            let headers = [(header::WWW_AUTHENTICATE, challenge), (header::CONTENT_TYPE, "application/json")];
            (StatusCode::UNAUTHORIZED, headers, body.to_string()).into_response()
        }
        AuthError::Failed(error) => {
            plain_error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string())
        }
    }
}
