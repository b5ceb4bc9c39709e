//! `x-posthaste/events`: the event log in pages, forwards and backwards. A page ends where the log ended when it was asked
//! for, or where it is full; the answer says which.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::nouns::{AgentId, Caller, ConversationId, Event, Seq};
use posthaste_engine::views::Replay;
use posthaste_engine::{Engine, EngineError, Filter, Refusal, Start, Step};
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::{bad_params, of_engine};
use super::methods::VIA;
use super::to_wire;
use posthaste_host::Host;
use posthaste_host::caller::Identity;

/// The longest that a request waits for the first event, in milliseconds.
const LONGEST_WAIT: u64 = 25_000;
/// Events in one answer.
const MOST_EVENTS: usize = 500;
/// Reads of the database for one answer. One read looks at a bounded number of events, so a filter that matches few of
/// them needs several. A page that ends here without being full says `end: false`.
const MOST_READS: usize = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsParams {
    /// The last event that the caller knows; if absent, the end of the log.
    #[serde(default)]
    after: Option<Seq>,
    /// The latest events before this one, instead of the earliest after another.
    #[serde(default)]
    before: Option<Seq>,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    agents: Vec<AgentId>,
    #[serde(default)]
    conversation: Option<ConversationId>,
    /// How long to wait for the first event if the log has none to show, in milliseconds.
    #[serde(default)]
    wait: u64,
    #[serde(default = "usual_page")]
    limit: usize,
}

fn usual_page() -> usize {
    50
}

/// One page of the log, in order.
struct Page {
    events: Vec<Arc<Event>>,
    /// Everything between the start and this place was looked at.
    cursor: Seq,
    /// Whether the log's end (or, backwards, its beginning) was reached.
    end: bool,
}

/// The events after a place, or before one. With `wait`, the first that happens.
pub(super) async fn events(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: EventsParams,
) -> Result<Value, ErrorObject> {
    let caller = identity.caller(VIA);
    let mut parts = Vec::new();
    if !given.kinds.is_empty() {
        parts.push(Filter::Kinds(given.kinds));
    }
    if !given.agents.is_empty() {
        parts.push(Filter::Concerning(given.agents));
    }
    parts.extend(given.conversation.map(Filter::Conversation));
    let filter = Filter::All(parts);
    let limit = given.limit.clamp(1, MOST_EVENTS);
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
                    // A server that closes lets its callers go.
                    () = shared.stop().cancelled() => Ok(()),
                }
                .map_err(|error| of_engine(&error))?;
            }
            page
        }
    };
    let page = page.map_err(|error| of_engine(&error))?;
    Ok(json!({
        "events": page.events.iter().map(|event| to_wire::event(event)).collect::<Vec<_>>(),
        "cursor": page.cursor,
        "end": page.end,
        "now": to_rfc3339(posthaste_engine::stamp::now()),
    }))
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
    let patience = Duration::from_millis(millis.min(LONGEST_WAIT));
    match tokio::time::timeout(patience, feed.next()).await {
        // Nothing that matches happened up to the feed's place.
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

/// Reads on until the page is full or the place `head` is reached.
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
    for reads in 0..MOST_READS {
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
    for reads in 0..MOST_READS {
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
