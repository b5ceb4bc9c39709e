//! The address book: who is there, and who stands where.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::weigh::Stretch;
use super::{Page, View, Viewed, one_more, require_admin, require_member};
use crate::acl;
use crate::error::Refusal;
use crate::names::slug;
use crate::near;
use crate::nouns::{Agent, AgentId, AgentKind, Caller, RealmName, ScopeId};
use crate::sight;
use crate::store::rows;
use crate::verbs::agents::{self, Bearer, Claim};

/// Which agents to list. Lists are alternatives; fields must all hold.
#[derive(Clone, Debug, Default)]
pub struct AgentQuery {
    /// In one of these states.
    pub states: Vec<String>,
    /// In one of these roles.
    pub roles: Vec<String>,
    /// Of one of these sorts.
    pub kinds: Vec<AgentKind>,
    /// A member of this scope.
    pub scope: Option<ScopeId>,
    /// Directly below this agent.
    pub parent: Option<AgentId>,
    /// Owned by this caller.
    pub owner: Option<AgentId>,
    /// Those who have left as well.
    pub retired: bool,
    /// After this one.
    pub after: Option<AgentId>,
    /// How many.
    pub limit: usize,
}

/// How much of the hierarchy somebody sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// All of it, as far as it sees the agents themselves.
    Full,
    /// Those right above, below and beside itself.
    Local,
    /// None of it.
    Nothing,
}

/// Those around an agent that the caller may see.
#[derive(Clone, Debug, Default)]
pub struct Relatives {
    /// The one above.
    pub parent: Option<Agent>,
    /// Those directly below.
    pub children: Vec<Agent>,
    /// Those with the same one above.
    pub siblings: Vec<Agent>,
    /// All above, nearest first.
    pub ancestors: Vec<Agent>,
    /// All below, level by level.
    pub descendants: Vec<Agent>,
}

