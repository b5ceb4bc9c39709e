//! Methods about conversations: the list of them, and what was said in one.

use posthaste_engine::nouns::{Caller, ConversationId, ConversationStatus, MessageId, Seq, TurnSource};
use posthaste_engine::views::{ConversationQuery, TurnQuery, View, Viewed};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::{bad_params, of_engine, refused};
use super::from_wire::{acting, name, optional};
use super::table::Call;
use super::{messages, to_wire};

/// Messages and turns of a thread that are listed.
const MAX_SAID: usize = 1_000;

/// The messages and turns of a conversation. A message that began a conversation without being part of it (a conversation
/// is named after the message that was answered first) comes first.
pub(super) async fn thread(
    call: Call<'_>,
    given: wire::ThreadParams,
) -> Result<wire::ThreadResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let id: ConversationId = name(given.id)?;
    let (asking, named) = (caller.clone(), id.clone());
    match call.engine.read(move |view| said_in(view, &asking, &named)).await {
        Err(EngineError::Refused(error @ Refusal::NoSuchConversation { .. })) => {
            // No conversation has that id: it may be a message's number or the beginning of its id.
            let Some(message) = messages::look_up(call.engine, &caller, id.as_str()).await? else {
                return Err(of_engine(&error.into()));
            };
            let id = ConversationId::new(message.0.to_string()).map_err(bad_params)?;
            call.engine.read(move |view| said_in(view, &caller, &id)).await.map_err(refused)
        }
        answer => answer.map_err(refused),
    }
}

fn said_in(view: &View<'_>, caller: &Caller, id: &ConversationId) -> Viewed<wire::ThreadResult> {
    let message = |id: &ConversationId| {
        let id: Option<MessageId> = id.as_str().parse().ok().map(MessageId);
        id.and_then(|id| view.message(caller, id).ok()).map(|tracked| tracked.message)
    };
    let asked = message(id);
    let conversation =
        asked.as_ref().and_then(|message| message.conversation.clone()).unwrap_or_else(|| id.clone());
    let head = message(&conversation);
    let mut said: Vec<(Seq, wire::Said)> = Vec::new();
    let alone = head.iter().chain(&asked);
    said.extend(alone.map(|message| (message.seq, wire::Said::Message(to_wire::message(message)))));
    let page = view.correspondence(caller, &conversation, 0, MAX_SAID)?;
    let mut more = page.next.is_some();
    let written = page.items.iter().map(|found| &found.message);
    said.extend(written.map(|message| (message.seq, wire::Said::Message(to_wire::message(message)))));
    let mut about = None;
    if let Ok(found) = view.conversation(caller, &conversation) {
        about = Some(to_wire::conversation(&found));
        let query = TurnQuery { limit: MAX_SAID, ..TurnQuery::default() };
        if let Ok(turns) = view.turns(caller, &conversation, &query) {
            more |= turns.next.is_some();
            let spoken = turns.items.iter().filter(|turn| !matches!(turn.source, TurnSource::Intercepted(_)));
            said.extend(spoken.map(|turn| (turn.seq, wire::Said::Turn(to_wire::turn(turn)))));
        }
    }
    said.sort_by_key(|(seq, _)| *seq);
    said.dedup_by_key(|(seq, _)| *seq);
    if said.is_empty() && about.is_none() {
        return Err(Refusal::NoSuchConversation { conversation }.into());
    }
    Ok(wire::ThreadResult {
        id: conversation.to_string(),
        conversation: about,
        said: said.into_iter().map(|(_, said)| said).collect(),
        more,
    })
}

pub(super) async fn conversations(
    call: Call<'_>,
    given: wire::ConversationsParams,
) -> Result<wire::ConversationsResult, ErrorObject> {
    // The conversations of the agent that is named; without one, all that the caller may see.
    let participant = optional(given.agent.clone())?;
    let caller = acting(call.identity, given.agent)?;
    let query = ConversationQuery {
        statuses: if given.active { vec![ConversationStatus::Active] } else { Vec::new() },
        participant,
        newest_first: true,
        cursor: given.cursor,
        limit: given.limit.0,
        ..ConversationQuery::default()
    };
    let page = call.engine.read(move |view| view.conversations(&caller, &query)).await.map_err(refused)?;
    Ok(wire::ConversationsResult {
        conversations: page.items.iter().map(to_wire::conversation).collect(),
        next: page.next,
    })
}
