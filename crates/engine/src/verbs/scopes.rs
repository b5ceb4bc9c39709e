//! Creating scopes, joining and leaving them, deleting them.

mod memberships;

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::account;
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Fact, JoinPolicy, Json, MessagesSeenBy, Scope, ScopeId, ScopeVisibility, SendPolicy, Sight,
    Visibility,
};
use crate::sight;
use crate::store::{all, one, rows};

pub(super) use memberships::{Joiner, Memberships};
use memberships::{join, may_join, member_sight};

/// Creates a scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateScope {
    /// Its name; generated if absent.
    pub id: Option<ScopeId>,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The scope it is part of.
    pub parent: Option<ScopeId>,
    /// How agents become members; open if absent.
    pub join_policy: Option<JoinPolicy>,
    /// Roles that are taken in on registration, if the join policy is by role.
    pub roles: Vec<String>,
    /// Who may see it; the whole realm if absent.
    pub visibility: Option<ScopeVisibility>,
    /// Who may write to it; the whole realm if absent.
    pub send_policy: Option<SendPolicy>,
    /// Who may see messages to it besides their parties; all observers if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_seen_by: Option<MessagesSeenBy>,
    /// Whether it is deleted with its last member.
    pub auto_delete: bool,
    /// Other data.
    pub meta: Option<Json>,
}

impl CreateScope {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Scope> + use<'v>> {
        to.require_member()?;
        if let Some(id) = &self.id
            && rows::scope_by_id(to.db, id)?.is_some()
        {
            return Err(Refusal::ScopeExists { scope: id.clone() }.into());
        }
        if let Some(parent) = &self.parent {
            visible(to, parent)?;
        }
        if self.roles.len() > MAX_ROLES {
            return Err(Refusal::TooMany { what: "roles of a scope", limit: MAX_ROLES as u64 }.into());
        }
        let id = match &self.id {
            Some(id) => id.clone(),
            None => ScopeId::new(format!("scope-{}", to.fresh_id().simple())).map_err(Refusal::from)?,
        };
        account::check_scopes(to, None, 0)?;
        Ok(move |to: &mut Write<'_>| insert(to, self, id))
    }
}

/// Roles that one scope may take in. Every registration compares its role with them.
const MAX_ROLES: usize = 64;

fn insert(to: &mut Write<'_>, given: &CreateScope, id: ScopeId) -> rusqlite::Result<Scope> {
    let scope = Scope {
        id,
        name: given.name.clone(),
        description: given.description.clone(),
        parent: given.parent.clone(),
        join_policy: given.join_policy.unwrap_or(JoinPolicy::Open),
        roles: given.roles.clone(),
        visibility: given.visibility.unwrap_or(ScopeVisibility::Public),
        send_policy: given.send_policy.unwrap_or(SendPolicy::Any),
        messages_seen_by: given.messages_seen_by.unwrap_or_default(),
        auto_delete: given.auto_delete,
        meta: given.meta.clone(),
        created_by: to.caller.agent.clone(),
        created_at: to.now,
        seq: to.next_seq(),
    };
    let sql = "INSERT INTO scopes(id, name, description, parent, join_policy, roles, visibility, send_policy,
                   auto_delete, meta, created_by, created_at, seq, messages_seen_by)
               VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)";
    let roles = serde_json::to_string(&scope.roles).unwrap_or_default();
    let params = rusqlite::params![
        scope.id,
        scope.name,
        scope.description,
        scope.parent,
        scope.join_policy,
        roles,
        scope.visibility,
        scope.send_policy,
        scope.auto_delete,
        scope.meta,
        scope.created_by,
        scope.created_at,
        scope.seq,
        (!scope.messages_seen_by.is_usual()).then_some(scope.messages_seen_by),
    ];
    to.exec(sql, params)?;
    let sight = sight::of_scope(to.db, &scope)?;
    to.emit(Fact::ScopeCreated { scope: Box::new(scope.clone()) }, sight)?;
    Ok(scope)
}

/// Makes an agent a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinScope {
    /// The scope.
    pub scope: ScopeId,
    /// The agent.
    pub agent: AgentId,
}

impl JoinScope {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Scope> + use<'v>> {
        to.require_member()?;
        // Sharing a scope can make an agent visible, so the caller must see it already.
        let agent = to.known_agent(&self.agent)?;
        let scope = match rows::scope_by_id(to.db, &self.scope)? {
            Some(scope) => scope,
            None => return Err(Refusal::NoSuchScope { scope: self.scope.clone() }.into()),
        };
        if !may_join(to, &scope, &agent)? {
            // A scope that the caller cannot see does not exist for it.
            visible(to, &self.scope)?;
            return Err(Refusal::NotAllowed { need: "to be let in by the scope's join policy" }.into());
        }
        Joiner::new(to, &agent, None)?.count(&scope.id)?;
        Ok(move |to: &mut Write<'_>| {
            join(to, &scope, &agent)?;
            Ok(scope)
        })
    }
}

/// Ends a membership.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaveScope {
    /// The scope.
    pub scope: ScopeId,
    /// The member.
    pub agent: AgentId,
}

impl LeaveScope {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Scope> + use<'v>> {
        let scope = visible(to, &self.scope)?;
        let agent = to.known_agent(&self.agent)?;
        let own =
            to.caller.may_act_for(&agent.id) || agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
        if !own && !to.caller.is(&scope.created_by) {
            return Err(Refusal::NotAllowed { need: "to be the member or the scope's maker" }.into());
        }
        Ok(|to: &mut Write<'_>| {
            leave(to, &scope.id, &self.agent)?;
            Ok(scope)
        })
    }
}

