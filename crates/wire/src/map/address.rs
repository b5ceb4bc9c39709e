//! Recipient addresses of messages, in every form of the draft and the SDK.

use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum number of parts of one address; each part is resolved separately.
const MAX_ADDRESS_PARTS: usize = 1000;

/// One part of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A bare id: an agent, or a scope if one has that id.
    Named(String),
    /// One agent, or one participant if no agent has that id.
    Agent(String),
    /// The members of a scope.
    Scope(String),
    /// All agents with a role.
    Role {
        /// The role.
        role: String,
        /// Restricts the role to members of this scope.
        within: Option<String>,
    },
    /// The sender's parent.
    Parent,
    /// The sender's children.
    Children {
        /// Number of levels; one by default.
        depth: Option<u32>,
    },
    /// Agents with the same parent as the sender.
    Siblings,
    /// All ancestors of the sender.
    Ancestors {
        /// Maximum number of levels; unlimited by default.
        depth: Option<u32>,
    },
    /// All descendants of the sender.
    Descendants {
        /// Maximum number of levels; unlimited by default.
        depth: Option<u32>,
    },
    /// Every agent.
    Broadcast,
    /// The server itself; the message is delivered to no agent.
    System,
    /// The participant connected with this id.
    Participant(String),
    /// All participants of a class.
    Participants(Class),
    /// A recipient in another system.
    Federated {
        /// The other system.
        system: String,
        /// The address within that system.
        target: Box<Address>,
    },
}

/// A class of participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// All participants.
    All,
    /// Participants that are agents.
    Agents,
    /// Participants that are clients.
    Clients,
}

/// Why a value is not an address.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AddressError {
    /// Neither a string, nor an object, nor a list of them.
    #[error("an address is a string, an object, or a list of these")]
    Shape,
    /// Not exactly one member that names recipients.
    #[error(
        "an address names exactly one of agent, agents, scope, role, parent, children, siblings, ancestors, descendants, broadcast, participant, participants and system"
    )]
    Kind,
    /// A member with an invalid value.
    #[error("the address member {0} has an invalid value")]
    Member(&'static str),
    /// An empty or too long list.
    #[error("an address has 1 to {MAX_ADDRESS_PARTS} parts")]
    Count,
}

/// `{agent: "x"}`, the form that nearly every message has; parsed without building a `Value`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct OneAgent<'a> {
    agent: &'a str,
}

impl Address {
    /// Parses the `to` of a message from its JSON text.
    pub fn parse_text(text: &str) -> Result<Vec<Self>, AddressError> {
        if text.starts_with('{')
            && let Ok(OneAgent { agent }) = serde_json::from_str(text)
            && !agent.is_empty()
        {
            let mut found = Vec::with_capacity(1);
            agent_member(agent, &mut found)?;
            return Ok(found);
        }
        let value = serde_json::from_str(text).map_err(|_| AddressError::Shape)?;
        Self::parse(&value)
    }

    /// Parses the `to` of a message; a list yields one part per entry.
    pub fn parse(value: &Value) -> Result<Vec<Self>, AddressError> {
        let mut found = Vec::new();
        match value {
            Value::Array(list) => {
                for one in list {
                    if one.is_array() {
                        return Err(AddressError::Shape);
                    }
                    one_address(one, &mut found)?;
                }
            }
            other => one_address(other, &mut found)?,
        }
        if found.is_empty() || found.len() > MAX_ADDRESS_PARTS { Err(AddressError::Count) } else { Ok(found) }
    }
}

fn one_address(value: &Value, found: &mut Vec<Address>) -> Result<(), AddressError> {
    match value {
        Value::String(text) => {
            found.push(from_string(text)?);
            Ok(())
        }
        Value::Object(members) => from_object(members, found),
        _ => Err(AddressError::Shape),
    }
}

fn from_string(text: &str) -> Result<Address, AddressError> {
    let non_empty = |text: &str, member| {
        if text.is_empty() { Err(AddressError::Member(member)) } else { Ok(text.to_owned()) }
    };
    if let Some(id) = text.strip_prefix("agent:") {
        return Ok(Address::Agent(non_empty(id, "agent")?));
    }
    if let Some(id) = text.strip_prefix("scope:") {
        return Ok(Address::Scope(non_empty(id, "scope")?));
    }
    // The id of a federated sender, as recipients see it.
    if let Some((system, agent)) = text.split_once(":agent:")
        && !system.is_empty()
        && !agent.is_empty()
    {
        return Ok(Address::Federated {
            system: system.to_owned(),
            target: Box::new(Address::Agent(agent.to_owned())),
        });
    }
    Ok(Address::Named(non_empty(text, "agent")?))
}

