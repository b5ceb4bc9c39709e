//! The table of the office's own methods: name, parameters, one verb or view, answer.

use posthaste_engine::nouns::{AgentId, Caller, ContactState, TokenRole};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_engine::views::{Page, SearchOrder, SearchQuery, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal, stamp};
use posthaste_wire::rpc::{ErrorObject, METHOD_NOT_FOUND};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::errors::{bad_params, denied, of_engine, of_message};
use super::from_wire::{
    InboxParams, MarkParams, RealmParams, SearchParams, SendParams, TokenCreateParams, TokenRevokeParams,
    params,
};
use super::{attachments, desk, events, people, projects, talk, to_wire};
use posthaste_host::Host;
use posthaste_host::acks;
use posthaste_host::caller::Identity;
use posthaste_host::keys;

/// The tag of what comes in this way.
pub(super) const VIA: &str = "cli";
/// The address of the person who runs the server.
const OPERATOR: &str = "operator";

pub(super) async fn call(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    method: &str,
    given: Option<&RawValue>,
) -> Result<Box<RawValue>, ErrorObject> {
    let answer = match method {
        "whoami" => Ok(whoami(engine, identity)),
        "register" => people::register(engine, identity, params(given)?).await,
        "agents" => people::agents(engine, identity, params(given)?).await,
        "agent" => people::agent(engine, identity, params(given)?).await,
        "agent.remove" => people::remove(engine, identity, params(given)?).await,
        "send" => send(shared, engine, identity, params(given)?).await,
        "inbox" => inbox(engine, identity, params(given)?).await,
        "read" => read(engine, identity, params(given)?).await,
        "ack" => ack(engine, identity, params(given)?).await,
        "search" => search(engine, identity, params(given)?).await,
        "attachment" => attachments::attachment(engine, identity, params(given)?).await,
        "message" => talk::message(engine, identity, params(given)?).await,
        "thread" => talk::thread(engine, identity, params(given)?).await,
        "conversations" => talk::conversations(engine, identity, params(given)?).await,
        "events" => events::events(shared, engine, identity, params(given)?).await,
        "reserve" => desk::reserve(shared, engine, identity, params(given)?).await,
        "release" => desk::release(shared, engine, identity, params(given)?).await,
        "reservations" => desk::reservations(shared, engine, identity, params(given)?).await,
        "contacts" => desk::contacts(engine, identity, params(given)?).await,
        "contact.ask" => desk::contact_ask(engine, identity, params(given)?).await,
        "contact.accept" => {
            desk::contact_answer(engine, identity, ContactState::Accepted, params(given)?).await
        }
        "contact.block" => {
            desk::contact_answer(engine, identity, ContactState::Blocked, params(given)?).await
        }
        "contact.end" => desk::contact_end(engine, identity, params(given)?).await,
        "nudge" => desk::nudge(shared, engine, identity, params(given)?).await,
        "hooks" => desk::hooks(shared, engine, identity).await,
        "rules" => rules(engine, identity, params(given)?).await,
        "realm.open" => realm_open(shared, engine, identity, params(given)?).await,
        "realm.list" => projects::realms(shared, engine, identity, params(given)?).await,
        "project.claim" => projects::claim(shared, engine, identity, params(given)?).await,
        "project.list" => projects::list(shared, engine, identity, params(given)?).await,
        "project.move" => projects::relocate(shared, engine, identity, params(given)?).await,
        "project.release" => projects::release(shared, engine, identity, params(given)?).await,
        "token.create" => token_create(engine, identity, params(given)?).await,
        "token.list" => token_list(engine, identity).await,
        "token.revoke" => token_revoke(engine, identity, params(given)?).await,
        _ => {
            return Err(ErrorObject::new(
                METHOD_NOT_FOUND,
                format!("there is no method x-posthaste/{method}"),
            ));
        }
    }?;
    to_raw_value(&answer).map_err(bad_params)
}

/// The caller under the name it asks for: its own, or anybody's for those who run the office.
pub(super) fn acting(identity: &Identity, agent: Option<AgentId>) -> Result<Caller, ErrorObject> {
    match agent {
        // The operator's address is another word for the name that the admin key stands for.
        Some(word) if word.as_str() == OPERATOR && identity.runs_office() => Ok(identity.caller(VIA)),
        Some(agent) if agent != identity.name && identity.role != TokenRole::Admin => {
            Err(denied("only those who run the office act for somebody else"))
        }
        Some(agent) => Ok(identity.caller_as(agent, VIA)),
        None => Ok(identity.caller(VIA)),
    }
}

fn refused(error: EngineError) -> ErrorObject {
    of_engine(&error)
}

fn whoami(engine: &Engine, identity: &Identity) -> Value {
    json!({ "name": identity.name, "role": identity.role, "realm": engine.realm() })
}

async fn send(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    mut given: SendParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.from.take())?;
    let answered = match given.in_reply_to.take() {
        Some(name) => Some(talk::named(engine, &caller, &name).await?),
        None => None,
    };
    let files = std::mem::take(&mut given.attachments);
    let mut verb = given.into_verb(answered)?;
    verb.meta = attachments::keep(shared, engine, &files).await?;
    let sent = match engine.submit(&caller, verb.clone()).await {
        // The bearer of a token that writes for the first time is entered under the token's name.
        Err(EngineError::Refused(Refusal::NoSuchAgent { agent, .. })) if agent == identity.name.as_str() => {
            people::enter_own(engine, identity).await?;
            engine.submit(&caller, verb).await
        }
        sent => sent,
    };
    Ok(to_wire::sent(&sent.map_err(refused)?))
}