/// Deletes a scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteScope {
    /// The scope.
    pub scope: ScopeId,
    /// Whether the caller's scopes below are deleted too, and those of others move to the top. Without it, scopes below refuse
    /// the deletion.
    #[serde(default)]
    pub with_descendants: bool,
}

impl DeleteScope {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Scope> + use<'v>> {
        let scope = visible(to, &self.scope)?;
        if !to.caller.may_act_for(&scope.created_by) {
            return Err(Refusal::NotAllowed { need: "to be the scope's maker" }.into());
        }
        let below = descendants(to, &scope.id)?;
        if !below.is_empty() && !self.with_descendants {
            return Err(Refusal::ScopeNotEmpty { scope: scope.id }.into());
        }
        check_members(to, &scope, &below)?;
        let mut deleted = Vec::new();
        for id in below.iter().rev() {
            // Scopes below that other agents made stay.
            let own = |scope: &Scope| to.caller.may_act_for(&scope.created_by);
            deleted.extend(rows::scope_by_id(to.db, id)?.filter(own));
        }
        Ok(move |to: &mut Write<'_>| {
            for scope in deleted.iter().chain([&scope]) {
                delete(to, scope)?;
            }
            Ok(scope)
        })
    }
}

/// Refuses to remove more members than one command may, unless the caller is an administrator.
fn check_members(to: &Decide<'_>, scope: &Scope, below: &[ScopeId]) -> Decided<()> {
    let limit = to.rules.changes_per_command;
    let mut members = below.len();
    for id in below.iter().chain([&scope.id]) {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM scope_members WHERE scope = ?1 LIMIT ?2)";
        members += one(to.db, sql, (id, limit + 1), |row| row.get::<_, u32>(0))?.unwrap_or(0) as usize;
        if members > limit as usize && !to.caller.rights.admin {
            let what = "members of scopes that are deleted at once; let members leave first";
            return Err(Refusal::TooMany { what, limit: limit.into() }.into());
        }
    }
    Ok(())
}

fn delete(to: &mut Write<'_>, scope: &Scope) -> rusqlite::Result<()> {
    let sight = sight::of_scope(to.db, scope)?;
    let sql = "SELECT agent FROM scope_members WHERE scope = ?1 ORDER BY agent";
    for agent in all(to.db, sql, [&scope.id], |row| row.get::<_, AgentId>(0))? {
        // The scope's visibility is computed once for all members: it may be a long list.
        let sight = match rows::any_agent(to.db, &agent)? {
            Some(agent) if agent.visibility != Visibility::Public => Sight::Ask,
            _ => sight.clone(),
        };
        to.emit(Fact::ScopeLeft { scope: scope.id.clone(), agent }, sight)?;
    }
    to.exec("DELETE FROM scope_members WHERE scope = ?1", [&scope.id])?;
    to.exec("UPDATE scopes SET parent = NULL WHERE parent = ?1", [&scope.id])?;
    to.exec("DELETE FROM scopes WHERE id = ?1", [&scope.id])?;
    to.emit(Fact::ScopeDeleted { scope: scope.id.clone(), name: scope.name.clone() }, sight)?;
    Ok(())
}

fn descendants(to: &Decide<'_>, id: &ScopeId) -> rusqlite::Result<Vec<ScopeId>> {
    let sql = "WITH RECURSIVE down(id, n) AS (
                   SELECT id, 1 FROM scopes WHERE parent = ?1
                   UNION SELECT s.id, down.n + 1 FROM scopes s JOIN down ON s.parent = down.id WHERE down.n < 64)
               SELECT id FROM down ORDER BY n, id";
    all(to.db, sql, [id], |row| row.get(0))
}

fn visible(to: &Decide<'_>, id: &ScopeId) -> Decided<Scope> {
    let scope = rows::scope_by_id(to.db, id)?;
    match scope {
        Some(scope) if sight::sees_scope(to.db, to.caller, &scope)? => Ok(scope),
        _ => Err(Refusal::NoSuchScope { scope: id.clone() }.into()),
    }
}

/// The same for a member that may not exist any more.
fn leaving_sight(to: &Decide<'_>, scope: &Scope, agent: &AgentId) -> rusqlite::Result<Sight> {
    match rows::any_agent(to.db, agent)? {
        Some(agent) => member_sight(to, scope, &agent),
        None => sight::of_scope(to.db, scope),
    }
}

/// Ends a membership. Deletes an auto-delete scope with its last member.
pub(super) fn leave(to: &mut Write<'_>, id: &ScopeId, agent: &AgentId) -> rusqlite::Result<()> {
    let Some(scope) = rows::scope_by_id(to.db, id)? else { return Ok(()) };
    let sight = leaving_sight(to, &scope, agent)?;
    if to.exec("DELETE FROM scope_members WHERE scope = ?1 AND agent = ?2", (id, agent))? == 0 {
        return Ok(());
    }
    to.emit(Fact::ScopeLeft { scope: id.clone(), agent: agent.clone() }, sight)?;
    let empty =
        one(to.db, "SELECT 1 FROM scope_members WHERE scope = ?1 LIMIT 1", [id], |_| Ok(()))?.is_none();
    if scope.auto_delete && empty {
        delete(to, &scope)?;
    }
    Ok(())
}
