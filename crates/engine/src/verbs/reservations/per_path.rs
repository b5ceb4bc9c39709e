//! Reserving paths one by one: one reservation per path, so that each can be renewed and released by itself.

use serde::{Deserialize, Serialize};

use super::limits::check_paths;
use super::{Renewal, Reserve};
use crate::error::Refusal;
use crate::nouns::{Audience, Conflict, Json, Millis, Reservation, Reserved};
use crate::store::{one, rows};
use crate::verbs::{Decide, Decided, Write};

/// Makes one reservation per path. An active reservation of the caller's on the same path, equally exclusive or not, is
/// renewed instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReserveEach {
    /// What the paths are relative to: a repository, for example.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether it is exclusive.
    pub exclusive: bool,
    /// The reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the reservations expire.
    pub expires_at: Millis,
    /// Whether the whole realm may see them, or only accepted contacts.
    pub audience: Audience,
    /// Whether an overlap refuses them all instead of being reported.
    #[serde(default)]
    pub only_if_free: bool,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
}

/// Result of reserving paths one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedEach {
    /// One reservation per path, in the order of the paths; none if the paths were to be reserved only if all are free, and
    /// are not.
    pub reservations: Vec<Reserved>,
    /// What prevented that.
    pub in_the_way: Vec<Conflict>,
}

impl ReserveEach {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<ReservedEach> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(|to: &mut Write<'_>| match plan {
            Plan::InTheWay(in_the_way) => Ok(ReservedEach { reservations: Vec::new(), in_the_way }),
            Plan::Reserve(conflicts) => self.write(to, conflicts),
        })
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<Plan> {
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
        // Reservations of one holder never conflict, so all conflicts are known before the first one is written.
        let rivals = self.all_of_them().rivals(to, &patterns)?;
        let mut conflicts = Vec::with_capacity(verbs.len());
        for pattern in &patterns {
            conflicts.push(rivals.conflicts_of(pattern)?);
        }
        if self.only_if_free && conflicts.iter().any(|conflicts| !conflicts.is_empty()) {
            return Ok(Plan::InTheWay(conflicts.into_iter().flatten().collect()));
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
        Ok(Plan::Reserve(conflicts))
    }

    fn write(&self, to: &mut Write<'_>, conflicts: Vec<Vec<Conflict>>) -> rusqlite::Result<ReservedEach> {
        let mut reservations = Vec::with_capacity(self.paths.len());
        for (path, conflicts) in self.paths.iter().zip(conflicts) {
            let verb = self.one(path);
            // A path that is named twice is reserved once and then renewed.
            reservations.push(match self.own(to, &verb)? {
                Some(held) => Renewal { held, expires_at: self.expires_at, conflicts }.write(to)?,
                None => verb.write(to, None, conflicts)?,
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

    /// The active reservation that the caller has on just this path.
    fn own(&self, to: &Decide<'_>, verb: &Reserve) -> rusqlite::Result<Option<Reservation>> {
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.scope = ?1 AND r.owner = ?2 AND r.status = 'active'
             AND r.expires_at > ?3 AND r.paths = ?4 AND r.exclusive = ?5 ORDER BY r.seq LIMIT 1",
            rows::RESERVATION
        );
        let paths = serde_json::to_string(&verb.paths).unwrap_or_default();
        let params = (&self.scope, &to.caller.agent, to.clock(), paths, self.exclusive);
        one(to.db, &sql, params, rows::reservation)
    }
}

enum Plan {
    /// These reservations are in the way, and the caller wants all paths or none.
    InTheWay(Vec<Conflict>),
    /// The paths are reserved; what each overlaps with.
    Reserve(Vec<Vec<Conflict>>),
}

/// A path in the form that is compared: without `./`, doubled and closing slashes.
#[must_use]
pub fn plain(path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    let rooted = if path.starts_with('/') { "/" } else { "" };
    let kept: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("{rooted}{}", kept.join("/"))
}
