//! The structure of agents: the graph, the draft's hierarchy, and lists of roles, environments and users.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind};
use posthaste_engine::views::{AgentQuery, Structure};
use posthaste_wire::map::agent::{
    AgentEnvironment, Edge, EnvironmentListResult, GraphParams, GraphResult, Relatives, RoleListResult, User,
    UserListResult,
};
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::nouns;
use super::session::Session;

/// Which relatives the draft's hierarchy methods ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Parent,
    Children,
    Siblings,
    Ancestors,
    Descendants,
}

/// `map/structure/graph` and `map/hierarchy.get`; in acp-compat mode a flat list.
pub(super) async fn graph(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: GraphParams = params(given)?;
    let root = asked.root_agent_id.as_deref().map(from_wire::agent).transpose()?;
    let mut agents = match root {
        Some(root) => below(at, session, root, asked.depth.unwrap_or(64)).await?,
        None => all_visible(at, session, Vec::new()).await?,
    };
    if let Some(near) = near(at, session).await? {
        agents.retain(|agent| near.contains(&agent.id));
    }
    let nodes = nouns::agents(&agents);
    if session.is_compat() {
        return Ok(Answer::of(&GraphResult::Flat { agents: nodes }));
    }
    let known: BTreeSet<&AgentId> = agents.iter().map(|agent| &agent.id).collect();
    let edges = agents
        .iter()
        .filter_map(|agent| agent.parent.as_ref().map(|parent| (parent, agent)))
        .filter(|(parent, _)| known.contains(parent))
        .map(|(parent, agent)| Edge {
            from: parent.to_string(),
            to: agent.id.to_string(),
            kind: "parent-child".to_owned(),
        })
        .collect();
    Ok(Answer::of(&GraphResult::Graph { nodes, edges }))
}

/// The error of acp-compat mode for questions about the hierarchy.
pub(super) fn flat_only() -> DoorError {
    DoorError::denied("acp-compat mode has a flat list of agents only: map/hierarchy.get")
}

/// The agents whose position in the structure a session sees; `None` for all.
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

/// All agents that the session sees, up to the limit of one read.
async fn all_visible(
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

/// `map/hierarchy.parent`, `map/hierarchy.children` and the other directions.
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
    Ok(Answer::of(&match side {
        Side::Parent => Relatives::Parent(around.parent.as_ref().map(nouns::agent).map(Box::new)),
        Side::Children => Relatives::Children(nouns::agents(&around.children)),
        Side::Siblings => Relatives::Siblings(nouns::agents(&around.siblings)),
        Side::Ancestors => Relatives::Ancestors(nouns::agents(&around.ancestors)),
        Side::Descendants => Relatives::Descendants(nouns::agents(&around.descendants)),
    }))
}

/// `map/role.list`: the roles of all agents.
pub(super) async fn roles(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let agents = all_visible(at, session, Vec::new()).await?;
    let roles: BTreeSet<String> = agents.into_iter().filter_map(|agent| agent.role).collect();
    Ok(Answer::of(&RoleListResult { roles: roles.into_iter().collect() }))
}

/// `map/env.list`: the environments that agents declared.
pub(super) async fn environments(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let agents = all_visible(at, session, Vec::new()).await?;
    let environments = agents
        .iter()
        .filter_map(|agent| {
            let environment = nouns::own_member(agent, "environment")?;
            Some(AgentEnvironment { agent_id: agent.id.to_string(), environment })
        })
        .collect();
    Ok(Answer::of(&EnvironmentListResult { environments }))
}

/// `map/user.list`: people, and clients that act for them.
pub(super) async fn users(at: &mut Connection, session: &Arc<Session>) -> Outcome {
    let kinds = vec![AgentKind::User, AgentKind::Admin, AgentKind::Client];
    let users = all_visible(at, session, kinds).await?.into_iter().map(|user| User {
        id: user.id.to_string(),
        name: user.name,
        kind: user.kind.as_str().to_owned(),
    });
    Ok(Answer::of(&UserListResult { users: users.collect() }))
}
