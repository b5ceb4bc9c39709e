//! AIRC: signed mail, consent, presence, threads, mailbox and file reservations.
//!
//! Two surfaces on one store: the full protocol, where every message is signed, and Safe Mode below `/api/`, which the
//! published clients speak. Signatures are verified here, by the task that handles the request and never by the writer;
//! the engine refuses replays.

mod challenges;
mod consent;
mod context;
mod discovery;
mod door;
mod errors;
mod from_wire;
mod identity;
mod inbox;
mod layer;
mod messages;
mod presence;
mod rotation;
mod safe;
mod safe_inbox;
mod stored_keys;
mod to_wire;

#[doc(hidden)]
pub use errors::refused;

use axum::Router;
use axum::routing::{get, post};

pub use door::Door;

/// The tag of agents and messages that come in by this door.
const VIA: &str = "airc";

/// Every path of the door.
pub fn router(door: Door) -> Router {
    let full = Router::new()
        .route("/.well-known/airc", get(discovery::document))
        .route("/identity", post(identity::create))
        .route("/identity/{handle}", get(identity::show))
        .route("/identity/{handle}/rotate", post(rotation::rotate))
        .route("/identity/{handle}/revoke", post(rotation::revoke))
        .route("/register/challenge", post(identity::challenge))
        .route("/register", post(identity::register))
        .route("/auth/refresh", post(identity::refresh))
        .route("/presence", get(presence::list).post(presence::post))
        .route("/messages", get(inbox::inbox).post(messages::post))
        .route("/messages/inbox", get(inbox::inbox))
        .route("/messages/thread/{handle}", get(inbox::thread))
        .route("/messages/{id}/attachments/{sha256}", get(inbox::attachment))
        .route("/messages/{id}/ack", post(inbox::ack))
        .route("/messages/{id}", axum::routing::delete(inbox::discard))
        .route("/consent", get(consent::get).post(consent::post));
    let safe = Router::new()
        .route("/api/health", get(safe::health))
        .route("/api/presence", get(safe::presences).post(safe::presence))
        .route("/api/v2/presence", get(safe::presences).post(safe::presence))
        .route("/api/messages", get(safe_inbox::list).post(safe::send))
        .route("/api/v2/messages", get(safe_inbox::list).post(safe::send))
        .route("/api/consent", get(safe::consents).post(safe::consent))
        .route("/api/users", post(safe::register))
        .route("/api/register", post(safe::register))
        .route("/api/identity", post(safe::register))
        .route("/api/identity/revoke", post(rotation::revoke))
        .route("/api/identity/{handle}", get(safe::show))
        .route("/api/identity/{handle}/capabilities", get(identity::capabilities))
        .route("/api/identity/{handle}/rotate", post(rotation::rotate))
        .route("/api/agents", get(safe::agents));
    layer::around(full.merge(safe), door.clone()).with_state(door)
}
