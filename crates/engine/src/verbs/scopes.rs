//! Making scopes, joining and leaving them.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply};
use crate::account;
use crate::error::Refusal;
use crate::nouns::{
    Agent, AgentId, Fact, JoinPolicy, Json, MessagesSeenBy, Scope, ScopeId, ScopeVisibility, SendPolicy,
    Sight, Visibility,
};
use crate::sight;
use crate::store::{all, exec, one, rows};

/// Makes a scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateScope {
    /// Its name; made up if absent.
    pub id: Option<ScopeId>,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The scope it is part of.
    pub parent: Option<ScopeId>,
    /// How one becomes a member; by asking if not said.
    pub join_policy: Option<JoinPolicy>,
    /// Roles that may join by role, and do so on registration.
    pub roles: Vec<String>,
    /// Who may see it; everybody if not said.
    pub visibility: Option<ScopeVisibility>,
    /// Who may write to it; everybody if not said.
    pub send_policy: Option<SendPolicy>,
    /// Who may see letters to it besides their parties; everybody who may observe if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub letters: Option<MessagesSeenBy>,
    /// Whether it goes away with its last member.
    pub auto_delete: bool,
    /// Whatever else.
    pub meta: Option<Json>,
}

impl CreateScope {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Scope> {
        to.require_member()?;
        if let Some(id) = &self.id
            && rows::scope_by_id(to.db, id)?.is_some()
        {
            return Err(Refusal::ScopeExists { scope: id.clone() }.into());
        }
        if let Some(parent) = &self.parent {
            visible(to, parent)?;
        }
        if self.roles.len() > MOST_ROLES {
            return Err(Refusal::TooMany { what: "roles of a scope", limit: MOST_ROLES as u64 }.into());
        }
        let id = match &self.id {
            Some(id) => id.clone(),
            None => ScopeId::new(format!("scope-{}", to.fresh_id().simple())).map_err(Refusal::from)?,
        };
        create(to, self, id)
    }
}

/// Roles that one scope takes in by itself; all are looked through whenever an agent registers.
const MOST_ROLES: usize = 64;

fn create(to: &mut Apply<'_>, given: &CreateScope, id: ScopeId) -> Applied<Scope> {
    account::check_scopes(to.db, to.caller, to.rules)??;
    let scope = Scope {
        id,
        name: given.name.clone(),
        description: given.description.clone(),
        parent: given.parent.clone(),
        join_policy: given.join_policy.unwrap_or(JoinPolicy::Open),
        roles: given.roles.clone(),
        visibility: given.visibility.unwrap_or(ScopeVisibility::Public),
        send_policy: given.send_policy.unwrap_or(SendPolicy::Any),
        letters: given.letters.unwrap_or_default(),
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
        (!scope.letters.is_usual()).then_some(scope.letters),
    ];
    exec(to.db, sql, params)?;
    let sight = sight::of_scope(to.db, &scope)?;
    to.tell(Fact::ScopeCreated { scope: Box::new(scope.clone()) }, sight)?;
    Ok(scope)
}

/// Makes an agent a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinScope {
    /// Of which scope.
    pub scope: ScopeId,
    /// Whom.
    pub agent: AgentId,
}

impl JoinScope {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Scope> {
        to.require_member()?;
        // Sharing a scope can make an agent visible, so only those who see it already may bring it in.
        let agent = to.known_agent(&self.agent)?;
        let scope = match rows::scope_by_id(to.db, &self.scope)? {
            Some(scope) => scope,
            None => return Err(Refusal::NoSuchScope { scope: self.scope.clone() }.into()),
        };
        if !may_enter(to, &scope, &agent)? {
            // A scope that the caller cannot see does not exist for it.
            visible(to, &self.scope)?;
            return Err(Refusal::NotAllowed { need: "to be let in by the scope's join policy" }.into());
        }
        enter(to, &scope, &agent)?;
        Ok(scope)
    }
}

fn may_enter(to: &Apply<'_>, scope: &Scope, agent: &Agent) -> Applied<bool> {
    if to.caller.rights.admin {
        return Ok(true);
    }
    let own = to.caller.is(&agent.id) || agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
    let inside = to.caller.is(&scope.created_by) || rows::is_member(to.db, &scope.id, &to.caller.agent)?;
    Ok(match scope.join_policy {
        JoinPolicy::Open => inside || (own && sight::sees_scope(to.db, to.caller, scope)?),
        JoinPolicy::Invite => inside,
        JoinPolicy::Role => {
            (own || inside) && agent.role.as_ref().is_some_and(|role| scope.roles.contains(role))
        }
        JoinPolicy::System => false,
    })
}

