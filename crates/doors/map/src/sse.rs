//! The event log as server-sent events: `GET /map/events`. With `Last-Event-ID` a client resumes where a lost connection left
//! off.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use posthaste_engine::nouns::{Caller, Seq};
use posthaste_engine::{Engine, Feed, Patterns, Start, Step};
use posthaste_wire::map::{Pattern, Spec, codes, stream_pattern};
use posthaste_wire::sse;
use serde_json::Value;
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Line};
use super::errors::DoorError;
use super::events::{self, Form, Rendered, Wording};
use super::heartbeat::{StatusEvents, served};
use super::subscription::known;
use super::{DEFAULT_BUFFER, connect, filters, streams, to_wire, token_watch, ws};
use crate::Door;
use posthaste_host::caller::Realm;
use posthaste_host::http::errors::answer;

/// A comment this often keeps intermediaries from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams events. The query may hold `filter` as JSON, `eventTypes` and `streams` as lists, `dialect=draft`, and
/// `lastEventId` for clients that cannot set headers.
pub(super) async fn events(
    State(door): State<Door>,
    Realm(engine): Realm,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let (identity, token) = match ws::identify(&door, &engine, &headers, &query).await {
        Ok(Some(known)) => known,
        Ok(None) => return answer(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed"),
        Err(response) => return *response,
    };
    let session = connect::passing(&door, &identity);
    let connection = Connection::passing(door.clone(), engine, (identity, token.clone()), session);
    let turn = connection.bucket.take();
    if let Some(wait) = turn.wait {
        let refused = DoorError::too_often(wait);
        let mut response = answer(StatusCode::TOO_MANY_REQUESTS, "too_often", &refused.message);
        turn.write(response.headers_mut());
        return response;
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last.or_else(|| query.get("lastEventId").map(String::as_str));
    match open(&connection, &query, last).await {
        Ok(flow) => {
            if let Some(token) = token {
                let line = Line::new(connection.line.out.clone(), flow.stop.clone());
                let go = token_watch::watch(&door, &connection.engine, token, flow.stop.clone(), line);
                // The watch starts only after this.
                let _ = go.send(());
            }
            let chunks = stream::unfold(flow, async |mut flow| {
                let chunk = flow.next().await?;
                Some((Ok::<_, Infallible>(chunk), flow))
            });
            let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
            (head, Body::from_stream(chunks)).into_response()
        }
        Err(failure) => {
            let status = match failure.code {
                codes::PERMISSION_DENIED => StatusCode::FORBIDDEN,
                _ => StatusCode::BAD_REQUEST,
            };
            answer(status, "bad_request", &failure.message)
        }
    }
}

/// An open stream.
struct Flow {
    engine: Engine,
    caller: Caller,
    feed: Feed,
    form: Form,
    id: String,
    stop: CancellationToken,
    /// The seq of the last event that was sent, or where the stream started.
    seq: Seq,
    /// Number of events sent.
    number: u64,
    status_events: StatusEvents,
    beat: Interval,
    greeted: bool,
    _patterns: Patterns,
}

async fn open(
    at: &Connection,
    query: &HashMap<String, String>,
    last: Option<&str>,
) -> Result<Flow, DoorError> {
    let session = at.session.as_ref().ok_or_else(|| DoorError::denied("no session"))?;
    let list = |name: &str| query.get(name).map(|list| list.split(',').filter(|word| !word.is_empty()));
    let filter: Value = match query.get("filter") {
        Some(text) => serde_json::from_str(text).map_err(DoorError::params)?,
        None => Value::Null,
    };
    let mut spec = Spec::parse(&filter)?;
    spec.event_types.extend(list("eventTypes").into_iter().flatten().map(Pattern::new));
    let streams: Vec<_> = list("streams").into_iter().flatten().map(stream_pattern).collect();
    let status_events = StatusEvents::asked_for(&spec, &streams);
    let log_tag = at.registry.history(&at.engine).await?;
    let start = match last.filter(|id| !id.is_empty()) {
        Some(id) => Start::After(streams::seq_of(at, log_tag, &Value::from(id)).await?),
        None => Start::Now,
    };
    let patterns = at.engine.hold_patterns(spec.cost() + streams.len())?;
    let filter = filters::compile(&spec, streams, at.door.keeps_mail())?;
    let feed = at.engine.follow(&session.caller(), filter, start, DEFAULT_BUFFER).await?;
    let draft = query.get("dialect").is_some_and(|dialect| dialect == "draft");
    Ok(Flow {
        engine: at.engine.clone(),
        caller: session.caller(),
        seq: feed.seq(),
        feed,
        form: Form { draft, log_tag, payloads: true, observes: session.caller().rights.observe },
        id: super::session::fresh("sub-"),
        stop: at.door.stop().child_token(),
        number: 0,
        status_events,
        beat: StatusEvents::beat(),
        greeted: false,
        _patterns: patterns,
    })
}

impl Flow {
    /// The next chunk of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        let mut out = String::new();
        if !std::mem::replace(&mut self.greeted, true) {
            // Sent at once, so that the client knows that it is connected.
            sse::write_comment(&mut out, "events of this office");
            return Some(out);
        }
        tokio::select! {
            () = self.stop.cancelled() => None,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                sse::write_comment(&mut out, "still here");
                Some(out)
            }
            _ = self.beat.tick(), if self.status_events.are_wanted() => {
                let served = served(&self.engine, self.form.log_tag, self.seq).await.ok()?;
                for event in self.status_events.read(&self.engine, &self.caller, served).await.ok()? {
                    // Without an id, so that a client that reconnects resumes after the last logged event.
                    sse::write_event(&mut out, None, None, &self.numbered(&event));
                }
                Some(out)
            }
            step = self.feed.next() => {
                match step {
                    Ok(Step::Event { event, .. }) => {
                        self.seq = event.seq;
                        let known = known(&self.engine, || vec![self.caller.clone()], &event, self.form).await.ok()?;
                        let id = events::id(&event, self.form.log_tag).ulid();
                        let event = events::render_shared(&event, self.form, &known, Wording::default());
                        sse::write_event(&mut out, Some(&id), None, &self.numbered(&event));
                    }
                    // Events are skipped only for subscribers that acknowledge or pause, which this stream cannot.
                    Ok(Step::Overflow(_)) => sse::write_comment(&mut out, "passed over"),
                    Err(_) => return None,
                }
                Some(out)
            }
        }
    }

    /// The params of `map/event` with the next number. Heartbeats are numbered like events.
    fn numbered(&mut self, event: &Rendered) -> String {
        self.number += 1;
        to_wire::text(&event.params(&self.id, self.number))
    }
}
