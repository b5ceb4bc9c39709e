//! Projects are realms under other names: a work tree's path, a repository's address, a project's key. A path that a
//! caller of the default realm names becomes a realm of its own; the default realm's database keeps the list. Names that
//! callers of another realm give count in that realm only, and are kept there. A path is a name and nothing else: files
//! are looked at only in the work trees that the operator named (`trees.rs`).

mod claims;
pub(crate) mod git;
mod trees;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use posthaste_engine::names::slug;
use posthaste_engine::nouns::{AgentId, Caller, Millis, RealmName};
use posthaste_engine::verbs::office::{Claim, Claimed};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::airc::normal_remote;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, Semaphore};

use crate::shared::Shared;
use claims::Claims;
use git::WorkTree;
pub(crate) use trees::{TreeError, Trees};

/// Names of projects that one realm's database keeps.
const MOST_NAMES: usize = 10_000;
/// Realms whose names are kept in memory.
const MOST_HOMES: usize = 512;
/// Looks into named work trees at once.
const MOST_LOOKS: usize = 4;

/// The names that realms have besides their own, and the work trees that the operator named.
#[derive(Debug)]
pub(crate) struct Projects {
    /// By the realm whose database has them; read on first use.
    homes: RwLock<HashMap<RealmName, Claims>>,
    /// Held while names are read from a database or added to one, so that none is missed.
    changing: Mutex<()>,
    /// Held while a project is made, so that none is made twice.
    making: Mutex<()>,
    trees: OnceLock<Arc<Trees>>,
    looks: Semaphore,
}

impl Default for Projects {
    fn default() -> Self {
        Self {
            homes: RwLock::default(),
            changing: Mutex::default(),
            making: Mutex::default(),
            trees: OnceLock::new(),
            looks: Semaphore::new(MOST_LOOKS),
        }
    }
}

/// Where a project is, before its realm is opened.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) realm: RealmName,
    pub(crate) human_key: String,
    pub(crate) created_at: Millis,
}

/// How many projects a caller may make.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub(crate) name: AgentId,
    pub(crate) most: Option<usize>,
}

