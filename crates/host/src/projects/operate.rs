//! What the operator does with projects: claim a work tree for a realm, move a name to another realm, take it back. The
//! memory of names follows at once, so that the next call of any session finds what holds.

use std::sync::PoisonError;

use posthaste_engine::EngineError;
use posthaste_engine::nouns::{AgentId, Caller, RealmName};
use posthaste_engine::verbs::claims::{Claim, Claimed, MoveClaim, Moved, ReleaseClaim};

use super::claims::Claims;
use super::{Given, GivenError, move_line, scope_in_realm};
use crate::Host;

/// The longest name that a project of its own in a realm is kept under: reservations carry it.
const MOST_PROJECT: usize = 900;

/// Where a name stands after it was claimed.
#[derive(Clone, Debug)]
pub struct Standing {
    pub claim: Claimed,
    /// Names below it that stand for other realms.
    pub apart: Vec<Claimed>,
}

/// A claim that was taken back.
#[derive(Clone, Debug)]
pub struct Released {
    pub claim: Claimed,
    /// The claim above it that holds for it now.
    pub above: Option<Claimed>,
}

impl Host {
    /// Has the default realm answer to what a start was given. A `--project` that stands for another realm stops the
    /// start; names that come along (of the start's directory, a repository's address) stay where they are.
    pub async fn claim_given(&self, all: &[Given]) -> Result<(), GivenError> {
        let home = self.default_realm().clone();
        for given in all {
            for (place, name) in given.names.iter().enumerate() {
                let claim = Claim {
                    alias: name.clone(),
                    realm: home.clone(),
                    by: None,
                    instead_of: None,
                    project: None,
                    covers: true,
                };
                let claim = self.claim(&home, claim).await?;
                if claim.realm == home {
                    continue;
                }
                let line = move_line(name, &home);
                match &given.wanted {
                    Some(said) if place == 0 => {
                        let (wanted, realm) = (said.clone(), claim.realm);
                        return Err(GivenError::Elsewhere { wanted, realm, home, line });
                    }
                    _ => tracing::warn!(
                        project = name, realm = %claim.realm,
                        "its sessions go to a realm of their own; to bring new ones into realm {home}: {line}"
                    ),
                }
            }
        }
        Ok(())
    }

    /// Claims a work tree for a realm, by all its names. The first name is the one that counts; it stays where it is if
    /// it stands for another realm.
    pub async fn claim_tree(
        &self,
        home: &RealmName,
        names: &[String],
        by: &AgentId,
    ) -> Result<Option<Standing>, EngineError> {
        let project = self.project_for(home, home, names).await?;
        let mut standing = None;
        for name in names {
            let claim = Claim {
                alias: name.clone(),
                realm: home.clone(),
                by: Some(by.clone()),
                instead_of: None,
                project: project.clone(),
                covers: true,
            };
            let mut claim = self.claim(home, claim).await?;
            if claim.realm == *home && !claim.covers {
                claim = self.move_name(home, name, home, by).await?.claim;
            }
            if standing.is_none() {
                let apart = |claims: &Claims| -> Vec<Claimed> {
                    claims.apart_below(name, &claim.realm).into_iter().cloned().collect()
                };
                let apart = self.with_claims(home, apart).await?;
                standing = Some(Standing { claim, apart });
            }
        }
        Ok(standing)
    }

    /// Has a name stand for another realm from now on.
    pub async fn move_name(
        &self,
        home: &RealmName,
        alias: &str,
        realm: &RealmName,
        by: &AgentId,
    ) -> Result<Moved, EngineError> {
        let project = self.project_for(home, realm, std::slice::from_ref(&alias.to_owned())).await?;
        let verb = MoveClaim { alias: alias.to_owned(), realm: realm.clone(), by: Some(by.clone()), project };
        let _alone = self.projects().changing.lock().await;
        let keeper = self.office().realm(home).await?;
        let moved = keeper.submit(&Caller::office(), verb).await?;
        self.forget_claims(home);
        Ok(moved)
    }

    /// Takes a claim back; nothing if the name stands for no realm.
    pub async fn release_name(&self, home: &RealmName, alias: &str) -> Result<Option<Released>, EngineError> {
        let released = {
            let _alone = self.projects().changing.lock().await;
            let keeper = self.office().realm(home).await?;
            let verb = ReleaseClaim { alias: alias.to_owned() };
            let released = keeper.submit(&Caller::office(), verb).await?;
            self.forget_claims(home);
            released
        };
        let Some(claim) = released else { return Ok(None) };
        let above = self.with_claims(home, |claims| claims.above(alias).cloned()).await?;
        Ok(Some(Released { claim, above }))
    }

    /// Whether a realm was made for a project, so that callers of the default realm may be sent there.
    pub async fn is_made_for_project(&self, realm: &RealmName) -> Result<bool, EngineError> {
        let known = |claims: &Claims| {
            let claim = claims.first_of(realm).filter(|claim| !claim.moved);
            claim.is_some() || claims.made_before(realm).is_some()
        };
        self.with_claims(self.default_realm(), known).await
    }

    /// The names that stand for a realm in the default realm's list.
    pub async fn names_for(&self, realm: &RealmName) -> Result<Vec<Claimed>, EngineError> {
        let names = |claims: &Claims| -> Vec<Claimed> {
            claims.list().iter().filter(|claim| claim.realm == *realm).cloned().collect()
        };
        self.with_claims(self.default_realm(), names).await
    }

    /// The project that names stand for in a realm: that of a name which is known there already, the realm's own if it
    /// has no name yet, else one of their own. Reservations of one project do not meet those of another.
    async fn project_for(
        &self,
        home: &RealmName,
        realm: &RealmName,
        names: &[String],
    ) -> Result<Option<String>, EngineError> {
        let find = |claims: &Claims| {
            let known = names.iter().find_map(|name| claims.find(name).filter(|claim| claim.realm == *realm));
            match known {
                Some(claim) => claim.project.clone(),
                None if claims.first_of(realm).is_none() => None,
                None => names.first().cloned(),
            }
        };
        let project = self.with_claims(home, find).await?;
        Ok(project.filter(|project| scope_in_realm(realm, Some(project)).len() <= MOST_PROJECT))
    }

    /// Has the names of a realm read again at the next question. Called with `changing` held.
    fn forget_claims(&self, home: &RealmName) {
        self.projects().homes.write().unwrap_or_else(PoisonError::into_inner).remove(home);
    }
}
