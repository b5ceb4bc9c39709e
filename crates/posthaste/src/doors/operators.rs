//! What those who run the office ask for: what has it done. Whether it is well and where it stands is answered by
//! the swarm door, which owns `/health` and `/status`.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use crate::caller::{Realm, bearer};
use crate::http::errors::answer;
use crate::http::listen::Peer;
use crate::observe::metrics;
use crate::shared::Shared;

pub(super) fn router() -> Router<Shared> {
    Router::new().route("/metrics", get(show_metrics))
}

/// Free for whoever is on this machine. From elsewhere it takes an administrator's token: it names every realm.
async fn show_metrics(
    State(shared): State<Shared>,
    Realm(engine): Realm,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Response {
    let here = peer.is_none_or(|Extension(peer)| peer.address.ip().to_canonical().is_loopback());
    if !here {
        match shared.identify(&engine, bearer(&headers), "operators").await {
            Ok(identity) if identity.runs_office() => {}
            Ok(_) => {
                return answer(
                    StatusCode::FORBIDDEN,
                    "forbidden",
                    "metrics are for those who run the office",
                );
            }
            Err(error) => return answer(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
        }
    }
    let text = metrics::render(&shared).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
