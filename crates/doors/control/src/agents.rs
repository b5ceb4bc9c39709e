//! Methods about the directory: the caller's own identity, entering, listing and removing agents.

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Privacy, TokenRole};
use posthaste_engine::verbs::agents::{Existing, Register, Unregister};
use posthaste_engine::views::{AgentQuery, View, Viewed};
use posthaste_engine::{Engine, EngineError, Refusal, stamp};
use posthaste_host::caller::Identity;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;
use posthaste_wire::time::to_rfc3339;

use super::errors::{denied, refused};
use super::from_wire::{agent_kind, name, optional};
use super::table::Call;
use super::{VIA, to_wire};

pub(super) async fn whoami(call: Call<'_>, _: wire::NoParams) -> Result<wire::WhoamiResult, ErrorObject> {
    Ok(wire::WhoamiResult {
        name: call.identity.name.to_string(),
        role: to_wire::token_role(call.identity.role),
        realm: call.engine.realm().to_string(),
    })
}

/// Enters an agent, or changes it. Without a name it is the one on the token.
pub(super) async fn register(
    call: Call<'_>,
    given: wire::RegisterParams,
) -> Result<wire::RegisterResult, ErrorObject> {
    let identity = call.identity;
    let own = given.id.is_none() && given.name.is_none();
    let verb = Register {
        id: if own { Some(identity.name.clone()) } else { optional(given.id)? },
        name: given.name,
        kind: given.kind.map(agent_kind).or_else(|| own.then(|| kind_of(identity))),
        role: given.role,
        existing: Existing::TakeOver,
        bearer: Some(identity.bearer()),
        ..Register::default()
    };
    let registered = call.engine.submit(&identity.caller(VIA), verb).await.map_err(refused)?;
    Ok(wire::RegisterResult { agent: to_wire::agent(&registered.agent), resumed: registered.resumed })
}

/// Enters the bearer of a token under the name that it carries.
pub(super) async fn enter_bearer(call: Call<'_>) -> Result<(), ErrorObject> {
    register(call, wire::RegisterParams::default()).await.map(drop)
}

fn kind_of(identity: &Identity) -> AgentKind {
    match identity.role {
        TokenRole::Agent => AgentKind::Agent,
        TokenRole::User => AgentKind::User,
        TokenRole::Admin => AgentKind::Admin,
    }
}

pub(super) async fn agents(
    call: Call<'_>,
    given: wire::AgentsParams,
) -> Result<wire::AgentsResult, ErrorObject> {
    let (caller, engine) = (call.identity.caller(VIA), call.engine.clone());
    let query = AgentQuery { after: optional(given.after)?, limit: given.limit.0, ..AgentQuery::default() };
    let page = call.engine.read(move |view| {
        let page = view.agents(&caller, &query)?;
        let rows = page.items.iter().map(|agent| listed(&engine, view, &caller, agent));
        Ok((rows.collect::<Viewed<Vec<_>>>()?, page.next))
    });
    let (agents, next) = page.await.map_err(refused)?;
    Ok(wire::AgentsResult { agents, next: to_wire::optional(next.as_ref()) })
}

/// An agent with what is known of its connection, as far as its privacy lets the caller know. That is not stored: it is
/// what holds at this moment.
fn listed(engine: &Engine, view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<wire::ListedAgent> {
    let seen = engine.presences().of(view, caller, agent)?;
    let is_shown = caller.may_act_for(&agent.id) || agent.privacy == Privacy::Public;
    let doors = if is_shown { engine.attached_by(&agent.id) } else { Vec::new() };
    let last_seen = match doors.is_empty() {
        true => seen.map(|seen| seen.seen_at),
        false => Some(stamp::now()),
    };
    Ok(wire::ListedAgent {
        agent: to_wire::agent(agent),
        connected: !doors.is_empty(),
        connected_by: doors.iter().map(ToString::to_string).collect(),
        last_seen: last_seen.map(to_rfc3339),
    })
}

/// One agent: its entry, whether it is connected, and, for a caller that may read its mail, how much of it waits.
pub(super) async fn agent(
    call: Call<'_>,
    given: wire::AgentParams,
) -> Result<wire::AgentResult, ErrorObject> {
    let (caller, engine, id) =
        (call.identity.caller(VIA), call.engine.clone(), name::<AgentId>(given.agent)?);
    let found = call.engine.read(move |view| {
        let agent = match view.agent(&caller, &id) {
            Err(EngineError::Refused(Refusal::NoSuchAgent { agent, .. })) => {
                let near = view.similar_names(&caller, &agent)?;
                return Err(Refusal::NoSuchAgent { agent, near }.into());
            }
            found => found?,
        };
        let counts = view.mail_counts(&caller, &agent.id).ok();
        Ok(wire::AgentResult {
            listed: listed(&engine, view, &caller, &agent)?,
            description: agent.description.clone(),
            contact_policy: to_wire::contact_policy(agent.contact_policy),
            unread: counts.as_ref().map(|counts| counts.unread),
            waiting: counts.as_ref().map(|counts| counts.queued),
        })
    });
    found.await.map_err(refused)
}

/// Removes an agent from the directory. Its messages stay in the event log.
pub(super) async fn remove(
    call: Call<'_>,
    given: wire::AgentRemoveParams,
) -> Result<wire::AgentRemoveResult, ErrorObject> {
    if call.identity.role != TokenRole::Admin {
        return Err(refused(Refusal::NotAllowed { need: "an administrator's token" }.into()));
    }
    let id: AgentId = name(given.agent.clone())?;
    let found = agent(call, wire::AgentParams { agent: given.agent.clone() }).await?;
    if found.listed.connected && !given.force {
        let why = format!(
            "{id} is connected by {}; stop it first, or remove it all the same with force (--force)",
            found.listed.connected_by.first().map_or("a door", String::as_str)
        );
        return Err(denied(&why));
    }
    let caller = call.identity.caller(VIA);
    let reason = Some("removed by an administrator".to_owned());
    let verb = Unregister { agent: id, reason, cause: None };
    call.engine.submit(&caller, verb).await.map_err(refused)?;
    let now = stamp::now();
    let tokens = call.engine.read(move |view| view.tokens(&caller)).await.map_err(refused)?;
    let valid = tokens.iter().filter(|token| token.name == given.agent && token.is_valid(now));
    Ok(wire::AgentRemoveResult {
        tokens: valid.map(|token| token.id.clone()).collect(),
        agent: given.agent,
        removed: true,
        was_connected: found.listed.connected,
        waiting: found.waiting,
    })
}
