//! A backup of a realm, or of all, for the operator. It goes out as it is made; keys are never in it.

use std::io::{self, BufWriter};
use std::sync::atomic::AtomicBool;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::TokenRole;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::export::{PIECE, Pieces, WAITING};
use super::methods::VIA;
use posthaste_host::Host;
use posthaste_host::backup::{self, Plan, Watch};
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// Every realm of the server, for its operator.
    #[serde(default)]
    all: bool,
}

pub(super) async fn answer(
    State(shared): State<Host>,
    Realm(engine): Realm,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Response {
    match shared.identify(&engine, bearer(&headers), VIA).await {
        Ok(identity) if wanted.all && shared.heeds(&engine, &identity) => {}
        Ok(identity) if !wanted.all && identity.role == TokenRole::Admin => {}
        Ok(_) => return refuse(StatusCode::FORBIDDEN, "not_allowed", "a backup is for the operator alone"),
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    }
    let unavailable = |why: &dyn std::fmt::Display| {
        refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &why.to_string())
    };
    let realms = match wanted.all {
        true => shared.office().realms(),
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
    // Removed when the thread ends, also after a client that went away.
    let scratch = match tempfile::Builder::new().prefix(".backup-").tempdir_in(&data) {
        Ok(scratch) => scratch,
        Err(error) => return unavailable(&error),
    };
    let (pieces, waiting) = mpsc::channel::<io::Result<Vec<u8>>>(WAITING);
    tokio::task::spawn_blocking(move || {
        let plan = Plan { data, realms, keys: false, scratch: scratch.path().to_owned() };
        let out = BufWriter::with_capacity(PIECE, Pieces(pieces.clone()));
        let (stop, step) = (AtomicBool::new(false), |_: &str, _, _| {});
        // A failure breaks the answer off; without its manifest the client does not take it for a backup.
        if let Err(error) = backup::write(&plan, out, Watch { stop: &stop, step: &step }) {
            tracing::error!(%error, "a backup was broken off");
            let _ = pieces.blocking_send(Err(io::Error::other(error.to_string())));
        }
    });
    let stream = futures_util::stream::unfold(waiting, |mut waiting| async move {
        waiting.recv().await.map(|piece| (piece, waiting))
    });
    ([(header::CONTENT_TYPE, "application/x-tar")], Body::from_stream(stream)).into_response()
}