/// Why a project was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    #[error(
        "you have made {0} projects, which is the limit for your token; ask the operator to open this one"
    )]
    TooManyOfOne(usize),
    #[error("the server keeps {0} projects at most; ask the operator")]
    TooMany(usize),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

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
    /// that it answers to. Everything else means what it says.
    pub(crate) async fn scope_in(&self, realm: &RealmName, scope: &str) -> Result<String, EngineError> {
        let own = scope_of(realm);
        let name = match scope.split_once(':') {
            None if scope == "project" => return Ok(own),
            Some(("project", key)) if key == realm.as_str() => return Ok(own),
            Some(("project", key)) => alias(key),
            Some(("repo", address)) => Some(normal_remote(address)),
            _ => None,
        };
        let Some(name) = name else { return Ok(scope.to_owned()) };
        let is_ours = |claims: &Claims| claims.find(&name).is_some_and(|claim| claim.realm == *realm);
        let meant = self.with_claims(self.default_realm(), is_ours).await?
            || (realm != self.default_realm() && self.with_claims(realm, is_ours).await?);
        Ok(if meant { own } else { scope.to_owned() })
    }

    /// The project of that key (a path, an address, a realm's name) for callers of a realm. `None` if there is none, or
    /// none for them: the default realm's callers find the realms that were made for projects, others their own.
    pub(crate) async fn find_project(
        &self,
        home: &RealmName,
        key: &str,
    ) -> Result<Option<Found>, EngineError> {
        let at_default = home == self.default_realm();
        let Some(alias) = alias(key) else {
            let Ok(name) = RealmName::new(key) else { return Ok(None) };
            if name == *home {
                return self.named(name).await.map(Some);
            }
            if !at_default {
                return Ok(None);
            }
            let first = self.with_claims(home, |claims| claims.first_of(&name).cloned()).await?;
            return Ok(first.map(|claim| Found::new(&claim, claim.alias.clone())));
        };
        if let Some(claim) = self.claim_in(home, &alias).await? {
            return Ok(Some(Found::new(&claim, alias)));
        }
        if !at_default {
            // The project that this realm was made for.
            let claim = self.claim_in(self.default_realm(), &alias).await?;
            return Ok(claim.filter(|claim| claim.realm == *home).map(|claim| Found::new(&claim, alias)));
        }
        let Some(main) = self.main_tree(&alias).await else { return Ok(None) };
        Ok(self.claim_in(home, &main).await?.map(|claim| Found::new(&claim, alias)))
    }

    /// A realm as a project, under the first of its other names.
    pub(crate) async fn named(&self, realm: RealmName) -> Result<Found, EngineError> {
        let first = |claims: &Claims| claims.first_of(&realm).cloned();
        let mut claim = self.with_claims(self.default_realm(), first).await?;
        if claim.is_none() && realm != *self.default_realm() {
            claim = self.with_claims(&realm, first).await?;
        }
        Ok(match claim {
            Some(claim) => Found::new(&claim, claim.alias.clone()),
            None => Found { human_key: realm.to_string(), realm, created_at: 0 },
        })
    }

    /// The project of that path or address for callers of a realm, made if there is none: in a realm of its own for the
    /// default realm's callers, in their own realm for others.
    pub(crate) async fn make_project(
        &self,
        home: &RealmName,
        alias: &str,
        maker: &Maker,
    ) -> Result<Found, MakeError> {
        if let Some(found) = self.find_project(home, alias).await? {
            return Ok(found);
        }
        let _one_at_a_time = self.projects().making.lock().await;
        if let Some(found) = self.find_project(home, alias).await? {
            return Ok(found);
        }
        let (names, made) =
            self.with_claims(home, |claims| (claims.list().len(), claims.made_by(&maker.name))).await?;
        if names >= MOST_NAMES {
            return Err(MakeError::TooMany(MOST_NAMES));
        }
        if let Some(most) = maker.most.filter(|most| made >= *most) {
            return Err(MakeError::TooManyOfOne(most));
        }
        let realm = if home == self.default_realm() { self.fresh_name(alias) } else { home.clone() };
        // Makes the realm's database.
        self.office().realm(&realm).await?;
        let claim = self.claim(home, alias, &realm, Some(maker.name.clone())).await?;
        Ok(Found::new(&claim, alias.to_owned()))
    }

    /// Gives the default realm further names; those that are claimed already stay where they are.
    pub(crate) async fn claim_all(&self, aliases: &[String]) -> Result<(), EngineError> {
        let home = self.default_realm();
        for alias in aliases {
            if self.claim_in(home, alias).await?.is_none() {
                self.claim(home, alias, home, None).await?;
            }
        }
        Ok(())
    }

    /// The names of the projects that callers of a realm can open, the earliest first, `most` at most.
    pub(crate) async fn claims_for(
        &self,
        home: &RealmName,
        most: usize,
    ) -> Result<Vec<Claimed>, EngineError> {
        let own = |claims: &Claims| -> Vec<Claimed> { claims.list().iter().take(most).cloned().collect() };
        self.with_claims(home, own).await
    }

    /// Says which work trees the operator named; the first call counts.
    pub(crate) fn name_trees(&self, trees: Trees) {
        // Only the program's start calls this.
        drop(self.projects().trees.set(Arc::new(trees)));
    }

    /// Looks into the work trees that the operator named, off the async workers; a few at once.
    pub(crate) async fn look_in_trees<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Trees) -> T + Send + 'static,
    ) -> Option<T> {
        let trees = self.projects().trees.get()?.clone();
        let _permit = self.projects().looks.acquire().await.ok()?;
        tokio::task::spawn_blocking(move || look(&trees)).await.ok()
    }

    /// The path of the named work tree that a path is a linked work tree of.
    async fn main_tree(&self, alias: &str) -> Option<String> {
        if !alias.starts_with('/') || self.projects().trees.get().is_none_or(|trees| trees.is_empty()) {
            return None;
        }
        let path = alias.to_owned();
        self.look_in_trees(move |trees| {
            trees.main_of(&path).and_then(|main| main.to_str().map(str::to_owned))
        })
        .await
        .flatten()
    }

    async fn claim_in(&self, home: &RealmName, alias: &str) -> Result<Option<Claimed>, EngineError> {
        self.with_claims(home, |claims| claims.find(alias).cloned()).await
    }

    async fn claim(
        &self,
        home: &RealmName,
        alias: &str,
        realm: &RealmName,
        by: Option<AgentId>,
    ) -> Result<Claimed, EngineError> {
        let instead_of = self.with_claims(home, |claims| claims.ignored(alias).cloned()).await?;
        let _alone = self.projects().changing.lock().await;
        let keeper = self.office().realm(home).await?;
        let verb = Claim { alias: alias.to_owned(), realm: realm.clone(), by, instead_of };
        let claimed = keeper.submit(&Caller::office(), verb).await?;
        let mut homes = self.projects().homes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = homes.get_mut(home) {
            claims.add(claimed.clone());
        }
        Ok(claimed)
    }

    /// Asks the names that a realm's database has, reading them first if need be.
    async fn with_claims<T>(&self, home: &RealmName, look: impl Fn(&Claims) -> T) -> Result<T, EngineError> {
        let projects = self.projects();
        let known = || projects.homes.read().unwrap_or_else(PoisonError::into_inner).get(home).map(&look);
        if let Some(found) = known() {
            return Ok(found);
        }
        let _alone = projects.changing.lock().await;
        if let Some(found) = known() {
            return Ok(found);
        }
        let keeper = self.office().realm(home).await?;
        let list = keeper.read(|view| view.claims(&Caller::office())).await?;
        let claims = Claims::of(home, home == self.default_realm(), list);
        let found = look(&claims);
        let mut homes = projects.homes.write().unwrap_or_else(PoisonError::into_inner);
        if homes.len() >= MOST_HOMES {
            homes.retain(|name, _| name == self.default_realm());
        }
        homes.insert(home.clone(), claims);
        Ok(found)
    }

    /// A realm's name made from an alias: its words, and a tail where these are taken or cut short.
    fn fresh_name(&self, alias: &str) -> RealmName {
        let mut names = derived_names(alias).into_iter();
        let short = names.next().filter(|name| {
            let whole = alias.len() <= posthaste_engine::names::MAX_SLUG;
            whole && name != self.default_realm() && !self.office().has_realm(name)
        });
        short.or_else(|| names.next()).unwrap_or_else(RealmName::main)
    }
}

