//! A whole realm as lines of JSON, for those who run the office. It goes out as it is read; nobody holds all of it.

use std::io::{self, Write};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::TokenRole;
use posthaste_engine::store::{open_reader, write_rows};
use tokio::sync::mpsc;

use super::methods::VIA;
use posthaste_host::Host;
use posthaste_host::caller::{Realm, bearer};
use posthaste_host::http::errors::answer as refuse;

/// How much is gathered before it is sent.
pub(super) const PIECE: usize = 64 << 10;
/// Pieces that may wait for a slow reader.
pub(super) const WAITING: usize = 8;

pub(super) async fn answer(State(shared): State<Host>, Realm(engine): Realm, headers: HeaderMap) -> Response {
    match shared.identify(&engine, bearer(&headers), VIA).await {
        Ok(identity) if identity.role == TokenRole::Admin => {}
        Ok(_) => {
            return refuse(StatusCode::FORBIDDEN, "not_allowed", "only those who run the office export it");
        }
        Err(error) => return refuse(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
    }
    let books = match open_reader(engine.path()) {
        Ok(books) => books,
        Err(fault) => return refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &fault.to_string()),
    };
    let (pieces, waiting) = mpsc::channel::<io::Result<Vec<u8>>>(WAITING);
    let realm = engine.realm().to_string();
    tokio::task::spawn_blocking(move || {
        let mut out = io::BufWriter::with_capacity(PIECE, Pieces(pieces.clone()));
        // A reader that went away ends it; a failure breaks the answer off, and its seal is missing.
        if let Err(error) = write_rows(&books, &realm, &mut out, &mut |_| true) {
            let _ = pieces.blocking_send(Err(io::Error::other(error.to_string())));
        }
    });
    let stream = futures_util::stream::unfold(waiting, |mut waiting| async move {
        waiting.recv().await.map(|piece| (piece, waiting))
    });
    ([(header::CONTENT_TYPE, "application/jsonl")], Body::from_stream(stream)).into_response()
}

/// Sends what is written in pieces; one that takes them slowly holds the writer up.
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
