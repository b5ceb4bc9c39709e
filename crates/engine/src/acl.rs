//! Whether agents are within each other's bounds: checked for visibility and for sending alike.

use std::cell::OnceCell;
use std::collections::HashSet;

use crate::nouns::{Agent, AgentId, AgentKind, AgentSet, Bounds, Caller, Scope, ScopeSet, SendPolicy};
use crate::store::{Db, all, one, rows};

/// The bounds of an agent; most agents have none.
pub(crate) fn bounds_of(db: Db<'_>, agent: &AgentId) -> rusqlite::Result<Option<Bounds>> {
    let sql = "SELECT bounds FROM agents WHERE id = ?1 AND bounds IS NOT NULL";
    let text: Option<String> = one(db, sql, [agent], |row| row.get(0))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Whether the set, as seen from `centre`, contains the other agent.
pub(crate) fn allows(
    db: Db<'_>,
    set: Option<&AgentSet>,
    centre: &AgentId,
    other: &Agent,
) -> rusqlite::Result<bool> {
    if *centre == other.id {
        return Ok(true);
    }
    Ok(match set {
        None | Some(AgentSet::All) => true,
        Some(AgentSet::Empty) => false,
        Some(AgentSet::Only(list)) => list.contains(&other.id),
        Some(AgentSet::Direct) => {
            let above = rows::any_agent(db, centre)?.and_then(|agent| agent.parent);
            above.as_ref() == Some(&other.id) || other.parent.as_ref() == Some(centre)
        }
        Some(AgentSet::Hierarchy) => is_below(db, centre, &other.id)? || is_below(db, &other.id, centre)?,
        Some(AgentSet::Scoped) => shares_scope(db, centre, &other.id)?,
    })
}

/// Whether two agents are members of one scope.
pub(crate) fn shares_scope(db: Db<'_>, one_agent: &AgentId, other: &AgentId) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM scope_members a JOIN scope_members b ON a.scope = b.scope
               WHERE a.agent = ?1 AND b.agent = ?2 LIMIT 1";
    Ok(one(db, sql, (one_agent, other), |_| Ok(()))?.is_some())
}

/// The agents related to one agent, read once for many checks. Every set but a list is symmetric, so this serves for
/// the agent's own bounds and for those of the others.
#[derive(Debug)]
pub(crate) struct Kin<'a> {
    db: Db<'a>,
    agent: AgentId,
    parent: Option<AgentId>,
    hierarchy: OnceCell<HashSet<AgentId>>,
    scoped: OnceCell<HashSet<AgentId>>,
}

impl<'a> Kin<'a> {
    pub(crate) fn of(db: Db<'a>, agent: &AgentId, parent: Option<&AgentId>) -> Self {
        let (agent, parent) = (agent.clone(), parent.cloned());
        Self { db, agent, parent, hierarchy: OnceCell::new(), scoped: OnceCell::new() }
    }

    /// Whether a set around one of the two agents contains the other. `named` is the agent that a list would have to
    /// contain.
    pub(crate) fn allows(
        &self,
        set: Option<&AgentSet>,
        other: &Agent,
        named: &AgentId,
    ) -> rusqlite::Result<bool> {
        if self.agent == other.id {
            return Ok(true);
        }
        Ok(match set {
            None | Some(AgentSet::All) => true,
            Some(AgentSet::Empty) => false,
            Some(AgentSet::Only(list)) => list.contains(named),
            Some(AgentSet::Direct) => {
                self.parent.as_ref() == Some(&other.id) || other.parent.as_ref() == Some(&self.agent)
            }
            Some(AgentSet::Hierarchy) => self.hierarchy()?.contains(&other.id),
            Some(AgentSet::Scoped) => self.scoped()?.contains(&other.id),
        })
    }

    /// Whether the sender's bounds and the recipient's bounds allow a message.
    pub(crate) fn lets_pass(&self, from: &Agent, to: &Agent) -> rusqlite::Result<bool> {
        if let Some(bounds) = &from.bounds
            && !self.allows(bounds.writes_to.as_ref(), to, &to.id)?
        {
            return Ok(false);
        }
        let Some(bounds) = &to.bounds else { return Ok(true) };
        self.allows(accepted_senders(bounds, from.kind), to, &from.id)
    }

