//! MAP over WebSocket. Outgoing text frames contain one JSON value; incoming ones may contain several, separated by line
//! breaks.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::{self, SplitStream};
use posthaste_engine::Engine;

use super::connection::{Connection, Known, Line};
use super::outbox::{Frames, Outbox};
use super::{MAX_MESSAGE, VIA};
use crate::Door;
use posthaste_host::caller::{AuthError, Realm, bearer};
use posthaste_host::http::errors::answer;
use posthaste_host::http::listen::Peer;

/// Unanswered pings after which a peer counts as gone.
pub(super) const SILENT_PINGS: u32 = 3;
/// Buffers of a socket, in bytes. Small, as most peers are idle and there may be many.
const READ_BUFFER: usize = 2 << 10;
const WRITE_BUFFER: usize = 16 << 10;

/// Opens a WebSocket, on any path.
pub(super) async fn open(
    State(door): State<Door>,
    Realm(engine): Realm,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    peer: Option<Extension<Peer>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            let message = "MAP is spoken here over WebSocket; HTTP callers use POST /map/rpc";
            return answer(rejection.status(), "upgrade_required", message);
        }
    };
    let known = match identify(&door, &engine, &headers, &query).await {
        Ok(known) => known,
        Err(response) => return *response,
    };
    let address = peer.map(|Extension(peer)| peer.address.ip());
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(4 * MAX_MESSAGE)
        .on_upgrade(move |socket| serve(door, engine, known, address, socket))
}

/// The caller's identity, as far as the request tells it; `None` if it has no token where one is needed.
pub(super) async fn identify(
    door: &Door,
    engine: &Engine,
    headers: &HeaderMap,
    query: &HashMap<String, String>,
) -> Result<Option<Known>, Box<Response>> {
    let token = bearer(headers).or_else(|| query.get("token").map(String::as_str));
    match door.authenticate(engine, token, VIA).await {
        Ok(known) => Ok(Some(known)),
        Err(AuthError::Missing) => Ok(None),
        Err(error @ (AuthError::Invalid | AuthError::OtherDoor { .. })) => {
            Err(Box::new(answer(StatusCode::UNAUTHORIZED, "unauthorized", &error.to_string())))
        }
        Err(AuthError::Failed(error)) => Err(Box::new(
            answer(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &error.to_string()).into_response(),
        )),
    }
}

/// Not an `async fn`, which would keep the arguments until the end.
fn serve(
    door: Door,
    engine: Engine,
    known: Option<Known>,
    address: Option<IpAddr>,
    socket: WebSocket,
) -> impl Future<Output = ()> {
    let (sink, stream) = socket.split();
    let (out, frames) = Outbox::socket(sink);
    let line = Line::new(out, door.stop().child_token());
    let heard = Arc::new(AtomicBool::new(true));
    let writing = tokio::spawn(write(frames, heard.clone(), line.clone(), door.ping_every()));
    let mut frames = Box::pin(read(stream, heard, line.clone()));
    let mut connection = Connection::new(door, engine, known, address, line);
    async move {
        connection.run(&mut frames).await;
        // The writer ends when all senders are gone, or after a close frame.
        drop((connection, frames));
        drop(writing.await);
    }
}

/// The frames of a peer, until it closes or violates the protocol. Sets `heard` for each frame, because a timer per frame would
/// cost more than reading it.
fn read(
    stream: SplitStream<WebSocket>,
    heard: Arc<AtomicBool>,
    line: Line,
) -> impl futures_util::Stream<Item = Utf8Bytes> {
    let pings = Pings { since: Instant::now(), count: 0 };
    stream::unfold((stream, heard, line, pings), async |(mut stream, heard, line, mut pings)| {
        let (code, reason) = loop {
            let next = stream.next().await;
            heard.store(true, Ordering::Relaxed);
            match next {
                Some(Ok(Message::Text(text))) => return Some((text, (stream, heard, line, pings))),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) if pings.are_too_many() => {
                    break (close_code::POLICY, "too many pings");
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_))) => break (close_code::UNSUPPORTED, "text frames only"),
                // The socket has the answer ready; the writer, which this stops, flushes it.
                Some(Ok(Message::Close(_))) => {
                    line.stop.cancel();
                    return None;
                }
                None => return None,
                Some(Err(error)) => break why_unreadable(&error),
            }
        };
        line.end(code, reason);
        None
    })
}

/// Pings and pongs that a peer may send per second: each ping is answered, and the rate limit of calls does not count them.
const MAX_PINGS_PER_SECOND: u32 = 1_000;

/// Pings since the start of the current second.
struct Pings {
    since: Instant,
    count: u32,
}

impl Pings {
    fn are_too_many(&mut self) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self { since: Instant::now(), count: 0 };
        }
        self.count += 1;
        self.count > MAX_PINGS_PER_SECOND
    }
}

/// Close code and reason for an unreadable frame.
fn why_unreadable(error: &axum::Error) -> (u16, &'static str) {
    use tungstenite::error::{CapacityError, Error};
    match std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::Capacity(CapacityError::MessageTooLong { .. })) => {
            (close_code::SIZE, "a message has at most 1 MiB")
        }
        Some(Error::Utf8(_)) => (close_code::INVALID, "the text is not UTF-8"),
        _ => (close_code::PROTOCOL, "not a WebSocket frame"),
    }
}

/// Writes queued frames together, and pings. Ends the connection of a peer that does not answer.
async fn write(mut frames: Frames, heard: Arc<AtomicBool>, line: Line, ping_every: Duration) {
    let write_timeout = ping_every * SILENT_PINGS;
    let mut unanswered = 0;
    let mut ping = tokio::time::interval(ping_every);
    // Missed ticks are dropped: else a delayed peer would count as silent at once.
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ping.reset();
    let close = loop {
        tokio::select! {
            biased;
            () = line.stop.cancelled() => break None,
            frame = frames.next() => {
                let Some(frame) = frame else { break None };
                if !is_written(frames.write(frame), write_timeout).await {
                    // Tells senders that frames are no longer written.
                    line.stop.cancel();
                    return;
                }
            }
            _ = ping.tick() => {
                unanswered = if heard.swap(false, Ordering::Relaxed) { 0 } else { unanswered + 1 };
                if unanswered >= SILENT_PINGS {
                    break Some((close_code::AWAY, "no sign of life"));
                }
                if !is_written(frames.write_control(Message::Ping(Default::default())), write_timeout).await {
                    line.stop.cancel();
                    return;
                }
            }
        }
    };
    let close = close.or_else(|| line.close.get().copied());
    let (code, reason) = close.unwrap_or((close_code::AWAY, "the office is done"));
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // Queued frames are written before the close frame. A peer that sent its close frame first accepts no other; it gets the
    // answer that the socket has ready.
    if !is_written(frames.write_control(close), write_timeout).await {
        let _ = is_written(frames.flush(), write_timeout).await;
    }
    line.stop.cancel();
}

/// Whether a write succeeded in time. A peer that accepts nothing for as long as it may be silent counts as gone.
async fn is_written(writing: impl Future<Output = Result<(), axum::Error>>, write_timeout: Duration) -> bool {
    matches!(tokio::time::timeout(write_timeout, writing).await, Ok(Ok(())))
}
