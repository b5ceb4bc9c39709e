//! The office's own methods, `x-posthaste/…`, as JSON-RPC over HTTP. The command line speaks to a running office this
//! way; the other JSON-RPC doors offer the same methods to their callers.

mod attachments;
mod backup;
mod desk;
mod errors;
mod events;
mod export;
mod from_wire;
mod methods;
mod people;
mod projects;
mod status;
mod talk;
mod to_wire;

#[doc(hidden)]
pub use errors::refused;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use posthaste_engine::Engine;
use posthaste_wire::rpc::{self, ErrorObject, Item, Message};
use serde_json::value::RawValue;

use self::methods::VIA;
use posthaste_host::Host;
use posthaste_host::caller::{AuthError, Identity, Pass, Realm, bearer};
use posthaste_host::http::rate::Bucket;
use posthaste_host::services::{OwnAnswer, OwnMethods};

use posthaste_wire::control::{BACKUP_PATH, EXPORT_PATH, PATH, PREFIX, STATUS_PATH};
/// Calls in one request.
const MOST_CALLS: usize = 100;

/// Every path of the door.
pub fn router(host: Host) -> Router {
    Router::new()
        .route(PATH, post(answer))
        .route(EXPORT_PATH, get(export::answer))
        .route(STATUS_PATH, get(status::answer))
        .route(BACKUP_PATH, get(backup::answer))
        .route("/x-posthaste/attachments/{message}/{sha256}", get(attachments::download))
        .with_state(host)
}

/// One of the office's own methods, called by somebody whose token was checked.
pub async fn call(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    method: &str,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, ErrorObject> {
    methods::call(shared, engine, identity, method.strip_prefix(PREFIX).unwrap_or(method), params).await
}

/// The methods, as other JSON-RPC doors offer them.
#[derive(Clone, Debug)]
pub struct Methods(pub Host);

impl OwnMethods for Methods {
    fn call<'a>(
        &'a self,
        engine: &'a Engine,
        identity: &'a Identity,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> OwnAnswer<'a> {
        Box::pin(call(&self.0, engine, identity, method, params))
    }
}

async fn answer(
    State(shared): State<Host>,
    Realm(engine): Realm,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (identity, pass) = match shared.recognise(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => {
            let text = rpc::write_error(&rpc::RequestId::null(), &errors::of_auth(&error));
            return (StatusCode::UNAUTHORIZED, json_type(), text).into_response();
        }
    };
    let engine = shared.engine_for(&engine, &identity, pass.as_ref());
    let bucket = shared.bucket_of(&engine, &identity, pass.as_ref());
    let desk = Desk { bucket, shared, engine, identity, pass };
    let body = match str::from_utf8(&body) {
        Ok(body) => body,
        Err(error) => {
            let error = ErrorObject::new(rpc::PARSE_ERROR, format!("the body is not UTF-8: {error}"));
            return (json_type(), rpc::write_error(&rpc::RequestId::null(), &error)).into_response();
        }
    };
    let mut lines = Vec::new();
    for item in rpc::parse(body, MOST_CALLS) {
        match item {
            Item::Single(message) => lines.extend(desk.reply(message).await),
            Item::Batch(messages) => {
                let mut answers = Vec::new();
                for message in messages {
                    answers.extend(desk.reply(message).await);
                }
                lines.extend(rpc::write_batch(&answers));
            }
        }
    }
    match lines.is_empty() {
        true => StatusCode::NO_CONTENT.into_response(),
        false => (json_type(), lines.join("\n")).into_response(),
    }
}

/// What the calls of one request share.
struct Desk {
    shared: Host,
    engine: Engine,
    identity: Identity,
    bucket: Bucket,
    pass: Option<Pass>,
}

impl Desk {
    async fn reply(&self, message: Message) -> Option<String> {
        match message {
            Message::Request { id, method, params } => {
                Some(match self.call(&method, params.as_deref()).await {
                    Ok(result) => rpc::write_result(&id, &result),
                    Err(error) => rpc::write_error(&id, &error),
                })
            }
            Message::Notification { method, params } => {
                // Carried out like a request; whoever sends one does not want to know how it went.
                drop(self.call(&method, params.as_deref()).await);
                None
            }
            Message::Invalid { id, error } => Some(rpc::write_error(&id, &error)),
            // The office asks nothing this way, so nobody can be answering it.
            Message::Response { .. } => None,
        }
    }

    async fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, ErrorObject> {
        if let Some(wait) = self.bucket.take().wait {
            return Err(errors::too_often(wait));
        }
        let called = call(&self.shared, &self.engine, &self.identity, method, params);
        let answer = self.shared.unless_void(&self.engine, self.pass.as_ref(), called).await;
        answer.unwrap_or_else(|| Err(errors::of_auth(&AuthError::Invalid)))
    }
}

fn json_type() -> [(header::HeaderName, &'static str); 1] {
    [(header::CONTENT_TYPE, "application/json")]
}