    /// Agents that share a scope with this one.
    pub(crate) fn scoped(&self) -> rusqlite::Result<&HashSet<AgentId>> {
        if let Some(known) = self.scoped.get() {
            return Ok(known);
        }
        let sql = "SELECT DISTINCT b.agent FROM scope_members a JOIN scope_members b ON a.scope = b.scope
                   WHERE a.agent = ?1";
        let found = all(self.db, sql, [&self.agent], |row| row.get(0))?.into_iter().collect();
        Ok(self.scoped.get_or_init(|| found))
    }

    /// Agents above and below this one.
    fn hierarchy(&self) -> rusqlite::Result<&HashSet<AgentId>> {
        if let Some(known) = self.hierarchy.get() {
            return Ok(known);
        }
        let sql = "WITH RECURSIVE
                       up(id, n) AS (SELECT ?1, 0
                           UNION SELECT a.parent, up.n + 1 FROM agents a JOIN up ON a.id = up.id
                           WHERE a.parent IS NOT NULL AND up.n < 64),
                       down(id, n) AS (SELECT ?1, 0
                           UNION SELECT a.id, down.n + 1 FROM agents a JOIN down ON a.parent = down.id
                           WHERE down.n < 64)
                   SELECT id FROM up UNION SELECT id FROM down";
        let found = all(self.db, sql, [&self.agent], |row| row.get(0))?.into_iter().collect();
        Ok(self.hierarchy.get_or_init(|| found))
    }
}

/// The set of senders of this kind that an agent with these bounds accepts messages from.
fn accepted_senders(bounds: &Bounds, kind: AgentKind) -> Option<&AgentSet> {
    match kind {
        AgentKind::Agent => bounds.takes_from_agents.as_ref(),
        AgentKind::User | AgentKind::Admin | AgentKind::Client => bounds.takes_from_clients.as_ref(),
        // The server itself needs no consent and is not checked here; other agents of kind `system` are.
        AgentKind::Gateway | AgentKind::System => bounds.takes_from_systems.as_ref(),
    }
}

/// Whether a scope is in the set of scopes that an agent is limited to.
pub(crate) fn allows_scope(
    db: Db<'_>,
    set: Option<&ScopeSet>,
    agent: &AgentId,
    scope: &Scope,
) -> rusqlite::Result<bool> {
    Ok(match set {
        None | Some(ScopeSet::All) => true,
        Some(ScopeSet::Empty) => false,
        Some(ScopeSet::Only(list)) => list.contains(&scope.id),
        Some(ScopeSet::Member) => *agent == scope.created_by || rows::is_member(db, &scope.id, agent)?,
    })
}

/// What a sender that wants to write to a scope lacks, if anything.
pub(crate) fn bar_to_scope(
    db: Db<'_>,
    caller: &Caller,
    sender: &Agent,
    scope: &Scope,
) -> rusqlite::Result<Option<&'static str>> {
    let outsider = scope.send_policy == SendPolicy::Members && !rows::is_member(db, &scope.id, &sender.id)?;
    if outsider && !caller.rights.admin {
        return Ok(Some("to be a member of the scope"));
    }
    let kept_to = sender.bounds.as_ref().and_then(|bounds| bounds.writes_to_scopes.as_ref());
    let holds = allows_scope(db, kept_to, &sender.id, scope)?;
    Ok((!holds).then_some("to be allowed to write to the scope"))
}

/// Whether the sender's bounds and the recipient's bounds allow a message.
pub(crate) fn let_pass(db: Db<'_>, from: &Agent, to: &Agent) -> rusqlite::Result<bool> {
    if let Some(bounds) = &from.bounds
        && !allows(db, bounds.writes_to.as_ref(), &from.id, to)?
    {
        return Ok(false);
    }
    let Some(bounds) = &to.bounds else { return Ok(true) };
    allows(db, accepted_senders(bounds, from.kind), &to.id, from)
}

/// Whether an agent is a descendant of another.
pub(crate) fn is_below(db: Db<'_>, agent: &AgentId, above: &AgentId) -> rusqlite::Result<bool> {
    let sql = "WITH RECURSIVE up(id, n) AS (
                   SELECT ?1, 0
                   UNION SELECT a.parent, up.n + 1 FROM agents a JOIN up ON a.id = up.id
                   WHERE a.parent IS NOT NULL AND up.n < 64)
               SELECT 1 FROM up WHERE id = ?2 AND n > 0";
    Ok(one(db, sql, (agent, above), |_| Ok(()))?.is_some())
}
