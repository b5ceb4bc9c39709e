//! Methods about what agents hold and whom they know: reservations and contacts; and about the mail directory beside the
//! realm: nudges and hooks.

use posthaste_engine::nouns::{AgentId, Audience, Caller, ContactState, Millis, Seq};
use posthaste_engine::verbs::contacts::{Answer, Ask, EndContact};
use posthaste_engine::verbs::reservations::{Release, Reserve, Which};
use posthaste_engine::views::ReservationQuery;
use posthaste_engine::{Engine, EngineError, Refusal};
use posthaste_wire::rpc::ErrorObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::{bad_params, denied, of_engine};
use super::methods::{VIA, acting};
use super::to_wire;
use posthaste_host::caller::Identity;
use std::sync::Arc;

use posthaste_host::Host;
use posthaste_host::projects::alias;
use posthaste_host::services::{MailSignals, NudgeDraft, SignalError};

fn refused(error: EngineError) -> ErrorObject {
    of_engine(&error)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReserveParams {
    #[serde(default)]
    agent: Option<AgentId>,
    /// The holder's own name for it.
    #[serde(default)]
    key: Option<String>,
    scope: String,
    /// The directory that the caller works in: the scope `project` means its project.
    #[serde(default)]
    directory: Option<String>,
    paths: Vec<String>,
    #[serde(default = "yes")]
    exclusive: bool,
    #[serde(default)]
    reason: Option<String>,
    expires_at: Millis,
}

fn yes() -> bool {
    true
}

pub(super) async fn reserve(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: ReserveParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let verb = Reserve {
        key: given.key,
        scope: scope_here(shared, engine, &given.scope, given.directory.as_deref()).await?,
        paths: given.paths,
        exclusive: given.exclusive,
        reason: given.reason,
        issued_at: None,
        expires_at: given.expires_at,
        audience: Audience::Observers,
        meta: None,
    };
    let reserved = engine.submit(&caller, verb).await.map_err(refused)?;
    let mut value = to_wire::reservation(&reserved.reservation);
    value["conflicts"] = reserved.conflicts.iter().map(to_wire::conflict).collect();
    Ok(value)
}

/// A scope as it is compared. Where the caller works in one of several projects of the realm, `project` is that one.
async fn scope_here(
    shared: &Host,
    engine: &Engine,
    scope: &str,
    directory: Option<&str>,
) -> Result<String, ErrorObject> {
    if scope == "project"
        && let Some(directory) = directory.and_then(alias)
    {
        let found = shared.find_project(engine.realm(), &directory).await.map_err(refused)?;
        if let Some(found) = found.filter(|found| found.realm == *engine.realm()) {
            return Ok(found.scope());
        }
    }
    shared.scope_in(engine.realm(), scope).await.map_err(refused)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseParams {
    #[serde(default)]
    agent: Option<AgentId>,
    /// Which; all in the scope if neither numbers nor names are given.
    #[serde(default)]
    ids: Vec<Seq>,
    /// Which, by the holder's own names for them.
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    scope: Option<String>,
    /// The directory that the caller works in: the scope `project` means its project.
    #[serde(default)]
    directory: Option<String>,
}

pub(super) async fn release(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: ReleaseParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let named = given.keys.into_iter().map(Which::Key);
    let mut which: Vec<Which> = given.ids.into_iter().map(Which::Number).chain(named).collect();
    if which.is_empty() {
        let scope = match given.scope {
            Some(scope) => Some(scope_here(shared, engine, &scope, given.directory.as_deref()).await?),
            None => None,
        };
        let asking = caller.clone();
        let query =
            ReservationQuery { scope, owner: Some(caller.agent.clone()), limit: 1_000, ..Default::default() };
        let held = engine.read(move |view| view.reservations(&asking, &query)).await.map_err(refused)?;
        which = held.items.iter().map(|held| Which::Number(held.seq)).collect();
        if which.is_empty() {
            return Ok(json!({ "released": [] }));
        }
    }
    let verb = Release { which, owner: None };
    let released = engine.submit(&caller, verb).await.map_err(refused)?;
    Ok(json!({ "released": released.iter().map(to_wire::reservation).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReservationsParams {
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    owner: Option<AgentId>,
    #[serde(default)]
    ended: bool,
    #[serde(default)]
    after: Seq,
    #[serde(default = "usual_page")]
    limit: usize,
}

/// The scope that is asked for, as it is compared.
async fn scope_of(
    shared: &Host,
    engine: &Engine,
    given: Option<String>,
) -> Result<Option<String>, ErrorObject> {
    match given {
        None => Ok(None),
        Some(scope) => shared.scope_in(engine.realm(), &scope).await.map(Some).map_err(refused),
    }
}

fn usual_page() -> usize {
    50
}

pub(super) async fn reservations(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: ReservationsParams,
) -> Result<Value, ErrorObject> {
    let caller = identity.caller(VIA);
    let query = ReservationQuery {
        scope: scope_of(shared, engine, given.scope).await?,
        owner: given.owner,
        ended: given.ended,
        after: given.after,
        limit: given.limit,
    };
    let page = engine.read(move |view| view.reservations(&caller, &query)).await.map_err(refused)?;
    let list: Vec<Value> = page.items.iter().map(to_wire::reservation).collect();
    Ok(json!({ "reservations": list, "next": page.next }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContactsParams {
    #[serde(default)]
    agent: Option<AgentId>,
}

pub(super) async fn contacts(
    engine: &Engine,
    identity: &Identity,
    given: ContactsParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let list = engine.read(move |view| view.contacts(&caller, &caller.agent)).await.map_err(refused)?;
    Ok(json!({ "contacts": list.iter().map(to_wire::contact).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContactParams {
    #[serde(default)]
    agent: Option<AgentId>,
    other: AgentId,
    #[serde(default)]
    reason: Option<String>,
}

pub(super) async fn contact_ask(
    engine: &Engine,
    identity: &Identity,
    given: ContactParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    let verb = Ask { to: given.other, reason: given.reason, expires_at: None };
    Ok(to_wire::contact(&engine.submit(&caller, verb).await.map_err(refused)?))
}

pub(super) async fn contact_answer(
    engine: &Engine,
    identity: &Identity,
    state: ContactState,
    given: ContactParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    if state == ContactState::Blocked {
        check_known(engine, &caller, &given.other).await?;
    }
    let verb = Answer { from: given.other, state, expires_at: None };
    Ok(to_wire::contact(&engine.submit(&caller, verb).await.map_err(refused)?))
}

/// Refuses to block a name that the caller has no reason to know: it is most likely misspelled. An agent of another realm
/// has no entry here.
async fn check_known(engine: &Engine, caller: &Caller, other: &AgentId) -> Result<(), ErrorObject> {
    let (caller, other) = (caller.clone(), other.clone());
    let known = engine.read(move |view| {
        let known = view.contacts(&caller, &caller.agent);
        if other.as_str().contains('@')
            || view.entry(&caller, &other).is_ok()
            || known?.iter().any(|contact| contact.from == other)
        {
            return Ok(());
        }
        let near = view.similar_names(&caller, other.as_str())?;
        Err(Refusal::NoSuchAgent { agent: other.to_string(), near }.into())
    });
    known.await.map_err(refused)
}

pub(super) async fn contact_end(
    engine: &Engine,
    identity: &Identity,
    given: ContactParams,
) -> Result<Value, ErrorObject> {
    let caller = acting(identity, given.agent)?;
    engine.submit(&caller, EndContact { with: given.other.clone() }).await.map_err(refused)?;
    Ok(json!({ "ended": given.other }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NudgeParams {
    #[serde(default)]
    from: Option<AgentId>,
    to: AgentId,
    #[serde(default = "health_check", rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    requires_response: bool,
}

fn health_check() -> String {
    "health_check".to_owned()
}

/// Nudges an agent of the mail directory. The bridge sees the file and writes it into the history.
pub(super) async fn nudge(
    shared: &Host,
    engine: &Engine,
    identity: &Identity,
    given: NudgeParams,
) -> Result<Value, ErrorObject> {
    let signals = signals_of(shared, engine)?;
    let caller = acting(identity, given.from)?;
    let to = given.to.clone();
    let written = tokio::task::spawn_blocking(move || {
        let draft = NudgeDraft {
            from: caller.agent.as_str(),
            kind: &given.kind,
            message: &given.message,
            requires_response: given.requires_response,
        };
        signals.nudge(given.to.as_str(), draft)
    })
    .await;
    match written {
        Ok(Ok(nudge)) => {
            let mut value = nudge.to_value();
            value["to"] = json!(to);
            Ok(value)
        }
        Ok(Err(SignalError::Invalid(why))) => Err(bad_params(why)),
        Ok(Err(SignalError::Failed(why))) => Err(denied(&why)),
        Err(error) => Err(bad_params(error)),
    }
}

/// What the agents of the mail directory are to work on.
pub(super) async fn hooks(shared: &Host, engine: &Engine, identity: &Identity) -> Result<Value, ErrorObject> {
    let signals = signals_of(shared, engine)?;
    let is_admin = identity.role == posthaste_engine::nouns::TokenRole::Admin;
    let me = identity.name.clone();
    let hooks = tokio::task::spawn_blocking(move || signals.hooks()).await.map_err(bad_params)?;
    // A hook is between its agent and whoever runs the place.
    let shown = hooks.iter().filter(|hook| is_admin || hook.agent == me.as_str());
    Ok(json!({ "hooks": shown.map(posthaste_wire::files::signals::Hook::to_value).collect::<Vec<_>>() }))
}

fn signals_of(shared: &Host, engine: &Engine) -> Result<Arc<dyn MailSignals>, ErrorObject> {
    shared
        .mail_signals(engine.realm())
        .ok_or_else(|| denied("this realm has no mail directory with hooks and nudges beside it"))
}
