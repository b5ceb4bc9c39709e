//! Methods about contacts: consent between two agents.

use posthaste_engine::nouns::{AgentId, Caller, ContactState};
use posthaste_engine::verbs::contacts::{Answer, Ask, EndContact};
use posthaste_engine::{Engine, Refusal};
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::refused;
use super::from_wire::{acting, name};
use super::table::Call;
use super::to_wire;

pub(super) async fn contacts(
    call: Call<'_>,
    given: wire::ContactsParams,
) -> Result<wire::ContactsResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let list = call.engine.read(move |view| view.contacts(&caller, &caller.agent)).await.map_err(refused)?;
    Ok(wire::ContactsResult { contacts: list.iter().map(to_wire::contact).collect() })
}

pub(super) async fn ask(call: Call<'_>, given: wire::ContactParams) -> Result<wire::Contact, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let verb = Ask { to: name(given.other)?, reason: given.reason, expires_at: None };
    Ok(to_wire::contact(&call.engine.submit(&caller, verb).await.map_err(refused)?))
}

pub(super) async fn accept(call: Call<'_>, given: wire::ContactParams) -> Result<wire::Contact, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    answer(call.engine, &caller, name(given.other)?, ContactState::Accepted).await
}

pub(super) async fn block(call: Call<'_>, given: wire::ContactParams) -> Result<wire::Contact, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let other = name(given.other)?;
    check_known(call.engine, &caller, &other).await?;
    answer(call.engine, &caller, other, ContactState::Blocked).await
}

async fn answer(
    engine: &Engine,
    caller: &Caller,
    other: AgentId,
    state: ContactState,
) -> Result<wire::Contact, ErrorObject> {
    let verb = Answer { from: other, state, expires_at: None };
    Ok(to_wire::contact(&engine.submit(caller, verb).await.map_err(refused)?))
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

pub(super) async fn end(
    call: Call<'_>,
    given: wire::ContactParams,
) -> Result<wire::ContactEndResult, ErrorObject> {
    let caller = acting(call.identity, given.agent)?;
    let with = name(given.other.clone())?;
    call.engine.submit(&caller, EndContact { with }).await.map_err(refused)?;
    Ok(wire::ContactEndResult { ended: given.other })
}
