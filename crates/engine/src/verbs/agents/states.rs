//! States of agents: changing them, who may end a suspension, and agents that lost their owner.

use serde::{Deserialize, Serialize};

use super::{changeable, shown, write};
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Bounds, Fact, Seq};
use crate::sight;
use crate::store::rows;
use crate::verbs::{Decide, Decided, Write};

/// Sets an agent's state; `suspended` pauses it and `idle` resumes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetState {
    /// The agent.
    pub agent: AgentId,
    /// The state, in the door's vocabulary.
    pub state: String,
}

impl SetState {
    /// Suspends an agent: it keeps receiving but may not send.
    #[must_use]
    pub fn suspend(agent: AgentId) -> Self {
        Self { agent, state: Agent::SUSPENDED.to_owned() }
    }

    /// Resumes a suspended agent.
    #[must_use]
    pub fn resume(agent: AgentId) -> Self {
        Self { agent, state: Agent::IDLE.to_owned() }
    }

    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Agent> + use<'v>> {
        let agent = changeable(to, &self.agent)?;
        check_state(to, &agent, &self.state)?;
        Ok(|to: &mut Write<'_>| {
            let mut agent = change_state(to, agent, &self.state)?;
            agent.scopes = rows::scopes_of(to.db, &agent.id)?;
            Ok(agent)
        })
    }
}

/// Leaves an agent without an owner, after the owner is gone. It keeps its mail and its scopes; a suspended or ended agent
/// keeps its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orphan {
    /// The agent.
    pub agent: AgentId,
    /// The event that led to it.
    #[serde(default)]
    pub cause: Option<Seq>,
}

impl Orphan {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Agent> + use<'v>> {
        let agent = changeable(to, &self.agent)?;
        Ok(|to: &mut Write<'_>| self.write(to, agent))
    }

    fn write(&self, to: &mut Write<'_>, mut agent: Agent) -> rusqlite::Result<Agent> {
        // The event goes to agents that saw it while it had an owner.
        let sight = sight::of_agent(to.db, &agent)?;
        let previous = shown(to, agent.owner.take().as_ref())?;
        let before = agent.state.clone();
        if !agent.is_suspended() && !agent.has_ended() {
            agent.state = Agent::ORPHANED.to_owned();
        }
        agent.updated_at = to.now;
        write(to, &agent)?;
        if before != agent.state {
            let (id, current) = (agent.id.clone(), agent.state.clone());
            let fact = Fact::AgentState { agent: id, previous: before, current };
            to.emit_because(self.cause, fact, sight.clone())?;
        }
        let fact = Fact::AgentOrphaned { agent: agent.id.clone(), previous };
        to.emit_because(self.cause, fact, sight)?;
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(agent)
    }
}

/// Refuses a state that cannot follow the present one: an agent that has ended stays so, and suspensions have a rule of
/// their own.
pub(super) fn check_state(to: &Decide<'_>, agent: &Agent, state: &str) -> Decided<()> {
    check_word(state)?;
    if agent.has_ended() {
        return Err(Refusal::WrongState { agent: agent.id.clone(), state: agent.state.clone() }.into());
    }
    check_pause(to, agent, state)
}

pub(super) fn check_word(state: &str) -> Decided<()> {
    if state.is_empty() || state.len() > 64 {
        return Err(Refusal::BadValue { field: "state", why: "a state is 1 to 64 bytes" }.into());
    }
    Ok(())
}

/// Refuses an agent that would end a suspension which another agent ordered.
pub(super) fn check_pause(to: &Decide<'_>, agent: &Agent, state: &str) -> Decided<()> {
    let held = agent.is_suspended() && agent.bounds.as_ref().is_some_and(|bounds| bounds.held);
    if held && on_own_account(to, agent) && state != Agent::SUSPENDED {
        return Err(Refusal::WrongState { agent: agent.id.clone(), state: agent.state.clone() }.into());
    }
    Ok(())
}

fn on_own_account(to: &Decide<'_>, agent: &Agent) -> bool {
    to.caller.is(&agent.id) && !to.caller.rights.admin
}

/// Sets a state that was checked.
pub(super) fn change_state(to: &mut Write<'_>, mut agent: Agent, state: &str) -> rusqlite::Result<Agent> {
    let held = state == Agent::SUSPENDED && !on_own_account(to, &agent);
    if agent.state == state {
        // An agent that suspended itself may still be ordered to stay suspended.
        if held {
            hold(&mut agent, true);
            write(to, &agent)?;
        }
        return Ok(agent);
    }
    let previous = std::mem::replace(&mut agent.state, state.to_owned());
    hold(&mut agent, held);
    agent.updated_at = to.now;
    write(to, &agent)?;
    let sight = sight::of_agent(to.db, &agent)?;
    let fact = Fact::AgentState { agent: agent.id.clone(), previous, current: agent.state.clone() };
    to.emit(fact, sight)?;
    Ok(agent)
}

/// Notes whether another agent ordered the suspension. Bounds without content are not stored.
fn hold(agent: &mut Agent, held: bool) {
    let bounds = Bounds { held, ..agent.bounds.take().unwrap_or_default() };
    agent.bounds = (bounds != Bounds::default()).then_some(bounds);
}
