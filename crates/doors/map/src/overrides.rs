//! MAP's `permissionOverrides` and the engine's bounds: the same thing in two spellings.

use posthaste_engine::nouns::{AgentSet, Bounds, ScopeSet};
use serde_json::{Map, Value, json};

use super::errors::DoorError;
use super::from_wire as read;

/// Reads overrides; groups that are not given stay as they are.
pub(super) fn from_wire(given: &Value) -> Result<Bounds, DoorError> {
    let Value::Object(groups) = given else {
        return Err(DoorError::params("permissionOverrides: an object"));
    };
    for group in ["canSee", "canMessage", "acceptsFrom"] {
        if !matches!(groups.get(group), None | Some(Value::Null | Value::Object(_))) {
            return Err(DoorError::params(format!("permissionOverrides.{group}: an object")));
        }
    }
    let part = |group: &str, name: &str| groups.get(group).and_then(|group| group.get(name));
    let structure = match part("canSee", "structure") {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) if ["full", "local", "none"].contains(&word.as_str()) => Some(word.clone()),
        Some(_) => return Err(DoorError::params("canSee.structure: full, local or none")),
    };
    Ok(Bounds {
        sees: circle(part("canSee", "agents"))?,
        sees_scopes: scope_circle(part("canSee", "scopes"))?,
        sees_structure: structure,
        writes_to: circle(part("canMessage", "agents"))?,
        writes_to_scopes: scope_circle(part("canMessage", "scopes"))?,
        takes_from_agents: circle(part("acceptsFrom", "agents"))?,
        takes_from_clients: circle(part("acceptsFrom", "clients"))?,
        takes_from_systems: circle(part("acceptsFrom", "systems"))?,
        ..Bounds::default()
    })
}

/// Writes bounds as overrides.
pub(super) fn to_wire(bounds: &Bounds) -> Value {
    let mut out = Map::new();
    let mut put = |group: &str, name: &str, value: Option<Value>| {
        if let Some(value) = value {
            let group = out.entry(group).or_insert_with(|| json!({}));
            group[name] = value;
        }
    };
    put("canSee", "agents", bounds.sees.as_ref().map(circle_to_wire));
    put("canSee", "scopes", bounds.sees_scopes.as_ref().map(scopes_to_wire));
    put("canSee", "structure", bounds.sees_structure.clone().map(Value::from));
    put("canMessage", "agents", bounds.writes_to.as_ref().map(circle_to_wire));
    put("canMessage", "scopes", bounds.writes_to_scopes.as_ref().map(scopes_to_wire));
    put("acceptsFrom", "agents", bounds.takes_from_agents.as_ref().map(circle_to_wire));
    put("acceptsFrom", "clients", bounds.takes_from_clients.as_ref().map(circle_to_wire));
    put("acceptsFrom", "systems", bounds.takes_from_systems.as_ref().map(circle_to_wire));
    Value::Object(out)
}

fn circle(given: Option<&Value>) -> Result<Option<AgentSet>, DoorError> {
    let wrong =
        || DoorError::params("permissionOverrides: all, hierarchy, scoped, direct, none or {include: […]}");
    Ok(match given {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) => Some(match word.as_str() {
            "all" => AgentSet::All,
            "hierarchy" => AgentSet::Hierarchy,
            "scoped" => AgentSet::Scoped,
            "direct" => AgentSet::Direct,
            "none" => AgentSet::Empty,
            _ => return Err(wrong()),
        }),
        Some(value) => Some(AgentSet::Only(
            included(value, wrong)?.into_iter().map(read::agent).collect::<Result<_, _>>()?,
        )),
    })
}

fn scope_circle(given: Option<&Value>) -> Result<Option<ScopeSet>, DoorError> {
    let wrong = || DoorError::params("permissionOverrides: all, member, none or {include: […]}");
    Ok(match given {
        None | Some(Value::Null) => None,
        Some(Value::String(word)) => Some(match word.as_str() {
            "all" => ScopeSet::All,
            "member" => ScopeSet::Member,
            "none" => ScopeSet::Empty,
            _ => return Err(wrong()),
        }),
        Some(value) => Some(ScopeSet::Only(
            included(value, wrong)?.into_iter().map(read::scope).collect::<Result<_, _>>()?,
        )),
    })
}

fn included(value: &Value, wrong: impl Fn() -> DoorError) -> Result<Vec<&str>, DoorError> {
    let list = value.get("include").and_then(Value::as_array).ok_or_else(&wrong)?;
    list.iter().map(|id| id.as_str().ok_or_else(&wrong)).collect()
}

fn circle_to_wire(circle: &AgentSet) -> Value {
    match circle {
        AgentSet::All => "all".into(),
        AgentSet::Hierarchy => "hierarchy".into(),
        AgentSet::Scoped => "scoped".into(),
        AgentSet::Direct => "direct".into(),
        AgentSet::Empty => "none".into(),
        AgentSet::Only(list) => json!({ "include": list }),
    }
}

fn scopes_to_wire(circle: &ScopeSet) -> Value {
    match circle {
        ScopeSet::All => "all".into(),
        ScopeSet::Member => "member".into(),
        ScopeSet::Empty => "none".into(),
        ScopeSet::Only(list) => json!({ "include": list }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_come_back_as_they_were_given() {
        let given = json!({
            "canSee": { "agents": "hierarchy", "scopes": "member", "structure": "local" },
            "canMessage": { "agents": { "include": ["a", "b"] } },
            "acceptsFrom": { "clients": "none", "agents": "scoped" },
        });
        let bounds = from_wire(&given).unwrap();
        let back = to_wire(&bounds);
        for pointer in [
            "/canSee/agents",
            "/canSee/scopes",
            "/canSee/structure",
            "/canMessage/agents",
            "/acceptsFrom/clients",
        ] {
            assert_eq!(back.pointer(pointer), given.pointer(pointer), "{pointer}");
        }
        assert!(from_wire(&json!({ "canSee": { "agents": "friends" } })).is_err());
        assert!(from_wire(&json!({ "canSee": ["all"] })).is_err());
        assert!(from_wire(&json!("all")).is_err());
    }
}
