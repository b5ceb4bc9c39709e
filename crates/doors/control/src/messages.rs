//! Methods about messages: sending, listing, reading and acknowledging them.

use posthaste_engine::nouns::{Caller, MessageId};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::views::{Named, Page, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal, stamp};
use posthaste_host::acks;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::{ambiguous, no_message, of_message, refused};
use super::from_wire::{self, acting};
use super::table::Call;
use super::{agents, attachments, to_wire};

pub(super) async fn send(
    call: Call<'_>,
    mut given: wire::SendParams,
) -> Result<wire::SendResult, ErrorObject> {
    let Call { host, engine, identity } = call;
    let caller = acting(identity, given.from.take())?;
    let in_reply_to = match given.in_reply_to.take() {
        Some(name) => Some(find(engine, &caller, &name).await?),
        None => None,
    };
    let files = std::mem::take(&mut given.attachments);
    let mut verb = from_wire::message(given, in_reply_to)?;
    verb.meta = attachments::keep(host, engine, files).await?;
    let sent = match engine.submit(&caller, verb.clone()).await {
        // The bearer of a token that writes for the first time is entered under the token's name.
        Err(EngineError::Refused(Refusal::NoSuchAgent { agent, .. })) if agent == identity.name.as_str() => {
            agents::enter_bearer(call).await?;
            engine.submit(&caller, verb).await
        }
        sent => sent,
    };
    Ok(to_wire::sent(&sent.map_err(refused)?))
}

pub(super) async fn inbox(
    call: Call<'_>,
    mut given: wire::InboxParams,
) -> Result<wire::InboxResult, ErrorObject> {
    let caller = acting(call.identity, given.agent.take())?;
    let query = from_wire::inbox_query(given);
    let is_own = caller.agent == call.identity.name;
    let page = call.engine.read(move |view| match view.inbox(&caller, &caller.agent, &query) {
        // The bearer of a token has an empty inbox until the first message to it; reading the inbox enters no agent.
        Err(EngineError::Refused(Refusal::NoSuchAgent { .. })) if is_own || has_token(view, &caller)? => {
            Ok(Page { items: Vec::new(), next: None })
        }
        page => page,
    });
    let page = page.await.map_err(refused)?;
    Ok(wire::InboxResult {
        messages: page.items.iter().map(to_wire::inbox_message).collect(),
        next: page.next,
    })
}

/// Whether a valid token carries the name that an administrator asks about.
fn has_token(view: &View<'_>, caller: &Caller) -> Viewed<bool> {
    let (tokens, now) = (view.tokens(caller)?, stamp::now());
    Ok(tokens.iter().any(|token| token.name == caller.agent.as_str() && token.is_valid(now)))
}

pub(super) async fn read(call: Call<'_>, given: wire::MarkParams) -> Result<wire::Delivery, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let message = find(call.engine, &caller, &given.message).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = call.engine.submit(&caller, verb).await;
    Ok(to_wire::delivery(&delivery.map_err(|error| of_message(&error, &given.message))?))
}

pub(super) async fn ack(call: Call<'_>, given: wire::MarkParams) -> Result<wire::Delivery, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let message = find(call.engine, &caller, &given.message).await?;
    let delivery = acks::acknowledge(call.engine, &caller, message, given.response).await;
    Ok(to_wire::delivery(&delivery.map_err(|error| of_message(&error, &given.message))?))
}

pub(super) async fn message(
    call: Call<'_>,
    given: wire::MessageParams,
) -> Result<wire::MessageResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let id = find(call.engine, &caller, &given.message).await?;
    let tracked = call.engine.read(move |view| view.message(&caller, id)).await;
    let tracked = tracked.map_err(|error| of_message(&error, &given.message))?;
    Ok(wire::MessageResult {
        message: to_wire::message(&tracked.message),
        deliveries: tracked.deliveries.iter().map(to_wire::delivery).collect(),
    })
}

/// The message that an id, the beginning of one or a number means. A whole id is not looked up: the verb or view does that.
async fn find(engine: &Engine, caller: &Caller, word: &str) -> Result<MessageId, ErrorObject> {
    look_up(engine, caller, word).await?.ok_or_else(|| no_message(word))
}

/// The same, or `None` if no message is meant.
pub(super) async fn look_up(
    engine: &Engine,
    caller: &Caller,
    word: &str,
) -> Result<Option<MessageId>, ErrorObject> {
    if let Ok(id) = word.parse() {
        return Ok(Some(MessageId(id)));
    }
    let (asking, name) = (caller.clone(), word.to_owned());
    let found = engine.read(move |view| view.message_named(&asking, &name)).await;
    match found.map_err(refused)? {
        Named::One(id) => Ok(Some(id)),
        Named::None => Ok(None),
        Named::Several(candidates) => {
            let listed: Vec<String> =
                candidates.iter().map(|(id, number)| format!("{} (number {number})", id.0)).collect();
            Err(ambiguous(word, &listed))
        }
    }
}
