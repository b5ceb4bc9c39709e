//! MCP over HTTP: authentication, rate limits, and which way a request is answered.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::mcp::errors::UNAUTHORIZED;
use posthaste_wire::mcp::headers::{PROTOCOL_VERSION, SESSION};
use posthaste_wire::mcp::lifecycle::InitializeParams;
use posthaste_wire::mcp::meta::{AnyParams, RequestMeta};
use posthaste_wire::mcp::notifications::CancelledParams;
use posthaste_wire::mcp::resources::ResourceParams;
use posthaste_wire::mcp::{Revision, methods};
use posthaste_wire::rpc::{self, ErrorObject, INVALID_REQUEST, Item, Message, PARSE_ERROR, RequestId};
use serde_json::value::RawValue;

use super::call::{Call, VIA, Visitor};
use super::dispatch::{self, Lifecycle};
use super::sessions::{MAX_HANDSHAKE_BYTES, Session, owner_of};
use super::{headers, sessionless, streams, table, updates};
use crate::Door;
use posthaste_host::caller::{AuthError, Realm, account_of, bearer};
use posthaste_host::http::errors::answer as plain_error;
use posthaste_host::http::local::Local;
use posthaste_host::http::rate::Turn;

/// Calls in one request.
const MAX_CALLS: usize = 100;