fn from_object(members: &Map<String, Value>, found: &mut Vec<Address>) -> Result<(), AddressError> {
    if let Some(kind) = members.get("type") {
        return from_draft(kind, members, found);
    }
    if let Some(Value::String(system)) = members.get("system") {
        let mut rest = members.clone();
        rest.remove("system");
        let mut target = Vec::new();
        from_object(&rest, &mut target)?;
        for target in target {
            found.push(Address::Federated { system: system.clone(), target: Box::new(target) });
        }
        return Ok(());
    }
    // A member that is false or null counts as absent.
    let given =
        |name: &str| members.get(name).filter(|value| !matches!(value, Value::Null | Value::Bool(false)));
    let kinds = [
        "agent",
        "agents",
        "scope",
        "role",
        "parent",
        "children",
        "siblings",
        "ancestors",
        "descendants",
        "broadcast",
        "participant",
        "participants",
        "system",
    ];
    let mut chosen = kinds.iter().filter(|name| given(name).is_some());
    let (Some(kind), None) = (chosen.next(), chosen.next()) else { return Err(AddressError::Kind) };
    let Some(value) = given(kind) else { return Err(AddressError::Kind) };
    let text = |member| match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(AddressError::Member(member)),
    };
    let flag = |member, address| {
        if value == &Value::Bool(true) { Ok(address) } else { Err(AddressError::Member(member)) }
    };
    let depth = || match members.get("depth") {
        None | Some(Value::Null) => Ok(None),
        Some(depth) => match depth.as_u64().and_then(|depth| u32::try_from(depth).ok()) {
            Some(0) | None => Err(AddressError::Member("depth")),
            some => Ok(some),
        },
    };
    found.push(match *kind {
        "agent" => return agent_member(&text("agent")?, found),
        "agents" => return agents_member(value, found),
        "scope" => Address::Scope(text("scope")?),
        "role" => {
            let within = match members.get("within") {
                None | Some(Value::Null) => None,
                Some(Value::String(scope)) if !scope.is_empty() => Some(scope.clone()),
                Some(_) => return Err(AddressError::Member("within")),
            };
            Address::Role { role: text("role")?, within }
        }
        "parent" => flag("parent", Address::Parent)?,
        "children" => flag("children", Address::Children { depth: depth()? })?,
        "siblings" => flag("siblings", Address::Siblings)?,
        "ancestors" => flag("ancestors", Address::Ancestors { depth: depth()? })?,
        "descendants" => flag("descendants", Address::Descendants { depth: depth()? })?,
        "broadcast" => flag("broadcast", Address::Broadcast)?,
        "participant" => Address::Participant(text("participant")?),
        "participants" => Address::Participants(match value.as_str() {
            Some("all") => Class::All,
            Some("agents") => Class::Agents,
            Some("clients") => Class::Clients,
            _ => return Err(AddressError::Member("participants")),
        }),
        _ => flag("system", Address::System)?,
    });
    Ok(())
}

fn agent_member(id: &str, found: &mut Vec<Address>) -> Result<(), AddressError> {
    found.push(match from_string(id)? {
        federated @ Address::Federated { .. } => federated,
        _ => Address::Agent(id.to_owned()),
    });
    Ok(())
}

fn agents_member(value: &Value, found: &mut Vec<Address>) -> Result<(), AddressError> {
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or(AddressError::Member("agents"))?;
    for id in list {
        let id = id.as_str().filter(|id| !id.is_empty()).ok_or(AddressError::Member("agents"))?;
        agent_member(id, found)?;
    }
    Ok(())
}

