//! `/x-posthaste/backup`: a backup of a realm, or of all, for the operator. It is sent while it is made; keys are never in
//! it.

use std::io::{self, BufWriter};
use std::sync::atomic::AtomicBool;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::TokenRole;
use tokio::sync::mpsc;

use super::VIA;
use super::export::{MAX_WAITING_PIECES, PIECE_BYTES, Pieces};
use posthaste_host::Host;
use posthaste_host::backup::{self, Plan, Watch};
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;
use posthaste_wire::control::BackupQuery;

pub(super) async fn answer(
    State(host): State<Host>,
    Realm(engine): Realm,
    Query(query): Query<BackupQuery>,
    headers: HeaderMap,
) -> Response {
    match host.identify(&engine, bearer(&headers), VIA).await {
        Ok(identity) if query.all && host.may_administer(&engine, &identity) => {}
        Ok(identity) if !query.all && identity.role == TokenRole::Admin => {}
        Ok(_) => return refuse(StatusCode::FORBIDDEN, "not_allowed", "a backup is for the operator alone"),
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    }
    let unavailable = |why: &dyn std::fmt::Display| {
        refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &why.to_string())
    };
    let realms = match query.all {
        true => host.office().realms(),
        false => Ok(vec![engine.realm().clone()]),
    };
    let realms = match realms {
        Ok(realms) => realms,
        Err(fault) => return unavailable(&fault),
    };
    let Some(data) = engine.path().parent().and_then(std::path::Path::parent).map(std::path::Path::to_owned)
    else {
        return unavailable(&"the data directory is not known");
    };
    // Removed when the thread ends, also if the client goes away.
    let scratch = match tempfile::Builder::new().prefix(".backup-").tempdir_in(&data) {
        Ok(scratch) => scratch,
        Err(error) => return unavailable(&error),
    };
    let (pieces, waiting) = mpsc::channel::<io::Result<Vec<u8>>>(MAX_WAITING_PIECES);
    tokio::task::spawn_blocking(move || {
        let plan = Plan { data, realms, keys: false, scratch: scratch.path().to_owned() };
        let out = BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces.clone()));
        let (stop, step) = (AtomicBool::new(false), |_: &str, _, _| {});
        // A failure cuts the body off. Without its manifest the client does not accept it as a backup.
        if let Err(error) = backup::write(&plan, out, Watch { stop: &stop, step: &step }) {
            tracing::error!(%error, "a backup failed");
            let _ = pieces.blocking_send(Err(io::Error::other(error.to_string())));
        }
    });
    let stream = futures_util::stream::unfold(waiting, |mut waiting| async move {
        waiting.recv().await.map(|piece| (piece, waiting))
    });
    ([(header::CONTENT_TYPE, "application/x-tar")], Body::from_stream(stream)).into_response()
}
