//! Projects are realms under other names: a work tree's path, a repository's address, a project's key. A project that
//! nobody claimed becomes a realm of its own; the default realm's books keep the list.

pub(crate) mod git;

use std::path::Path;

use posthaste_engine::names::slug;
use posthaste_engine::nouns::{Caller, Millis, RealmName};
use posthaste_engine::verbs::office::{Claim, Claimed};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::airc::normal_remote;
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::shared::Shared;
use git::WorkTree;

/// The names that realms have besides their own, as the default realm's books have them.
#[derive(Debug, Default)]
pub(crate) struct Projects {
    /// Nothing until somebody asks.
    known: Mutex<Option<Vec<Claimed>>>,
}

/// Work trees of one realm that are asked where they came from.
const MOST_TREES: usize = 64;

/// A project and the realm that it is.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) engine: Engine,
    /// The absolute path, address or name by which people know it.
    pub(crate) human_key: String,
    pub(crate) created_at: Millis,
}

impl Project {
    pub(crate) fn realm(&self) -> &RealmName {
        self.engine.realm()
    }

    /// Where the project's paths live, as reservations name it.
    pub(crate) fn scope(&self) -> String {
        scope_of(self.realm())
    }
}

/// Where the paths of a realm's project live, as reservations name it.
pub(crate) fn scope_of(realm: &RealmName) -> String {
    format!("project:{realm}")
}

/// A name for a project, in the one form that is compared: an absolute path without detours, or a repository's address.
pub(crate) fn alias(text: &str) -> Option<String> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let drive = text.as_bytes().get(1) == Some(&b':') && text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !text.starts_with('/') && !drive {
        return git::remote(text);
    }
    let forward = if drive { text.replace('\\', "/") } else { text.to_owned() };
    let mut parts: Vec<&str> = Vec::new();
    for part in forward.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(if drive { parts.join("/") } else { format!("/{}", parts.join("/")) })
}

impl Shared {
    /// A scope of reservations as it is compared in a realm: every way to name the realm's own project is one. Those are
    /// `project`, `project:` with the realm's name or another name of it, and `repo:` with the address of a repository
    /// that one of its work trees came from. Everything else means what it says.
    pub(crate) async fn scope_in(&self, realm: &RealmName, scope: &str) -> Result<String, EngineError> {
        let own = scope_of(realm);
        let (project, repo) = match scope.split_once(':') {
            None if scope == "project" => return Ok(own),
            Some(("project", key)) if key == realm.as_str() => return Ok(own),
            Some(("project", key)) => (alias(key), None),
            Some(("repo", address)) => (None, Some(normal_remote(address))),
            _ => (None, None),
        };
        if project.is_none() && repo.is_none() {
            return Ok(scope.to_owned());
        }
        let mut known = self.projects().known.lock().await;
        let claims = self.claims(&mut known).await?;
        let ours: Vec<&str> =
            claims.iter().filter(|claim| claim.realm == *realm).map(|claim| claim.alias.as_str()).collect();
        let came_from = |path: &str, repo: &str| {
            path.starts_with('/')
                && WorkTree::at(Path::new(path)).and_then(|tree| tree.remote).is_some_and(|from| from == repo)
        };
        let meant = match (&project, &repo) {
            (Some(alias), _) => ours.contains(&alias.as_str()),
            (None, Some(repo)) => {
                ours.contains(&repo.as_str())
                    || ours.iter().take(MOST_TREES).any(|path| came_from(path, repo))
            }
            (None, None) => false,
        };
        Ok(if meant { own } else { scope.to_owned() })
    }

    /// The project of that key: a path, an address, a realm's name. `None` if there is none.
    pub(crate) async fn project(&self, key: &str) -> Result<Option<Project>, EngineError> {
        let mut known = self.projects().known.lock().await;
        let claims = self.claims(&mut known).await?;
        if let Some(alias) = alias(key) {
            if let Some(claim) = find(claims, &alias) {
                return self.open(claim.realm.clone(), alias, claim.at).await.map(Some);
            }
            return match relative(claims, &alias) {
                Some(claim) => self.open(claim.realm.clone(), alias, claim.at).await.map(Some),
                None => Ok(None),
            };
        }
        let Ok(name) = RealmName::new(key) else { return Ok(None) };
        let claim = claims.iter().find(|claim| claim.realm == name);
        if claim.is_none() && name != *self.default_realm() && !self.office().has_realm(&name) {
            return Ok(None);
        }
        let (human_key, at) = match claim {
            Some(claim) => (claim.alias.clone(), claim.at),
            None => (name.to_string(), 0),
        };
        self.open(name, human_key, at).await.map(Some)
    }

    /// The realm as a project, under the first of its other names.
    pub(crate) async fn project_of(&self, engine: &Engine) -> Result<Project, EngineError> {
        let mut known = self.projects().known.lock().await;
        let claim = self.claims(&mut known).await?.iter().find(|claim| claim.realm == *engine.realm());
        Ok(Project {
            engine: engine.clone(),
            human_key: claim.map_or_else(|| engine.realm().to_string(), |claim| claim.alias.clone()),
            created_at: claim.map_or(0, |claim| claim.at),
        })
    }

