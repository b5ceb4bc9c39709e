//! Bounds of an agent: which agents and scopes it sees, may write to, and accepts messages from. Unset is unrestricted.

use serde::{Deserialize, Serialize};

use super::{AgentId, ScopeId};

/// A set of agents relative to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSet {
    /// All agents.
    All,
    /// Agents above and below.
    Hierarchy,
    /// Agents that share a scope.
    Scoped,
    /// The parent and the children.
    Direct,
    /// No agents.
    #[serde(rename = "nobody")]
    Empty,
    /// The listed agents.
    Only(Vec<AgentId>),
}

/// A set of scopes relative to one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeSet {
    /// Every scope.
    All,
    /// Scopes that the agent is a member of.
    Member,
    /// No scopes.
    #[serde(rename = "nobody")]
    Empty,
    /// The listed scopes.
    Only(Vec<ScopeId>),
}

/// The bounds of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// The agents that it sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees: Option<AgentSet>,
    /// The scopes that it sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees_scopes: Option<ScopeSet>,
    /// How much of the hierarchy it sees: a value that the door defines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees_structure: Option<String>,
    /// The agents that it may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_to: Option<AgentSet>,
    /// The scopes that it may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_to_scopes: Option<ScopeSet>,
    /// The agents that it accepts messages from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_agents: Option<AgentSet>,
    /// The people and clients that it accepts messages from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_clients: Option<AgentSet>,
    /// The other servers that it accepts messages from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_systems: Option<AgentSet>,
    /// Whether another caller has suspended it, so that it may not resume by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl Bounds {
    /// Number of agents and scopes in all lists.
    #[must_use]
    pub fn names(&self) -> usize {
        let agents = [&self.sees, &self.writes_to, &self.takes_from_agents, &self.takes_from_clients];
        let listed = |set: &Option<AgentSet>| match set {
            Some(AgentSet::Only(list)) => list.len(),
            _ => 0,
        };
        let scopes = |set: &Option<ScopeSet>| match set {
            Some(ScopeSet::Only(list)) => list.len(),
            _ => 0,
        };
        agents.into_iter().chain([&self.takes_from_systems]).map(listed).sum::<usize>()
            + [&self.sees_scopes, &self.writes_to_scopes].into_iter().map(scopes).sum::<usize>()
    }

    /// These bounds, overridden by the given ones. `held` stays as it is.
    #[must_use]
    pub fn patched(self, given: &Self) -> Self {
        let given = given.clone();
        Self {
            sees: given.sees.or(self.sees),
            sees_scopes: given.sees_scopes.or(self.sees_scopes),
            sees_structure: given.sees_structure.or(self.sees_structure),
            writes_to: given.writes_to.or(self.writes_to),
            writes_to_scopes: given.writes_to_scopes.or(self.writes_to_scopes),
            takes_from_agents: given.takes_from_agents.or(self.takes_from_agents),
            takes_from_clients: given.takes_from_clients.or(self.takes_from_clients),
            takes_from_systems: given.takes_from_systems.or(self.takes_from_systems),
            held: self.held,
        }
    }
}
