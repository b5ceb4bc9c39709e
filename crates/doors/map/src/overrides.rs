//! Permission overrides of the wire to and from the engine's bounds.

use posthaste_engine::nouns::{AgentSet, Bounds, ScopeSet};
use posthaste_wire::map::permissions::{AcceptsFrom, Among, CanMessage, CanSee, PermissionOverrides};
use serde_json::Value;

use super::errors::DoorError;
use super::from_wire as read;

/// Reads overrides; members that are absent stay unset.
pub(super) fn from_wire(given: &Value) -> Result<Bounds, DoorError> {
    let given = PermissionOverrides::read(given).map_err(DoorError::params)?;
    let see = given.can_see.unwrap_or_default();
    let message = given.can_message.unwrap_or_default();
    let accept = given.accepts_from.unwrap_or_default();
    Ok(Bounds {
        sees: agent_set(see.agents)?,
        sees_scopes: scope_set(see.scopes)?,
        sees_structure: see.structure,
        writes_to: agent_set(message.agents)?,
        writes_to_scopes: scope_set(message.scopes)?,
        takes_from_agents: agent_set(accept.agents)?,
        takes_from_clients: agent_set(accept.clients)?,
        takes_from_systems: agent_set(accept.systems)?,
        ..Bounds::default()
    })
}

/// Writes bounds as overrides.
pub(super) fn to_wire(bounds: &Bounds) -> PermissionOverrides {
    let see = CanSee {
        agents: bounds.sees.as_ref().map(agents_among),
        scopes: bounds.sees_scopes.as_ref().map(scopes_among),
        structure: bounds.sees_structure.clone(),
    };
    let message = CanMessage {
        agents: bounds.writes_to.as_ref().map(agents_among),
        scopes: bounds.writes_to_scopes.as_ref().map(scopes_among),
    };
    let accept = AcceptsFrom {
        agents: bounds.takes_from_agents.as_ref().map(agents_among),
        clients: bounds.takes_from_clients.as_ref().map(agents_among),
        systems: bounds.takes_from_systems.as_ref().map(agents_among),
    };
    PermissionOverrides {
        can_see: (see != CanSee::default()).then_some(see),
        can_message: (message != CanMessage::default()).then_some(message),
        accepts_from: (accept != AcceptsFrom::default()).then_some(accept),
    }
}

fn agent_set(given: Option<Among>) -> Result<Option<AgentSet>, DoorError> {
    Ok(match given {
        None => None,
        Some(Among::Word(word)) => Some(match word.as_str() {
            "hierarchy" => AgentSet::Hierarchy,
            "scoped" => AgentSet::Scoped,
            "direct" => AgentSet::Direct,
            "none" => AgentSet::Empty,
            "all" => AgentSet::All,
            _ => return Err(unknown(&word)),
        }),
        Some(Among::Only { include }) => {
            Some(AgentSet::Only(include.iter().map(|id| read::agent(id)).collect::<Result<_, _>>()?))
        }
    })
}

fn scope_set(given: Option<Among>) -> Result<Option<ScopeSet>, DoorError> {
    Ok(match given {
        None => None,
        Some(Among::Word(word)) => Some(match word.as_str() {
            "member" => ScopeSet::Member,
            "none" => ScopeSet::Empty,
            "all" => ScopeSet::All,
            _ => return Err(unknown(&word)),
        }),
        Some(Among::Only { include }) => {
            Some(ScopeSet::Only(include.iter().map(|id| read::scope(id)).collect::<Result<_, _>>()?))
        }
    })
}

fn unknown(word: &str) -> DoorError {
    DoorError::params(format!("permissionOverrides: {word:?} is not known"))
}

fn agents_among(set: &AgentSet) -> Among {
    match set {
        AgentSet::All => Among::Word("all".to_owned()),
        AgentSet::Hierarchy => Among::Word("hierarchy".to_owned()),
        AgentSet::Scoped => Among::Word("scoped".to_owned()),
        AgentSet::Direct => Among::Word("direct".to_owned()),
        AgentSet::Empty => Among::Word("none".to_owned()),
        AgentSet::Only(list) => Among::Only { include: list.iter().map(ToString::to_string).collect() },
    }
}

fn scopes_among(set: &ScopeSet) -> Among {
    match set {
        ScopeSet::All => Among::Word("all".to_owned()),
        ScopeSet::Member => Among::Word("member".to_owned()),
        ScopeSet::Empty => Among::Word("none".to_owned()),
        ScopeSet::Only(list) => Among::Only { include: list.iter().map(ToString::to_string).collect() },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overrides_come_back_as_they_were_given() {
        let given = json!({
            "canSee": { "agents": "hierarchy", "scopes": "member", "structure": "local" },
            "canMessage": { "agents": { "include": ["a", "b"] }, "scopes": "none" },
            "acceptsFrom": { "agents": "scoped", "clients": "none", "systems": "all" },
        });
        let back = to_wire(&from_wire(&given).unwrap());
        assert_eq!(serde_json::to_string(&back).unwrap(), given.to_string());
        assert!(to_wire(&from_wire(&json!({})).unwrap()).is_empty());
        assert!(from_wire(&json!({ "canSee": { "agents": "friends" } })).is_err());
        assert!(from_wire(&json!({ "canSee": ["all"] })).is_err());
        assert!(from_wire(&json!("all")).is_err());
    }
}
