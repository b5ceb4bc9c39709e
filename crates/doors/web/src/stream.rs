//! The live stream: rows of history as server-sent events. A browser that lost its connection says where it was, and
//! goes on from there; where that is too far back, or in another history, it is told of the gap.

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

use super::answers::Trouble;
use super::live::{self, Wanted};
use super::query::Given;
use super::visitor::Visitor;

/// A comment this often keeps intermediaries from closing a quiet stream, and tells us of a browser that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Who is further behind than this is shown a gap instead of everything: nobody reads that much at once.
const FURTHEST: Seq = 2_000;
/// Rows that are ready go out together.
const TOGETHER: usize = 64;
const BUFFER: usize = 1_000;

/// `GET /ui/live/stream`.
pub(super) async fn events(visitor: Visitor, headers: HeaderMap) -> Response {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let wanted = match Wanted::read(&given) {
        Ok(wanted) => wanted,
        Err(trouble) => return trouble.into_response(),
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
            visitor.shared.while_good(&visitor.engine, visitor.pass.as_ref(), answer)
        }
        Err(error) => Trouble::from(error).into_response(),
    }
}

struct Flow {
    visitor: Visitor,
    history: String,
    feed: Feed,
    stop: CancellationToken,
    /// What is said first.
    greeting: Option<String>,
}

async fn open(visitor: Visitor, wanted: Wanted, last: Option<&str>) -> Result<Flow, EngineError> {
    let (history, head) = visitor.read(|view, _| Ok((view.history()?, view.head()?))).await?;
    let asked = last.and_then(|id| {
        let (name, place) = id.rsplit_once(':')?;
        Some((name == history, place.parse::<Seq>().ok()?))
    });
    let mut greeting = String::new();
    sse::write_retry(&mut greeting, 2_000);
    let start = match asked {
        None => Start::Now,
        Some((true, place)) if (0..=head).contains(&place) && head - place <= FURTHEST => Start::After(place),
        Some((true, place)) if (0..=head).contains(&place) => {
            gap(&mut greeting, &visitor, &format!("{} events passed meanwhile", head - place), Some(place));
            Start::After(head)
        }
        Some(_) => {
            gap(&mut greeting, &visitor, "the office has another history now", None);
            Start::After(head)
        }
    };
    sse::write_comment(&mut greeting, "following");
    let feed = match visitor.engine.follow(&visitor.caller(), wanted.filter(), start, BUFFER).await {
        // The history may have moved on between the two looks, never back.
        Err(EngineError::Refused(Refusal::StaleCursor)) => {
            visitor.engine.follow(&visitor.caller(), wanted.filter(), Start::Now, BUFFER).await?
        }
        other => other?,
    };
    let stop = visitor.shared.stop().clone();
    Ok(Flow { visitor, history, feed, stop, greeting: Some(greeting) })
}

fn gap(out: &mut String, visitor: &Visitor, why: &str, place: Option<Seq>) {
    let row = html! {
        li.row.gap {
            "— " (why)
            @if let Some(place) = place { " · " a href=(visitor.to(&format!("/live?before={}", place + 100))) { "look back" } }
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
        for _ in 1..TOGETHER {
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
