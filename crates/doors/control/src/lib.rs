//! posthaste's own methods, `x-posthaste/…`, as JSON-RPC over HTTP. The command line talks to a running server this way;
//! other JSON-RPC doors offer the same methods to their callers.

mod agents;
mod attachments;
mod backup;
mod contacts;
mod conversations;
mod errors;
mod events;
mod export;
mod from_wire;
mod markdown;
mod messages;
mod projects;
mod reservations;
mod rules;
mod schema;
mod search;
mod signals;
mod status;
mod table;
mod to_wire;
mod tokens;

#[doc(hidden)]
pub use errors::refused_line as refused;
pub use markdown::markdown;
pub use schema::schema;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use posthaste_engine::Engine;
use posthaste_host::Host;
use posthaste_host::caller::{AuthError, Identity, Realm, TokenRef, bearer};
use posthaste_host::http::rate::Bucket;
use posthaste_host::services::{OwnAnswer, OwnMethods};
use posthaste_wire::control::{BACKUP_PATH, EXPORT_PATH, PATH, PREFIX, STATUS_PATH};
use posthaste_wire::rpc::{self, ErrorObject, Item, Message};
use serde_json::value::RawValue;

use self::table::Call;

/// The tag of commands that come through this door.
const VIA: &str = "cli";
/// Calls in one request.
const MAX_CALLS: usize = 100;

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

/// Calls one of the methods for a caller whose token was checked. The future is boxed so that it is compiled here and not
/// again in each crate that calls it.
pub fn call<'a>(
    host: &'a Host,
    engine: &'a Engine,
    identity: &'a Identity,
    method: &'a str,
    params: Option<&'a RawValue>,
) -> OwnAnswer<'a> {
    let method = method.strip_prefix(PREFIX).unwrap_or(method);
    Box::pin(table::dispatch(Call { host, engine, identity }, method, params))
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
        call(&self.0, engine, identity, method, params)
    }
}

async fn answer(State(host): State<Host>, Realm(engine): Realm, headers: HeaderMap, body: Bytes) -> Response {
    let (identity, pass) = match host.authenticate(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => {
            let text = rpc::write_error(&rpc::RequestId::null(), &errors::of_auth(&error));
            return (StatusCode::UNAUTHORIZED, json_type(), text).into_response();
        }
    };
    let engine = host.engine_for(&engine, &identity, pass.as_ref());
    let bucket = host.bucket_of(&engine, &identity, pass.as_ref());
    let caller = Caller { bucket, host, engine, identity, pass };
    let body = match str::from_utf8(&body) {
        Ok(body) => body,
        Err(error) => {
            let error = ErrorObject::new(rpc::PARSE_ERROR, format!("the body is not UTF-8: {error}"));
            return (json_type(), rpc::write_error(&rpc::RequestId::null(), &error)).into_response();
        }
    };
    let mut lines = Vec::new();
    for item in rpc::parse(body, MAX_CALLS) {
        match item {
            Item::Single(message) => lines.extend(caller.reply(message).await),
            Item::Batch(messages) => {
                let mut answers = Vec::new();
                for message in messages {
                    answers.extend(caller.reply(message).await);
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

/// The caller of a request, which may make several calls.
struct Caller {
    host: Host,
    engine: Engine,
    identity: Identity,
    bucket: Bucket,
    pass: Option<TokenRef>,
}

impl Caller {
    async fn reply(&self, message: Message) -> Option<String> {
        match message {
            Message::Request { id, method, params } => {
                Some(match self.call(&method, params.as_deref()).await {
                    Ok(result) => rpc::write_result(&id, &result),
                    Err(error) => rpc::write_error(&id, &error),
                })
            }
            Message::Notification { method, params } => {
                // Executed like a request, without a response.
                drop(self.call(&method, params.as_deref()).await);
                None
            }
            Message::Invalid { id, error } => Some(rpc::write_error(&id, &error)),
            // The server sends no requests on this path, so there is nothing to answer.
            Message::Response { .. } => None,
        }
    }

    async fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, ErrorObject> {
        if let Some(wait) = self.bucket.take().wait {
            return Err(errors::too_often(wait));
        }
        let called = call(&self.host, &self.engine, &self.identity, method, params);
        let answer = self.host.unless_token_ends(&self.engine, self.pass.as_ref(), called).await;
        answer.unwrap_or_else(|| Err(errors::of_auth(&AuthError::Invalid)))
    }
}

fn json_type() -> [(header::HeaderName, &'static str); 1] {
    [(header::CONTENT_TYPE, "application/json")]
}
