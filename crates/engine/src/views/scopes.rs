//! Scopes and their members.

use super::{Page, View, Viewed, one_more, require_member};
use crate::acl;
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, Scope, ScopeId};
use crate::sight;
use crate::store::{all, rows};

/// Which scopes to list.
#[derive(Clone, Debug, Default)]
pub struct ScopeQuery {
    /// A child of this scope.
    pub parent: Option<ScopeId>,
    /// After this one.
    pub after: Option<ScopeId>,
    /// How many.
    pub limit: usize,
}

impl View<'_> {
    /// One scope.
    ///
    /// # Errors
    /// Refused if there is none that the caller may know of.
    pub fn scope(&self, caller: &Caller, id: &ScopeId) -> Viewed<Scope> {
        let scope = rows::scope_by_id(self.db, id)?;
        match scope {
            Some(scope) if sight::sees_scope(self.db, caller, &scope)? => Ok(scope),
            _ => Err(Refusal::NoSuchScope { scope: id.clone() }.into()),
        }
    }

    /// Scopes by name.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn scopes(&self, caller: &Caller, query: &ScopeQuery) -> Viewed<Page<Scope, ScopeId>> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let sql = format!(
            "SELECT {} FROM scopes WHERE id > ?1 AND (?2 IS NULL OR parent = ?2) ORDER BY id LIMIT ?3",
            rows::SCOPE
        );
        let mut page = self.page_builder(limit);
        let mut after = query.after.as_ref().map_or(String::new(), ToString::to_string);
        'read: loop {
            let batch = self.read_rows(&sql, (&after, &query.parent, one_more(limit)), rows::scope)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            if let Some(last) = batch.rows.last() {
                after = last.id.to_string();
            }
            for scope in batch.rows {
                if sight::sees_scope(self.db, caller, &scope)? && !page.push(scope) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|scope| scope.id.clone()))
    }

    /// The members of a scope that the caller may see, by name; optionally with those of its descendants.
    ///
    /// # Errors
    /// Refused if the caller may not know of the scope.
    pub fn members(
        &self,
        caller: &Caller,
        id: &ScopeId,
        with_descendants: bool,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Viewed<Page<AgentId, AgentId>> {
        let scope = self.scope(caller, id)?;
        let limit = self.page(limit);
        let scopes = if with_descendants { self.seen_below(caller, scope)? } else { vec![scope.id] };
        // Plain data: writing it as JSON cannot fail.
        let scopes = serde_json::to_string(&scopes).unwrap_or_default();
        let sql = "SELECT DISTINCT agent FROM scope_members WHERE scope IN (SELECT value FROM json_each(?1))
                   AND agent > ?2 ORDER BY agent LIMIT ?3";
        let mut found: Vec<AgentId> = Vec::new();
        let mut after = after.map_or(String::new(), ToString::to_string);
        loop {
            let params = (&scopes, &after, one_more(limit));
            let batch: Vec<AgentId> = all(self.db, sql, params, |row| row.get(0))?;
            let exhausted = batch.len() <= limit;
            if let Some(last) = batch.last() {
                after = last.to_string();
            }
            for member in batch {
                let agent = rows::active_agent(self.db, &member)?;
                if let Some(agent) = agent
                    && sight::sees_agent(self.db, caller, &agent)?
                {
                    found.push(member);
                }
            }
            if exhausted || found.len() > limit {
                break;
            }
        }
        Ok(Page::from_rows(found, limit, Clone::clone))
    }

    /// A scope and its descendants that the caller may write to, for a message to all of them. The scope itself always
    /// comes first: whether the caller may write to it is checked when the message is sent.
    ///
    /// # Errors
    /// Refused if the caller may not know of the scope, and if there are more than fit on a page.
    pub fn writable_scopes(&self, caller: &Caller, id: &ScopeId) -> Viewed<Vec<ScopeId>> {
        let top = self.scope(caller, id)?;
        let sender = rows::active_agent(self.db, &caller.agent)?;
        let mut found = vec![top.id.clone()];
        for id in self.seen_below(caller, top)?.into_iter().skip(1) {
            if let (Some(sender), Some(scope)) = (&sender, rows::scope_by_id(self.db, &id)?)
                && acl::bar_to_scope(self.db, caller, sender, &scope)?.is_none()
            {
                found.push(id);
            }
        }
        if found.len() > self.limits.page {
            return Err(Refusal::TooMany { what: "scopes", limit: self.limits.page as u64 }.into());
        }
        Ok(found)
    }

    /// A scope and its descendants that the caller may see; descendants of a hidden scope stay hidden.
    fn seen_below(&self, caller: &Caller, top: Scope) -> Viewed<Vec<ScopeId>> {
        let sql = format!("SELECT {} FROM scopes WHERE parent = ?1 ORDER BY id", rows::SCOPE);
        let mut seen = vec![top.id];
        let mut next = 0;
        while let Some(parent) = seen.get(next).cloned() {
            next += 1;
            for scope in all(self.db, &sql, [&parent], rows::scope)? {
                if !seen.contains(&scope.id) && sight::sees_scope(self.db, caller, &scope)? {
                    seen.push(scope.id);
                }
            }
        }
        Ok(seen)
    }
}
