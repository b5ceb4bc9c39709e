//! The MAP door: the wire protocol, its streaming and MAP Mail, over WebSocket, standard input and output, and HTTP.
//!
//! A [`connection`] reads frames and answers them, whatever carries them. It belongs to a [`session`], which outlives
//! it for as long as it can be resumed. The [`methods`] parse, call one verb or view of the engine, and render; both
//! vocabularies of the protocol are understood everywhere, and the session's [`session::Dialect`] decides how answers
//! and events are spelled.

mod addresses;
mod agent_list;
mod agents;
mod capabilities;
mod connect;
mod connection;
mod disconnect;
mod door;
mod errors;
mod events;
mod federation;
mod filters;
mod from_wire;
mod heartbeat;
mod http;
mod mail;
mod messages;
mod method_table;
mod methods;
mod nouns;
mod outbox;
mod overrides;
mod paths;
mod registry;
mod scopes;
mod send;
mod session;
mod sessions;
mod spelling;
mod sse;
mod stale;
mod stdio;
mod streams;
mod structure;
mod subscription;
mod tasks;
mod to_wire;
mod token_watch;
mod turns;
mod ws;

#[doc(hidden)]
pub use errors::refused;

pub use door::{Door, Options};
pub use methods::method_names;
pub use paths::{elsewhere, is_socket};
pub use stale::resolve_all;
pub use stdio::{lines, serve};

use std::time::Duration;

use axum::Router;
use axum::routing::{any, get, post};

/// The tag of what comes in by this door.
const VIA: &str = "map";
/// The largest frame, and the largest message in it.
const MAX_MESSAGE: usize = 1 << 20;
/// Subscriptions of one session.
const MAX_SUBSCRIPTIONS: usize = 100;
/// Agents of one session.
const MAX_AGENTS: usize = 10_000;
/// Calls in one frame.
const MAX_BATCH: usize = 1000;
/// Unanswered calls of one connection; with more it is not read.
const MAX_IN_FLIGHT: usize = 256;
/// Frames of one connection that are read before other tasks get their turn.
const FRAMES_PER_TURN: usize = 16;
/// Frames queued for a peer that does not read; with more their senders wait.
const OUTGOING_FRAMES: usize = 64;
/// Events kept for a subscriber that holds its subscription up, unless it asks for another number.
const DEFAULT_BUFFER: usize = 1000;
/// The most it may ask for.
const MAX_BUFFER: usize = 10_000;
/// Receipts in an event: as many as a page has. Its sender has them all.
const MAX_RECEIPTS: usize = 1_000;
/// How long a session can be resumed, and agents are kept without their connection.
const RESUME_WINDOW: Duration = Duration::from_secs(300);
/// How long answers in progress are waited for when a peer has nothing more to say.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may stay without saying anything at all.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);

/// Every path of the door.
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/map", any(ws::open))
        .route("/map/", any(ws::open))
        .route("/map/rpc", post(http::rpc))
        .route("/map/batch", post(http::rpc))
        .route("/map/events", get(sse::events))
        // Clients in the field dial whatever path their configuration says.
        .route("/map/{*rest}", any(ws::open))
        .with_state(door)
}