/// Ends a membership.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaveScope {
    /// Of which scope.
    pub scope: ScopeId,
    /// Whose.
    pub agent: AgentId,
}

impl LeaveScope {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Scope> {
        let scope = visible(to, &self.scope)?;
        let agent = to.known_agent(&self.agent)?;
        let own =
            to.caller.may_act_for(&agent.id) || agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
        if !own && !to.caller.is(&scope.created_by) {
            return Err(Refusal::NotAllowed { need: "to be the member or the scope's maker" }.into());
        }
        leave(to, &scope.id, &self.agent)?;
        Ok(scope)
    }
}

/// Ends a scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteScope {
    /// Which.
    pub scope: ScopeId,
    /// Whether the caller's scopes below go with it, and those of others move to the top; without it they are in the way.
    #[serde(default)]
    pub with_descendants: bool,
}

impl DeleteScope {
    pub(crate) fn apply(&self, to: &mut Apply<'_>) -> Applied<Scope> {
        let scope = visible(to, &self.scope)?;
        if !to.caller.may_act_for(&scope.created_by) {
            return Err(Refusal::NotAllowed { need: "to be the scope's maker" }.into());
        }
        let below = descendants(to, &scope.id)?;
        if !below.is_empty() && !self.with_descendants {
            return Err(Refusal::ScopeNotEmpty { scope: scope.id }.into());
        }
        check_members(to, &scope, &below)?;
        for id in below.iter().rev() {
            match rows::scope_by_id(to.db, id)? {
                Some(scope) if to.caller.may_act_for(&scope.created_by) => delete(to, &scope)?,
                // Other agents' scopes below stay.
                _ => {}
            }
        }
        delete(to, &scope)?;
        Ok(scope)
    }
}

/// Refuses to put more members out at once than one command may, unless the caller runs the realm.
fn check_members(to: &Apply<'_>, scope: &Scope, below: &[ScopeId]) -> Applied<()> {
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

fn delete(to: &mut Apply<'_>, scope: &Scope) -> Applied<()> {
    let sight = sight::of_scope(to.db, scope)?;
    let sql = "SELECT agent FROM scope_members WHERE scope = ?1 ORDER BY agent";
    for agent in all(to.db, sql, [&scope.id], |row| row.get::<_, AgentId>(0))? {
        // Who may see the scope is the same for each of them, and may be a long list.
        let sight = match rows::any_agent(to.db, &agent)? {
            Some(agent) if agent.visibility != Visibility::Public => Sight::Ask,
            _ => sight.clone(),
        };
        to.tell(Fact::ScopeLeft { scope: scope.id.clone(), agent }, sight)?;
    }
    exec(to.db, "DELETE FROM scope_members WHERE scope = ?1", [&scope.id])?;
    exec(to.db, "UPDATE scopes SET parent = NULL WHERE parent = ?1", [&scope.id])?;
    exec(to.db, "DELETE FROM scopes WHERE id = ?1", [&scope.id])?;
    to.tell(Fact::ScopeDeleted { scope: scope.id.clone(), name: scope.name.clone() }, sight)?;
    Ok(())
}

fn descendants(to: &Apply<'_>, id: &ScopeId) -> rusqlite::Result<Vec<ScopeId>> {
    let sql = "WITH RECURSIVE down(id, n) AS (
                   SELECT id, 1 FROM scopes WHERE parent = ?1
                   UNION SELECT s.id, down.n + 1 FROM scopes s JOIN down ON s.parent = down.id WHERE down.n < 64)
               SELECT id FROM down ORDER BY n, id";
    all(to.db, sql, [id], |row| row.get(0))
}

fn visible(to: &Apply<'_>, id: &ScopeId) -> Applied<Scope> {
    let scope = rows::scope_by_id(to.db, id)?;
    match scope {
        Some(scope) if sight::sees_scope(to.db, to.caller, &scope)? => Ok(scope),
        _ => Err(Refusal::NoSuchScope { scope: id.clone() }.into()),
    }
}