    /// The project of that path or address, made if nobody claimed it: in a realm of its own, or in the given one.
    pub(crate) async fn make_project(
        &self,
        alias: &str,
        within: Option<&RealmName>,
    ) -> Result<Project, EngineError> {
        let mut known = self.projects().known.lock().await;
        let claims = self.claims(&mut known).await?;
        if let Some(claim) = find(claims, alias) {
            return self.open(claim.realm.clone(), alias.to_owned(), claim.at).await;
        }
        let realm = match (relative(claims, alias), within) {
            (Some(claim), _) => claim.realm.clone(),
            (None, Some(realm)) => realm.clone(),
            (None, None) => self.fresh_name(alias),
        };
        let engine = self.office().realm(&realm).await?;
        let claim = self.claim(claims, alias, &realm).await?;
        Ok(Project { engine, human_key: alias.to_owned(), created_at: claim.at })
    }

    /// Gives a realm further names; those that are claimed already stay where they are.
    pub(crate) async fn claim_all(&self, aliases: &[String], realm: &RealmName) -> Result<(), EngineError> {
        let mut known = self.projects().known.lock().await;
        let claims = self.claims(&mut known).await?;
        for alias in aliases {
            if find(claims, alias).is_none() {
                self.claim(claims, alias, realm).await?;
            }
        }
        Ok(())
    }

    /// Every name of every project, the earliest first.
    pub(crate) async fn all_claims(&self) -> Result<Vec<Claimed>, EngineError> {
        let mut known = self.projects().known.lock().await;
        self.claims(&mut known).await.map(|claims| claims.clone())
    }

    async fn claim(
        &self,
        claims: &mut Vec<Claimed>,
        alias: &str,
        realm: &RealmName,
    ) -> Result<Claimed, EngineError> {
        let keeper = self.office().realm(self.default_realm()).await?;
        let verb = Claim { alias: alias.to_owned(), realm: realm.clone() };
        let claimed = keeper.submit(&Caller::office(), verb).await?;
        claims.push(claimed.clone());
        Ok(claimed)
    }

    async fn claims<'k>(
        &self,
        known: &'k mut Option<Vec<Claimed>>,
    ) -> Result<&'k mut Vec<Claimed>, EngineError> {
        if known.is_none() {
            let keeper = self.office().realm(self.default_realm()).await?;
            *known = Some(keeper.read(|view| view.claims(&Caller::office())).await?);
        }
        Ok(known.get_or_insert_default())
    }

    async fn open(&self, realm: RealmName, human_key: String, at: Millis) -> Result<Project, EngineError> {
        Ok(Project { engine: self.office().realm(&realm).await?, human_key, created_at: at })
    }

    /// A realm's name made from an alias: its words, and a tail where these are taken or cut short.
    fn fresh_name(&self, alias: &str) -> RealmName {
        let plain = slug(alias);
        let short = RealmName::new(&plain).ok().filter(|name| {
            let whole = alias.len() <= posthaste_engine::names::MAX_SLUG;
            whole && name != self.default_realm() && !self.office().has_realm(name)
        });
        short.unwrap_or_else(|| {
            let digest = Sha256::digest(alias.as_bytes());
            let tail: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
            let head: String = plain.chars().take(50).collect();
            // Letters, digits, dots and dashes that start with a letter or digit: always a name.
            RealmName::new(format!("{head}-{tail}")).unwrap_or_else(|_| RealmName::main())
        })
    }
}

fn find<'c>(claims: &'c [Claimed], alias: &str) -> Option<&'c Claimed> {
    claims.iter().find(|claim| claim.alias == alias)
}

/// The claim of the repository that a path belongs to, if it is a linked work tree or another clone of it.
fn relative<'c>(claims: &'c [Claimed], alias: &str) -> Option<&'c Claimed> {
    if !alias.starts_with('/') {
        return None;
    }
    let tree = WorkTree::at(Path::new(alias))?;
    let main = tree.main.to_str().and_then(|main| find(claims, main));
    main.or_else(|| find(claims, tree.remote.as_deref()?))
}

/// The names of the work tree around a directory: its path, that of the repository's first one, the repository's address.
pub(crate) fn names_around(directory: &Path) -> Vec<String> {
    let Some(tree) = WorkTree::around(directory) else { return Vec::new() };
    names_of(&tree)
}

/// The names of a directory that was given as a project.
pub(crate) fn names_at(directory: &Path) -> Vec<String> {
    let tree = WorkTree::at(directory);
    let own = directory.to_str().and_then(alias);
    own.into_iter().chain(tree.iter().flat_map(names_of)).collect()
}

fn names_of(tree: &WorkTree) -> Vec<String> {
    let paths = [&tree.main, &tree.top].into_iter().filter_map(|path| path.to_str().and_then(alias));
    let mut names: Vec<String> = paths.chain(tree.remote.clone()).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_one_spelling() {
        for (text, meant) in [
            ("/srv/app", Some("/srv/app")),
            ("/srv//app/./x/../", Some("/srv/app")),
            ("C:\\code\\app", Some("C:/code/app")),
            ("git@example.org:a/b.git", Some("example.org/a/b")),
            ("relative/path", None),
            ("./app", None),
            ("", None),
            ("/a\nb", None),
        ] {
            assert_eq!(alias(text).as_deref(), meant, "{text:?}");
        }
    }
}
