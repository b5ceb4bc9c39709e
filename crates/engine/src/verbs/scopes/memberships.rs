//! Which scopes an agent joins: those it names on registration, and those that take in its role.

use std::collections::BTreeSet;

use super::{CreateScope, insert};
use crate::account::{self, Entering};
use crate::acl;
use crate::error::Refusal;
use crate::nouns::{Agent, AgentId, Fact, JoinPolicy, Scope, ScopeId, ScopeVisibility, Sight, Visibility};
use crate::sight;
use crate::store::{all, rows};
use crate::verbs::{Decide, Decided, Write};

/// Scopes that an agent will be a member of.
#[derive(Debug, Default)]
pub(in crate::verbs) struct Memberships(Vec<Joining>);

#[derive(Debug)]
enum Joining {
    /// A scope that exists.
    Existing(Box<Scope>),
    /// A scope that is created, open to all.
    New(ScopeId),
}

impl Memberships {
    /// The scopes that every member of the realm may know of, sorted.
    pub(in crate::verbs) fn public(&self) -> Vec<ScopeId> {
        let public = self.0.iter().filter_map(|joining| match joining {
            Joining::Existing(scope) => {
                (scope.visibility == ScopeVisibility::Public).then(|| scope.id.clone())
            }
            Joining::New(id) => Some(id.clone()),
        });
        let mut public: Vec<ScopeId> = public.collect();
        public.sort_unstable();
        public.dedup();
        public
    }

    /// Adds what was decided after this.
    pub(in crate::verbs) fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    pub(in crate::verbs) fn write(self, to: &mut Write<'_>, agent: &Agent) -> rusqlite::Result<()> {
        for joining in self.0 {
            let scope = match joining {
                Joining::Existing(scope) => *scope,
                Joining::New(id) => insert(to, &CreateScope::default(), id)?,
            };
            join(to, &scope, agent)?;
        }
        Ok(())
    }
}

/// Decides which scopes an agent joins, with the agent as it will be once the command is written.
pub(in crate::verbs) struct Joiner<'d, 'a> {
    to: &'d Decide<'a>,
    agent: &'d Agent,
    entering: Option<Entering<'d>>,
    /// Scopes that it is a member of, and those that it joins.
    members: BTreeSet<ScopeId>,
    created: BTreeSet<ScopeId>,
}

impl<'d, 'a> Joiner<'d, 'a> {
    /// `entering` says how the agent is registered, if the command does that.
    pub(in crate::verbs) fn new(
        to: &'d Decide<'a>,
        agent: &'d Agent,
        entering: Option<Entering<'d>>,
    ) -> rusqlite::Result<Self> {
        let members = rows::scopes_of(to.db, &agent.id)?.into_iter().collect();
        Ok(Self { to, agent, entering, members, created: BTreeSet::new() })
    }

    /// Counts scopes that an earlier part of the command joins.
    pub(in crate::verbs) fn expect(&mut self, joined: &Memberships) {
        self.members.extend(joined.0.iter().map(|joining| match joining {
            Joining::Existing(scope) => scope.id.clone(),
            Joining::New(id) => id.clone(),
        }));
    }

    /// The scopes that it names. One that does not exist is created, open to all; one that would not admit the agent is
    /// skipped.
    pub(in crate::verbs) fn named(&mut self, scopes: &[ScopeId]) -> Decided<Memberships> {
        let mut joined = Vec::new();
        for id in scopes {
            if self.created.contains(id) {
                continue;
            }
            let joining = match rows::scope_by_id(self.to.db, id)? {
                Some(scope) => {
                    let scope = self.as_it_will_be(scope);
                    if !may_join(self.to, &scope, self.agent)? {
                        continue;
                    }
                    Joining::Existing(Box::new(scope))
                }
                None => {
                    account::check_scopes(self.to, self.entering.as_ref(), self.created.len())?;
                    self.created.insert(id.clone());
                    Joining::New(id.clone())
                }
            };
            self.count(id)?;
            joined.push(joining);
        }
        Ok(Memberships(joined))
    }

    /// The scopes that take in its role.
    pub(in crate::verbs) fn by_role(&mut self) -> Decided<Memberships> {
        let Some(role) = &self.agent.role else { return Ok(Memberships::default()) };
        let sql = format!(
            "SELECT {} FROM scopes WHERE join_policy = 'role'
             AND EXISTS(SELECT 1 FROM json_each(scopes.roles) WHERE value = ?1) ORDER BY id",
            rows::SCOPE
        );
        let mut joined = Vec::new();
        for scope in all(self.to.db, &sql, [role], rows::scope)? {
            self.count(&scope.id)?;
            joined.push(Joining::Existing(Box::new(self.as_it_will_be(scope))));
        }
        Ok(Memberships(joined))
    }

    /// Refuses one more scope than an agent may be a member of.
    pub(super) fn count(&mut self, id: &ScopeId) -> Decided<()> {
        let limit = self.to.rules.scopes_per_agent;
        if self.members.len() >= limit as usize && !self.members.contains(id) {
            return Err(Refusal::TooMany { what: "scopes of one agent", limit: limit.into() }.into());
        }
        self.members.insert(id.clone());
        Ok(())
    }

    /// A scope that a former holder of the agent's name made will be the server's.
    fn as_it_will_be(&self, scope: Scope) -> Scope {
        match self.entering {
            Some(entering) if entering.reuses_name && scope.created_by == *entering.agent => {
                Scope { created_by: AgentId::office(), ..scope }
            }
            _ => scope,
        }
    }
}

/// Whether the caller may make an agent a member of a scope.
pub(super) fn may_join(to: &Decide<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<bool> {
    if to.caller.rights.admin {
        return Ok(true);
    }
    let own = to.caller.is(&agent.id) || agent.owner.as_ref().is_some_and(|owner| to.caller.is(owner));
    let inside = to.caller.is(&scope.created_by) || rows::is_member(to.db, &scope.id, &to.caller.agent)?;
    Ok(match scope.join_policy {
        JoinPolicy::Open => inside || (own && sees(to, scope, agent)?),
        JoinPolicy::Invite => inside,
        JoinPolicy::Role => {
            (own || inside) && agent.role.as_ref().is_some_and(|role| scope.roles.contains(role))
        }
        JoinPolicy::System => false,
    })
}

/// Whether the caller may see a scope. If the caller is the agent, the agent's bounds count as they will be.
fn sees(to: &Decide<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<bool> {
    let stored;
    let bounds = if to.caller.is(&agent.id) {
        agent.bounds.as_ref()
    } else {
        stored = acl::bounds_of(to.db, &to.caller.agent)?;
        stored.as_ref()
    };
    sight::sees_scope_within(to.db, to.caller, bounds, scope)
}

/// Makes an agent a member, unless it is one.
pub(super) fn join(to: &mut Write<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<()> {
    let sql = "INSERT INTO scope_members(scope, agent, joined_at) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
    if to.exec(sql, (&scope.id, &agent.id, to.now))? > 0 {
        let sight = member_sight(to, scope, agent)?;
        to.emit(Fact::ScopeJoined { scope: scope.id.clone(), agent: agent.id.clone() }, sight)?;
    }
    Ok(())
}

/// Visibility of a joining or leaving: to agents that may see both the scope and the member.
pub(super) fn member_sight(to: &Decide<'_>, scope: &Scope, agent: &Agent) -> rusqlite::Result<Sight> {
    match agent.visibility {
        Visibility::Public => sight::of_scope(to.db, scope),
        _ => Ok(Sight::Ask),
    }
}