/// Makes an agent a member of each scope it names on registration. One that does not exist is made, open to all; one
/// that would not let it in is passed over.
pub(super) fn enter_all(to: &mut Apply<'_>, agent: &Agent, scopes: &[ScopeId]) -> Applied<()> {
    for id in scopes {
        let scope = match rows::scope_by_id(to.db, id)? {
            Some(scope) => scope,
            None => create(to, &CreateScope::default(), id.clone())?,
        };
        if may_enter(to, &scope, agent)? {
            enter(to, &scope, agent)?;
        }
    }
    Ok(())
}

/// The scopes that an agent will be a member of once it is registered, as far as everybody may know of them.
pub(super) fn about_to_enter(to: &Apply<'_>, agent: &Agent, given: &[ScopeId]) -> Applied<Vec<ScopeId>> {
    let mut ahead = Vec::new();
    for id in given {
        let enters = match rows::scope_by_id(to.db, id)? {
            Some(scope) => scope.visibility == ScopeVisibility::Public && may_enter(to, &scope, agent)?,
            // It will be made.
            None => true,
        };
        if enters {
            ahead.push(id.clone());
        }
    }
    let by_role = by_role(to, agent)?.into_iter();
    ahead.extend(by_role.filter(|scope| scope.visibility == ScopeVisibility::Public).map(|scope| scope.id));
    ahead.sort_unstable();
    ahead.dedup();
    Ok(ahead)
}

/// Makes an agent a member of every scope that takes in its role by itself.
pub(super) fn enter_by_role(to: &mut Apply<'_>, agent: &Agent) -> Applied<()> {
    for scope in by_role(to, agent)? {
        enter(to, &scope, agent)?;
    }
    Ok(())
}

fn by_role(to: &Apply<'_>, agent: &Agent) -> rusqlite::Result<Vec<Scope>> {
    let Some(role) = &agent.role else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {} FROM scopes WHERE join_policy = 'role'
         AND EXISTS(SELECT 1 FROM json_each(scopes.roles) WHERE value = ?1) ORDER BY id",
        rows::SCOPE
    );
    all(to.db, &sql, [role], rows::scope)
}

fn enter(to: &mut Apply<'_>, scope: &Scope, agent: &Agent) -> Applied<()> {
    let sql = "SELECT count(*) FROM scope_members WHERE agent = ?1";
    let member_of = one(to.db, sql, [&agent.id], |row| row.get::<_, u32>(0))?.unwrap_or(0);
    let limit = to.rules.scopes_per_agent;
    if member_of >= limit && !rows::is_member(to.db, &scope.id, &agent.id)? {
        return Err(Refusal::TooMany { what: "scopes of one agent", limit: limit.into() }.into());
    }
    let sql = "INSERT INTO scope_members(scope, agent, joined_at) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
    if exec(to.db, sql, (&scope.id, &agent.id, to.now))? > 0 {
        let sight = member_sight(to, scope, agent)?;
        to.tell(Fact::ScopeJoined { scope: scope.id.clone(), agent: agent.id.clone() }, sight)?;
    }
    Ok(())
}

/// Who may see that an agent joined or left: those who may see both the scope and the agent.
fn member_sight(to: &Apply<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<Sight> {
    match agent.visibility {
        Visibility::Public => sight::of_scope(to.db, scope),
        _ => Ok(Sight::Ask),
    }
}

/// The same for a member that may be gone itself.
fn leaving_sight(to: &Apply<'_>, scope: &Scope, agent: &AgentId) -> rusqlite::Result<Sight> {
    match rows::any_agent(to.db, agent)? {
        Some(agent) => member_sight(to, scope, &agent),
        None => sight::of_scope(to.db, scope),
    }
}

/// Ends a membership, and the scope with it if that was the last one and the scope says so.
pub(super) fn leave(to: &mut Apply<'_>, id: &ScopeId, agent: &AgentId) -> Applied<()> {
    let Some(scope) = rows::scope_by_id(to.db, id)? else { return Ok(()) };
    let sight = leaving_sight(to, &scope, agent)?;
    if exec(to.db, "DELETE FROM scope_members WHERE scope = ?1 AND agent = ?2", (id, agent))? == 0 {
        return Ok(());
    }
    to.tell(Fact::ScopeLeft { scope: id.clone(), agent: agent.clone() }, sight)?;
    let empty =
        one(to.db, "SELECT 1 FROM scope_members WHERE scope = ?1 LIMIT 1", [id], |_| Ok(()))?.is_none();
    if scope.auto_delete && empty {
        delete(to, &scope)?;
    }
    Ok(())
}
