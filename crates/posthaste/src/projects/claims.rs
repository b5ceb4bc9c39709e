//! The other names of realms as one realm's database keeps them, by name and by realm.

use std::collections::HashMap;

use posthaste_engine::nouns::{AgentId, RealmName};
use posthaste_engine::verbs::office::Claimed;

use super::derived_names;

/// The claims of one realm.
#[derive(Debug, Default)]
pub(super) struct Claims {
    list: Vec<Claimed>,
    by_alias: HashMap<String, usize>,
    /// The earliest claim of each realm.
    first: HashMap<RealmName, usize>,
    made_by: HashMap<AgentId, usize>,
    /// Claims in the database that no longer count, and the realm that each named.
    ignored: HashMap<String, RealmName>,
}

impl Claims {
    /// The claims in the database of realm `home`, the earliest first. Claims of the default realm may name realms that
    /// were made for a project; others name their own realm. Earlier versions let callers of any realm claim a path for
    /// all realms: those claims do not count.
    pub(super) fn of(home: &RealmName, is_default: bool, list: Vec<Claimed>) -> Self {
        let made_for_projects: std::collections::HashSet<RealmName> = match is_default {
            true => {
                let own = |claim: &&Claimed| derived_names(&claim.alias).contains(&claim.realm);
                list.iter().filter(own).map(|claim| claim.realm.clone()).collect()
            }
            false => std::collections::HashSet::new(),
        };
        let mut claims = Self::default();
        for claim in list {
            if claim.realm == *home || made_for_projects.contains(&claim.realm) {
                claims.add(claim);
            } else {
                claims.ignored.insert(claim.alias, claim.realm);
            }
        }
        claims
    }

    pub(super) fn add(&mut self, claim: Claimed) {
        if self.by_alias.contains_key(&claim.alias) {
            return;
        }
        let at = self.list.len();
        self.ignored.remove(&claim.alias);
        self.by_alias.insert(claim.alias.clone(), at);
        self.first.entry(claim.realm.clone()).or_insert(at);
        if let Some(by) = &claim.by {
            *self.made_by.entry(by.clone()).or_default() += 1;
        }
        self.list.push(claim);
    }

    pub(super) fn find(&self, alias: &str) -> Option<&Claimed> {
        self.by_alias.get(alias).and_then(|at| self.list.get(*at))
    }

    /// The first name of a realm.
    pub(super) fn first_of(&self, realm: &RealmName) -> Option<&Claimed> {
        self.first.get(realm).and_then(|at| self.list.get(*at))
    }

    /// The realm that an ignored claim of the name stands for in the database.
    pub(super) fn ignored(&self, alias: &str) -> Option<&RealmName> {
        self.ignored.get(alias)
    }

    pub(super) fn made_by(&self, agent: &AgentId) -> usize {
        self.made_by.get(agent).copied().unwrap_or(0)
    }

    pub(super) fn list(&self) -> &[Claimed] {
        &self.list
    }
}