impl View<'_> {
    /// One agent, with its scopes.
    ///
    /// # Errors
    /// Refused if there is none that the caller may know of.
    pub fn agent(&self, caller: &Caller, id: &AgentId) -> Viewed<Agent> {
        let found = rows::active_agent(self.db, id)?;
        match found {
            Some(agent) if sight::sees_agent(self.db, caller, &agent)? => self.with_scopes(caller, agent),
            _ => Err(Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into()),
        }
    }

    /// One agent, even if it has left.
    ///
    /// # Errors
    /// Refused if there never was one that the caller may know of.
    pub fn entry(&self, caller: &Caller, id: &AgentId) -> Viewed<Agent> {
        match rows::any_agent(self.db, id)? {
            Some(agent) if sight::sees_agent(self.db, caller, &agent)? => self.with_scopes(caller, agent),
            _ => Err(Refusal::NoSuchAgent { agent: id.to_string(), near: Vec::new() }.into()),
        }
    }

    /// Whether the bearer of a token may go by a name that is not in the address book. Says no more than trying to enter it
    /// would.
    ///
    /// # Errors
    /// Refused if it may not.
    pub fn may_take(&self, realm: &RealmName, bearer: &Bearer, id: &AgentId) -> Viewed<()> {
        let caller = Caller::member(bearer.name.clone(), "");
        let claim = Claim { db: self.db, realm, caller: &caller, bearer: Some(bearer), now: self.now };
        Ok(claim.check(id)?)
    }

    /// Whether a name is free of other tokens' claims in this realm. For doors whose tokens open other realms as well, which
    /// do not know them.
    ///
    /// # Errors
    /// Refused if another valid token carries the name, or one that looks like it.
    pub fn may_claim(&self, realm: &RealmName, bearer: &Bearer, id: &AgentId) -> Viewed<()> {
        let caller = Caller::member(bearer.name.clone(), "");
        let claim = Claim { db: self.db, realm, caller: &caller, bearer: Some(bearer), now: self.now };
        Ok(claim.check_claims(id)?)
    }

    /// The name on the token under which an agent was entered; its own where an administrator or the server did.
    ///
    /// # Errors
    /// Refused for callers that are no administrators.
    pub fn bearer_of(&self, caller: &Caller, id: &AgentId) -> Viewed<Option<AgentId>> {
        require_admin(caller)?;
        Ok(agents::bearer_of(self.db, id)?)
    }

    /// The agent, present or past, that the bearer of a token had under this display name: the same token entered it.
    ///
    /// # Errors
    /// Refused for callers that are no administrators.
    pub fn returning(&self, caller: &Caller, bearer: &Bearer, name: &str) -> Viewed<Option<Agent>> {
        require_admin(caller)?;
        let own = Some(bearer.name.clone()).filter(|_| bearer.is_called(name));
        for id in own.into_iter().chain(AgentId::new(slug(name)).ok()) {
            let Some(found) = rows::any_agent(self.db, &id)? else { continue };
            let noted = if bearer.admin { &found.id } else { &bearer.name };
            let is_theirs = agents::bearer_of(self.db, &found.id)?.as_ref() == Some(noted);
            // An administrator's program does not take over the agent of a token by having its name.
            let is_anothers = bearer.admin && agents::known_as(self.db, &found.id, self.now)?.is_some();
            if is_theirs && !is_anothers && found.state != Agent::REVOKED {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Names of agents like one that is not known, as far as the caller may know of them.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn near(&self, caller: &Caller, name: &str) -> Viewed<Vec<AgentId>> {
        require_member(caller)?;
        Ok(near::names(self.db, caller, name)?)
    }

    /// Agents by name.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn agents(&self, caller: &Caller, query: &AgentQuery) -> Viewed<Page<Agent, AgentId>> {
        require_member(caller)?;
        // Who is in a scope, below an agent or owned by one is known only to those who know of these.
        let hidden = match &query.scope {
            Some(scope) => self.scope(caller, scope).is_err(),
            None => false,
        };
        if hidden
            || self.is_hidden(caller, query.parent.as_ref())?
            || self.is_hidden(caller, query.owner.as_ref())?
        {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let limit = self.page(query.limit);
        let mut page = self.filling(limit);
        let mut after = query.after.clone();
        // Hidden agents are passed over, so one page may take several reads.
        'read: loop {
            let batch = self.agents_after(query, after.as_ref(), limit)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            after = batch.rows.last().map(|agent| agent.id.clone());
            for agent in batch.rows {
                if sight::sees_agent(self.db, caller, &agent)?
                    && (page.is_full() || !page.take(self.with_scopes(caller, agent)?))
                {
                    page.more = true;
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.page(|agent| agent.id.clone()))
    }

    fn agents_after(
        &self,
        query: &AgentQuery,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Viewed<Stretch<Agent>> {
        let mut sql = format!("SELECT {} FROM agents a WHERE 1", rows::AGENT);
        let mut params: Vec<Value> = Vec::new();
        let text = |s: &str| Value::Text(s.to_owned());
        let mut any_of = |column: &str, words: Vec<Value>| {
            if !words.is_empty() {
                let marks = vec!["?"; words.len()].join(",");
                sql.push_str(&format!(" AND {column} IN ({marks})"));
                params.extend(words);
            }
        };
        any_of("state", query.states.iter().map(|s| text(s)).collect());
        any_of("role", query.roles.iter().map(|s| text(s)).collect());
        any_of("kind", query.kinds.iter().map(|k| text(k.as_str())).collect());
        any_of("parent", query.parent.iter().map(|p| text(p.as_str())).collect());
        any_of("owner", query.owner.iter().map(|o| text(o.as_str())).collect());
        if let Some(scope) = &query.scope {
            sql.push_str(" AND EXISTS(SELECT 1 FROM scope_members WHERE scope = ? AND agent = a.id)");
            params.push(text(scope.as_str()));
        }
        if !query.retired {
            sql.push_str(" AND retired_at IS NULL");
        }
        if let Some(after) = after {
            sql.push_str(" AND id > ?");
            params.push(text(after.as_str()));
        }
        sql.push_str(" ORDER BY id LIMIT ?");
        params.push(Value::Integer(one_more(limit)));
        self.stretch_of(&sql, params_from_iter(params), rows::agent)
    }

    /// How much of who stands above and below whom a caller sees.
    ///
    /// # Errors
    /// When the books cannot be read.
    pub fn structure(&self, caller: &Caller) -> Viewed<Structure> {
        if caller.rights.admin {
            return Ok(Structure::Full);
        }
        let bounds = acl::of(self.db, &caller.agent)?.unwrap_or_default();
        Ok(match bounds.sees_structure.as_deref() {
            Some("none") => Structure::Nothing,
            Some("local") => Structure::Local,
            _ => Structure::Full,
        })
    }

    /// Those around an agent, down and up to a depth, as far as the caller sees who stands where.
    ///
    /// # Errors
    /// Refused if the caller may not know of the agent.
    pub fn relatives(&self, caller: &Caller, id: &AgentId, depth: u32) -> Viewed<Relatives> {
        let agent = self.agent(caller, id)?;
        let mut around = Relatives::default();
        let depth = match self.structure(caller)? {
            Structure::Full => depth,
            Structure::Local if caller.is(id) => depth.min(1),
            Structure::Local | Structure::Nothing => return Ok(around),
        };
        if let Some(parent) = &agent.parent {
            around.parent = self.agent(caller, parent).ok();
            let others = self.all_below(caller, parent)?;
            around.siblings = others.into_iter().filter(|other| other.id != agent.id).collect();
        }
        let mut next = agent.parent.clone();
        while let Some(above) = next
            && around.ancestors.len() < depth.min(64) as usize
        {
            let Ok(above) = self.agent(caller, &above) else { break };
            next = above.parent.clone();
            around.ancestors.push(above);
        }
        around.children = self.all_below(caller, id)?;
        let mut level = around.children.clone();
        for _ in 0..depth.min(64) {
            if level.is_empty() || around.descendants.len() > self.limits.page {
                break;
            }
            around.descendants.extend(level.iter().cloned());
            let mut next = Vec::new();
            for agent in &level {
                next.extend(self.all_below(caller, &agent.id)?);
            }
            level = next;
        }
        around.descendants.truncate(self.limits.page);
        Ok(around)
    }

    fn all_below(&self, caller: &Caller, parent: &AgentId) -> Viewed<Vec<Agent>> {
        let query =
            AgentQuery { parent: Some(parent.clone()), limit: self.limits.page, ..AgentQuery::default() };
        Ok(self.agents(caller, &query)?.items)
    }

    /// Whether an agent is in the address book and the caller may not know of it.
    fn is_hidden(&self, caller: &Caller, id: Option<&AgentId>) -> Viewed<bool> {
        let Some(id) = id else { return Ok(false) };
        Ok(match rows::any_agent(self.db, id)? {
            Some(agent) => !sight::sees_agent(self.db, caller, &agent)?,
            None => false,
        })
    }

    fn with_scopes(&self, caller: &Caller, mut agent: Agent) -> Viewed<Agent> {
        // Nor do those above it and its owner, where they are hidden.
        if self.is_hidden(caller, agent.parent.as_ref())? {
            agent.parent = None;
        }
        if self.is_hidden(caller, agent.owner.as_ref())? {
            agent.owner = None;
        }
        for id in rows::scopes_of(self.db, &agent.id)? {
            // A scope the caller cannot see does not show through its members.
            if let Some(scope) = rows::scope_by_id(self.db, &id)?
                && sight::sees_scope(self.db, caller, &scope)?
            {
                agent.scopes.push(id);
            }
        }
        Ok(agent)
    }
}
