//! The other names of realms as one realm's database keeps them, by name and by realm.

use std::collections::{HashMap, HashSet};

use posthaste_engine::nouns::{AgentId, RealmName};
use posthaste_engine::verbs::claims::Claimed;

use super::derived_names;

/// The claims of one realm.
#[derive(Debug)]
pub(super) struct Claims {
    home: RealmName,
    is_default: bool,
    list: Vec<Claimed>,
    by_alias: HashMap<String, usize>,
    /// The earliest claim of each realm.
    first: HashMap<RealmName, usize>,
    made_by: HashMap<AgentId, usize>,
    /// Claims in the database that no longer count, and the realm that each named.
    ignored: HashMap<String, RealmName>,
    /// Realms that were made for a name which stands for another realm now, and that name.
    former: HashMap<RealmName, Claimed>,
}

impl Claims {
    /// The claims in the database of realm `home`, the earliest first. Claims of the default realm may name realms that
    /// were made for a project, and realms that the operator moved them to; others name their own realm. Earlier versions
    /// let callers of any realm claim a path for all realms: those claims do not count.
    pub(crate) fn of(home: &RealmName, is_default: bool, list: Vec<Claimed>) -> Self {
        let made_for_projects: HashSet<RealmName> = match is_default {
            true => list.iter().flat_map(made_for).collect(),
            false => HashSet::new(),
        };
        let mut claims = Self {
            home: home.clone(),
            is_default,
            list: Vec::new(),
            by_alias: HashMap::new(),
            first: HashMap::new(),
            made_by: HashMap::new(),
            ignored: HashMap::new(),
            former: HashMap::new(),
        };
        for claim in list {
            let counts = claim.realm == *home || claim.moved || made_for_projects.contains(&claim.realm);
            if is_default {
                for realm in made_for(&claim).filter(|realm| claim.released || *realm != claim.realm) {
                    claims.former.insert(realm, claim.clone());
                }
            }
            if claim.released {
                continue;
            }
            if counts {
                claims.add(claim);
            } else {
                claims.ignored.insert(claim.alias, claim.realm);
            }
        }
        claims
    }

    pub(crate) fn add(&mut self, claim: Claimed) {
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

    pub(crate) fn find(&self, alias: &str) -> Option<&Claimed> {
        self.by_alias.get(alias).and_then(|at| self.list.get(*at))
    }

    /// The claim of the nearest path above this one that stands for all below it. By name only.
    pub(crate) fn above(&self, alias: &str) -> Option<&Claimed> {
        parents(alias).find_map(|parent| self.find(parent).filter(|claim| self.covers(claim)))
    }

    /// Callers' own claims do not stand for what lies below them: one caller would decide about the paths of others.
    fn covers(&self, claim: &Claimed) -> bool {
        // Claims that `serve` made before this was recorded.
        let by_serve = self.is_default && claim.by.is_none() && claim.realm == self.home;
        claim.covers || by_serve
    }

    /// The first name of a realm.
    pub(crate) fn first_of(&self, realm: &RealmName) -> Option<&Claimed> {
        self.first.get(realm).and_then(|at| self.list.get(*at))
    }

    /// The name that a realm was made for, which stands for another realm now.
    pub(crate) fn made_before(&self, realm: &RealmName) -> Option<&Claimed> {
        self.former.get(realm)
    }

    /// The realm that was made for this name earlier.
    pub(crate) fn own_before(&self, alias: &str) -> Option<RealmName> {
        let known = |realm: &RealmName| self.former.get(realm).is_some_and(|claim| claim.alias == alias);
        derived_names(alias).into_iter().find(known)
    }

    /// Names below a path that stand for other realms than the path does.
    pub(crate) fn apart_below(&self, path: &str, realm: &RealmName) -> Vec<&Claimed> {
        let below = |claim: &&Claimed| claim.realm != *realm && super::below(&claim.alias, path).is_some();
        self.list.iter().filter(below).collect()
    }

    /// The realm that an ignored claim of the name stands for in the database.
    pub(crate) fn ignored(&self, alias: &str) -> Option<&RealmName> {
        self.ignored.get(alias)
    }

    pub(crate) fn made_by(&self, agent: &AgentId) -> usize {
        self.made_by.get(agent).copied().unwrap_or(0)
    }

    pub(crate) fn list(&self) -> &[Claimed] {
        &self.list
    }
}

/// The realms that were made for a claim's name, now or earlier.
fn made_for(claim: &Claimed) -> impl Iterator<Item = RealmName> {
    let names = derived_names(&claim.alias);
    let stood_for = claim.former.iter().chain([&claim.realm]);
    stood_for.filter(|realm| names.contains(realm)).cloned().collect::<Vec<_>>().into_iter()
}

/// The paths above a path, the nearest first. An address has none.
fn parents(alias: &str) -> impl Iterator<Item = &str> {
    let is_path = alias.starts_with('/') || alias.as_bytes().get(1) == Some(&b':');
    let mut rest = alias;
    std::iter::from_fn(move || {
        let at = rest.rfind('/').filter(|_| is_path && rest != "/")?;
        rest = rest.get(..at.max(1)).filter(|parent| *parent != rest)?;
        Some(if at == 0 { "/" } else { rest })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_parents_and_addresses_have_none() {
        let all = |alias| parents(alias).collect::<Vec<_>>();
        assert_eq!(all("/srv/app/src"), ["/srv/app", "/srv", "/"]);
        assert_eq!(all("/srv"), ["/"]);
        assert_eq!(all("C:/code/app"), ["C:/code", "C:"]);
        assert!(all("/").is_empty() && all("example.org/a/b").is_empty());
    }
}
