//! `/metrics`, for operators. `/health` belongs to the swarm door; figures of a realm are at `/x-posthaste/status`.

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

/// Open to callers on this machine. Others need the server's own key, because metrics name every realm.
async fn show_metrics(
    State(host): State<Host>,
    Realm(engine): Realm,
    Local(here): Local,
    headers: HeaderMap,
) -> Response {
    if !here {
        match host.identify(&engine, bearer(&headers), "operators").await {
            Ok(identity) if identity.is_operator() => {}
            Ok(_) => {
                return answer(StatusCode::FORBIDDEN, "forbidden", "metrics are for the operator");
            }
            Err(error) => return answer(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string()),
        }
    }
    let text = metrics::render(&host).await;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
