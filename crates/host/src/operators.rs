//! What operators ask for: what has the server done. Whether it is well is answered by the swarm door, which owns
//! `/health`; its figures are at `/x-posthaste/status`.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::Host;
use crate::caller::{Realm, bearer};
use crate::http::errors::answer;
use crate::http::local::Local;
use crate::observe::metrics;

/// Every path.
pub fn router(host: Host) -> Router {
    Router::new().route("/metrics", get(show_metrics)).with_state(host)
}

/// Free for callers on this machine. From elsewhere it takes the server's own key: it names every realm.
async fn show_metrics(
    State(shared): State<Host>,
    Realm(engine): Realm,
    Local(here): Local,
    headers: HeaderMap,
) -> Response {
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