pub(super) async fn answer(State(door): State<Door>, Realm(engine): Realm, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (identity, pass) = match door.authenticate(&engine, bearer(&parts.headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refused(&error),
    };
    let Local(local) = Local::of(&parts);
    let turn = door.bucket_of(&engine, &identity, pass.as_ref()).take();
    if !turn.is_granted() {
        return too_often(turn);
    }
    let engine = door.engine_for(&engine, &identity, pass.as_ref());
    let account = account_of(&engine, &identity, pass.as_ref());
    let visitor = Visitor { identity, home: engine.clone(), local, account };
    let session = parts.headers.get(SESSION);
    let response = match parts.method {
        // A client that ended its session has to open another one. Ids that are merely unknown, such as those from before a
        // restart, do not stop a plain call.
        _ if session.is_some_and(|id| door.sessions().is_terminated(id.as_bytes())) => gone(),
        Method::POST => {
            let answer = post(door.clone(), visitor, parts.headers, body);
            let answer = door.unless_token_ends(&engine, pass.as_ref(), answer).await;
            answer.unwrap_or_else(|| refused(&AuthError::Invalid))
        }
        Method::GET if session.is_some() => listen(&door, &visitor, &parts.headers),
        Method::DELETE if session.is_some() => terminate(&door, &visitor, &parts.headers),
        _ => {
            let allow = [(header::ALLOW, "POST")];
            let text = "MCP is spoken by POST here; a stream of notifications needs a session";
            (StatusCode::METHOD_NOT_ALLOWED, allow, text).into_response()
        }
    };
    door.end_stream_with_token(&engine, pass.as_ref(), response)
}

async fn post(door: Door, visitor: Visitor, headers: HeaderMap, body: Body) -> Response {
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
    let mut items = rpc::parse(text, MAX_CALLS);
    let (Some(item), true) = (items.pop(), items.is_empty()) else {
        return refuse(StatusCode::BAD_REQUEST, "the body must be one JSON-RPC message");
    };
    match item {
        Item::Single(Message::Request { id, method, params }) => {
            let session = headers.get(SESSION).and_then(|id| id.to_str().ok());
            let session = session.and_then(|id| door.sessions().find(id, &owner_of(&visitor)));
            let meta = AnyParams::read(params.as_deref());
            let call = Call::new(door, visitor);
            Post { call, headers, session, meta, id, method, params }.answer(bytes.len()).await
        }
        Item::Single(Message::Notification { method, params }) => {
            notified(&door, &visitor, &headers, &method, params.as_deref())
        }
        Item::Single(Message::Response { .. }) => notified(&door, &visitor, &headers, "", None),
        Item::Single(Message::Invalid { id, error }) => json_answer(rpc::write_error(&id, &error)),
        Item::Batch(messages) => {
            let call = Call::new(door, visitor);
            let mut answers = Vec::new();
            for message in messages {
                answers.extend(element(&call, message).await);
            }
            match rpc::write_batch(&answers) {
                Some(text) => json_answer(text),
                None => StatusCode::ACCEPTED.into_response(),
            }
        }
    }
}

/// One element of a batch.
async fn element(call: &Call, message: Message) -> Option<String> {
    match message {
        Message::Request { id, method, params } => {
            let result = dispatch::handle(call, Lifecycle::WithSessions, &method, params.as_deref()).await;
            Some(write(&id, &result))
        }
        Message::Invalid { id, error } => Some(rpc::write_error(&id, &error)),
        Message::Notification { .. } | Message::Response { .. } => None,
    }
}

/// One request and the headers it came with.
pub(super) struct Post {
    pub(super) call: Call,
    pub(super) headers: HeaderMap,
    /// The session that the headers name, if it is open and the caller's.
    pub(super) session: Option<Arc<Session>>,
    pub(super) meta: RequestMeta,
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

impl Post {
    async fn answer(self, body_bytes: usize) -> Response {
        let is_sessionless = self.meta.revision().is_some()
            || headers::text(&self.headers, PROTOCOL_VERSION).is_some_and(Revision::is_sessionless);
        match self.method.as_str() {
            methods::INITIALIZE if body_bytes > MAX_HANDSHAKE_BYTES => {
                let why = format!("the handshake has {body_bytes} bytes; {MAX_HANDSHAKE_BYTES} is the limit");
                self.refuse(StatusCode::PAYLOAD_TOO_LARGE, &ErrorObject::new(INVALID_REQUEST, why))
            }
            methods::INITIALIZE => self.greet(is_sessionless),
            _ if is_sessionless => sessionless::answer(self).await,
            methods::SUBSCRIBE | methods::UNSUBSCRIBE if self.headers.contains_key(SESSION) => {
                self.subscription().await
            }
            _ => {
                let accepts_streams = headers::text(&self.headers, header::ACCEPT.as_str())
                    .is_some_and(|accept| accept.contains("text/event-stream"));
                self.run(Lifecycle::WithSessions, accepts_streams, |_| StatusCode::OK).await
            }
        }
    }

    /// Calls the dispatcher. The answer is JSON, or a stream if the caller wants to hear of progress and there is some.
    pub(super) async fn run(
        self,
        lifecycle: Lifecycle,
        may_stream: bool,
        status: fn(&ErrorObject) -> StatusCode,
    ) -> Response {
        let Self { mut call, session, meta, id, method, params, .. } = self;
        let waits = method == methods::TOOLS_CALL && table::is_waiting(params.as_deref());
        if !waits {
            let result = dispatch::handle(&call, lifecycle, &method, params.as_deref()).await;
            let status = result.as_ref().err().map_or(StatusCode::OK, status);
            return (status, json_answer(write(&id, &result))).into_response();
        }
        let token = meta.progress_token().filter(|_| may_stream).cloned();
        let progress = token.map(|token| call.report_progress(token));
        let running = session.as_ref().map(|session| session.begin(&id));
        let answering = async move {
            let answer = dispatch::handle(&call, lifecycle, &method, params.as_deref());
            let result = match &running {
                Some(running) => match running.unless_cancelled(answer).await {
                    Some(result) => result,
                    None => Err(ErrorObject::new(rpc::INTERNAL_ERROR, "the request was cancelled")),
                },
                None => answer.await,
            };
            let status = result.as_ref().err().map_or(StatusCode::OK, status);
            (status, write(&id, &result))
        };
        match progress {
            Some(progress) => streams::with_progress(answering, progress).await,
            None => {
                let (status, text) = answering.await;
                (status, json_answer(text)).into_response()
            }
        }
    }

    /// Answers a handshake: with a session while there is room.
    fn greet(self, is_sessionless: bool) -> Response {
        if let Err(response) = headers::known_revision(&self.headers, None) {
            return *response;
        }
        let given: InitializeParams = match dispatch::read(self.params.as_deref()) {
            Ok(given) => given,
            // Revisions without sessions have no handshake either.
            Err(_) if is_sessionless => {
                return self.refuse(StatusCode::NOT_FOUND, &dispatch::no_such_method(&self.method));
            }
            Err(error) => return self.refuse(StatusCode::BAD_REQUEST, &error),
        };
        if let Err(error) = headers::match_handshake(&self.headers, &given.protocol_version) {
            return self.refuse(StatusCode::BAD_REQUEST, &error);
        }
        let sessions = self.call.door.sessions();
        let opened = match (self.headers.contains_key(SESSION), &self.session) {
            (false, _) => sessions.open(owner_of(&self.call.visitor), self.call.door.stop()),
            (true, Some(_)) => None,
            (true, None) => return gone(),
        };
        let result = dispatch::text(&dispatch::greeting(&given));
        let mut response = json_answer(rpc::write_result_text(&self.id, &result));
        if let Some(id) = opened.and_then(|session| session.id().parse().ok()) {
            response.headers_mut().insert(SESSION, id);
        }
        response
    }

    /// Begins or ends a session's subscription to a resource. Answered by a stream of one event.
    async fn subscription(self) -> Response {
        if let Err(response) = headers::known_revision(&self.headers, None) {
            return *response;
        }
        let Some(session) = &self.session else { return gone() };
        let result = self.subscribe(session).await.map(|()| "{}".to_owned());
        streams::one_event(session, write(&self.id, &result))
    }

    async fn subscribe(&self, session: &Arc<Session>) -> Result<(), ErrorObject> {
        let given: ResourceParams = dispatch::read(self.params.as_deref())?;
        if self.method == methods::UNSUBSCRIBE {
            session.forget(&given.uri);
            return Ok(());
        }
        let watch = updates::watch(&self.call, &given.uri).await;
        let watch =
            watch.map_err(|error| dispatch::resource_error(Lifecycle::WithSessions, error, &given.uri))?;
        session.watch(given.uri, watch)
    }

    pub(super) fn refuse(&self, status: StatusCode, error: &ErrorObject) -> Response {
        (status, json_answer(rpc::write_error(&self.id, error))).into_response()
    }
}

/// Takes a notification or response of a client. Without a session it concerns nothing.
fn notified(
    door: &Door,
    visitor: &Visitor,
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Response {
    let session = headers.get(SESSION).and_then(|id| id.to_str().ok());
    if let Some(session) = session.and_then(|id| door.sessions().find(id, &owner_of(visitor))) {
        if let Err(response) = headers::known_revision(headers, None) {
            return *response;
        }
        if method == methods::CANCELLED
            && let Ok(cancelled) = dispatch::read::<CancelledParams>(params)
        {
            session.cancel(cancelled.request_id.get());
        }
    }
    StatusCode::ACCEPTED.into_response()
}

/// The stream of a session's notifications.
fn listen(door: &Door, visitor: &Visitor, headers: &HeaderMap) -> Response {
    let Some(session) = own_session(door, visitor, headers) else { return gone() };
    let accept = headers::text(headers, header::ACCEPT.as_str());
    if accept.is_some_and(|accept| !accept.contains("text/event-stream")) {
        let text = "Not Acceptable: Client must accept text/event-stream";
        return (StatusCode::NOT_ACCEPTABLE, text).into_response();
    }
    if let Err(response) = headers::with_sessions(headers) {
        return *response;
    }
    streams::notifications(&session, headers)
}

/// Ends a session for its client.
fn terminate(door: &Door, visitor: &Visitor, headers: &HeaderMap) -> Response {
    let Some(session) = own_session(door, visitor, headers) else { return gone() };
    if let Err(response) = headers::with_sessions(headers) {
        return *response;
    }
    door.sessions().terminate(&session);
    StatusCode::NO_CONTENT.into_response()
}

/// The session that the headers name, if it is open and the caller's.
fn own_session(door: &Door, visitor: &Visitor, headers: &HeaderMap) -> Option<Arc<Session>> {
    door.sessions().find(headers::text(headers, SESSION)?, &owner_of(visitor))
}

/// The answer to the id of a session that has ended, never was, or is another token's.
fn gone() -> Response {
    (StatusCode::NOT_FOUND, "there is no such session; initialize again").into_response()
}

/// A response to a request. Results are JSON that was just written.
pub(super) fn write(id: &RequestId, result: &Result<String, ErrorObject>) -> String {
    match result {
        Ok(result) => rpc::write_result_text(id, result),
        Err(error) => rpc::write_error(id, error),
    }
}

pub(super) fn json_answer(text: String) -> Response {
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
    (status, json_answer(text)).into_response()
}

fn refused(error: &AuthError) -> Response {
    match error {
        AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. } => {
            // RFC 6750, section 3: only a request that came with a token is told that its token is bad.
            let challenge = match error {
                AuthError::Missing => "Bearer",
                _ => r#"Bearer error="invalid_token""#,
            };
            let answer = refuse_with(StatusCode::UNAUTHORIZED, UNAUTHORIZED, &error.to_string());
            ([(header::WWW_AUTHENTICATE, challenge)], answer).into_response()
        }
        AuthError::Failed(error) => {
            plain_error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string())
        }
    }
}
