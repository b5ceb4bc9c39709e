//! Projects are realms under other names: a work tree's path, a repository's address, a project's key. A path that a
//! caller of the default realm names becomes a realm of its own; the default realm's database keeps the list. Names that
//! callers of another realm give count in that realm only, and are kept there. A path below one that the operator
//! claimed is that project. A path is a name and nothing else: files are looked at only in the work trees that the
//! operator named (`trees.rs`).

mod claims;
pub mod git;
mod given;
mod operate;
mod trees;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use posthaste_engine::names::slug;
use posthaste_engine::nouns::{AgentId, Caller, Millis, RealmName};
use posthaste_engine::verbs::claims::{Claim, Claimed};
use posthaste_engine::{Engine, EngineError};
use posthaste_wire::airc::normal_remote;
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, Semaphore};

use crate::Host;
use claims::Claims;
pub use given::{Given, GivenError, given, names_here};
pub use trees::{TreeError, Trees};

/// Names of projects that one realm's database keeps.
const MOST_NAMES: usize = 10_000;
/// Realms whose names are kept in memory.
const MOST_HOMES: usize = 512;
/// Looks into named work trees at once.
const MOST_LOOKS: usize = 4;

/// The names that realms have besides their own, and the work trees that the operator named.
#[derive(Debug)]
pub struct Projects {
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
pub struct Found {
    pub realm: RealmName,
    pub human_key: String,
    pub created_at: Millis,
    /// The project of the realm, if it is not the realm's own.
    pub project: Option<String>,
    /// Where in the project the path lies that was asked for.
    pub base: String,
}

/// How many projects a caller may make.
#[derive(Clone, Debug)]
pub struct Maker {
    pub name: AgentId,
    pub most: Option<usize>,
}

/// Why a project was not made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
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
pub struct Project {
    pub engine: Engine,
    /// The absolute path, address or name by which people know it.
    pub human_key: String,
    pub created_at: Millis,
    /// The project of the realm, if it is not the realm's own.
    project: Option<String>,
    /// Where in the project the caller's paths start: relative ones are relative to what the caller named.
    pub base: String,
}

impl Project {
    pub fn new(engine: Engine, found: Found) -> Self {
        let Found { human_key, created_at, project, base, .. } = found;
        Self { engine, human_key, created_at, project, base }
    }

    pub fn realm(&self) -> &RealmName {
        self.engine.realm()
    }

    /// Where the project's paths live, as reservations name it.
    pub fn scope(&self) -> String {
        scope_in_realm(self.realm(), self.project.as_deref())
    }
}

/// Where the paths of one project of a realm live, as reservations name it.
fn scope_in_realm(realm: &RealmName, project: Option<&str>) -> String {
    project.map_or_else(|| scope_of(realm), |project| format!("project:{project}"))
}

/// What of a path lies below another: nothing for the path itself.
pub fn below<'a>(path: &'a str, top: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(top)?;
    let rest = if top.ends_with('/') { rest } else { rest.strip_prefix('/')? };
    (!rest.is_empty()).then_some(rest)
}

/// Where the paths of a realm's project live, as reservations name it.
pub fn scope_of(realm: &RealmName) -> String {
    format!("project:{realm}")
}

