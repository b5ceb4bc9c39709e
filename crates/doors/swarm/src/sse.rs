//! Events of a task as a stream: from the books, as they are written, so that a stream that broke goes on where it
//! was.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use posthaste_engine::nouns::{Caller, RunPhase, Seq, TaskId};
use posthaste_engine::{Engine, stamp};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::auth::AuthedCaller;
use super::errors::{DoorError, DoorResult};
use crate::Door;
use crate::runtime::task_events::{self, Cursor, TaskEvent};
use crate::runtime::{OpenedTask, RunCell};

/// After so long without an event there is a ping.
const QUIET: Duration = Duration::from_secs(15);

/// An event as it stands in a list.
pub(super) fn snapshot(event: &TaskEvent) -> Value {
    json!({
        "event": event.name,
        "data": event.data,
        "id": event.cursor.to_string(),
        "retry": null,
        "comment": null,
        "_sep": "\r\n",
    })
}

/// The event that a client saw last.
pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<Cursor>, DoorError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let read = value.to_str().ok().and_then(Cursor::parse);
    read.map(Some).ok_or_else(|| DoorError::bad("the header `Last-Event-ID` is not one of this server's"))
}

/// Streams what happens in a task that was just begun.
pub(super) fn stream(door: &Door, who: &AuthedCaller, waited: OpenedTask, after: Cursor) -> Response {
    let news = waited.cell.news.subscribe();
    let flow = Flow {
        engine: who.engine.clone(),
        task: waited.task,
        task_id: waited.task_id,
        after,
        news: Some(news),
        _cell: Some(waited.cell),
        stop: door.stop().clone(),
        first_end: true,
        done: false,
        quiet_since: Instant::now(),
    };
    // Whoever waits for the end keeps the task in memory; the stream reads it from the books instead.
    drop(waited.finish);
    door.while_good(&who.engine, who.pass.as_ref(), flow.into_response())
}

/// Streams what happened, and happens, in a task that the caller knows already.
pub(super) async fn again(door: &Door, who: &AuthedCaller, task_id: &str, after: Cursor) -> DoorResult {
    let runtime = who.runtime(door)?;
    let (instance, name) = (who.owner().instance(), task_id.to_lowercase());
    let watched = runtime.watch(&instance, &name).await?;
    let Some((task, phase, cell)) = watched else {
        return Err(DoorError::new(StatusCode::NOT_FOUND, format!("task not found: {task_id}")));
    };
    let live = phase == RunPhase::Running;
    let flow = Flow {
        engine: who.engine.clone(),
        task,
        task_id: name,
        after,
        news: cell.as_ref().filter(|_| live).map(|cell| cell.news.subscribe()),
        _cell: cell,
        stop: door.stop().clone(),
        first_end: false,
        done: false,
        quiet_since: Instant::now(),
    };
    Ok(door.while_good(&who.engine, who.pass.as_ref(), flow.into_response()))
}

/// A stream under way.
struct Flow {
    engine: Engine,
    task: TaskId,
    task_id: String,
    after: Cursor,
    /// Nothing if the task is not under way, so that there is nothing to wait for.
    news: Option<watch::Receiver<Seq>>,
    _cell: Option<Arc<RunCell>>,
    stop: CancellationToken,
    /// Whether the stream is over when the task ends for the first time; otherwise it goes on through later turns.
    first_end: bool,
    done: bool,
    quiet_since: Instant,
}

impl Flow {
    fn into_response(self) -> Response {
        let chunks = stream::unfold(self, async |mut flow| {
            let chunk = flow.next().await?;
            Some((Ok::<_, Infallible>(chunk), flow))
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
                // Seen before the books are read, so that what is written meanwhile wakes us again.
                news.borrow_and_update();
            }
            let caller = Caller::office();
            let read = task_events::read(&self.engine, &caller, &self.task, &self.task_id, self.after).await;
            let (events, more) = match read {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(task = %self.task, %error, "a stream cannot be read on");
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
                () = tokio::time::sleep_until(self.quiet_since + QUIET) => {
                    self.quiet_since = Instant::now();
                    let data = json!({ "timestamp": to_rfc3339(stamp::now()), "task_id": self.task_id });
                    return Some(spell("ping", &data, None));
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
            match &event.response {
                None => out.push_str(&spell(&event.name, &event.data, Some(&id))),
                // The event that ends a stream carries what the task ended with.
                Some(response) => {
                    let data = json!({
                        "timestamp": event.data["timestamp"],
                        "task_id": self.task_id,
                        "response": response,
                    });
                    out.push_str(&spell(&event.name, &data, Some(&id)));
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

fn spell(name: &str, data: &Value, id: Option<&str>) -> String {
    let mut out = format!("event: {name}\r\ndata: {data}\r\n");
    if let Some(id) = id {
        out.push_str("id: ");
        out.push_str(id);
        out.push_str("\r\n");
    }
    out.push_str("\r\n");
    out
}
