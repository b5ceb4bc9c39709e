//! What agents do: their states, who ends a pause, and agents that nobody stands behind any more.

use serde::{Deserialize, Serialize};

use super::{changeable, shown, write};
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Bounds, Fact, Seq};
use crate::sight;
use crate::store::rows;
use crate::verbs::{Decided, Write};

/// Says what an agent does now; `suspended` pauses it and `idle` lets it go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetState {
    /// Whom.
    pub agent: AgentId,
    /// The state, in a door's words.
    pub state: String,
}

impl SetState {
    /// Tells an agent to pause: it keeps receiving but may not send.
    #[must_use]
    pub fn suspend(agent: AgentId) -> Self {
        Self { agent, state: Agent::SUSPENDED.to_owned() }
    }

    /// Lets a suspended agent go on.
    #[must_use]
    pub fn resume(agent: AgentId) -> Self {
        Self { agent, state: Agent::IDLE.to_owned() }
    }

    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Agent> {
        let agent = changeable(to, &self.agent)?;
        check_state(to, &agent, &self.state)?;
        let mut agent = change_state(to, agent, &self.state)?;
        agent.scopes = rows::scopes_of(to.db, &agent.id)?;
        Ok(agent)
    }
}

/// Leaves an agent without an owner: whoever stood behind it is gone. It keeps its mail and its scopes, and a pause or an
/// end is not undone by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orphan {
    /// Whom.
    pub agent: AgentId,
    /// The event that led to it.
    #[serde(default)]
    pub cause: Option<Seq>,
}

impl Orphan {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Agent> {
        let mut agent = changeable(to, &self.agent)?;
        // Those who knew of it while it had an owner hear of it.
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

/// Refuses what cannot come after the present state: whoever has ended stays so, and a pause has its own rule.
pub(super) fn check_state(to: &Write<'_>, agent: &Agent, state: &str) -> Decided<()> {
    check_word(state)?;
    if agent.has_ended() {
        return Err(Refusal::WrongState { agent: agent.id.clone(), state: agent.state.clone() }.into());
    }
    check_pause(to, agent, state)
}

fn check_word(state: &str) -> Decided<()> {
    if state.is_empty() || state.len() > 64 {
        return Err(Refusal::BadValue { field: "state", why: "a state is 1 to 64 bytes" }.into());
    }
    Ok(())
}

/// Refuses an agent that would end a pause which others told it to make: only they may.
pub(super) fn check_pause(to: &Write<'_>, agent: &Agent, state: &str) -> Decided<()> {
    let held = agent.is_suspended() && agent.bounds.as_ref().is_some_and(|bounds| bounds.held);
    if held && on_own_account(to, agent) && state != Agent::SUSPENDED {
        return Err(Refusal::WrongState { agent: agent.id.clone(), state: agent.state.clone() }.into());
    }
    Ok(())
}

fn on_own_account(to: &Write<'_>, agent: &Agent) -> bool {
    to.caller.is(&agent.id) && !to.caller.rights.admin
}

pub(super) fn change_state(to: &mut Write<'_>, mut agent: Agent, state: &str) -> Decided<Agent> {
    check_word(state)?;
    let held = state == Agent::SUSPENDED && !on_own_account(to, &agent);
    if agent.state == state {
        // Whoever pauses by itself may still be told to.
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

/// Notes whether others told an agent to pause. Most are kept to nothing and have no bounds at all.
fn hold(agent: &mut Agent, held: bool) {
    let bounds = Bounds { held, ..agent.bounds.take().unwrap_or_default() };
    agent.bounds = (bounds != Bounds::default()).then_some(bounds);
}
