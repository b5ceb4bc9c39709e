//! Files that messages carry: taken with `x-posthaste/send`, handed out by `x-posthaste/attachment` and by a path.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_engine::Engine;
use posthaste_engine::nouns::{AgentId, Json, MessageId};
use posthaste_wire::rpc::ErrorObject;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::errors::{bad_params, of_attachment};
use super::methods::{VIA, acting};
use posthaste_host::Host;
use posthaste_host::attachments::{self, AttachError, Carrier, Incoming};
use posthaste_host::caller::{Identity, Realm, bearer};
use posthaste_host::download;
use posthaste_host::http::errors::answer as refuse;

/// Keeps the files that a message is to carry, and gives the metadata that names them.
pub(super) async fn keep(
    shared: &Host,
    engine: &Engine,
    given: &[Map<String, Value>],
) -> Result<Option<Json>, ErrorObject> {
    if given.is_empty() {
        return Ok(None);
    }
    // Before any is decoded.
    if given.len() > attachments::MOST_FILES {
        return Err(of_attachment(&AttachError::TooMany));
    }
    let files = given.iter().map(Incoming::received).collect::<Result<Vec<_>, _>>();
    let files = files.map_err(|error| of_attachment(&error))?;
    let kept = attachments::keep(shared.attachments(), engine, files).await;
    Ok(attachments::into_meta(kept.map_err(|error| of_attachment(&error))?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachmentParams {
    /// Whose mail; the caller's if absent.
    #[serde(default)]
    agent: Option<AgentId>,
    message: MessageId,
    sha256: String,
}

/// One file with its bytes in base64.
pub(super) async fn attachment(
    engine: &Engine,
    identity: &Identity,
    given: AttachmentParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let found = attachments::fetch(engine, vec![caller], Carrier::Id(given.message), &given.sha256).await;
    let (file, bytes) = found.map_err(|error| of_attachment(&error))?;
    let mut answer = serde_json::to_value(&file).map_err(bad_params)?;
    answer["data"] = json!(STANDARD.encode(bytes));
    Ok(answer)
}

#[derive(Deserialize)]
pub(super) struct Whose {
    agent: Option<AgentId>,
}

/// `GET /x-posthaste/attachments/{message}/{sha256}`: a file for a party of the message.
pub(super) async fn download(
    State(shared): State<Host>,
    Realm(engine): Realm,
    Path(params): Path<Vec<(String, String)>>,
    Query(whose): Query<Whose>,
    headers: HeaderMap,
) -> Response {
    let (identity, pass) = match shared.recognise(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    };
    if shared.bucket_of(&engine, &identity, pass.as_ref()).take().wait.is_some() {
        let why = "too many calls with this token; try again in a moment";
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", why);
    }
    let param = |name: &str| params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    let Ok(id) = param("message").parse().map(MessageId) else {
        return download::failure(&AttachError::Missing);
    };
    let caller = match acting(&identity, whose.agent) {
        Ok(caller) => caller,
        Err(error) => return refuse(StatusCode::FORBIDDEN, "not_allowed", &error.message),
    };
    let engine = shared.engine_for(&engine, &identity, pass.as_ref());
    match attachments::fetch(&engine, vec![caller], Carrier::Id(id), param("sha256")).await {
        Ok((file, bytes)) => download::answer(&file, bytes),
        Err(error) => download::failure(&error),
    }
}
