//! What an agent is kept to: whom it sees, whom it may write to, and whose letters it takes. Unset is open.

use serde::{Deserialize, Serialize};

use super::{AgentId, ScopeId};

/// Some of the agents around one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSet {
    /// Everybody.
    All,
    /// Those above and below.
    Hierarchy,
    /// Those in the same scopes.
    Scoped,
    /// The one directly above and those directly below.
    Direct,
    /// Nobody.
    Nobody,
    /// These.
    Only(Vec<AgentId>),
}

/// Some of the scopes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeCircle {
    /// Every scope.
    All,
    /// Those it is a member of.
    Member,
    /// None.
    Nobody,
    /// These.
    Only(Vec<ScopeId>),
}

/// The bounds of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bounds {
    /// Whom it sees in the address book.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees: Option<AgentSet>,
    /// Which scopes it sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees_scopes: Option<ScopeCircle>,
    /// How much of who stands where it sees, in a door's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees_structure: Option<String>,
    /// Whom it may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_to: Option<AgentSet>,
    /// Which scopes it may write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_to_scopes: Option<ScopeCircle>,
    /// From which agents it takes letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_agents: Option<AgentSet>,
    /// From which people and clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_clients: Option<AgentSet>,
    /// From which other offices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from_systems: Option<AgentSet>,
    /// Whether others have told it to pause, so that it may not go on by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl Bounds {
    /// How many agents and scopes they name one by one.
    #[must_use]
    pub fn names(&self) -> usize {
        let agents = [&self.sees, &self.writes_to, &self.takes_from_agents, &self.takes_from_clients];
        let listed = |circle: &Option<AgentSet>| match circle {
            Some(AgentSet::Only(list)) => list.len(),
            _ => 0,
        };
        let scopes = |circle: &Option<ScopeCircle>| match circle {
            Some(ScopeCircle::Only(list)) => list.len(),
            _ => 0,
        };
        agents.into_iter().chain([&self.takes_from_systems]).map(listed).sum::<usize>()
            + [&self.sees_scopes, &self.writes_to_scopes].into_iter().map(scopes).sum::<usize>()
    }

    /// These bounds with the given ones laid over them. Whether it is held is not a matter of laying over.
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
