//! Agents, scopes and tasks as MAP writes them, and what this door stores in their metadata.

use posthaste_engine::nouns::{Agent, AgentKind, Json, Scope, Task};
use posthaste_wire::map::{agent as agents, scope as scopes, task as tasks};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{overrides, to_wire};

/// Prefix of the members of an agent's metadata that are this door's own.
pub(super) const OWN: &str = "map:";

/// A value of the wire as the engine stores it.
pub(super) fn stored(value: &impl Serialize) -> Json {
    Json::from_checked(&to_wire::text(value))
}

/// Metadata as the engine stores it.
pub(super) fn stored_meta(meta: Map<String, Value>) -> Json {
    Json::from_value(&Value::Object(meta))
}

/// The members of stored metadata; none if it is no object.
pub(super) fn members(meta: Option<&Json>) -> Map<String, Value> {
    match meta.map(Json::value) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Splits an agent's metadata into the door's own members and the agent's.
fn split_meta(meta: Option<&Json>) -> (Map<String, Value>, Map<String, Value>) {
    let (mut own, mut metadata) = (Map::new(), Map::new());
    for (name, value) in members(meta) {
        match name.strip_prefix(OWN) {
            Some(name) => own.insert(name.to_owned(), value),
            None => metadata.insert(name, value),
        };
    }
    (own, metadata)
}

/// One of the door's own members of an agent's metadata.
pub(super) fn own_member(agent: &Agent, name: &str) -> Option<Value> {
    split_meta(agent.meta.as_ref()).0.remove(name)
}

/// An agent's metadata without the door's own members.
pub(super) fn metadata(agent: &Agent) -> Map<String, Value> {
    split_meta(agent.meta.as_ref()).1
}

pub(super) fn agent(agent: &Agent) -> agents::Agent {
    let (mut own, metadata) = split_meta(agent.meta.as_ref());
    agents::Agent {
        id: agent.id.to_string(),
        owner_id: agent.owner.as_ref().map(ToString::to_string),
        state: agent.state.clone(),
        visibility: agent.visibility.as_str().to_owned(),
        scopes: agent.scopes.iter().map(ToString::to_string).collect(),
        lifecycle: agents::AgentTimes { created_at: agent.created_at, last_active_at: agent.updated_at },
        metadata,
        name: agent.name.clone(),
        description: agent.description.clone(),
        role: agent.role.clone(),
        parent: agent.parent.as_ref().map(ToString::to_string),
        capabilities: agent.capabilities.as_ref().map(Json::value),
        permission_overrides: agent
            .bounds
            .as_ref()
            .map(overrides::to_wire)
            .filter(|overrides| !overrides.is_empty()),
        environment: own.remove("environment"),
        capability_descriptor: own.remove("capabilityDescriptor"),
        persistent_identity: own.remove("persistentIdentity"),
        kind: (agent.kind != AgentKind::Agent).then(|| agent.kind.as_str().to_owned()),
    }
}

pub(super) fn agents<'a>(list: impl IntoIterator<Item = &'a Agent>) -> Vec<agents::Agent> {
    list.into_iter().map(agent).collect()
}

pub(super) fn scope(scope: &Scope) -> scopes::Scope {
    let mut metadata = members(scope.meta.as_ref());
    // Databases of earlier versions have this member, which is a column of the scope now.
    metadata.remove("map:messageVisibility");
    let persistent = metadata.remove("map:persistent");
    let parent = scope.parent.as_ref().map(ToString::to_string);
    scopes::Scope {
        id: scope.id.to_string(),
        join_policy: scope.join_policy.as_str().to_owned(),
        visibility: scope.visibility.as_str().to_owned(),
        send_policy: scope.send_policy.as_str().to_owned(),
        message_visibility: scope.messages_seen_by.as_str().to_owned(),
        auto_delete: scope.auto_delete,
        created_by: scope.created_by.to_string(),
        created_at: scope.created_at,
        metadata,
        name: scope.name.clone(),
        description: scope.description.clone(),
        parent: parent.clone(),
        parent_id: parent,
        auto_join_roles: scope.roles.clone(),
        persistent,
    }
}

pub(super) fn task(task: &Task) -> tasks::Task {
    tasks::Task {
        id: task.id.to_string(),
        status: task.status.as_str().to_owned(),
        owner: task.owner.clone(),
        created_at: task.created_at,
        updated_at: task.updated_at,
        title: task.title.clone(),
        description: task.description.clone(),
        assignee: task.assignee.as_ref().map(ToString::to_string),
        result: task.result.as_ref().map(Json::value),
        meta: task.meta.as_ref().map(Json::value),
        ended_at: task.ended_at,
    }
}
