//! Permission overrides: whom an agent may see and exchange messages with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Permission overrides of an agent. Members that are absent change nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOverrides {
    /// What it sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can_see: Option<CanSee>,
    /// Whom it may send messages to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub can_message: Option<CanMessage>,
    /// Whose messages it receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepts_from: Option<AcceptsFrom>,
}

/// What an agent sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanSee {
    /// Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Among>,
    /// Scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Among>,
    /// The structure of agents: `full`, `local` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<String>,
}

/// Whom an agent may send messages to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanMessage {
    /// Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Among>,
    /// Scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Among>,
}

/// Whose messages an agent receives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptsFrom {
    /// Agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Among>,
    /// Clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Among>,
    /// Other systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub systems: Option<Among>,
}

/// A set of agents or scopes: a word (`all`, `hierarchy`, `scoped`, `direct` and `none` for agents; `all`, `member` and
/// `none` for scopes), or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Among {
    /// A word.
    Word(String),
    /// Exactly these.
    Only {
        /// Their ids.
        include: Vec<String>,
    },
}

const AGENT_WORDS: [&str; 5] = ["all", "hierarchy", "scoped", "direct", "none"];
const SCOPE_WORDS: [&str; 3] = ["all", "member", "none"];
const WRONG_AGENTS: &str = "permissionOverrides: all, hierarchy, scoped, direct, none or {include: […]}";
const WRONG_SCOPES: &str = "permissionOverrides: all, member, none or {include: […]}";

impl PermissionOverrides {
    /// Reads overrides. Unknown members are ignored; null counts as absent.
    ///
    /// # Errors
    /// Says what a member must be.
    pub fn read(given: &Value) -> Result<Self, String> {
        let Value::Object(groups) = given else { return Err("permissionOverrides: an object".to_owned()) };
        let group = |name: &str| match groups.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(group)) => Ok(Some(group)),
            Some(_) => Err(format!("permissionOverrides.{name}: an object")),
        };
        let (see, message, accept) = (group("canSee")?, group("canMessage")?, group("acceptsFrom")?);
        let structure = match see.and_then(|see| see.get("structure")) {
            None | Some(Value::Null) => None,
            Some(Value::String(word)) if ["full", "local", "none"].contains(&word.as_str()) => {
                Some(word.clone())
            }
            Some(_) => return Err("canSee.structure: full, local or none".to_owned()),
        };
        let can_see = see
            .map(|group| Ok(CanSee { agents: agents(group, "agents")?, scopes: scopes(group)?, structure }));
        let can_message =
            message.map(|group| Ok(CanMessage { agents: agents(group, "agents")?, scopes: scopes(group)? }));
        let accepts_from = accept.map(|group| {
            Ok(AcceptsFrom {
                agents: agents(group, "agents")?,
                clients: agents(group, "clients")?,
                systems: agents(group, "systems")?,
            })
        });
        let (can_see, can_message): (Result<_, String>, Result<_, String>) =
            (can_see.transpose(), can_message.transpose());
        let accepts_from: Result<_, String> = accepts_from.transpose();
        Ok(Self { can_see: can_see?, can_message: can_message?, accepts_from: accepts_from? })
    }

    /// Whether nothing is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.can_see.is_none() && self.can_message.is_none() && self.accepts_from.is_none()
    }
}

fn agents(group: &Map<String, Value>, name: &str) -> Result<Option<Among>, String> {
    among(group.get(name), &AGENT_WORDS, WRONG_AGENTS)
}

fn scopes(group: &Map<String, Value>) -> Result<Option<Among>, String> {
    among(group.get("scopes"), &SCOPE_WORDS, WRONG_SCOPES)
}

fn among(given: Option<&Value>, words: &[&str], wrong: &str) -> Result<Option<Among>, String> {
    let read = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(word)) => words.contains(&word.as_str()).then(|| Among::Word(word.clone())),
        Some(value) => value.get("include").and_then(Value::as_array).and_then(|list| {
            let ids: Option<Vec<String>> = list.iter().map(|id| id.as_str().map(str::to_owned)).collect();
            ids.map(|include| Among::Only { include })
        }),
    };
    read.map(Some).ok_or_else(|| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overrides_are_written_as_they_were_read() {
        let given = json!({
            "canSee": { "agents": "hierarchy", "scopes": "member", "structure": "local" },
            "canMessage": { "agents": { "include": ["a", "b"] } },
            "acceptsFrom": { "agents": "scoped", "clients": "none" },
        });
        let read = PermissionOverrides::read(&given).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), given.to_string());
        for wrong in [
            json!({ "canSee": { "agents": "friends" } }),
            json!({ "canSee": { "agents": "member" } }),
            json!({ "canSee": { "agents": { "include": [1] } } }),
            json!({ "canSee": ["all"] }),
            json!("all"),
        ] {
            assert!(PermissionOverrides::read(&wrong).is_err(), "{wrong}");
        }
        assert!(PermissionOverrides::read(&json!({ "canSee": null, "x": 1 })).unwrap().is_empty());
    }
}
