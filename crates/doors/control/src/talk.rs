//! Methods about messages and conversations that people look at: one message, a thread, the list of conversations.

use posthaste_engine::nouns::{
    AgentId, Caller, ConversationId, ConversationStatus, MessageId, Seq, TurnSource,
};
use posthaste_engine::views::{ConversationQuery, Named, TurnQuery, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal};
use posthaste_wire::rpc::ErrorObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::{ambiguous, bad_params, no_message, of_engine, of_message};
use super::methods::acting;
use super::to_wire;
use posthaste_host::caller::Identity;

/// Letters and turns of a thread that are shown.
const MOST_SAID: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageParams {
    #[serde(default)]
    agent: Option<AgentId>,
    /// An id, the beginning of one, or a number.
    message: String,
}

/// One letter with what became of it.
pub(super) async fn message(
    engine: &Engine,
    identity: &Identity,
    given: MessageParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let id = named(engine, &caller, &given.message).await?;
    let tracked = engine.read(move |view| view.message(&caller, id)).await;
    let tracked = tracked.map_err(|error| of_message(&error, &given.message))?;
    let mut value = to_wire::message(&tracked.message);
    value["deliveries"] = tracked.deliveries.iter().map(to_wire::delivery).collect();
    Ok(value)
}

/// The message that an id, the beginning of one or a number means. A whole id is for the verb or view to look up.
pub(super) async fn named(engine: &Engine, caller: &Caller, word: &str) -> Result<MessageId, ErrorObject> {
    find_named(engine, caller, word).await?.ok_or_else(|| no_message(word))
}

/// The same, or nothing if no message is called that.
async fn find_named(engine: &Engine, caller: &Caller, word: &str) -> Result<Option<MessageId>, ErrorObject> {
    if let Ok(id) = word.parse() {
        return Ok(Some(MessageId(id)));
    }
    let (asking, name) = (caller.clone(), word.to_owned());
    let found = engine.read(move |view| view.message_named(&asking, &name)).await;
    match found.map_err(|error| of_engine(&error))? {
        Named::One(id) => Ok(Some(id)),
        Named::None => Ok(None),
        Named::Several(candidates) => {
            let listed: Vec<String> =
                candidates.iter().map(|(id, number)| format!("{} (number {number})", id.0)).collect();
            Err(ambiguous(word, &listed))
        }
    }
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
    let (asking, id) = (caller.clone(), given.id.clone());
    match engine.read(move |view| said_in(view, &asking, &id)).await {
        Err(EngineError::Refused(error @ Refusal::NoSuchConversation { .. })) => {
            // No conversation of that name: perhaps a message's number or the beginning of its id.
            let Some(message) = find_named(engine, &caller, given.id.as_str()).await? else {
                return Err(of_engine(&error.into()));
            };
            let id = ConversationId::new(message.0.to_string()).map_err(bad_params)?;
            engine.read(move |view| said_in(view, &caller, &id)).await.map_err(|error| of_engine(&error))
        }
        answer => answer.map_err(|error| of_engine(&error)),
    }
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
        return Err(Refusal::NoSuchConversation { conversation }.into());
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
