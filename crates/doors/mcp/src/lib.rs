//! The MCP door: coding agents. Streamable HTTP at `/mcp` and `/api`; one dispatcher, one table of tools. `posthaste mcp`
//! relays standard input and output to it.
//!
//! `http.rs` authenticates and routes, `sessionless.rs` adds the rules of revisions without sessions, `dispatch.rs` answers.
//! Plain calls need no session. `sessions.rs` keeps the sessions of clients that open one; `streams.rs` writes event streams.

mod address;
mod answer;
mod arguments;
mod attachments;
mod call;
mod dispatch;
mod door;
mod errors;
mod headers;
mod hints;
mod http;
mod markdown;
mod meta;
mod prompts;
mod resources;
mod schema;
mod sessionless;
mod sessions;
mod streams;
mod table;
mod to_wire;
mod tools;
mod updates;

#[doc(hidden)]
pub use errors::refused;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{any, get};

pub use door::{Door, Options, ToolSet};
use posthaste_host::http::errors::answer;
use posthaste_host::no_oauth;
use posthaste_wire::mcp::answers::Liveness;

/// Every path of the door.
pub fn router(door: Door) -> Router {
    let mut router = Router::new();
    for path in ["/mcp", "/mcp/", "/api", "/api/"] {
        router = router.route(path, any(http::answer));
    }
    router
        .route("/health/liveness", get(async || axum::Json(Liveness { status: "alive".into() })))
        .route("/health/readiness", get(readiness))
        .route("/.well-known/oauth-authorization-server", get(no_metadata))
        .route("/.well-known/oauth-authorization-server/{*rest}", get(no_metadata))
        .route("/.well-known/oauth-protected-resource", get(no_metadata))
        .route("/.well-known/oauth-protected-resource/{*rest}", get(no_metadata))
        .with_state(door)
}

async fn readiness(axum::extract::State(door): axum::extract::State<Door>) -> axum::response::Response {
    match door.check_health().await.problem {
        None => axum::Json(Liveness { status: "ready".into() }).into_response(),
        Some(problem) => answer(StatusCode::SERVICE_UNAVAILABLE, "unhealthy", &problem),
    }
}

/// Clients that look for OAuth are told that there is none, so that they use the token they were given.
async fn no_metadata() -> axum::response::Response {
    no_oauth::no_metadata()
}

/// Reads the arguments of a tool as a caller gave them. A seam for the fuzz targets.
#[doc(hidden)]
pub fn read_arguments(tool: &str, given: &str) -> Option<bool> {
    let tool = table::find(tool)?;
    let given = serde_json::from_str(given).ok()?;
    let checked = arguments::check(&tool.shown.input_schema, given);
    Some(checked.and_then(tool.line.reads).is_ok())
}
