//! The directory: agents, and the hierarchy between them.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::page_weight::RowBatch;
use super::{Page, View, Viewed, one_more, require_admin, require_member};
use crate::acl;
use crate::error::Refusal;
use crate::names::slug;
use crate::nouns::{Agent, AgentId, AgentKind, Caller, RealmName, ScopeId};
use crate::sight;
use crate::similar_names;
use crate::store::rows;
use crate::verbs::agents::{self, Bearer, Claim};

/// Which agents to list. Lists are alternatives; all fields must match.
#[derive(Clone, Debug, Default)]
pub struct AgentQuery {
    /// In one of these states.
    pub states: Vec<String>,
    /// With one of these roles.
    pub roles: Vec<String>,
    /// Of one of these kinds.
    pub kinds: Vec<AgentKind>,
    /// A member of this scope.
    pub scope: Option<ScopeId>,
    /// A child of this agent.
    pub parent: Option<AgentId>,
    /// Owned by this caller.
    pub owner: Option<AgentId>,
    /// Include agents that have left.
    pub retired: bool,
    /// After this one.
    pub after: Option<AgentId>,
    /// How many.
    pub limit: usize,
}

/// How much of the hierarchy a caller sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// All of it, as far as it sees the agents themselves.
    Full,
    /// Its own parent, children and siblings.
    Local,
    /// None of it.
    Nothing,
}

/// The relatives of an agent that the caller may see.
#[derive(Clone, Debug, Default)]
pub struct Relatives {
    /// The parent.
    pub parent: Option<Agent>,
    /// The children.
    pub children: Vec<Agent>,
    /// Other agents with the same parent.
    pub siblings: Vec<Agent>,
    /// All ancestors, nearest first.
    pub ancestors: Vec<Agent>,
    /// All descendants, level by level.
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

    /// Whether the bearer of a token may use a name that is not registered. Reveals no more than an attempt to register
    /// it would.
    ///
    /// # Errors
    /// Refused if it may not.
    pub fn may_take(&self, realm: &RealmName, bearer: &Bearer, id: &AgentId) -> Viewed<()> {
        let caller = Caller::member(bearer.name.clone(), "");
        let claim = Claim { db: self.db, realm, caller: &caller, bearer: Some(bearer), now: self.now };
        Ok(claim.check(id)?)
    }

    /// Whether no other token in this realm claims a name. For doors whose tokens are valid in other realms as well,
    /// which do not know them.
    ///
    /// # Errors
    /// Refused if another valid token carries the name, or one that looks like it.
    pub fn may_claim(&self, realm: &RealmName, bearer: &Bearer, id: &AgentId) -> Viewed<()> {
        let caller = Caller::member(bearer.name.clone(), "");
        let claim = Claim { db: self.db, realm, caller: &caller, bearer: Some(bearer), now: self.now };
        Ok(claim.check_claims(id)?)
    }

    /// The name on the token with which an agent was registered; its own where an administrator or the server did.
    ///
    /// # Errors
    /// Refused for callers that are no administrators.
    pub fn bearer_of(&self, caller: &Caller, id: &AgentId) -> Viewed<Option<AgentId>> {
        require_admin(caller)?;
        Ok(agents::bearer_of(self.db, id)?)
    }

    /// The agent, registered or not, that the bearer of a token had under this display name: the same token registered
    /// it.
    ///
    /// # Errors
    /// Refused for callers that are no administrators.
    pub fn returning(&self, caller: &Caller, bearer: &Bearer, name: &str) -> Viewed<Option<Agent>> {
        require_admin(caller)?;
        let own = Some(bearer.name.clone()).filter(|_| bearer.is_called(name));
        for id in own.into_iter().chain(AgentId::new(slug(name)).ok()) {
            let Some(found) = rows::any_agent(self.db, &id)? else { continue };
            let noted = if bearer.admin { &found.id } else { &bearer.name };
            let is_own = agents::bearer_of(self.db, &found.id)?.as_ref() == Some(noted);
            // An administrator's program does not take over the agent of a token by having its name.
            let is_of_a_token = bearer.admin && agents::known_as(self.db, &found.id, self.now)?.is_some();
            if is_own && !is_of_a_token && found.state != Agent::REVOKED {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Visible agents whose names are similar to one that is not known.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn similar_names(&self, caller: &Caller, name: &str) -> Viewed<Vec<AgentId>> {
        require_member(caller)?;
        Ok(similar_names::find(self.db, caller, name)?)
    }

    /// Agents by name.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn agents(&self, caller: &Caller, query: &AgentQuery) -> Viewed<Page<Agent, AgentId>> {
        require_member(caller)?;
        // A filter by scope, parent or owner would reveal members, children or agents of one that the caller may not
        // see.
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
        let mut page = self.page_builder(limit);
        let mut after = query.after.clone();
        // Hidden agents are skipped, so one page may take several reads.
        'read: loop {
            let batch = self.agents_after(query, after.as_ref(), limit)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            after = batch.rows.last().map(|agent| agent.id.clone());
            for agent in batch.rows {
                if sight::sees_agent(self.db, caller, &agent)?
                    && (page.is_full() || !page.push(self.with_scopes(caller, agent)?))
                {
                    page.more = true;
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|agent| agent.id.clone()))
    }

    fn agents_after(
        &self,
        query: &AgentQuery,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Viewed<RowBatch<Agent>> {
        let mut sql = format!("SELECT {} FROM agents a WHERE 1", rows::AGENT);
        let mut params: Vec<Value> = Vec::new();
        let text = |s: &str| Value::Text(s.to_owned());
        let mut any_of = |column: &str, values: Vec<Value>| {
            if !values.is_empty() {
                let parameters = vec!["?"; values.len()].join(",");
                sql.push_str(&format!(" AND {column} IN ({parameters})"));
                params.extend(values);
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
        self.read_rows(&sql, params_from_iter(params), rows::agent)
    }

    /// How much of the hierarchy a caller sees.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn structure(&self, caller: &Caller) -> Viewed<Structure> {
        if caller.rights.admin {
            return Ok(Structure::Full);
        }
        let bounds = acl::bounds_of(self.db, &caller.agent)?.unwrap_or_default();
        Ok(match bounds.sees_structure.as_deref() {
            Some("none") => Structure::Nothing,
            Some("local") => Structure::Local,
            _ => Structure::Full,
        })
    }

    /// The relatives of an agent, up to a depth, as far as the caller sees the hierarchy.
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

    /// Whether an agent exists that the caller may not see.
    fn is_hidden(&self, caller: &Caller, id: Option<&AgentId>) -> Viewed<bool> {
        let Some(id) = id else { return Ok(false) };
        Ok(match rows::any_agent(self.db, id)? {
            Some(agent) => !sight::sees_agent(self.db, caller, &agent)?,
            None => false,
        })
    }

    fn with_scopes(&self, caller: &Caller, mut agent: Agent) -> Viewed<Agent> {
        // Hidden parents and owners are not shown.
        if self.is_hidden(caller, agent.parent.as_ref())? {
            agent.parent = None;
        }
        if self.is_hidden(caller, agent.owner.as_ref())? {
            agent.owner = None;
        }
        for id in rows::scopes_of(self.db, &agent.id)? {
            // A scope that the caller cannot see is not shown in its members' entries.
            if let Some(scope) = rows::scope_by_id(self.db, &id)?
                && sight::sees_scope(self.db, caller, &scope)?
            {
                agent.scopes.push(id);
            }
        }
        Ok(agent)
    }
}