/// A name for a project, in the one form that is compared: an absolute path without detours, or a repository's address.
pub fn alias(text: &str) -> Option<String> {
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

impl Host {
    /// A scope of reservations as it is compared in a realm: every way to name the realm's own project is one. Those are
    /// `project`, `project:` with the realm's name or another name of it, and `repo:` with the address of a repository
    /// that it answers to. Everything else means what it says.
    pub async fn scope_in(&self, realm: &RealmName, scope: &str) -> Result<String, EngineError> {
        let own = scope_of(realm);
        let name = match scope.split_once(':') {
            None if scope == "project" => return Ok(own),
            Some(("project", key)) if key == realm.as_str() => return Ok(own),
            Some(("project", key)) => alias(key),
            Some(("repo", address)) => Some(normal_remote(address)),
            _ => None,
        };
        let Some(name) = name else { return Ok(scope.to_owned()) };
        let ours = |claims: &Claims| claims.find(&name).filter(|claim| claim.realm == *realm).cloned();
        let mut meant = self.with_claims(self.default_realm(), ours).await?;
        if meant.is_none() && realm != self.default_realm() {
            meant = self.with_claims(realm, ours).await?;
        }
        Ok(meant.map_or_else(|| scope.to_owned(), |claim| scope_in_realm(realm, claim.project.as_deref())))
    }

    /// The project of that key (a path, an address, a realm's name) for callers of a realm. `None` if there is none, or
    /// none for them: the default realm's callers find the realms that were made for projects, others their own.
    pub async fn find_project(&self, home: &RealmName, key: &str) -> Result<Option<Found>, EngineError> {
        let at_default = home == self.default_realm();
        let Some(alias) = alias(key) else {
            let Ok(name) = RealmName::new(key) else { return Ok(None) };
            if name == *home {
                return self.named(name).await.map(Some);
            }
            if !at_default {
                return Ok(None);
            }
            let known = |claims: &Claims| claims.first_of(&name).cloned();
            if let Some(claim) = self.with_claims(home, known).await? {
                return Ok(Some(Found::new(&claim, claim.alias.clone())));
            }
            // Its name stands for another realm now, but what was written there can still be read.
            let before = self.with_claims(home, |claims| claims.made_before(&name).cloned()).await?;
            let before = before.filter(|_| self.office().has_realm(&name));
            return Ok(before.map(|claim| Found {
                realm: name.clone(),
                project: None,
                ..Found::new(&claim, name.to_string())
            }));
        };
        if let Some(claim) = self.claim_in(home, &alias).await? {
            return Ok(Some(Found::new(&claim, alias)));
        }
        if at_default && let Some(main) = self.main_tree(&alias).await {
            let claim = self.claim_in(home, &main).await?;
            if claim.is_some() {
                return Ok(claim.map(|claim| Found::new(&claim, alias)));
            }
        }
        let above = |claims: &Claims| claims.above(&alias).cloned();
        if !at_default {
            // The project that this realm was made for.
            let exact = self.claim_in(self.default_realm(), &alias).await?;
            if let Some(claim) = exact.filter(|claim| claim.realm == *home) {
                return Ok(Some(Found::new(&claim, alias)));
            }
            if let Some(claim) = self.with_claims(home, above).await? {
                return Ok(Some(Found::below(&claim, &alias)));
            }
            let claim = self.with_claims(self.default_realm(), above).await?;
            return Ok(claim.filter(|claim| claim.realm == *home).map(|claim| Found::below(&claim, &alias)));
        }
        Ok(self.with_claims(home, above).await?.map(|claim| Found::below(&claim, &alias)))
    }

    /// A realm as a project, under the first of its other names.
    pub async fn named(&self, realm: RealmName) -> Result<Found, EngineError> {
        let first = |claims: &Claims| claims.first_of(&realm).cloned();
        let mut claim = self.with_claims(self.default_realm(), first).await?;
        if claim.is_none() && realm != *self.default_realm() {
            claim = self.with_claims(&realm, first).await?;
        }
        Ok(match claim {
            Some(claim) => Found::new(&claim, claim.alias.clone()),
            None => Found {
                human_key: realm.to_string(),
                realm,
                created_at: 0,
                project: None,
                base: String::new(),
            },
        })
    }

    /// The project of that path or address for callers of a realm, made if there is none: in a realm of its own for the
    /// default realm's callers, in their own realm for others.
    pub async fn make_project(
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
        let realm = match home == self.default_realm() {
            true => self.realm_for(alias).await?,
            false => home.clone(),
        };
        // Makes the realm's database.
        self.office().realm(&realm).await?;
        let by = Some(maker.name.clone());
        let verb =
            Claim { alias: alias.to_owned(), realm, by, instead_of: None, project: None, covers: false };
        let claim = self.claim(home, verb).await?;
        if claim.realm != *home {
            tracing::info!(
                project = alias, realm = %claim.realm, by = %maker.name,
                "a project that the operator did not connect has a realm of its own; to bring new sessions into \
                 realm {home}: {}", move_line(alias, home)
            );
        }
        Ok(Found::new(&claim, alias.to_owned()))
    }

    /// The realm for a path that stands for none: the one that was made for it before, or a new one.
    async fn realm_for(&self, alias: &str) -> Result<RealmName, EngineError> {
        let before = self.with_claims(self.default_realm(), |claims| claims.own_before(alias)).await?;
        let before = before.filter(|realm| self.office().has_realm(realm));
        Ok(before.unwrap_or_else(|| self.fresh_name(alias)))
    }

    /// The names of the projects that callers of a realm can open, the earliest first, `most` at most.
    pub async fn claims_for(&self, home: &RealmName, most: usize) -> Result<Vec<Claimed>, EngineError> {
        let own = |claims: &Claims| -> Vec<Claimed> { claims.list().iter().take(most).cloned().collect() };
        self.with_claims(home, own).await
    }

    /// Says which work trees the operator named; the first call counts.
    pub fn name_trees(&self, trees: Trees) {
        // Only the program's start calls this.
        drop(self.projects().trees.set(Arc::new(trees)));
    }

    /// Looks into the work trees that the operator named, off the async workers; a few at once.
    pub async fn look_in_trees<T: Send + 'static>(
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

    async fn claim(&self, home: &RealmName, verb: Claim) -> Result<Claimed, EngineError> {
        let instead_of = self.with_claims(home, |claims| claims.ignored(&verb.alias).cloned()).await?;
        let _alone = self.projects().changing.lock().await;
        let keeper = self.office().realm(home).await?;
        let claimed = keeper.submit(&Caller::office(), Claim { instead_of, ..verb }).await?;
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
    pub fn new(claim: &Claimed, human_key: String) -> Self {
        let (realm, project) = (claim.realm.clone(), claim.project.clone());
        Self { realm, human_key, created_at: claim.at, project, base: String::new() }
    }

    /// Where the project's paths live, as reservations name it.
    pub fn scope(&self) -> String {
        scope_in_realm(&self.realm, self.project.as_deref())
    }

    /// A path below one that is claimed: that project.
    fn below(claim: &Claimed, alias: &str) -> Self {
        let base = below(alias, &claim.alias).unwrap_or_default().to_owned();
        Self { base, ..Self::new(claim, claim.alias.clone()) }
    }
}

/// What the operator types to bring a path's new sessions into a realm.
pub fn move_line(path: &str, realm: &RealmName) -> String {
    format!("posthaste projects move {} {realm}", shell_word(path))
}

/// A word as a shell takes it for itself.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+,=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// The names that a realm made for an alias can have: its words, and its words with a tail.
fn derived_names(alias: &str) -> Vec<RealmName> {
    let plain = slug(alias);
    let digest = Sha256::digest(alias.as_bytes());
    let tail: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    let head: String = plain.chars().take(50).collect();
    // ASCII alphanumerics, dots and dashes that start with an alphanumeric: always valid names.
    [plain, format!("{head}-{tail}")].into_iter().filter_map(|name| RealmName::new(name).ok()).collect()
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
