//! Scopes: made, joined, left, listed, ended.

use std::sync::Arc;

use posthaste_engine::nouns::{
    AgentId, JoinPolicy, Json, MessagesSeenBy, Scope, ScopeVisibility, SendPolicy,
};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::views::ScopeQuery;
use posthaste_wire::map::Switch;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::session::{Session, fresh};
use super::to_wire;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CreateParams {
    #[serde(alias = "id")]
    scope_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[serde(alias = "parentId")]
    parent: Option<String>,
    join_policy: Option<String>,
    auto_join_roles: Option<Vec<String>>,
    visibility: Option<String>,
    message_visibility: Option<String>,
    send_policy: Option<String>,
    persistent: Option<bool>,
    auto_delete: Option<bool>,
    metadata: Option<Map<String, Value>>,
}

/// One of a closed set of words.
fn word<T>(
    name: &str,
    given: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, DoorError> {
    match given {
        None => Ok(None),
        Some(word) => read(word)
            .map(Some)
            .ok_or_else(|| DoorError::params(format!("{name}: {word:?} is not one of its words"))),
    }
}

/// `map/scopes/create`.
pub(super) async fn create(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: CreateParams = params(given)?;
    let mut meta = asked.metadata.unwrap_or_default();
    meta.retain(|name, _| !name.starts_with(to_wire::OWN));
    if let Some(persistent) = asked.persistent {
        meta.insert("map:persistent".to_owned(), persistent.into());
    }
    let id = asked.scope_id.unwrap_or_else(|| fresh("scope-"));
    let verb = CreateScope {
        id: Some(from_wire::scope(&id)?),
        name: asked.name,
        description: asked.description,
        parent: asked.parent.as_deref().map(from_wire::scope).transpose()?,
        join_policy: word("joinPolicy", asked.join_policy.as_deref(), JoinPolicy::from_word)?,
        roles: asked.auto_join_roles.unwrap_or_default(),
        visibility: word("visibility", asked.visibility.as_deref(), ScopeVisibility::from_word)?,
        send_policy: word("sendPolicy", asked.send_policy.as_deref(), SendPolicy::from_word)?,
        messages_seen_by: word(
            "messageVisibility",
            asked.message_visibility.as_deref(),
            MessagesSeenBy::from_word,
        )?,
        auto_delete: asked.auto_delete.unwrap_or(false),
        meta: (!meta.is_empty()).then(|| Json::from_value(&Value::Object(meta))),
    };
    let scope = at.engine.submit(&session.caller(), verb).await?;
    Ok(json!({ "scope": to_wire::scope(&scope) }).into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    #[serde(alias = "id")]
    scope_id: String,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    delete_descendants: bool,
    #[serde(default)]
    include_descendants: bool,
    #[serde(default)]
    limit: Option<Value>,
    #[serde(default)]
    cursor: Option<String>,
}

/// `map/scopes/delete`.
pub(super) async fn delete(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let verb =
        DeleteScope { scope: from_wire::scope(&one.scope_id)?, with_descendants: one.delete_descendants };
    let scope = at.engine.submit(&session.caller(), verb).await?;
    Ok(json!({ "scope": to_wire::scope(&scope), "deleted": true, "success": true }).into())
}

/// `map/scopes/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let (caller, id) = (session.caller(), from_wire::scope(&one.scope_id)?);
    let scope = at.engine.read(move |view| view.scope(&caller, &id)).await?;
    Ok(json!({ "scope": to_wire::scope(&scope) }).into())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListParams {
    #[serde(alias = "parentId")]
    parent: Option<String>,
    limit: Option<Value>,
    cursor: Option<String>,
}

/// `map/scopes/list`.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: ListParams = params(given)?;
    let query = ScopeQuery {
        parent: asked.parent.as_deref().map(from_wire::scope).transpose()?,
        after: asked.cursor.as_deref().map(from_wire::scope).transpose()?,
        limit: from_wire::limit(asked.limit.as_ref(), 1000, 1000)?,
    };
    let caller = session.caller();
    let page = at.engine.read(move |view| view.scopes(&caller, &query)).await?;
    let mut answer = json!({ "scopes": page.items.iter().map(to_wire::scope).collect::<Vec<_>>() });
    if let Some(next) = page.next {
        answer["nextCursor"] = next.as_str().into();
    }
    Ok(answer.into())
}

/// `map/scopes/join`.
pub(super) async fn join(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let scope = from_wire::scope(&one.scope_id)?;
    let agent = member(session, &one)?;
    let verb = JoinScope { scope: scope.clone(), agent: agent.clone() };
    let joined = at.engine.submit(&session.caller_for(&agent), verb).await?;
    both(at, session, &joined, &agent, "joined").await
}

/// `map/scopes/leave`.
pub(super) async fn leave(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let agent = member(session, &one)?;
    let verb = LeaveScope { scope: from_wire::scope(&one.scope_id)?, agent: agent.clone() };
    let left = at.engine.submit(&session.caller_for(&agent), verb).await?;
    both(at, session, &left, &agent, "left").await
}

/// Whose membership it is about. One's own agents come and go; bringing in and putting out others is managing.
fn member(session: &Session, one: &One) -> Result<AgentId, DoorError> {
    let Some(id) = &one.agent_id else { return Ok(session.actor()) };
    let agent = from_wire::agent(id)?;
    if !session.owns(&agent) && !session.may(Switch::ManageScopes) {
        return Err(DoorError::not_allowed(Switch::ManageScopes));
    }
    Ok(agent)
}

async fn both(at: &Connection, session: &Session, scope: &Scope, agent: &AgentId, done: &str) -> Outcome {
    let (caller, id) = (session.caller_for(agent), agent.clone());
    let agent = at.engine.read(move |view| view.agent(&caller, &id)).await?;
    let (scope, agent) = (to_wire::scope(scope), to_wire::agent(&agent));
    Ok(json!({ "scope": scope, "agent": agent, done: true, "success": true }).into())
}

/// `map/scopes/members`.
pub(super) async fn members(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: One = params(given)?;
    let (caller, id) = (session.caller(), from_wire::scope(&one.scope_id)?);
    let after = one.cursor.as_deref().map(from_wire::agent).transpose()?;
    let limit = from_wire::limit(one.limit.as_ref(), 1000, 1000)?;
    let below = one.include_descendants;
    let page = at.engine.read(move |view| view.members(&caller, &id, below, after.as_ref(), limit)).await?;
    let mut answer = json!({ "members": page.items });
    if let Some(next) = page.next {
        answer["nextCursor"] = next.as_str().into();
    }
    Ok(answer.into())
}
