//! Events of a task as a stream, read from the database as they are written, so that a client can resume a stream that broke.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use posthaste_engine::nouns::{Caller, RunPhase, Seq, TaskId};
use posthaste_engine::{Engine, stamp};
use posthaste_wire::mail::events;
use posthaste_wire::mail::tasks::{EventRecord, Ping, StreamEnd};
use posthaste_wire::time::to_rfc3339;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::auth::AuthedCaller;
use super::errors::{DoorError, DoorResult};
use crate::Door;
use crate::runtime::task_events::{self, Cursor, TaskEvent};
use crate::runtime::{OpenedTask, RunCell};

/// A ping is sent after this time without an event.
const PING_AFTER: Duration = Duration::from_secs(15);

/// An event as an entry of a list.
pub(super) fn to_record(event: TaskEvent) -> EventRecord {
    EventRecord::new(event.name, event.data, event.cursor.to_string())
}

/// The last event that the client saw.
pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<Cursor>, DoorError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let read = value.to_str().ok().and_then(Cursor::parse);
    read.map(Some).ok_or_else(|| DoorError::bad("the header `Last-Event-ID` is not one of this server's"))
}

/// Streams the events of a task that was just opened.
pub(super) fn stream(door: &Door, caller: &AuthedCaller, opened: OpenedTask, after: Cursor) -> Response {
    let stream = EventStream {
        engine: caller.engine.clone(),
        task: opened.task,
        task_id: opened.task_id,
        after,
        news: Some(opened.cell.news.subscribe()),
        _cell: Some(opened.cell),
        stop: door.stop().clone(),
        first_end: true,
        done: false,
        quiet_since: Instant::now(),
    };
    // A waiter would keep the task in memory; the stream reads the end from the database.
    drop(opened.finish);
    door.end_stream_with_token(&caller.engine, caller.pass.as_ref(), stream.into_response())
}

/// Streams past and future events of a task of the caller.
pub(super) async fn again(door: &Door, caller: &AuthedCaller, task_id: &str, after: Cursor) -> DoorResult {
    let runtime = caller.runtime(door)?;
    let (instance, name) = (caller.owner().instance(), task_id.to_lowercase());
    let watched = runtime.watch(&instance, &name).await?;
    let Some((task, phase, cell)) = watched else {
        return Err(DoorError::new(StatusCode::NOT_FOUND, format!("task not found: {task_id}")));
    };
    let running = phase == RunPhase::Running;
    let stream = EventStream {
        engine: caller.engine.clone(),
        task,
        task_id: name,
        after,
        news: cell.as_ref().filter(|_| running).map(|cell| cell.news.subscribe()),
        _cell: cell,
        stop: door.stop().clone(),
        first_end: false,
        done: false,
        quiet_since: Instant::now(),
    };
    Ok(door.end_stream_with_token(&caller.engine, caller.pass.as_ref(), stream.into_response()))
}

/// An open stream.
struct EventStream {
    engine: Engine,
    task: TaskId,
    task_id: String,
    after: Cursor,
    /// Announces new events; none if the task is not running.
    news: Option<watch::Receiver<Seq>>,
    _cell: Option<Arc<RunCell>>,
    stop: CancellationToken,
    /// Whether the stream closes at the first end of the task; otherwise it includes later turns.
    first_end: bool,
    done: bool,
    quiet_since: Instant,
}

impl EventStream {
    fn into_response(self) -> Response {
        let chunks = stream::unfold(self, async |mut events| {
            let chunk = events.next().await?;
            Some((Ok::<_, Infallible>(chunk), events))
        });
        let head = [
            (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (head, Body::from_stream(chunks)).into_response()
    }

    async fn next(&mut self) -> Option<String> {
        if self.done {
            return None;
        }
        loop {
            if let Some(news) = &mut self.news {
                // Marked as seen before the read, so that an event that is written meanwhile wakes this loop again.
                news.borrow_and_update();
            }
            let caller = Caller::office();
            let read = task_events::read(&self.engine, &caller, &self.task, &self.task_id, self.after).await;
            let (events, more) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(task = %self.task, %error, "the events of a task cannot be read");
                    return None;
                }
            };
            if !events.is_empty() {
                self.quiet_since = Instant::now();
                return Some(self.write(events, more));
            }
            if more {
                continue;
            }
            let Some(news) = &mut self.news else {
                self.done = true;
                return None;
            };
            tokio::select! {
                () = self.stop.cancelled() => return None,
                changed = news.changed() => if changed.is_err() { self.news = None },
                () = tokio::time::sleep_until(self.quiet_since + PING_AFTER) => {
                    self.quiet_since = Instant::now();
                    let ping = Ping { timestamp: to_rfc3339(stamp::now()), task_id: self.task_id.clone() };
                    return Some(event_text(events::PING, &ping, None));
                }
            }
        }
    }

    fn write(&mut self, events: Vec<TaskEvent>, more: bool) -> String {
        let mut out = String::new();
        let last = events.len().saturating_sub(1);
        for (n, event) in events.into_iter().enumerate() {
            self.after = event.cursor;
            let id = event.cursor.to_string();
            match event.response {
                None => out.push_str(&event_text(&event.name, &event.data, Some(&id))),
                // The event that ends a stream carries the result of the task.
                Some(response) => {
                    let (timestamp, task_id) = (event.data.timestamp, self.task_id.clone());
                    let end = StreamEnd { timestamp, task_id, response };
                    out.push_str(&event_text(&event.name, &end, Some(&id)));
                    if self.first_end || (n == last && !more) {
                        self.done = true;
                        break;
                    }
                }
            }
        }
        out
    }
}

/// An event with CRLF line breaks, as the reference sends them.
fn event_text(name: &str, data: &impl Serialize, id: Option<&str>) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    let mut out = format!("event: {name}\r\ndata: {data}\r\n");
    if let Some(id) = id {
        out.push_str("id: ");
        out.push_str(id);
        out.push_str("\r\n");
    }
    out.push_str("\r\n");
    out
}