impl Found {
    fn new(claim: &Claimed, human_key: String) -> Self {
        Self { realm: claim.realm.clone(), human_key, created_at: claim.at }
    }
}

/// The names that a realm made for an alias can have: its words, and its words with a tail.
fn derived_names(alias: &str) -> Vec<RealmName> {
    let plain = slug(alias);
    let digest = Sha256::digest(alias.as_bytes());
    let tail: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    let head: String = plain.chars().take(50).collect();
    // Letters, digits, dots and dashes that start with a letter or digit: always names.
    [plain, format!("{head}-{tail}")].into_iter().filter_map(|name| RealmName::new(name).ok()).collect()
}

/// The names and directories that a start of the server was given: those of the work tree around the directory it was
/// started in, and those of each `--project`.
pub(crate) fn given(here: Option<&Path>, given: &[String]) -> std::io::Result<(Vec<String>, Vec<PathBuf>)> {
    let mut names = here.map(names_around).unwrap_or_default();
    let mut directories = Vec::new();
    for project in given {
        let path = Path::new(project);
        if alias(project).is_none() || path.is_absolute() {
            let path = std::path::absolute(path)?;
            names.extend(names_at(&path));
            directories.push(path);
        } else {
            names.extend(alias(project));
        }
    }
    Ok((names, directories))
}

/// The names of the work tree around a directory: its path, that of the repository's first one, the repository's address.
fn names_around(directory: &Path) -> Vec<String> {
    let Some(tree) = WorkTree::around(directory) else { return Vec::new() };
    names_of(&tree)
}

/// The names of a directory that was given as a project.
fn names_at(directory: &Path) -> Vec<String> {
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
