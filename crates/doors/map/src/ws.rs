//! The WebSocket: one JSON value per text frame out; one or several, line by line, in.

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

/// How many times a peer may leave unanswered whether it is there.
pub(super) const SILENT_PINGS: u32 = 3;
/// What is read and written at once. Most peers are idle, and there may be many.
const READ_BUFFER: usize = 2 << 10;
const WRITE_BUFFER: usize = 16 << 10;

/// Opens the door, whatever the path.
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

/// Who calls, as far as the request itself tells; nobody if it shows no token where one is needed.
pub(super) async fn identify(
    door: &Door,
    engine: &Engine,
    headers: &HeaderMap,
    query: &HashMap<String, String>,
) -> Result<Option<Known>, Box<Response>> {
    let token = bearer(headers).or_else(|| query.get("token").map(String::as_str));
    match door.recognise(engine, token, VIA).await {
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

/// Not an `async fn`: what is needed at the beginning only would be kept to the end.
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
        // The writer ends when nobody is left who could send, or when it says goodbye.
        drop((connection, frames));
        drop(writing.await);
    }
}

/// The frames of a peer, until it goes or breaks the rules. Says that it was heard of; a timer for each frame would cost
/// more than reading it.
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
                // The answer to it waits in the socket; the writer, told by the line, sends it.
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

/// Pings and pongs that a peer may send in a second: each ping is answered, and a call's rate limit does not count them.
const MOST_PINGS: u32 = 1_000;

/// How many pings came since when.
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
        self.count > MOST_PINGS
    }
}

/// The code and the reason to close with after a frame that cannot be read.
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

/// Sends what there is, several frames at a time where there are several. Lets go of a peer that has fallen silent.
async fn write(mut frames: Frames, heard: Arc<AtomicBool>, line: Line, ping_every: Duration) {
    let patience = ping_every * SILENT_PINGS;
    let mut unanswered = 0;
    let mut ping = tokio::time::interval(ping_every);
    // Ticks that were missed are not made up for: whoever was held up would count as silent at once.
    ping.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ping.reset();
    let farewell = loop {
        tokio::select! {
            biased;
            () = line.stop.cancelled() => break None,
            frame = frames.next() => {
                let Some(frame) = frame else { break None };
                if !taken(frames.write(frame), patience).await {
                    // Whoever still has something to send must hear that nobody takes it.
                    line.stop.cancel();
                    return;
                }
            }
            _ = ping.tick() => {
                unanswered = if heard.swap(false, Ordering::Relaxed) { 0 } else { unanswered + 1 };
                if unanswered >= SILENT_PINGS {
                    break Some((close_code::AWAY, "no sign of life"));
                }
                if !taken(frames.write_control(Message::Ping(Default::default())), patience).await {
                    line.stop.cancel();
                    return;
                }
            }
        }
    };
    let farewell = farewell.or_else(|| line.why.get().copied());
    let (code, reason) = farewell.unwrap_or((close_code::AWAY, "the office is done"));
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // What was ready goes out before the goodbye. A peer that said goodbye first takes no other; it gets its answer, which
    // the socket has ready. Or the peer is gone already.
    if !taken(frames.write_control(close), patience).await {
        let _ = taken(frames.flush(), patience).await;
    }
    line.stop.cancel();
}

/// Whether a peer took what was written. One that takes nothing for as long as it may be silent is as good as gone.
async fn taken(writing: impl Future<Output = Result<(), axum::Error>>, patience: Duration) -> bool {
    matches!(tokio::time::timeout(patience, writing).await, Ok(Ok(())))
}
