//! Methods about the address book: who is in it and connected, entering and removing agents.

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, TokenRole};
use posthaste_engine::verbs::agents::{Existing, Register, Unregister};
use posthaste_engine::views::{AgentQuery, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal, stamp};
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;
use serde::Deserialize;
use serde_json::{Value, json};

use super::errors::{denied, of_engine};
use super::from_wire::{AgentsParams, RegisterParams};
use super::methods::VIA;
use super::to_wire;
use posthaste_host::caller::Identity;

fn refused(error: EngineError) -> ErrorObject {
    of_engine(&error)
}

/// Enters an agent, or changes it. Without a name it is the one on the token.
pub(super) async fn register(
    engine: &Engine,
    identity: &Identity,
    given: RegisterParams,
) -> Result<Value, ErrorObject> {
    let own = given.id.is_none() && given.name.is_none();
    let verb = Register {
        id: if own { Some(identity.name.clone()) } else { given.id },
        name: given.name,
        kind: given.kind.or_else(|| own.then(|| kind_of(identity))),
        role: given.role,
        existing: Existing::TakeOver,
        bearer: Some(identity.bearer()),
        ..Register::default()
    };
    let registered = engine.submit(&identity.caller(VIA), verb).await.map_err(refused)?;
    let mut answer = to_wire::agent(&registered.agent);
    answer["resumed"] = registered.resumed.into();
    Ok(answer)
}

/// Enters the bearer of a token under the name that it carries.
pub(super) async fn enter_own(engine: &Engine, identity: &Identity) -> Result<(), ErrorObject> {
    let own = RegisterParams { id: None, name: None, kind: None, role: None };
    register(engine, identity, own).await.map(drop)
}

fn kind_of(identity: &Identity) -> AgentKind {
    match identity.role {
        TokenRole::Agent => AgentKind::Agent,
        TokenRole::User => AgentKind::User,
        TokenRole::Admin => AgentKind::Admin,
    }
}

pub(super) async fn agents(
    engine: &Engine,
    identity: &Identity,
    given: AgentsParams,
) -> Result<Value, ErrorObject> {
    let (caller, of) = (identity.caller(VIA), engine.clone());
    let query = AgentQuery { after: given.after, limit: given.limit, ..AgentQuery::default() };
    let page = engine.read(move |view| {
        let page = view.agents(&caller, &query)?;
        let rows = page.items.iter().map(|agent| shown(&of, view, &caller, agent));
        Ok((rows.collect::<Viewed<Vec<Value>>>()?, page.next))
    });
    let (agents, next) = page.await.map_err(refused)?;
    Ok(json!({ "agents": agents, "next": next }))
}

/// An agent with what is known of its connection, as far as its privacy lets the caller know. That is not stored: it is
/// what holds at this moment.
fn shown(engine: &Engine, view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<Value> {
    let seen = engine.presences().of(view, caller, agent)?;
    let open = caller.may_act_for(&agent.id) || agent.privacy == posthaste_engine::nouns::Privacy::Public;
    let doors = if open { engine.attached_by(&agent.id) } else { Vec::new() };
    let last_seen = match doors.is_empty() {
        true => seen.map(|seen| seen.seen_at),
        false => Some(stamp::now()),
    };
    let mut row = to_wire::agent(agent);
    row["connected"] = (!doors.is_empty()).into();
    row["connected_by"] = json!(doors);
    row["last_seen"] = json!(last_seen.map(to_rfc3339));
    Ok(row)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentParams {
    agent: AgentId,
}

/// One agent: its entry, whether it is connected, and, for a caller that may open its mail, how much of it waits.
pub(super) async fn agent(
    engine: &Engine,
    identity: &Identity,
    given: AgentParams,
) -> Result<Value, ErrorObject> {
    let (caller, of, id) = (identity.caller(VIA), engine.clone(), given.agent);
    let found = engine.read(move |view| {
        let agent = match view.agent(&caller, &id) {
            Err(EngineError::Refused(Refusal::NoSuchAgent { agent, .. })) => {
                let near = view.similar_names(&caller, &agent)?;
                return Err(Refusal::NoSuchAgent { agent, near }.into());
            }
            found => found?,
        };
        let mut row = shown(&of, view, &caller, &agent)?;
        row["description"] = json!(agent.description);
        row["contact_policy"] = json!(agent.contact_policy);
        if let Ok(counts) = view.mail_counts(&caller, &agent.id) {
            row["unread"] = counts.unread.into();
            row["waiting"] = counts.queued.into();
        }
        Ok(row)
    });
    found.await.map_err(refused)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveParams {
    agent: AgentId,
    /// Also if it is connected.
    #[serde(default)]
    force: bool,
}

/// Takes an agent out of the address book: for administrators. Its messages stay in the event log.
pub(super) async fn remove(
    engine: &Engine,
    identity: &Identity,
    given: RemoveParams,
) -> Result<Value, ErrorObject> {
    if identity.role != TokenRole::Admin {
        return Err(refused(Refusal::NotAllowed { need: "an administrator's token" }.into()));
    }
    let one = agent(engine, identity, AgentParams { agent: given.agent.clone() }).await?;
    if one["connected"] == true && !given.force {
        let why = format!(
            "{} is connected by {}; stop it first, or remove it all the same with force (--force)",
            given.agent,
            one["connected_by"][0].as_str().unwrap_or("a door")
        );
        return Err(denied(&why));
    }
    let caller = identity.caller(VIA);
    let reason = Some("removed by an administrator".to_owned());
    let verb = Unregister { agent: given.agent.clone(), reason, cause: None };
    engine.submit(&caller, verb).await.map_err(refused)?;
    let (name, now) = (given.agent.to_string(), stamp::now());
    let tokens = engine.read(move |view| view.tokens(&caller)).await.map_err(refused)?;
    let valid = tokens.iter().filter(|token| token.name == name && token.is_valid(now));
    Ok(json!({
        "agent": given.agent,
        "removed": true,
        "was_connected": one["connected"],
        "waiting": one["waiting"],
        "tokens": valid.map(|token| token.id.as_str()).collect::<Vec<_>>(),
    }))
}
