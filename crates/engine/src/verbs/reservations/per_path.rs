//! Reserving paths one by one: a lease for each path, so that each can be prolonged and given back by itself.

use serde::{Deserialize, Serialize};

use super::{Renew, Reserve, Which, check_paths};
use crate::error::Refusal;
use crate::nouns::{Audience, Json, Millis, Reserved, Seq};
use crate::store::one;
use crate::verbs::{Decided, Write};

/// Takes one lease for each path. A lease that the caller has on the same path, in the same way, is prolonged instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReserveEach {
    /// Where the paths live.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the caller wants the paths alone.
    pub exclusive: bool,
    /// What for.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the reservations lapse.
    pub expires_at: Millis,
    /// Whether the whole realm may see them, or only accepted contacts.
    pub audience: Audience,
    /// Whether an overlap refuses them all instead of being reported.
    #[serde(default)]
    pub only_if_free: bool,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// What taking reservations one by one gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedEach {
    /// A lease for each path, in the order of the paths; none if something was in the way and that was to refuse them.
    pub reservations: Vec<Reserved>,
    /// What was in the way of reservations that were to be taken only if all are free.
    pub in_the_way: Vec<crate::nouns::Conflict>,
}

impl ReserveEach {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<ReservedEach> {
        to.require_member()?;
        let owner = to.acting_agent()?.id;
        let verbs: Vec<Reserve> = self.paths.iter().map(|path| self.one(path)).collect();
        if verbs.is_empty() {
            return Err(Refusal::BadValue { field: "paths", why: "at least one path is needed" }.into());
        }
        if verbs.len() > to.rules.paths_per_reservation as usize {
            let limit = to.rules.paths_per_reservation.into();
            return Err(Refusal::TooMany { what: "paths", limit }.into());
        }
        let mut patterns = Vec::with_capacity(verbs.len());
        for verb in &verbs {
            patterns.extend(verb.check(to)?);
        }
        // Leases of the caller's own never conflict, so what all of them overlap with is known before the first is taken.
        let rivals = self.all_of_them().rivals(to, &patterns)?;
        let mut conflicts = Vec::with_capacity(verbs.len());
        for pattern in &patterns {
            conflicts.push(rivals.conflicts_of(pattern)?);
        }
        if self.only_if_free && conflicts.iter().any(|conflicts| !conflicts.is_empty()) {
            let in_the_way = conflicts.into_iter().flatten().collect();
            return Ok(ReservedEach { reservations: Vec::new(), in_the_way });
        }
        // As many paths as the largest reservations that one agent may have would cover together.
        let most = to.rules.reservations_per_scope.saturating_mul(to.rules.paths_per_reservation);
        let sql = "SELECT count(*) FROM reservations WHERE scope = ?1 AND owner = ?2 AND status = 'active'
                   AND expires_at > ?3";
        let held = one(to.db, sql, (&self.scope, &owner, to.clock()), |row| row.get::<_, u32>(0))?;
        let asked = u32::try_from(verbs.len()).unwrap_or(u32::MAX);
        if held.unwrap_or(0).saturating_add(asked) > most {
            return Err(Refusal::TooMany { what: "reserved paths in this scope", limit: most.into() }.into());
        }
        check_paths(to, &self.scope, &owner, verbs.len())?;
        let mut reservations = Vec::with_capacity(verbs.len());
        for ((verb, pattern), conflicts) in verbs.iter().zip(patterns).zip(conflicts) {
            reservations.push(match self.own(to, verb)? {
                Some(seq) => {
                    let renew = Renew { which: Which::Number(seq), expires_at: self.expires_at };
                    let held = renew.check(to)?;
                    renew.prolong(to, held, conflicts)?
                }
                None => verb.take(to, owner.clone(), &[pattern], None, conflicts)?,
            });
        }
        Ok(ReservedEach { reservations, in_the_way: Vec::new() })
    }

    fn all_of_them(&self) -> Reserve {
        Reserve { paths: self.paths.clone(), ..self.one("") }
    }

    fn one(&self, path: &str) -> Reserve {
        Reserve {
            key: None,
            scope: self.scope.clone(),
            paths: vec![path.to_owned()],
            exclusive: self.exclusive,
            reason: self.reason.clone(),
            issued_at: None,
            expires_at: self.expires_at,
            audience: self.audience,
            meta: self.meta.clone(),
        }
    }

    /// The lease in force that the caller has on just this path already.
    fn own(&self, to: &Write<'_>, verb: &Reserve) -> rusqlite::Result<Option<Seq>> {
        let sql = "SELECT seq FROM reservations WHERE scope = ?1 AND owner = ?2 AND status = 'active'
                   AND expires_at > ?3 AND paths = ?4 AND exclusive = ?5 ORDER BY seq LIMIT 1";
        let paths = serde_json::to_string(&verb.paths).unwrap_or_default();
        one(to.db, sql, (&self.scope, &to.caller.agent, to.clock(), paths, self.exclusive), |row| row.get(0))
    }
}

/// A path as it is compared with others: `./`, doubled and closing slashes mean nothing.
#[must_use]
pub fn plain(path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    let rooted = if path.starts_with('/') { "/" } else { "" };
    let kept: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{rooted}{}", kept.join("/"))
}
