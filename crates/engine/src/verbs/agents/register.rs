//! Registering an agent: under a new name, or by taking over an active agent.

use serde::{Deserialize, Serialize};

use super::new_name::{Reclaim, Taken};
use super::states::{change_state, check_pause, check_word};
use super::update::{Change, Update};
use super::{Bearer, Claim, Entrance, check_parent, check_scopes, write};
use crate::account::Entering;
use crate::error::Refusal;
use crate::names::slug;
use crate::nouns::{Agent, AgentId, AgentKind, Bounds, ContactPolicy, Json, Privacy, ScopeId, Visibility};
use crate::store::rows;
use crate::verbs::scopes::{Joiner, Memberships};
use crate::verbs::{Decide, Decided, Stop, Write};

/// Registers an agent, under the given id or one derived from the name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Register {
    /// The id; derived from the name if absent.
    pub id: Option<AgentId>,
    /// Its kind; an agent if absent.
    pub kind: Option<AgentKind>,
    /// Display name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its role.
    pub role: Option<String>,
    /// The agent above it.
    pub parent: Option<AgentId>,
    /// Who may change it besides itself; the caller if absent.
    pub owner: Option<AgentId>,
    /// Its state.
    pub state: Option<String>,
    /// Who may find it.
    pub visibility: Option<Visibility>,
    /// Whose first message it accepts.
    pub contact_policy: Option<ContactPolicy>,
    /// How widely it may address others.
    pub privacy: Option<Privacy>,
    /// Public keys.
    pub keys: Option<Json>,
    /// What it can do.
    pub capabilities: Option<Json>,
    /// Limits on what it sees and writes to.
    pub bounds: Option<Bounds>,
    /// Other data.
    pub meta: Option<Json>,
    /// Scopes to join; one that does not exist is created, open to all.
    pub scopes: Vec<ScopeId>,
    /// What to do when the id is in use by an agent that the caller may change.
    pub existing: Existing,
    /// The caller's token. Without one the caller has no claim to any token's name.
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
    /// Take the agent over with its scopes and its mail, and replace the given fields.
    TakeOver,
}

/// Result of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The agent.
    pub agent: Agent,
    /// Whether it was active before.
    pub resumed: bool,
}

impl Register {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Registered> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(move |to: &mut Write<'_>| match plan {
            Plan::Enter(entrance) => Ok(Registered { agent: entrance.write(to)?, resumed: false }),
            Plan::TakeOver(taken) => Ok(Registered { agent: taken.write(to)?, resumed: true }),
        })
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<Plan<'_>> {
        to.require_member()?;
        self.check_kind(to)?;
        let id = self.choose_id(to)?;
        if let Some(parent) = &self.parent {
            check_parent(to, &id, parent)?;
        }
        match rows::any_agent(to.db, &id)? {
            Some(before) if before.is_active() => Ok(Plan::TakeOver(Box::new(self.take_over(to, before)?))),
            Some(before) if before.state == Agent::REVOKED => {
                Err(Refusal::AgentExists { agent: before.id }.into())
            }
            before => {
                Claim::new(to, self.bearer.as_ref()).check(&id)?;
                Ok(Plan::Enter(Box::new(self.enter(to, id, before.as_ref())?)))
            }
        }
    }

    /// Refuses callers without an administrator's token the kinds that stand for the server and its administrators.
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
            Err(Taken::Refused(_)) => false,
            Err(failed) => return Err(failed.into()),
        };
        if free {
            return Ok(first);
        }
        // A taken name gets a short suffix of a fresh id, which is unguessable and never taken.
        let tail = to.fresh_id().simple().to_string();
        let id = AgentId::new(format!("{base}-{}", &tail[20..])).map_err(Refusal::from)?;
        Ok(id)
    }

    /// Decides what becomes of an active agent that the caller registers again.
    fn take_over(&self, to: &Decide<'_>, before: Agent) -> Decided<TakeOver<'_>> {
        if self.existing == Existing::Refuse {
            return Err(Refusal::AgentExists { agent: before.id }.into());
        }
        let reclaim = match &self.bearer {
            Some(bearer) if bearer.name == before.id => Reclaim::decide(to, &before)?,
            _ => None,
        };
        let agent = reclaim.as_ref().map_or(before, |reclaim| reclaim.agent().clone());
        let id = agent.id.clone();
        let reclaimed = || Entering { agent: &id, bearer: &id, reuses_name: false };
        let entering = reclaim.is_some().then(reclaimed);
        let change = self.as_update(&id).plan(to, agent, entering).map_err(|stop| match stop {
            // An agent that the caller may not change is simply taken.
            Stop::Refused(Refusal::NotAllowed { .. }) => Refusal::AgentExists { agent: id.clone() }.into(),
            other => other,
        })?;
        if let Some(state) = &self.state {
            check_pause(to, change.agent(), state)?;
            check_word(state)?;
        }
        check_scopes(to, &self.scopes)?;
        let mut joiner = Joiner::new(to, change.agent(), entering)?;
        joiner.expect(change.memberships());
        let memberships = joiner.named(&self.scopes)?;
        Ok(TakeOver { reclaim, change, state: self.state.as_deref(), memberships })
    }

    fn as_update(&self, agent: &AgentId) -> Update {
        Update {
            agent: agent.clone(),
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
        }
    }
}

enum Plan<'v> {
    Enter(Box<Entrance>),
    TakeOver(Box<TakeOver<'v>>),
}

/// An active agent that is registered again.
struct TakeOver<'v> {
    reclaim: Option<Reclaim>,
    change: Change,
    state: Option<&'v str>,
    memberships: Memberships,
}

impl TakeOver<'_> {
    fn write(self, to: &mut Write<'_>) -> rusqlite::Result<Agent> {
        if let Some(reclaim) = self.reclaim {
            reclaim.write(to)?;
        }
        let mut agent = self.change.write(to)?;
        // A mailbox that was created before its holder connected belongs to the holder's door.
        if agent.via.is_empty() {
            agent.via = to.caller.via.clone();
            write(to, &agent)?;
        }
        if let Some(state) = self.state {
            agent = change_state(to, agent, state)?;
        }
        self.memberships.write(to, &agent)?;
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(agent)
    }
}
