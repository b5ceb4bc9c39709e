//! Coming, changing and leaving: the address book's verbs.

mod entrance;
mod expected;
mod new_name;
mod reuse;
mod states;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::scopes::{self, Joiner};
use super::{Decide, Decided, Stop, Write};
use crate::acl;
use crate::error::Refusal;
use crate::names::slug;
use crate::nouns::{
    Agent, AgentId, AgentKind, Bounds, ContactPolicy, Fact, Json, Privacy, ScopeId, Seq, Visibility,
};
use crate::sight;
use crate::store::rows;

pub(in crate::verbs) use entrance::Entrance;
pub(crate) use expected::known_as;
pub(in crate::verbs) use expected::{enter_sender, expect, meant};
pub use new_name::Bearer;
pub(crate) use new_name::{Claim, RECLAIMED, bearer_of};
pub(in crate::verbs) use new_name::{check_token, reclaim};
pub use states::{Orphan, SetState};
use states::{change_state, check_pause, check_state};

/// Enters an agent into the address book. The id is the given one, or one made from the name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Register {
    /// The id to take; made from the name if absent.
    pub id: Option<AgentId>,
    /// What sort of correspondent it is; an agent if not said.
    pub kind: Option<AgentKind>,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The part it plays.
    pub role: Option<String>,
    /// The agent that made it.
    pub parent: Option<AgentId>,
    /// Who may change it besides itself; the caller if not said.
    pub owner: Option<AgentId>,
    /// What it is doing.
    pub state: Option<String>,
    /// Who may find it.
    pub visibility: Option<Visibility>,
    /// Whose first letter it accepts.
    pub contact_policy: Option<ContactPolicy>,
    /// How widely it shows itself.
    pub privacy: Option<Privacy>,
    /// Public keys.
    pub keys: Option<Json>,
    /// What it can do.
    pub capabilities: Option<Json>,
    /// What it is kept to.
    pub bounds: Option<Bounds>,
    /// Whatever else.
    pub meta: Option<Json>,
    /// Scopes to join; one that does not exist is made, open to all.
    pub scopes: Vec<ScopeId>,
    /// What to do when the id is in use by an agent that the caller may change.
    pub existing: Existing,
    /// The token that the caller came with; without one the caller has no claim to any token's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<Bearer>,
}

/// What registering under a name in use means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Existing {
    /// The name is taken.
    #[default]
    Refuse,
    /// Take the agent over as it is, with its scopes and its mail, and lay the given fields over it.
    TakeOver,
}

/// What registering gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The entry.
    pub agent: Agent,
    /// Whether it was there before.
    pub resumed: bool,
}

impl Register {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Registered> {
        to.require_member()?;
        self.check_kind(to)?;
        let id = self.choose_id(to)?;
        if let Some(parent) = &self.parent {
            check_parent(to, &id, parent)?;
        }
        let before = rows::any_agent(to.db, &id)?;
        match before {
            Some(before) if before.is_active() => self.take_over(to, before),
            Some(before) if before.state == Agent::REVOKED => {
                Err(Refusal::AgentExists { agent: before.id }.into())
            }
            before => {
                Claim::new(to, self.bearer.as_ref()).check(&id)?;
                let agent = self.enter(to, id, before.as_ref())?.write(to)?;
                Ok(Registered { agent, resumed: false })
            }
        }
    }

    /// Refuses sorts that stand for the server or its administrators to all others.
    fn check_kind(&self, to: &Decide<'_>) -> Decided<()> {
        let trusted = to.caller.rights.admin || self.bearer.as_ref().is_some_and(|bearer| bearer.admin);
        match self.kind {
            Some(AgentKind::System | AgentKind::Admin) if !trusted => {
                let need = "an administrator's token, to be an agent of the kind system or admin";
                Err(Refusal::NotAllowed { need }.into())
            }
            _ => Ok(()),
        }
    }

