//! `map/agents/list`: all agents that match a filter.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json};
use posthaste_engine::views::{AgentQuery, View, Viewed};
use posthaste_wire::map::agent::{AgentFilter, ListParams, ListResult};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::from_wire::{self, params};
use super::nouns;
use super::session::Session;

/// `map/agents/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ListParams = params(given)?;
    let limit = from_wire::limit(asked.limit.as_ref(), 1000, 1000)?;
    let wanted = asked.filter.merged(asked.beside);
    let query = AgentQuery {
        states: wanted.states.clone(),
        roles: wanted.roles.clone(),
        kinds: vec![AgentKind::Agent, AgentKind::User, AgentKind::Admin],
        parent: wanted.parent.as_deref().map(from_wire::agent).transpose()?,
        owner: wanted.owner_id.as_deref().map(from_wire::agent).transpose()?,
        after: asked.cursor.as_deref().map(from_wire::agent).transpose()?,
        limit,
        ..AgentQuery::default()
    };
    // A session that does not exist has no agents.
    let of_session = wanted.session_id.as_deref().map(|id| -> BTreeSet<AgentId> {
        at.registry.session(id).map_or_else(BTreeSet::new, |other| other.agents().into_iter().collect())
    });
    let caller = session.caller();
    let (found, next) =
        at.engine.read(move |view| page(view, &caller, query, &wanted, of_session.as_ref())).await?;
    Ok(Answer::of(&ListResult { agents: nouns::agents(&found), next_cursor: next.map(|id| id.to_string()) }))
}

/// All agents with a persistent identity, hidden ones included.
pub(super) fn with_persistent_id(view: &View<'_>, id: String) -> Viewed<Vec<Agent>> {
    let query = AgentQuery { kinds: vec![AgentKind::Agent], limit: 1000, ..AgentQuery::default() };
    let wanted = AgentFilter { persistent_id: Some(id), ..AgentFilter::default() };
    Ok(page(view, &Caller::office(), query, &wanted, None)?.0)
}

/// The id in a persistent identity.
pub(super) fn persistent_id(identity: &Value) -> Option<&str> {
    identity.get("persistentId").or_else(|| identity.get("id"))?.as_str()
}

/// A full page of agents that match, however many the conditions beyond the query leave out.
fn page(
    view: &View<'_>,
    caller: &Caller,
    mut query: AgentQuery,
    wanted: &AgentFilter,
    of_session: Option<&BTreeSet<AgentId>>,
) -> Viewed<(Vec<Agent>, Option<AgentId>)> {
    let mut found = Vec::new();
    loop {
        let page = view.agents(caller, &query)?;
        for agent in page.items {
            if of_session.is_some_and(|agents| !agents.contains(&agent.id))
                || !fits(view, caller, &agent, wanted)?
            {
                continue;
            }
            if found.len() == query.limit {
                let next = found.last().map(|last: &Agent| last.id.clone());
                return Ok((found, next));
            }
            found.push(agent);
        }
        match page.next {
            Some(next) if view.has_enough() => return Ok((found, Some(next))),
            Some(next) => query.after = Some(next),
            None => return Ok((found, None)),
        }
    }
}

fn fits(view: &View<'_>, caller: &Caller, agent: &Agent, wanted: &AgentFilter) -> Viewed<bool> {
    if !wanted.scopes.is_empty()
        && !agent.scopes.iter().any(|id| wanted.scopes.iter().any(|s| s == id.as_str()))
    {
        return Ok(false);
    }
    let descriptor = nouns::own_member(agent, "capabilityDescriptor").unwrap_or_default();
    // Lists of words, or of objects that have the word in the member of that name.
    let lists = |list: &str, name: &str, word: &str| match descriptor.get(list) {
        Some(Value::Array(list)) => list
            .iter()
            .any(|one| one.as_str() == Some(word) || one.get(name).and_then(Value::as_str) == Some(word)),
        _ => false,
    };
    if let Some(id) = &wanted.capability_id {
        let declared = agent.capabilities.as_ref().map(Json::value).unwrap_or_default();
        let named = declared.get(id).is_some_and(|value| *value != Value::Bool(false))
            || declared.as_array().is_some_and(|list| list.iter().any(|one| one.as_str() == Some(id)));
        let described =
            || lists("capabilities", "id", id) || descriptor.get("id").and_then(Value::as_str) == Some(id);
        if !named && !described() {
            return Ok(false);
        }
    }
    if !wanted.tags.is_empty() && !wanted.tags.iter().any(|tag| lists("tags", "id", tag)) {
        return Ok(false);
    }
    let takes = |kind: &String| lists("accepts", "contentType", kind) || lists("accepts", "id", kind);
    if !wanted.accepts.is_empty() && !wanted.accepts.iter().any(takes) {
        return Ok(false);
    }
    if let Some(id) = &wanted.persistent_id {
        let identity = nouns::own_member(agent, "persistentIdentity").unwrap_or_default();
        if persistent_id(&identity) != Some(id) {
            return Ok(false);
        }
    }
    if let Some(wanted) = wanted.has_children {
        let query = AgentQuery { parent: Some(agent.id.clone()), limit: 1, ..AgentQuery::default() };
        return Ok(view.agents(caller, &query)?.items.is_empty() != wanted);
    }
    Ok(true)
}
