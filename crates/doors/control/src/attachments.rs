//! Files that messages carry: stored by `x-posthaste/send`, fetched by `x-posthaste/attachment` and by a path.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_engine::Engine;
use posthaste_engine::nouns::{Json, MessageId};
use posthaste_host::Host;
use posthaste_host::attachments::{self, AttachError, Carrier, Incoming};
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::download;
use posthaste_host::http::errors::answer as refuse;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::VIA;
use super::errors::of_attachment;
use super::from_wire::acting;
use super::table::Call;

/// Stores the files of a message, and gives the metadata that names them.
pub(super) async fn keep(
    host: &Host,
    engine: &Engine,
    given: Vec<wire::FileData>,
) -> Result<Option<Json>, ErrorObject> {
    if given.is_empty() {
        return Ok(None);
    }
    // Before any is decoded.
    if given.len() > attachments::MAX_FILES {
        return Err(of_attachment(&AttachError::TooMany));
    }
    let files = given.iter().map(Incoming::decode).collect::<Result<Vec<_>, _>>();
    let files = files.map_err(|error| of_attachment(&error))?;
    let kept = attachments::keep(host.attachments(), engine, files).await;
    Ok(attachments::into_meta(kept.map_err(|error| of_attachment(&error))?))
}

pub(super) async fn attachment(
    call: Call<'_>,
    given: wire::AttachmentParams,
) -> Result<wire::AttachmentResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let carrier = Carrier::Id(MessageId(given.message));
    let found = attachments::fetch(call.engine, vec![caller], carrier, &given.sha256).await;
    let (file, bytes) = found.map_err(|error| of_attachment(&error))?;
    Ok(wire::AttachmentResult {
        name: file.name,
        size: file.size,
        sha256: file.sha256,
        media_type: file.media_type,
        data: STANDARD.encode(bytes),
    })
}

/// `GET /x-posthaste/attachments/{message}/{sha256}`: a file for a party of the message.
pub(super) async fn download(
    State(host): State<Host>,
    Realm(engine): Realm,
    Path(params): Path<Vec<(String, String)>>,
    Query(query): Query<wire::DownloadQuery>,
    headers: HeaderMap,
) -> Response {
    let (identity, pass) = match host.authenticate(&engine, bearer(&headers), VIA).await {
        Ok(known) => known,
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    };
    if host.bucket_of(&engine, &identity, pass.as_ref()).take().wait.is_some() {
        let why = "too many calls with this token; try again in a moment";
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", why);
    }
    let param = |name: &str| params.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    let Ok(id) = param("message").parse().map(MessageId) else {
        return download::failure(&AttachError::Missing);
    };
    let caller = match acting(&identity, query.agent) {
        Ok(caller) => caller,
        Err(error) => return refuse(StatusCode::FORBIDDEN, "not_allowed", &error.message),
    };
    let engine = host.engine_for(&engine, &identity, pass.as_ref());
    match attachments::fetch(&engine, vec![caller], Carrier::Id(id), param("sha256")).await {
        Ok((file, bytes)) => download::answer(&file, bytes),
        Err(error) => download::failure(&error),
    }
}
