//! A registration under a name that no active agent has: first decided, then written.

use super::new_name::{bearer_for, note_bearer};
use super::{Register, bearer_of, check_bounds, check_scopes, reuse, shown, write};
use crate::account::{self, Entering};
use crate::nouns::{Agent, AgentId, AgentKind, Caller, ContactPolicy, Fact, Privacy, Sight, Visibility};
use crate::sight;
use crate::store::rows;
use crate::verbs::scopes::{Joiner, Memberships};
use crate::verbs::{Decide, Decided, Write};

/// A registration that has been decided.
pub(in crate::verbs) struct Entrance {
    agent: Agent,
    /// The token under which the agent is registered.
    bearer: AgentId,
    /// The account that the agent counts against, if that is not its own.
    account: Option<AgentId>,
    /// Whether the name had another holder, whose contacts, participations and reservations end.
    reuses_name: bool,
    memberships: Memberships,
    /// The agent's holder, in whose name the events are emitted, if that is not the caller.
    holder: Option<Caller>,
}

impl Entrance {
    /// The agent as it will be, without its scopes.
    pub(in crate::verbs) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Whether the name had another holder, whose contacts, participations and message keys end.
    pub(in crate::verbs) fn reuses_name(&self) -> bool {
        self.reuses_name
    }

    /// The same, with events in the name of the agent's holder.
    pub(super) fn by(self, holder: Caller) -> Self {
        Self { holder: Some(holder), ..self }
    }

    /// Registers the agent and returns it with its scopes. If the command has registered it before (a message may name a
    /// recipient twice), nothing is written.
    pub(in crate::verbs) fn write(mut self, to: &mut Write<'_>) -> rusqlite::Result<Agent> {
        if let Some(mut agent) = rows::active_agent(to.db, &self.agent.id)? {
            agent.scopes = rows::scopes_of(to.db, &agent.id)?;
            return Ok(agent);
        }
        match self.holder.take() {
            Some(holder) => to.acting_as(&holder, |to| self.insert(to)),
            None => self.insert(to),
        }
    }

    fn insert(mut self, to: &mut Write<'_>) -> rusqlite::Result<Agent> {
        if self.reuses_name {
            reuse::end_former_holder(to, &self.agent.id)?;
            self.agent.born = to.next_seq();
        }
        let agent = self.agent;
        write(to, &agent)?;
        note_bearer(to, &agent.id, &self.bearer)?;
        if let Some(account) = &self.account {
            let registers_others = account::has_agents(to.db, &agent.id)?;
            let usage = &mut to.cache.borrow_mut().usage;
            // Agents that were registered under this one count against the account from now on, too.
            if registers_others { usage.forget_agents() } else { usage.note_agent(account) }
        }
        let sight = match agent.visibility {
            // Its scopes are joined by the events that follow, so visibility is looked up when the event is read.
            Visibility::Scope => Sight::Ask,
            _ => sight::of_agent(to.db, &agent)?,
        };
        let fact = Fact::AgentRegistered {
            agent: agent.id.clone(),
            sort: agent.kind,
            name: agent.name.clone(),
            role: agent.role.clone(),
            owner: shown(to, agent.owner.as_ref())?,
            state: agent.state.clone(),
            entry: public_entry(to, &agent, &self.memberships)?,
        };
        to.emit(fact, sight)?;
        self.memberships.write(to, &agent)?;
        let scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(Agent { scopes, ..agent })
    }
}

/// The entry as the event shows it to the whole realm. None for clients and the like, which come and go with each connection.
fn public_entry(
    to: &Decide<'_>,
    agent: &Agent,
    memberships: &Memberships,
) -> rusqlite::Result<Option<Box<Agent>>> {
    if matches!(agent.kind, AgentKind::Client | AgentKind::Gateway | AgentKind::System) {
        return Ok(None);
    }
    Ok(Some(Box::new(Agent {
        parent: shown(to, agent.parent.as_ref())?,
        owner: shown(to, agent.owner.as_ref())?,
        scopes: memberships.public(),
        ..agent.clone()
    })))
}

impl Register {
    /// Decides a registration under a name that is checked and that no active agent has. `before` is the name's last holder.
    pub(super) fn enter(&self, to: &Decide<'_>, id: AgentId, before: Option<&Agent>) -> Decided<Entrance> {
        let owner = self.owner.clone().or_else(|| (!to.caller.is(&id)).then(|| to.caller.agent.clone()));
        let bearer = bearer_for(to, self.bearer.as_ref()).unwrap_or(&id).clone();
        let account = if bearer == id { None } else { Some(account::check_agents(to, &bearer)?) };
        check_bounds(to, self.bounds.as_ref())?;
        check_scopes(to, &self.scopes)?;
        // A former holder's mail stays with its owner and with the token that registered it; any other caller that takes
        // the name starts with an empty mailbox.
        let (born, reuses_name) = match before {
            Some(before) if self.returns(to, before, owner.as_ref())? => (before.born, false),
            Some(before) => {
                reuse::check_traces(to, &before.id)?;
                (to.next_seq(), true)
            }
            None => (0, false),
        };
        let agent = Agent {
            id,
            kind: self.kind.unwrap_or(AgentKind::Agent),
            name: self.name.clone(),
            description: self.description.clone(),
            role: self.role.clone(),
            parent: self.parent.clone(),
            owner,
            state: self.state.clone().unwrap_or_else(|| Agent::REGISTERED.to_owned()),
            visibility: self.visibility.unwrap_or(Visibility::Public),
            contact_policy: self.contact_policy.unwrap_or(ContactPolicy::Open),
            privacy: self.privacy.unwrap_or(Privacy::Public),
            keys: self.keys.clone(),
            capabilities: self.capabilities.clone(),
            bounds: self.bounds.clone(),
            meta: self.meta.clone(),
            via: to.caller.via.clone(),
            scopes: Vec::new(),
            created_at: to.now,
            updated_at: to.now,
            retired_at: None,
            born,
        };
        let entering = Entering { agent: &agent.id, bearer: &bearer, reuses_name };
        let mut joiner = Joiner::new(to, &agent, Some(entering))?;
        let memberships = joiner.named(&self.scopes)?.and(joiner.by_role()?);
        Ok(Entrance { agent, bearer, account, reuses_name, memberships, holder: None })
    }

    /// Whether the caller had the name before: as the agent's owner, or by the token under which it was registered.
    fn returns(&self, to: &Decide<'_>, before: &Agent, owner: Option<&AgentId>) -> rusqlite::Result<bool> {
        let owned =
            owner.is_some_and(|owner| before.owner.as_ref() == Some(owner) && to.caller.may_act_for(owner));
        if owned || self.bearer.is_none() {
            return Ok(owned);
        }
        let bearer = bearer_for(to, self.bearer.as_ref()).unwrap_or(&before.id);
        Ok(bearer_of(to.db, &before.id)?.as_ref() == Some(bearer))
    }
}
