//! `map/agents/list`: everyone who fits, whichever way it is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json};
use posthaste_engine::views::{AgentQuery, View, Viewed};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::connection::{Connection, Outcome};
use super::from_wire::{self, object_or_default, params};
use super::session::Session;
use super::to_wire;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListParams {
    #[serde(deserialize_with = "object_or_default")]
    filter: Wanted,
    // Some clients write the filter's fields beside it.
    #[serde(flatten)]
    beside: Wanted,
    limit: Option<Value>,
    cursor: Option<String>,
}

/// What is asked for. A list and its singular mean the same, and so do one word and a list of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    #[serde(deserialize_with = "words")]
    states: Vec<String>,
    #[serde(deserialize_with = "words")]
    state: Vec<String>,
    #[serde(deserialize_with = "words")]
    roles: Vec<String>,
    #[serde(deserialize_with = "words")]
    role: Vec<String>,
    #[serde(deserialize_with = "words")]
    scopes: Vec<String>,
    #[serde(deserialize_with = "words")]
    scope: Vec<String>,
    #[serde(deserialize_with = "words")]
    tags: Vec<String>,
    #[serde(deserialize_with = "words")]
    accepts: Vec<String>,
    parent: Option<String>,
    has_children: Option<bool>,
    owner_id: Option<String>,
    session_id: Option<String>,
    capability_id: Option<String>,
    capability: Option<String>,
    persistent_id: Option<String>,
}

impl Wanted {
    /// With what was written beside it, and each thing in one place.
    fn with(mut self, mut beside: Self) -> Self {
        for (all, more) in [
            (&mut self.states, [&mut self.state, &mut beside.states, &mut beside.state]),
            (&mut self.roles, [&mut self.role, &mut beside.roles, &mut beside.role]),
            (&mut self.scopes, [&mut self.scope, &mut beside.scopes, &mut beside.scope]),
        ] {
            more.into_iter().for_each(|words| all.append(words));
        }
        self.tags.append(&mut beside.tags);
        self.accepts.append(&mut beside.accepts);
        Self {
            parent: self.parent.or(beside.parent),
            has_children: self.has_children.or(beside.has_children),
            owner_id: self.owner_id.or(beside.owner_id),
            session_id: self.session_id.or(beside.session_id),
            capability_id: self
                .capability_id
                .or(self.capability.take())
                .or(beside.capability_id)
                .or(beside.capability),
            persistent_id: self.persistent_id.or(beside.persistent_id),
            ..self
        }
    }
}

/// A word or a list of words.
fn words<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(given)? {
        None => Vec::new(),
        Some(Written::One(word)) => vec![word],
        Some(Written::Many(words)) => words,
    })
}

/// `map/agents/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ListParams = params(given)?;
    let limit = from_wire::limit(asked.limit.as_ref(), 1000, 1000)?;
    let wanted = asked.filter.with(asked.beside);
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
    // A session that is not there has no agents.
    let of_session = wanted.session_id.as_deref().map(|id| -> BTreeSet<AgentId> {
        at.registry.session(id).map_or_else(BTreeSet::new, |other| other.agents().into_iter().collect())
    });
    let caller = session.caller();
    let (found, next) =
        at.engine.read(move |view| page(view, &caller, query, &wanted, of_session.as_ref())).await?;
    let mut answer = json!({ "agents": found.iter().map(to_wire::agent).collect::<Vec<_>>() });
    if let Some(next) = next {
        answer["nextCursor"] = next.as_str().into();
    }
    Ok(answer.into())
}

/// Everyone with a persistent identity, also those who are hidden.
pub(super) fn with_persistent_id(view: &View<'_>, id: String) -> Viewed<Vec<Agent>> {
    let query = AgentQuery { kinds: vec![AgentKind::Agent], limit: 1000, ..AgentQuery::default() };
    let wanted = Wanted { persistent_id: Some(id), ..Wanted::default() };
    Ok(page(view, &Caller::office(), query, &wanted, None)?.0)
}

/// The id in a persistent identity.
pub(super) fn persistent_id(identity: &Value) -> Option<&str> {
    identity.get("persistentId").or_else(|| identity.get("id"))?.as_str()
}

/// A full page, however many the finer conditions leave out.
fn page(
    view: &View<'_>,
    caller: &Caller,
    mut query: AgentQuery,
    wanted: &Wanted,
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

fn fits(view: &View<'_>, caller: &Caller, agent: &Agent, wanted: &Wanted) -> Viewed<bool> {
    if !wanted.scopes.is_empty()
        && !agent.scopes.iter().any(|id| wanted.scopes.iter().any(|s| s == id.as_str()))
    {
        return Ok(false);
    }
    let descriptor = to_wire::own_member(agent, "capabilityDescriptor").unwrap_or_default();
    // Lists of words, or of things that go by the member of that name.
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
        let identity = to_wire::own_member(agent, "persistentIdentity").unwrap_or_default();
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
