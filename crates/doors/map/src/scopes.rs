//! Scopes: creating, joining, leaving, listing and deleting them.

use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, JoinPolicy, MessagesSeenBy, Scope, ScopeVisibility, SendPolicy};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::views::ScopeQuery;
use posthaste_wire::map::scope::{
    CreateParams, DeleteResult, ListParams, ListResult, MembersResult, MembershipResult, ScopeParams,
    ScopeResult,
};
use posthaste_wire::map::{self as wire, Switch};
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::nouns;
use super::session::{Session, fresh};

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
    meta.retain(|name, _| !name.starts_with(nouns::OWN));
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
        meta: (!meta.is_empty()).then(|| nouns::stored_meta(meta)),
    };
    let scope = at.engine.submit(&session.caller(), verb).await?;
    Ok(Answer::of(&ScopeResult { scope: nouns::scope(&scope) }))
}

/// `map/scopes/delete`.
pub(super) async fn delete(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: ScopeParams = params(given)?;
    let verb =
        DeleteScope { scope: from_wire::scope(&one.scope_id)?, with_descendants: one.delete_descendants };
    let scope = at.engine.submit(&session.caller(), verb).await?;
    Ok(Answer::of(&DeleteResult { scope: nouns::scope(&scope), deleted: true, success: true }))
}

/// `map/scopes/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: ScopeParams = params(given)?;
    let (caller, id) = (session.caller(), from_wire::scope(&one.scope_id)?);
    let scope = at.engine.read(move |view| view.scope(&caller, &id)).await?;
    Ok(Answer::of(&ScopeResult { scope: nouns::scope(&scope) }))
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
    Ok(Answer::of(&ListResult {
        scopes: page.items.iter().map(nouns::scope).collect(),
        next_cursor: page.next.map(|id| id.to_string()),
    }))
}

/// `map/scopes/join`.
pub(super) async fn join(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: ScopeParams = params(given)?;
    let scope = from_wire::scope(&one.scope_id)?;
    let agent = member(session, &one)?;
    let verb = JoinScope { scope: scope.clone(), agent: agent.clone() };
    let joined = at.engine.submit(&session.caller_for(&agent), verb).await?;
    let (scope, agent) = both(at, session, &joined, &agent).await?;
    Ok(Answer::of(&MembershipResult { scope, agent, joined: Some(true), left: None, success: true }))
}

/// `map/scopes/leave`.
pub(super) async fn leave(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: ScopeParams = params(given)?;
    let agent = member(session, &one)?;
    let verb = LeaveScope { scope: from_wire::scope(&one.scope_id)?, agent: agent.clone() };
    let left = at.engine.submit(&session.caller_for(&agent), verb).await?;
    let (scope, agent) = both(at, session, &left, &agent).await?;
    Ok(Answer::of(&MembershipResult { scope, agent, joined: None, left: Some(true), success: true }))
}

/// The agent that joins or leaves. Agents of the session need no capability for it; others need `canManageScopes`.
fn member(session: &Session, one: &ScopeParams) -> Result<AgentId, DoorError> {
    let Some(id) = &one.agent_id else { return Ok(session.actor()) };
    let agent = from_wire::agent(id)?;
    if !session.owns(&agent) && !session.may(Switch::ManageScopes) {
        return Err(DoorError::not_allowed(Switch::ManageScopes));
    }
    Ok(agent)
}

/// The entries of a scope and of the agent that joined or left it.
async fn both(
    at: &Connection,
    session: &Session,
    scope: &Scope,
    agent: &AgentId,
) -> Result<(wire::scope::Scope, wire::agent::Agent), DoorError> {
    let (caller, id) = (session.caller_for(agent), agent.clone());
    let agent = at.engine.read(move |view| view.agent(&caller, &id)).await?;
    Ok((nouns::scope(scope), nouns::agent(&agent)))
}

/// `map/scopes/members`.
pub(super) async fn members(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: ScopeParams = params(given)?;
    let (caller, id) = (session.caller(), from_wire::scope(&one.scope_id)?);
    let after = one.cursor.as_deref().map(from_wire::agent).transpose()?;
    let limit = from_wire::limit(one.limit.as_ref(), 1000, 1000)?;
    let below = one.include_descendants;
    let page = at.engine.read(move |view| view.members(&caller, &id, below, after.as_ref(), limit)).await?;
    Ok(Answer::of(&MembersResult {
        members: page.items.iter().map(ToString::to_string).collect(),
        next_cursor: page.next.map(|id| id.to_string()),
    }))
}
