//! The live stream: events as rows, sent as server-sent events. A browser that reconnects sends the last position it saw
//! and continues there; if that is too far back, or of another event log, it gets a row that says so.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use maud::html;
use posthaste_engine::nouns::Seq;
use posthaste_engine::{EngineError, Feed, Refusal, Start, Step, stamp};
use posthaste_wire::sse;
use tokio_util::sync::CancellationToken;

use super::answers::DoorError;
use super::live::{self, Wanted};
use super::query::Given;
use super::visitor::Visitor;

/// Interval of comments, which keep intermediaries from closing a quiet stream and reveal a browser that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that a reconnected browser gets; if it missed more, it gets a row that says so.
const MAX_MISSED: Seq = 2_000;
/// Rows that are sent together.
const MAX_TOGETHER: usize = 64;
const BUFFER: usize = 1_000;

/// `GET /ui/live/stream`.
pub(super) async fn events(visitor: Visitor, headers: HeaderMap) -> Response {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let wanted = match Wanted::read(&given) {
        Ok(wanted) => wanted,
        Err(error) => return error.into_response(),
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    match open(visitor.clone(), wanted, last.or(given.get("after"))).await {
        Ok(flow) => {
            let chunks = stream::unfold(flow, async |mut flow| {
                let chunk = flow.next().await?;
                Some((Ok::<_, Infallible>(chunk), flow))
            });
            let head = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
            let answer = (head, Body::from_stream(chunks)).into_response();
            visitor.host.end_stream_with_token(&visitor.engine, visitor.pass.as_ref(), answer)
        }
        Err(error) => DoorError::from(error).into_response(),
    }
}

struct Flow {
    visitor: Visitor,
    history: String,
    feed: Feed,
    stop: CancellationToken,
    /// The first bytes of the stream.
    greeting: Option<String>,
}

async fn open(visitor: Visitor, wanted: Wanted, last: Option<&str>) -> Result<Flow, EngineError> {
    let (history, head) = visitor.read(|view, _| Ok((view.history()?, view.head()?))).await?;
    let asked = last.and_then(|id| {
        let (name, seq) = id.rsplit_once(':')?;
        Some((name == history, seq.parse::<Seq>().ok()?))
    });
    let mut greeting = String::new();
    sse::write_retry(&mut greeting, 2_000);
    let start = match asked {
        None => Start::Now,
        Some((true, seq)) if (0..=head).contains(&seq) && head - seq <= MAX_MISSED => Start::After(seq),
        Some((true, seq)) if (0..=head).contains(&seq) => {
            gap(&mut greeting, &visitor, &format!("{} events passed meanwhile", head - seq), Some(seq));
            Start::After(head)
        }
        Some(_) => {
            gap(&mut greeting, &visitor, "the server has another event log now", None);
            Start::After(head)
        }
    };
    sse::write_comment(&mut greeting, "following");
    let feed = match visitor.engine.follow(&visitor.caller(), wanted.filter(), start, BUFFER).await {
        // The log may have grown between the two reads, but never shrunk.
        Err(EngineError::Refused(Refusal::StaleCursor)) => {
            visitor.engine.follow(&visitor.caller(), wanted.filter(), Start::Now, BUFFER).await?
        }
        other => other?,
    };
    let stop = visitor.host.stop().clone();
    Ok(Flow { visitor, history, feed, stop, greeting: Some(greeting) })
}

fn gap(out: &mut String, visitor: &Visitor, why: &str, from: Option<Seq>) {
    let row = html! {
        li.row.gap {
            "— " (why)
            @if let Some(seq) = from { " · " a href=(visitor.to(&format!("/live?before={}", seq + 100))) { "look back" } }
            " —"
        }
    };
    sse::write_event(out, None, Some("gap"), &row.into_string());
}

impl Flow {
    /// The next piece of the stream; nothing when it is over.
    async fn next(&mut self) -> Option<String> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        let mut out = String::new();
        tokio::select! {
            () = self.stop.cancelled() => return None,
            () = tokio::time::sleep(KEEP_ALIVE) => {
                sse::write_comment(&mut out, "still here");
                return Some(out);
            }
            step = self.feed.next() => self.write(&mut out, step.ok()?),
        }
        for _ in 1..MAX_TOGETHER {
            let Ok(Ok(step)) = tokio::time::timeout(Duration::ZERO, self.feed.next()).await else { break };
            self.write(&mut out, step);
        }
        Some(out)
    }

    fn write(&mut self, out: &mut String, step: Step) {
        match step {
            Step::Event { event, .. } => {
                self.visitor.now = stamp::now();
                let id = format!("{}:{}", self.history, event.seq);
                sse::write_event(out, Some(&id), None, &live::row(&self.visitor, &event).into_string());
            }
            Step::Overflow(lost) => {
                let why = format!("{} events passed over", lost.dropped);
                gap(out, &self.visitor, &why, Some(lost.oldest));
            }
        }
    }
}
