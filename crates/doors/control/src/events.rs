//! The method that reads the event log in pages, forwards and backwards. A page ends where the log ended at the time of
//! the request, or where it is full; the result says which.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::nouns::{Caller, Event, Seq};
use posthaste_engine::views::Replay;
use posthaste_engine::{Engine, EngineError, Filter, Refusal, Start, Step, stamp};
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;

use super::errors::{bad_params, refused};
use super::from_wire::{name, optional};
use super::table::Call;
use super::{VIA, to_wire};

/// The longest that a request waits for the first event, in milliseconds.
const MAX_WAIT_MS: u64 = 25_000;
/// Events in one result.
const MAX_EVENTS: usize = 500;
/// Reads of the database for one result. One read looks at a bounded number of events, so a filter that matches few of
/// them needs several. A page that ends here without being full says `end: false`.
const MAX_READS: usize = 10;

/// One page of the log, in order.
struct Page {
    events: Vec<Arc<Event>>,
    /// All events between the start and this position were looked at.
    cursor: Seq,
    /// Whether the log's end (or, backwards, its beginning) was reached.
    end: bool,
}

/// The events after a position, or before one. With `wait`, the first that happens.
pub(super) async fn events(
    call: Call<'_>,
    given: wire::EventsParams,
) -> Result<wire::EventsResult, ErrorObject> {
    let (engine, caller) = (call.engine, call.identity.caller(VIA));
    let mut parts = Vec::new();
    if !given.kinds.is_empty() {
        parts.push(Filter::Kinds(given.kinds));
    }
    if !given.agents.is_empty() {
        parts.push(Filter::Concerning(given.agents.into_iter().map(name).collect::<Result<_, _>>()?));
    }
    parts.extend(optional(given.conversation)?.map(Filter::Conversation));
    let filter = Filter::All(parts);
    let limit = given.limit.0.clamp(1, MAX_EVENTS);
    let page = match (given.before, given.after) {
        (Some(_), Some(_)) => return Err(bad_params("give `after` or `before`, not both")),
        (Some(before), None) => backwards(engine, &caller, &filter, before, limit).await,
        (None, after) => {
            let mut page = forwards(engine, &caller, &filter, after, limit).await;
            if let Ok(page) = &mut page
                && given.wait > 0
                && page.events.is_empty()
                && page.end
            {
                tokio::select! {
                    waited = wait(engine, &caller, &filter, page, limit, given.wait) => waited,
                    // A server that shuts down answers its callers.
                    () = call.host.stop().cancelled() => Ok(()),
                }
                .map_err(refused)?;
            }
            page
        }
    };
    let page = page.map_err(refused)?;
    Ok(wire::EventsResult {
        events: page.events.iter().map(|event| to_wire::event(event)).collect(),
        cursor: page.cursor,
        end: page.end,
        now: to_rfc3339(stamp::now()),
    })
}

async fn forwards(
    engine: &Engine,
    caller: &Caller,
    filter: &Filter,
    after: Option<Seq>,
    limit: usize,
) -> Result<Page, EngineError> {
    let head = engine.read(|view| view.head()).await?;
    if after.is_some_and(|after| !(0..=head).contains(&after)) {
        return Err(Refusal::StaleCursor.into());
    }
    let mut page = Page { events: Vec::new(), cursor: after.unwrap_or(head), end: false };
    fill(engine, caller, filter, &mut page, head, limit).await?;
    Ok(page)
}

/// Waits for the first event after an empty page that reached the end of the log.
async fn wait(
    engine: &Engine,
    caller: &Caller,
    filter: &Filter,
    page: &mut Page,
    limit: usize,
    millis: u64,
) -> Result<(), EngineError> {
    let mut feed = engine.follow(caller, filter.clone(), Start::After(page.cursor), limit).await?;
    let timeout = Duration::from_millis(millis.min(MAX_WAIT_MS));
    match tokio::time::timeout(timeout, feed.next()).await {
        // No event up to the feed's position matches.
        Err(_) => page.cursor = feed.seq(),
        Ok(step) => {
            if let Step::Event { event, .. } = step? {
                page.cursor = event.seq;
                page.events.push(event);
            }
            let head = engine.read(|view| view.head()).await?;
            fill(engine, caller, filter, page, head, limit).await?;
        }
    }
    Ok(())
}

/// Continues to read until the page is full or the position `head` is reached.
async fn fill(
    engine: &Engine,
    caller: &Caller,
    filter: &Filter,
    page: &mut Page,
    head: Seq,
    limit: usize,
) -> Result<(), EngineError> {
    let mut room = engine.limits().page_bytes;
    page.end = page.cursor >= head;
    for reads in 0..MAX_READS {
        if page.end || page.events.len() >= limit || room == 0 {
            break;
        }
        let (caller, filter) = (caller.clone(), filter.clone());
        let (cursor, wanted) = (page.cursor, limit - page.events.len());
        let replay = engine.read(move |view| view.events(&caller, cursor, &filter, wanted)).await;
        let Some(replay) = affordable(replay, reads)? else { break };
        page.cursor = replay.cursor;
        page.end = !replay.more || page.cursor >= head;
        room = left(room, &replay);
        page.events.extend(replay.events);
    }
    Ok(())
}

async fn backwards(
    engine: &Engine,
    caller: &Caller,
    filter: &Filter,
    before: Seq,
    limit: usize,
) -> Result<Page, EngineError> {
    let mut room = engine.limits().page_bytes;
    let mut page = Page { events: Vec::new(), cursor: before, end: before <= 1 };
    for reads in 0..MAX_READS {
        if page.end || page.events.len() >= limit || room == 0 {
            break;
        }
        let (caller, filter) = (caller.clone(), filter.clone());
        let (cursor, wanted) = (page.cursor, limit - page.events.len());
        let replay = engine.read(move |view| view.earlier(&caller, cursor, &filter, wanted)).await;
        let Some(replay) = affordable(replay, reads)? else { break };
        page.cursor = replay.cursor;
        page.end = !replay.more;
        room = left(room, &replay);
        // Each read is in order, and goes before the one that came later in the log.
        page.events.splice(0..0, replay.events);
    }
    Ok(page)
}

/// A read, or nothing if the request has used up its budget: then what was read before is the page.
fn affordable(read: Result<Replay, EngineError>, reads: usize) -> Result<Option<Replay>, EngineError> {
    match read {
        Err(EngineError::Refused(Refusal::TooCostly { .. })) if reads > 0 => Ok(None),
        read => read.map(Some),
    }
}

fn left(room: usize, replay: &Replay) -> usize {
    replay.events.iter().fold(room, |room, event| room.saturating_sub(event.weight()))
}