    fn choose_id(&self, to: &Decide<'_>) -> Decided<AgentId> {
        if let Some(id) = &self.id {
            if id.is_office() {
                return Err(Refusal::AgentExists { agent: id.clone() }.into());
            }
            return Ok(id.clone());
        }
        let base = slug(self.name.as_deref().unwrap_or("agent"));
        let first = AgentId::new(&base).map_err(Refusal::from)?;
        let free = match Claim::new(to, self.bearer.as_ref()).check(&first) {
            Ok(()) => rows::any_agent(to.db, &first)?.is_none(),
            Err(new_name::Taken::Refused(_)) => false,
            Err(failed) => return Err(failed.into()),
        };
        if free {
            return Ok(first);
        }
        // A taken name gets a short tail; the fresh id makes it unguessable and never taken.
        let tail = to.fresh_id().simple().to_string();
        let id = AgentId::new(format!("{base}-{}", &tail[20..])).map_err(Refusal::from)?;
        Ok(id)
    }

    fn take_over(&self, to: &mut Write<'_>, before: Agent) -> Decided<Registered> {
        if self.existing == Existing::Refuse {
            return Err(Refusal::AgentExists { agent: before.id }.into());
        }
        let before = match &self.bearer {
            Some(bearer) if bearer.name == before.id => reclaim(to, before)?,
            _ => before,
        };
        let update = Update {
            agent: before.id.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            role: self.role.clone(),
            parent: self.parent.clone(),
            owner: self.owner.clone(),
            state: None,
            visibility: self.visibility,
            contact_policy: self.contact_policy,
            privacy: self.privacy,
            keys: self.keys.clone(),
            capabilities: self.capabilities.clone(),
            bounds: self.bounds.clone(),
            meta: self.meta.clone(),
            merge_meta: true,
        };
        // Taking over one's own name, or one whose owner asks, is allowed; a stranger's is taken.
        let mut agent = update.apply(to).map_err(|halt| match halt {
            Stop::Refused(Refusal::NotAllowed { .. }) => {
                Refusal::AgentExists { agent: before.id.clone() }.into()
            }
            other => other,
        })?;
        // A mailbox that was made before its holder came is of the door that the holder comes by.
        if agent.via.is_empty() {
            agent.via = to.caller.via.clone();
            write(to, &agent)?;
        }
        if let Some(state) = &self.state {
            check_pause(to, &agent, state)?;
            agent = change_state(to, agent, state)?;
        }
        check_scopes(to, &self.scopes)?;
        let entering = None;
        Joiner::new(to, &agent, entering)?.named(&self.scopes)?.write(to, &agent)?;
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(Registered { agent, resumed: true })
    }
}

/// Changes what is given and leaves the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Update {
    /// Whom.
    pub agent: AgentId,
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The part it plays.
    #[serde(default)]
    pub role: Option<String>,
    /// The agent it stands under.
    #[serde(default)]
    pub parent: Option<AgentId>,
    /// Who may change it besides itself.
    #[serde(default)]
    pub owner: Option<AgentId>,
    /// What it does now; as for [`SetState`], and with it all or nothing.
    #[serde(default)]
    pub state: Option<String>,
    /// Who may find it.
    #[serde(default)]
    pub visibility: Option<Visibility>,
    /// Whose first letter it accepts.
    #[serde(default)]
    pub contact_policy: Option<ContactPolicy>,
    /// How widely it shows itself.
    #[serde(default)]
    pub privacy: Option<Privacy>,
    /// Public keys.
    #[serde(default)]
    pub keys: Option<Json>,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Option<Json>,
    /// What it is kept to; laid over what it was, member by member.
    #[serde(default)]
    pub bounds: Option<Bounds>,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
    /// Whether `meta` is laid over the present one, member by member, or replaces it.
    #[serde(default)]
    pub merge_meta: bool,
}

