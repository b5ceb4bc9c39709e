//! The address book's verbs: registering agents, changing and unregistering them.

mod entrance;
mod expected;
mod new_name;
mod register;
mod reuse;
mod states;
mod update;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decide, Decided, Write, scopes};
use crate::acl;
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Bounds, Fact, Json, ScopeId, Seq, Visibility};
use crate::sight;
use crate::store::rows;

pub(in crate::verbs) use entrance::Entrance;
pub(crate) use expected::known_as;
pub(in crate::verbs) use expected::{enter_sender, expect, meant};
pub use new_name::Bearer;
pub(crate) use new_name::{Claim, RECLAIMED, bearer_of};
pub(in crate::verbs) use new_name::{Reclaim, check_token};
pub use register::{Existing, Register, Registered};
pub use states::{Orphan, SetState};
pub use update::Update;

/// Takes an agent out of the address book. Its events and its messages stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unregister {
    /// The agent.
    pub agent: AgentId,
    /// The reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// The event that led to it.
    #[serde(default)]
    pub cause: Option<Seq>,
}

impl Unregister {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Agent> + use<'v>> {
        let agent = changeable(to, &self.agent)?;
        Ok(|to: &mut Write<'_>| self.write(to, agent))
    }

    /// Unregisters an agent that the caller may change, as it is now.
    pub(super) fn write(&self, to: &mut Write<'_>, mut agent: Agent) -> rusqlite::Result<Agent> {
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        let sight = sight::of_agent(to.db, &agent)?;
        for scope in &agent.scopes {
            scopes::leave(to, scope, &agent.id)?;
        }
        agent.state = Agent::RETIRED.to_owned();
        agent.retired_at = Some(to.now);
        to.cache.borrow_mut().usage.forget_agents();
        agent.updated_at = to.now;
        write(to, &agent)?;
        let fact = Fact::AgentUnregistered {
            agent: agent.id.clone(),
            sort: agent.kind,
            reason: self.reason.clone(),
        };
        to.emit_because(self.cause, fact, sight)?;
        Ok(agent)
    }
}

/// Refuses bounds that name too many agents: each message to the agent reads them.
fn check_bounds(to: &Decide<'_>, bounds: Option<&Bounds>) -> Decided<()> {
    let limit = to.rules.bounds_names;
    if bounds.is_some_and(|bounds| bounds.names() > limit as usize) {
        return Err(Refusal::TooMany { what: "names in the bounds of one agent", limit: limit.into() }.into());
    }
    Ok(())
}

fn check_scopes(to: &Decide<'_>, scopes: &[ScopeId]) -> Decided<()> {
    let limit = to.rules.scopes_per_agent;
    if scopes.len() > limit as usize {
        return Err(Refusal::TooMany { what: "scopes of one agent", limit: limit.into() }.into());
    }
    Ok(())
}

/// The agent's name as an event to the whole realm may give it: not that of a hidden agent.
fn shown(to: &Decide<'_>, id: Option<&AgentId>) -> rusqlite::Result<Option<AgentId>> {
    let Some(id) = id else { return Ok(None) };
    let hidden = rows::any_agent(to.db, id)?.is_some_and(|agent| agent.visibility != Visibility::Public);
    Ok((!hidden).then(|| id.clone()))
}

/// The agent, if the caller may change it.
fn changeable(to: &Decide<'_>, id: &AgentId) -> Decided<Agent> {
    let agent = to.agent_or_refuse(id)?;
    check_may_change(to, &agent)?;
    Ok(agent)
}

/// Refuses callers that are neither the agent, nor its owner, nor above it, nor an administrator. An agent that the caller
/// does not see does not exist for it.
fn check_may_change(to: &Decide<'_>, agent: &Agent) -> Decided<()> {
    if !sight::sees_agent(to.db, to.caller, agent)? {
        return Err(Refusal::NoSuchAgent { agent: agent.id.to_string(), near: Vec::new() }.into());
    }
    let owner = agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
    let above = || match agent.parent {
        Some(_) => acl::is_below(to.db, &agent.id, &to.caller.agent),
        None => Ok(false),
    };
    if to.caller.may_act_for(&agent.id) || owner || above()? {
        return Ok(());
    }
    Err(Refusal::NotAllowed { need: "to be this agent, its owner or above it" }.into())
}

fn check_parent(to: &Decide<'_>, id: &AgentId, parent: &AgentId) -> Decided<()> {
    let above = to.known_agent(parent)?;
    if id == parent || acl::is_below(to.db, &above.id, id)? {
        return Err(Refusal::CircularParent { agent: id.clone() }.into());
    }
    Ok(())
}

/// JSON merged into other JSON, member by member.
pub(super) fn merge(present: Option<&Json>, given: &Json) -> Json {
    match (present.map(Json::value), given.value()) {
        (Some(Value::Object(mut present)), Value::Object(given)) => {
            present.extend(given);
            Json::from_value(&Value::Object(present))
        }
        _ => given.clone(),
    }
}

pub(super) fn write(to: &Write<'_>, agent: &Agent) -> rusqlite::Result<()> {
    let sql = "INSERT INTO agents(id, kind, name, description, role, parent, owner, state, visibility, contact_policy,
                   privacy, keys, capabilities, meta, via, created_at, updated_at, retired_at, born, bounds)
               VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)
               ON CONFLICT(id) DO UPDATE SET kind=?2, name=?3, description=?4, role=?5, parent=?6, owner=?7, state=?8,
                   visibility=?9, contact_policy=?10, privacy=?11, keys=?12, capabilities=?13, meta=?14, via=?15,
                   created_at=?16, updated_at=?17, retired_at=?18, born=?19, bounds=?20";
    // Plain data without maps or floats: writing it as JSON cannot fail.
    let bounds = agent.bounds.as_ref().map(|bounds| serde_json::to_string(bounds).unwrap_or_default());
    let params = rusqlite::params![
        agent.id,
        agent.kind,
        agent.name,
        agent.description,
        agent.role,
        agent.parent,
        agent.owner,
        agent.state,
        agent.visibility,
        agent.contact_policy,
        agent.privacy,
        agent.keys,
        agent.capabilities,
        agent.meta,
        agent.via,
        agent.created_at,
        agent.updated_at,
        agent.retired_at,
        agent.born,
        bounds,
    ];
    to.exec(sql, params).map(drop)
}
