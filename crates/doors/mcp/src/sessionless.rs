//! Requests that name their revision themselves, as all do from 2026-07-28 on: there are no sessions, and errors of the
//! protocol have HTTP statuses.

use axum::http::StatusCode;
use axum::response::Response;
use posthaste_wire::mcp::errors::{HEADER_MISMATCH, UNSUPPORTED_VERSION, VersionErrorData};
use posthaste_wire::mcp::headers::PROTOCOL_VERSION;
use posthaste_wire::mcp::notifications::ListenParams;
use posthaste_wire::mcp::{Revision, methods};
use posthaste_wire::rpc::{self, ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND};
use serde_json::value::to_raw_value;

use super::dispatch::{self, Lifecycle};
use super::http::{Post, json_answer};
use super::{headers, streams};

/// Answers a request that names its revision, in `_meta` or the headers.
pub(super) async fn answer(post: Post) -> Response {
    let date = match check(&post) {
        Ok(date) => date,
        Err(Rejection::Plain(response)) => return *response,
        Err(Rejection::Error(error)) => return post.refuse(StatusCode::BAD_REQUEST, &error),
    };
    let is_sessionless = Revision::is_sessionless(&date);
    match post.method.as_str() {
        methods::DISCOVER => {
            let result = dispatch::text(&dispatch::discovery());
            json_answer(rpc::write_result_text(&post.id, &result))
        }
        methods::LISTEN if is_sessionless => match dispatch::read::<ListenParams>(post.params.as_deref()) {
            Ok(given) => streams::subscription(&post.call, &post.id, given.notifications),
            Err(error) => post.refuse(status(&error), &error),
        },
        _ => {
            let lifecycle = if is_sessionless { Lifecycle::Sessionless } else { Lifecycle::WithSessions };
            post.run(lifecycle, true, status).await
        }
    }
}

/// Why a request is answered before its method is looked at.
enum Rejection {
    Plain(Box<Response>),
    Error(ErrorObject),
}

impl From<ErrorObject> for Rejection {
    fn from(error: ErrorObject) -> Self {
        Self::Error(error)
    }
}

/// The date of the request's revision, if its headers and `_meta` agree and are complete.
fn check(post: &Post) -> Result<String, Rejection> {
    let in_request = post.meta.revision();
    headers::known_revision(&post.headers, in_request).map_err(Rejection::Plain)?;
    if headers::text(&post.headers, PROTOCOL_VERSION).is_some_and(Revision::is_sessionless) {
        headers::match_request(&post.headers, &post.method, post.params.as_deref())?;
    }
    let Some(date) = in_request else {
        return Err(incomplete("Invalid params: ", &post.meta.missing()).into());
    };
    headers::match_revision(&post.headers, date)?;
    if Revision::parse(date).is_none() {
        let data = to_raw_value(&VersionErrorData::new(date)).ok();
        let error = ErrorObject::new(UNSUPPORTED_VERSION, "Unsupported protocol version");
        return Err(ErrorObject { data, ..error }.into());
    }
    let missing = post.meta.missing();
    if !missing.is_empty() && (Revision::is_sessionless(date) || post.method == methods::DISCOVER) {
        return Err(incomplete("", &missing).into());
    }
    Ok(date.to_owned())
}

fn incomplete(start: &str, missing: &[&str]) -> ErrorObject {
    let text =
        format!("{start}request _meta is missing or has malformed required fields: {}", missing.join(", "));
    ErrorObject::new(INVALID_PARAMS, text)
}

/// The HTTP status of an error.
fn status(error: &ErrorObject) -> StatusCode {
    match error.code {
        UNSUPPORTED_VERSION | HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
