//! The web door: the server's own page for people, below `/ui`.
//!
//! Every page is rendered on the server and works without script, except for live updates; the script adds comfort. A
//! page parses its query, reads views and renders. Only [`actions`] changes anything, always under the name of the
//! visitor that is signed in ([`visitor`]).

mod actions;
mod agents;
mod answers;
mod assets;
mod conversations;
mod export;
mod frame;
mod graph;
mod inbox;
mod lanes;
mod live;
mod markdown;
mod message;
mod overview;
mod plot;
mod query;
mod reservations;
mod rows;
mod search;
mod session;
mod settings;
mod sign_in;
mod stream;
mod tasks;
mod text;
mod visitor;
mod write;

#[doc(hidden)]
pub use answers::refused;

use axum::Router;
use axum::middleware::map_response;
use axum::routing::{get, post};

use posthaste_host::Host;

/// The tag of commands that come through the page.
const VIA: &str = "web";
/// The path of the page, below a realm's root.
pub const PATH: &str = "/ui";
/// Rows on one page of a list.
const ROWS: usize = 50;

/// Every path of the page.
pub fn router(host: Host) -> Router {
    Router::new()
        .route("/ui", get(overview::page))
        .route("/ui/", get(overview::page))
        .route("/ui/pulse", get(overview::pulse))
        .route("/ui/live", get(live::page))
        .route("/ui/live/stream", get(stream::events))
        .route("/ui/inbox", get(inbox::page))
        .route("/ui/messages/{id}", get(message::page))
        .route("/ui/messages/{id}/attachments/{sha256}", get(message::attachment))
        .route("/ui/conversations", get(conversations::list))
        .route("/ui/conversations/{id}", get(conversations::page))
        .route("/ui/conversations/{id}/export", get(export::download))
        .route("/ui/tasks", get(tasks::list))
        .route("/ui/tasks/{id}", get(tasks::page))
        .route("/ui/reservations", get(reservations::page))
        .route("/ui/agents", get(agents::list))
        .route("/ui/agents/{id}", get(agents::page))
        .route("/ui/search", get(search::page))
        .route("/ui/settings", get(settings::page))
        .route("/ui/write", get(write::page))
        .route("/ui/complete", get(write::complete))
        .route("/ui/preview", post(write::preview))
        .route("/ui/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/ui/sign-out", post(sign_in::sign_out))
        .route("/ui/theme", post(sign_in::theme))
        .route("/ui/do/{action}", post(actions::act))
        .route("/ui/assets/{name}", get(assets::serve))
        .route("/ui/{*rest}", get(answers::nowhere))
        .layer(map_response(answers::guarded))
        .with_state(host)
}
