//! Who stands where: the graph, the draft's hierarchy, and lists made from the address book.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind};
use posthaste_engine::views::{AgentQuery, Structure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::session::Session;
use super::to_wire;

/// One of the draft's hierarchy questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Parent,
    Children,
    Siblings,
    Ancestors,
    Descendants,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GraphParams {
    #[serde(alias = "agentId", alias = "root")]
    root_agent_id: Option<String>,
    depth: Option<u32>,
}

/// `map/structure/graph` and `map/hierarchy.get`; in acp-compat mode a flat list.
pub(super) async fn graph(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: GraphParams = params(given)?;
    let root = asked.root_agent_id.as_deref().map(from_wire::agent).transpose()?;
    let mut agents = match root {
        Some(root) => below(at, session, root, asked.depth.unwrap_or(64)).await?,
        None => everyone(at, session, Vec::new()).await?,
    };
    if let Some(near) = near(at, session).await? {
        agents.retain(|agent| near.contains(&agent.id));
    }
    let nodes: Vec<Value> = agents.iter().map(to_wire::agent).collect();
    if session.is_compat() {
        return Ok(json!({ "agents": nodes }).into());
    }
    let known: BTreeSet<&AgentId> = agents.iter().map(|agent| &agent.id).collect();
    let edges: Vec<Value> = agents
        .iter()
        .filter_map(|agent| agent.parent.as_ref().map(|parent| (parent, agent)))
        .filter(|(parent, _)| known.contains(parent))
        .map(|(parent, agent)| json!({ "from": parent, "to": agent.id, "type": "parent-child" }))
        .collect();
    Ok(json!({ "nodes": nodes, "edges": edges }).into())
}

/// What a session of acp-compat mode hears when it asks who stands where.
pub(super) fn flat_only() -> DoorError {
    DoorError::denied("acp-compat mode has a flat list of agents only: map/hierarchy.get")
}

/// Whom a session sees a place of, if that is not everybody's.
async fn near(at: &Connection, session: &Session) -> Result<Option<BTreeSet<AgentId>>, DoorError> {
    let caller = session.caller();
    let seen = at.engine.read(move |view| {
        if view.structure(&caller)? == Structure::Full {
            return Ok(None);
        }
        let around = view.relatives(&caller, &caller.agent, 1)?;
        let agents = around.parent.into_iter().chain(around.siblings).chain(around.children);
        Ok(Some(agents.map(|agent| agent.id).chain([caller.agent.clone()]).collect()))
    });
    Ok(seen.await?)
}

async fn below(
    at: &Connection,
    session: &Session,
    root: AgentId,
    depth: u32,
) -> Result<Vec<Agent>, DoorError> {
    let caller = session.caller();
    Ok(at
        .engine
        .read(move |view| {
            let mut agents = vec![view.agent(&caller, &root)?];
            agents.extend(view.relatives(&caller, &root, depth)?.descendants);
            Ok(agents)
        })
        .await?)
}

/// Everyone the session sees, as many as one answer may hold.
async fn everyone(
    at: &Connection,
    session: &Session,
    kinds: Vec<AgentKind>,
) -> Result<Vec<Agent>, DoorError> {
    let kinds =
        if kinds.is_empty() { vec![AgentKind::Agent, AgentKind::User, AgentKind::Admin] } else { kinds };
    let caller = session.caller();
    let query = AgentQuery { kinds, limit: usize::MAX, ..AgentQuery::default() };
    Ok(at.engine.read(move |view| Ok(view.agents(&caller, &query)?.items)).await?)
}

/// `map/hierarchy.parent` and its like.
pub(super) async fn relatives(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
    side: Side,
) -> Outcome {
    let asked: GraphParams = params(given)?;
    let id = match asked.root_agent_id.as_deref() {
        Some(id) => from_wire::agent(id)?,
        None => session.actor(),
    };
    let caller = session.caller_for(&id);
    let depth = asked.depth.unwrap_or(64);
    let around = at.engine.read(move |view| view.relatives(&caller, &id, depth)).await?;
    let many = |agents: &[Agent]| Value::Array(agents.iter().map(to_wire::agent).collect());
    Ok(match side {
        Side::Parent => json!({ "parent": around.parent.as_ref().map(to_wire::agent) }),
        Side::Children => json!({ "children": many(&around.children) }),
        Side::Siblings => json!({ "siblings": many(&around.siblings) }),
        Side::Ancestors => json!({ "ancestors": many(&around.ancestors) }),
        Side::Descendants => json!({ "descendants": many(&around.descendants) }),
    }
    .into())
}

/// `map/role.list`: the roles that agents play.
pub(super) async fn roles(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let agents = everyone(at, session, Vec::new()).await?;
    let roles: BTreeSet<&String> = agents.iter().filter_map(|agent| agent.role.as_ref()).collect();
    Ok(json!({ "roles": roles }).into())
}

/// `map/env.list`: the surroundings that agents tell of.
pub(super) async fn environments(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let agents = everyone(at, session, Vec::new()).await?;
    let told: Vec<Value> = agents
        .iter()
        .filter_map(|agent| {
            let environment = to_wire::own_member(agent, "environment")?;
            Some(json!({ "agentId": agent.id, "environment": environment }))
        })
        .collect();
    Ok(json!({ "environments": told }).into())
}

/// `map/user.list`: people and the clients that stand for them.
pub(super) async fn users(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let users = everyone(at, session, vec![AgentKind::User, AgentKind::Admin, AgentKind::Client]).await?;
    let users: Vec<Value> = users
        .iter()
        .map(|user| json!({ "id": user.id, "name": user.name, "kind": user.kind.as_str() }))
        .collect();
    Ok(json!({ "users": users }).into())
}