async fn inbox(engine: &Engine, identity: &Identity, mut given: InboxParams) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent.take())?;
    let query = given.into_query();
    let own = caller.agent == identity.name;
    let page = engine.read(move |view| match view.inbox(&caller, &caller.agent, &query) {
        // The bearer of a token has an empty inbox until it is written to; looking enters no agent.
        Err(EngineError::Refused(Refusal::NoSuchAgent { .. })) if own || has_token(view, &caller)? => {
            Ok(Page { items: Vec::new(), next: None })
        }
        page => page,
    });
    let page = page.await.map_err(refused)?;
    let letters: Vec<Value> = page.items.iter().map(to_wire::letter).collect();
    Ok(json!({ "messages": letters, "next": page.next }))
}

/// Whether a valid token carries the name that an administrator asks about.
fn has_token(view: &View<'_>, caller: &Caller) -> Viewed<bool> {
    let (tokens, now) = (view.tokens(caller)?, stamp::now());
    Ok(tokens.iter().any(|token| token.name == caller.agent.as_str() && token.is_valid(now)))
}

async fn read(engine: &Engine, identity: &Identity, given: MarkParams) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let message = talk::named(engine, &caller, &given.message).await?;
    let verb = MarkRead { agent: caller.agent.clone(), message, unread: false };
    let delivery = engine.submit(&caller, verb).await;
    Ok(to_wire::delivery(&delivery.map_err(|error| of_message(&error, &given.message))?))
}

async fn ack(engine: &Engine, identity: &Identity, given: MarkParams) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let message = talk::named(engine, &caller, &given.message).await?;
    let delivery = acks::acknowledge(engine, &caller, message, given.response).await;
    Ok(to_wire::delivery(&delivery.map_err(|error| of_message(&error, &given.message))?))
}

async fn search(engine: &Engine, identity: &Identity, given: SearchParams) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let query = SearchQuery {
        text: given.query,
        conversation: given.conversation,
        from: given.from,
        order: if given.newest { SearchOrder::Newest } else { SearchOrder::Best },
        before: given.before,
        limit: given.limit,
        marks: None,
    };
    let found = engine.read(move |view| view.search(&caller, &query)).await.map_err(refused)?;
    let hits: Vec<Value> = found.hits.iter().map(to_wire::hit).collect();
    // Only the order of the log can be gone on with.
    let last = found.hits.last().filter(|_| given.newest && found.partial);
    Ok(json!({ "hits": hits, "partial": found.partial, "next": last.map(|hit| hit.seq) }))
}

/// The realm's rules, after changing those that are given: only those who run the office change them.
async fn rules(
    engine: &Engine,
    identity: &Identity,
    given: Map<String, Value>,
) -> Result<Value, ErrorObject> {
    let present = engine.read(|view| view.rules()).await.map_err(refused)?;
    if given.is_empty() {
        return serde_json::to_value(present).map_err(bad_params);
    }
    let mut rules = serde_json::to_value(present).map_err(bad_params)?;
    for (name, value) in given {
        match rules.get_mut(&name) {
            Some(rule) => *rule = value,
            None => return Err(bad_params(format!("there is no rule {name}"))),
        }
    }
    let rules = serde_json::from_value(rules).map_err(bad_params)?;
    let rules = engine.submit(&identity.caller(VIA), SetRules { rules }).await.map_err(refused)?;
    serde_json::to_value(rules).map_err(bad_params)
}

/// Opens a realm, making it if need be: only those who run the office make realms.
async fn realm_open(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: RealmParams,
) -> Result<Value, ErrorObject> {
    if !shared.heeds(engine, identity) {
        return Err(denied("only those who run the office make realms"));
    }
    let made = !shared.office().has_realm(&given.name);
    shared.office().realm(&given.name).await.map_err(refused)?;
    Ok(json!({ "name": given.name, "made": made }))
}

async fn token_create(
    engine: &Engine,
    identity: &Identity,
    given: TokenCreateParams,
) -> Result<Value, ErrorObject> {
    let secret = keys::new_token();
    let verb = CreateToken {
        hash: keys::hash(&secret).to_vec(),
        role: given.role,
        name: given.name,
        door: None,
        observe: given.observe,
        expires_at: given.expires_at,
    };
    let token = engine.submit(&identity.caller(VIA), verb).await.map_err(refused)?;
    let mut answer = to_wire::token(&token);
    answer["token"] = Value::String(secret);
    Ok(answer)
}

async fn token_list(engine: &Engine, identity: &Identity) -> Result<Value, ErrorObject> {
    let caller = identity.caller(VIA);
    let tokens = engine.read(move |view| view.tokens(&caller)).await.map_err(refused)?;
    Ok(json!({ "tokens": tokens.iter().map(to_wire::token).collect::<Vec<_>>() }))
}

async fn token_revoke(
    engine: &Engine,
    identity: &Identity,
    given: TokenRevokeParams,
) -> Result<Value, ErrorObject> {
    let id = match (given.id, given.token) {
        (Some(id), None) => id,
        (None, Some(token)) => {
            let hash = keys::hash(&token);
            let known = engine.read(move |view| view.token_by_hash(&hash)).await.map_err(refused)?;
            known.map(|token| token.id).ok_or_else(|| denied("there is no such token"))?
        }
        _ => return Err(bad_params("give either the id or the token")),
    };
    let verb = RevokeToken { id };
    let token = engine.submit(&identity.caller(VIA), verb).await.map_err(refused)?;
    Ok(to_wire::token(&token))
}
