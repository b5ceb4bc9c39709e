//! `/x-posthaste/export`: a whole realm as lines of JSON, for administrators. It is sent while it is read, so it is never
//! in memory as a whole.

use std::io::{self, Write};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::TokenRole;
use posthaste_engine::store::{open_reader, write_rows};
use tokio::sync::mpsc;

use super::VIA;
use posthaste_host::Host;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;

/// Bytes of one piece of the body.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may wait for a slow client.
pub(super) const MAX_WAITING_PIECES: usize = 8;

pub(super) async fn answer(State(host): State<Host>, Realm(engine): Realm, headers: HeaderMap) -> Response {
    match host.identify(&engine, bearer(&headers), VIA).await {
        Ok(identity) if identity.role == TokenRole::Admin => {}
        Ok(_) => {
            return refuse(StatusCode::FORBIDDEN, "not_allowed", "only administrators export a realm");
        }
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    }
    let db = match open_reader(engine.path()) {
        Ok(db) => db,
        Err(fault) => return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &fault.to_string()),
    };
    let (pieces, waiting) = mpsc::channel::<io::Result<Vec<u8>>>(MAX_WAITING_PIECES);
    let realm = engine.realm().to_string();
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE_BYTES, Pieces(pieces.clone()));
        // It ends early if the client goes away. A failure cuts the body off before its last line, which has the checksum.
        if let Err(error) = write_rows(&db, &realm, &mut out, &mut |_| true) {
            let _ = pieces.blocking_send(Err(io::Error::other(error.to_string())));
        }
    });
    let stream = futures_util::stream::unfold(waiting, |mut waiting| async move {
        waiting.recv().await.map(|piece| (piece, waiting))
    });
    ([(header::CONTENT_TYPE, "application/jsonl")], Body::from_stream(stream)).into_response()
}

/// A writer that sends pieces of a body, and blocks while the client is slow.
pub(super) struct Pieces(pub(super) mpsc::Sender<io::Result<Vec<u8>>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.blocking_send(Ok(bytes.to_vec())).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