/// Parses the draft's form: `{type: "agent", id: "x"}` is `{agent: "x"}`, and `{type: "parent"}` is `{parent: true}`.
fn from_draft(
    kind: &Value,
    members: &Map<String, Value>,
    found: &mut Vec<Address>,
) -> Result<(), AddressError> {
    let kind = kind.as_str().ok_or(AddressError::Member("type"))?;
    let id = ["id", "ids", kind].iter().find_map(|name| members.get(*name)).cloned();
    let mut converted = Map::new();
    converted.insert(kind.to_owned(), id.unwrap_or(Value::Bool(true)));
    for name in ["within", "depth", "system"] {
        if name != kind
            && let Some(value) = members.get(name)
        {
            converted.insert(name.to_owned(), value.clone());
        }
    }
    from_object(&converted, found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn agent(id: &str) -> Address {
        Address::Agent(id.to_owned())
    }

    #[test]
    fn every_address_form_is_parsed() {
        let role = |role: &str, within: Option<&str>| Address::Role {
            role: role.to_owned(),
            within: within.map(str::to_owned),
        };
        let remote =
            |system: &str, target| Address::Federated { system: system.to_owned(), target: Box::new(target) };
        for (value, expected) in [
            (json!("x"), vec![Address::Named("x".into())]),
            (json!("agent:x"), vec![agent("x")]),
            (json!("scope:x"), vec![Address::Scope("x".into())]),
            (json!("beta:agent:x"), vec![remote("beta", agent("x"))]),
            (json!({ "agent": "x" }), vec![agent("x")]),
            (json!({ "agent": "beta:agent:x" }), vec![remote("beta", agent("x"))]),
            (json!({ "agents": ["x", "y"] }), vec![agent("x"), agent("y")]),
            (json!({ "scope": "s" }), vec![Address::Scope("s".into())]),
            (json!({ "role": "r" }), vec![role("r", None)]),
            (json!({ "role": "r", "within": "s" }), vec![role("r", Some("s"))]),
            (json!({ "parent": true }), vec![Address::Parent]),
            (json!({ "children": true }), vec![Address::Children { depth: None }]),
            (json!({ "children": true, "depth": 2 }), vec![Address::Children { depth: Some(2) }]),
            (json!({ "siblings": true }), vec![Address::Siblings]),
            (json!({ "ancestors": true, "depth": 1 }), vec![Address::Ancestors { depth: Some(1) }]),
            (json!({ "descendants": true }), vec![Address::Descendants { depth: None }]),
            (json!({ "broadcast": true }), vec![Address::Broadcast]),
            (json!({ "system": true }), vec![Address::System]),
            (json!({ "system": "beta", "agent": "x" }), vec![remote("beta", agent("x"))]),
            (json!({ "participant": "p" }), vec![Address::Participant("p".into())]),
            (json!({ "participants": "clients" }), vec![Address::Participants(Class::Clients)]),
            (json!([{ "agent": "x" }, "scope:s"]), vec![agent("x"), Address::Scope("s".into())]),
            (json!({ "type": "agent", "id": "x" }), vec![agent("x")]),
            (json!({ "type": "agents", "ids": ["x", "y"] }), vec![agent("x"), agent("y")]),
            (json!({ "type": "role", "id": "r", "within": "s" }), vec![role("r", Some("s"))]),
            (json!({ "type": "broadcast" }), vec![Address::Broadcast]),
            (json!({ "type": "parent" }), vec![Address::Parent]),
        ] {
            assert_eq!(Address::parse_text(&value.to_string()).as_ref(), Ok(&expected), "{value}");
            assert_eq!(Address::parse(&value), Ok(expected), "{value}");
        }
    }

    #[test]
    fn addresses_without_a_recipient_are_refused() {
        for value in [
            json!(null),
            json!({}),
            json!([]),
            json!(5),
            json!(""),
            json!("agent:"),
            json!({ "agent": "" }),
            json!({ "agent": 5 }),
            json!({ "agents": [] }),
            json!({ "agents": [1] }),
            json!({ "parent": false }),
            json!({ "parent": 1 }),
            json!({ "agent": "x", "scope": "s" }),
            json!({ "participants": "dogs" }),
            json!({ "children": true, "depth": 0 }),
            json!({ "system": "beta" }),
            json!({ "type": "dragon", "id": "x" }),
            json!([["x"]]),
        ] {
            assert!(Address::parse(&value).is_err(), "{value}");
            assert!(Address::parse_text(&value.to_string()).is_err(), "{value}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z:]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            let key =
                prop_oneof!["agents?|scope|role|type|id|system|depth|within|children|parent", "[a-z]{1,6}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn parser_accepts_or_refuses_any_value(value in any_json()) {
            let found = Address::parse(&value);
            prop_assert_eq!(&Address::parse_text(&value.to_string()), &found);
            if let Ok(found) = found {
                prop_assert!(!found.is_empty());
            }
        }
    }
}
