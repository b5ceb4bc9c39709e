//! Methods about letters and conversations that people look at: one letter, a thread, what is going on.

use std::time::Duration;

use posthaste_engine::nouns::{
    AgentId, Caller, ConversationId, ConversationStatus, MessageId, Seq, TurnSource,
};
use posthaste_engine::views::{ConversationQuery, TurnQuery, View, Viewed};
use posthaste_engine::{Engine, Filter, Start, Step};
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::of_engine;
use super::methods::{VIA, acting};
use super::to_wire;
use crate::caller::Identity;

/// The longest that a question for events waits for the first.
const LONGEST_WAIT: u64 = 25_000;
/// Events in one answer.
const MOST_EVENTS: usize = 500;
/// Letters and turns of a thread that are shown.
const MOST_SAID: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageParams {
    #[serde(default)]
    agent: Option<AgentId>,
    message: MessageId,
}

/// One letter with what became of it.
pub(super) async fn message(
    engine: &Engine,
    identity: &Identity,
    given: MessageParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let tracked =
        engine.read(move |view| view.message(&caller, given.message)).await.map_err(|e| of_engine(&e))?;
    let mut value = to_wire::message(&tracked.message);
    value["deliveries"] = tracked.deliveries.iter().map(to_wire::delivery).collect();
    Ok(value)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadParams {
    #[serde(default)]
    agent: Option<AgentId>,
    /// A conversation, or a letter of it.
    id: ConversationId,
}

/// The letters and turns of a conversation, in order. A letter that began a conversation without being part of it (a
/// conversation is named after the letter that was answered first) stands at its head.
pub(super) async fn thread(
    engine: &Engine,
    identity: &Identity,
    given: ThreadParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let answer = engine.read(move |view| said_in(view, &caller, &given.id)).await;
    answer.map_err(|error| of_engine(&error))
}

fn said_in(view: &View<'_>, caller: &Caller, id: &ConversationId) -> Viewed<Value> {
    let letter = |id: &ConversationId| {
        let id: Option<MessageId> = id.as_str().parse().ok().map(MessageId);
        id.and_then(|id| view.message(caller, id).ok()).map(|tracked| tracked.message)
    };
    let asked = letter(id);
    let conversation =
        asked.as_ref().and_then(|letter| letter.conversation.clone()).unwrap_or_else(|| id.clone());
    let head = letter(&conversation);
    let mut said: Vec<(Seq, Value)> = Vec::new();
    let alone = head.into_iter().chain(asked).map(|letter| (letter.seq, to_wire::message(&letter)));
    said.extend(alone);
    let page = view.correspondence(caller, &conversation, 0, MOST_SAID)?;
    let mut more = page.next.is_some();
    said.extend(page.items.iter().map(|letter| (letter.message.seq, to_wire::message(&letter.message))));
    let mut about = Value::Null;
    if let Ok(found) = view.conversation(caller, &conversation) {
        about = to_wire::conversation(&found);
        let query = TurnQuery { limit: MOST_SAID, ..TurnQuery::default() };
        if let Ok(turns) = view.turns(caller, &conversation, &query) {
            more |= turns.next.is_some();
            let spoken = turns.items.iter().filter(|turn| !matches!(turn.source, TurnSource::Intercepted(_)));
            said.extend(spoken.map(|turn| (turn.seq, to_wire::turn(turn))));
        }
    }
    said.sort_by_key(|(seq, _)| *seq);
    said.dedup_by_key(|(seq, _)| *seq);
    if said.is_empty() && about.is_null() {
        return Err(posthaste_engine::Refusal::NoSuchConversation { conversation }.into());
    }
    let said: Vec<Value> = said.into_iter().map(|(_, value)| value).collect();
    Ok(json!({ "id": conversation, "conversation": about, "said": said, "more": more }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationsParams {
    #[serde(default)]
    agent: Option<AgentId>,
    #[serde(default)]
    active: bool,
    #[serde(default)]
    cursor: Option<Seq>,
    #[serde(default = "usual_page")]
    limit: usize,
}

fn usual_page() -> usize {
    50
}

pub(super) async fn conversations(
    engine: &Engine,
    identity: &Identity,
    given: ConversationsParams,
) -> Result<Value, ErrorObject> {
    // An agent that is named sees its own; those who run the office see all.
    let participant = given.agent.clone();
    let caller = acting(identity, given.agent)?;
    let query = ConversationQuery {
        statuses: if given.active { vec![ConversationStatus::Active] } else { Vec::new() },
        participant,
        newest_first: true,
        cursor: given.cursor,
        limit: given.limit,
        ..ConversationQuery::default()
    };
    let page = engine
        .read(move |view| view.conversations(&caller, &query))
        .await
        .map_err(|error| of_engine(&error))?;
    let list: Vec<Value> = page.items.iter().map(to_wire::conversation).collect();
    Ok(json!({ "conversations": list, "next": page.next }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsParams {
    /// The last event that is known; with what happens next if absent.
    #[serde(default)]
    after: Option<Seq>,
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    agents: Vec<AgentId>,
    #[serde(default)]
    conversation: Option<ConversationId>,
    /// How long to wait for the first event, in milliseconds.
    #[serde(default)]
    wait: u64,
    #[serde(default = "usual_page")]
    limit: usize,
}

/// What has happened since, and what happens while the caller waits.
pub(super) async fn events(
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
    let start = given.after.map_or(Start::Now, Start::After);
    let limit = given.limit.clamp(1, MOST_EVENTS);
    let mut feed =
        engine.follow(&caller, Filter::All(parts), start, limit).await.map_err(|error| of_engine(&error))?;
    let mut found = Vec::new();
    let mut cursor = None;
    // What is there comes at once; after that the first that happens ends the waiting.
    let mut patience = Duration::from_millis(given.wait.min(LONGEST_WAIT)).max(Duration::from_millis(20));
    let mut room = engine.limits().page_bytes;
    while found.len() < limit && room > 0 {
        let Ok(step) = tokio::time::timeout(patience, feed.next()).await else { break };
        match step.map_err(|error| of_engine(&error))? {
            Step::Event { event, .. } => {
                cursor = Some(event.seq);
                room = room.saturating_sub(event.weight());
                found.push(to_wire::event(&event));
                patience = Duration::from_millis(5);
            }
            Step::Overflow(_) => break,
        }
    }
    // A page that is full ends at its last event; else everything up to the feed's place has been looked at.
    let cursor =
        if found.len() == limit || room == 0 { cursor.unwrap_or_else(|| feed.place()) } else { feed.place() };
    Ok(json!({ "events": found, "cursor": cursor, "now": to_rfc3339(posthaste_engine::stamp::now()) }))
}