impl Update {
    /// Changes nothing yet.
    #[must_use]
    pub fn of(agent: AgentId) -> Self {
        Self {
            agent,
            name: None,
            description: None,
            role: None,
            parent: None,
            owner: None,
            state: None,
            visibility: None,
            contact_policy: None,
            privacy: None,
            keys: None,
            capabilities: None,
            bounds: None,
            meta: None,
            merge_meta: false,
        }
    }

    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Agent> {
        let mut agent = changeable(to, &self.agent)?;
        if let Some(parent) = &self.parent {
            check_parent(to, &agent.id, parent)?;
        }
        // An agent that was stopped may say itself that it has, with what else it has to say.
        let state = self.state.as_ref().filter(|state| !(agent.has_ended() && **state == agent.state));
        if let Some(state) = state {
            check_state(to, &agent, state)?;
        }
        check_bounds(to, self.bounds.as_ref())?;
        let mut changes = Map::new();
        let mut note = |field: &str, value: Value| drop(changes.insert(field.to_owned(), value));
        macro_rules! lay_over {
            ($($field:ident),+) => {$(
                if let Some(value) = &self.$field && agent.$field.as_ref() != Some(value) {
                    note(stringify!($field), serde_json::json!(value));
                    agent.$field = Some(value.clone());
                }
            )+};
        }
        lay_over!(name, description, role);
        // Everyone who sees this agent is told; an agent above it or its owner may be hidden from them.
        for (field, value, present) in
            [("parent", &self.parent, &mut agent.parent), ("owner", &self.owner, &mut agent.owner)]
        {
            if let Some(value) = value
                && present.as_ref() != Some(value)
            {
                note(field, serde_json::json!(shown(to, Some(value))?));
                *present = Some(value.clone());
            }
        }
        macro_rules! set {
            ($($field:ident),+) => {$(
                if let Some(value) = self.$field && agent.$field != value {
                    note(stringify!($field), serde_json::json!(value));
                    agent.$field = value;
                }
            )+};
        }
        set!(visibility, contact_policy, privacy);
        macro_rules! lay_over_json {
            ($($field:ident),+) => {$(
                if let Some(value) = &self.$field && agent.$field.as_ref() != Some(value) {
                    note(stringify!($field), value.value());
                    agent.$field = Some(value.clone());
                }
            )+};
        }
        lay_over_json!(keys, capabilities);
        let mut bounded = Map::new();
        if let Some(given) = &self.bounds {
            let bounds = agent.bounds.clone().unwrap_or_default().patched(given);
            if agent.bounds.as_ref() != Some(&bounds) {
                bounded.insert("bounds".to_owned(), serde_json::json!(given));
                bounded.insert("bounds_in_force".to_owned(), serde_json::json!(bounds));
                agent.bounds = Some(bounds);
            }
        }
        if let Some(meta) = &self.meta {
            let merged = if self.merge_meta { merge(agent.meta.as_ref(), meta) } else { meta.clone() };
            if agent.meta.as_ref() != Some(&merged) {
                note("meta", meta.value());
                agent.meta = Some(merged);
            }
        }
        // What it is kept to is news of its own.
        let news: Vec<_> = [changes, bounded].into_iter().filter(|changes| !changes.is_empty()).collect();
        if !news.is_empty() {
            agent.updated_at = to.now;
            write(to, &agent)?;
            let sight = sight::of_agent(to.db, &agent)?;
            for changes in news {
                let changes = Json::from_value(&Value::Object(changes));
                to.emit(Fact::AgentUpdated { agent: agent.id.clone(), changes }, sight.clone())?;
            }
            if self.role.is_some() {
                Joiner::new(to, &agent, None)?.by_role()?.write(to, &agent)?;
            }
        }
        if let Some(state) = state {
            agent = change_state(to, agent, state)?;
        }
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(agent)
    }
}

/// Takes an agent out of the address book. Its history and its letters stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unregister {
    /// Whom.
    pub agent: AgentId,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// The event that led to it.
    #[serde(default)]
    pub cause: Option<Seq>,
}

impl Unregister {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Agent> {
        let mut agent = changeable(to, &self.agent)?;
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

/// Refuses bounds that name too many: they are read for everyone who writes to the agent.
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

/// An agent as everybody may be told of it: hidden ones are not named.
fn shown(to: &Decide<'_>, id: Option<&AgentId>) -> rusqlite::Result<Option<AgentId>> {
    let Some(id) = id else { return Ok(None) };
    let hidden = rows::any_agent(to.db, id)?.is_some_and(|agent| agent.visibility != Visibility::Public);
    Ok((!hidden).then(|| id.clone()))
}

/// The agent, if the caller may change it: itself, its owner, an agent above it, or whoever runs the office.
pub(super) fn changeable(to: &Decide<'_>, id: &AgentId) -> Decided<Agent> {
    let agent = to.known_agent(id)?;
    let owner = agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
    if to.caller.may_act_for(id) || owner || acl::is_below(to.db, &agent.id, &to.caller.agent)? {
        return Ok(agent);
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

/// JSON laid over other JSON, member by member.
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
