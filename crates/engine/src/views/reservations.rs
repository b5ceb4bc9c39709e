//! Reservations, and what would overlap.

use super::{Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::globs::{PathPattern, Steps};
use crate::nouns::{AgentId, Caller, Conflict, Reservation, ReservationStatus, Seq};
use crate::overlaps::{Asking, Held, Rivals};
use crate::sight;
use crate::store::rows;
use crate::verbs::reservations::new_pattern;

/// Which reservations to list.
#[derive(Clone, Debug, Default)]
pub struct ReservationQuery {
    /// In this scope.
    pub scope: Option<String>,
    /// Held by this agent.
    pub owner: Option<AgentId>,
    /// Include those that ended.
    pub ended: bool,
    /// After this number.
    pub after: Seq,
    /// How many.
    pub limit: usize,
}

/// Reservations that are compared with each other to find clashes: those that expire first.
const MAX_COMPARED: usize = 400;
/// Work that finding clashes may take, in [`Steps`]: some milliseconds.
const CLASH_STEPS: u64 = 2_000_000;

/// Two active reservations that overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The later one.
    pub reservation: Reservation,
    /// Its overlap with the earlier one.
    pub with: Conflict,
}

impl View<'_> {
    /// Active reservations that the caller may see, those that expire first at the front.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn in_force(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Reservation>> {
        require_member(caller)?;
        let sql = format!(
            "SELECT {} FROM reservations r INDEXED BY reservations_due
             WHERE r.status = 'active' AND r.expires_at > ?1 ORDER BY r.expires_at, r.seq LIMIT ?2",
            rows::RESERVATION
        );
        let limit = i64::try_from(self.page(limit)).unwrap_or(i64::MAX);
        let mut seen = Vec::new();
        for held in self.read_rows(&sql, (self.now, limit), rows::reservation)?.rows {
            if sight::sees_reservation(self.db, caller, &held, self.now)? {
                seen.push(held);
            }
        }
        Ok(seen)
    }

    /// Pairs of active reservations that overlap, each pair once, as far as the caller may see both: of those that
    /// expire first, and as many as a fixed amount of work finds, because pages ask for them often.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn clashes(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Clash>> {
        let limit = self.page(limit);
        let steps = Steps::new(CLASH_STEPS);
        let held: Vec<Held> = self
            .in_force(caller, MAX_COMPARED)?
            .into_iter()
            .map_while(|reservation| Held::parse(reservation, &steps))
            .collect();
        let mut clashes = Vec::new();
        for later in &held {
            self.budget.checkpoint()?;
            for earlier in &held {
                let (mine, theirs) = (&later.reservation, &earlier.reservation);
                let compared = theirs.seq < mine.seq
                    && theirs.scope == mine.scope
                    && theirs.owner != mine.owner
                    && (mine.exclusive || theirs.exclusive);
                if !compared {
                    continue;
                }
                if clashes.len() >= limit || steps.is_spent() {
                    return Ok(clashes);
                }
                if let Some(with) = later.first_overlap(earlier, &steps) {
                    clashes.push(Clash { reservation: mine.clone(), with });
                }
            }
        }
        Ok(clashes)
    }

    /// Reservations in the order in which they were made. One past its expiry is never shown as active.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn reservations(&self, caller: &Caller, query: &ReservationQuery) -> Viewed<Page<Reservation, Seq>> {
        require_member(caller)?;
        let limit = self.page(query.limit);
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.seq > ?1 AND (?2 IS NULL OR r.scope = ?2)
             AND (?3 IS NULL OR r.owner = ?3) AND (?4 OR (r.status = 'active' AND r.expires_at > ?5))
             ORDER BY r.seq LIMIT ?6",
            rows::RESERVATION
        );
        let mut page = self.page_builder(limit);
        let mut after = query.after;
        'read: loop {
            let params = (after, &query.scope, &query.owner, query.ended, self.now, one_more(limit));
            let batch = self.read_rows(&sql, params, rows::reservation)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for mut held in batch.rows {
                after = held.seq;
                if held.status == ReservationStatus::Active && held.expires_at <= self.now {
                    held.status = ReservationStatus::Expired;
                }
                if sight::sees_reservation(self.db, caller, &held, self.now)? && !page.push(held) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.finish(|held| held.seq))
    }

    /// The reservations with this key that the caller may see.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn reservations_called(&self, caller: &Caller, key: &str) -> Viewed<Vec<Reservation>> {
        require_member(caller)?;
        let sql = format!(
            "SELECT {} FROM reservations r WHERE r.key = ?1 ORDER BY r.seq LIMIT ?2",
            rows::RESERVATION
        );
        let limit = i64::try_from(self.limits.page).unwrap_or(i64::MAX);
        let found = self.read_rows(&sql, (key, limit), rows::reservation)?;
        let mut seen = Vec::new();
        for held in found.rows {
            if sight::sees_reservation(self.db, caller, &held, self.now)? {
                seen.push(held);
            }
        }
        Ok(seen)
    }

    /// What these paths would overlap with, if the caller reserved them. Changes nothing.
    ///
    /// # Errors
    /// Refused for strangers and for paths that cannot be parsed.
    pub fn would_conflict(
        &self,
        caller: &Caller,
        scope: &str,
        paths: &[String],
        exclusive: bool,
    ) -> Viewed<Vec<Conflict>> {
        require_member(caller)?;
        let rules = self.rules()?;
        if paths.len() > rules.paths_per_reservation as usize {
            let limit = rules.paths_per_reservation.into();
            return Err(Refusal::TooMany { what: "paths", limit }.into());
        }
        let patterns: Vec<PathPattern> =
            paths.iter().map(|path| new_pattern(path, &rules)).collect::<Result<_, _>>()?;
        let asking = Asking { scope, owner: &caller.agent, exclusive };
        let rivals = Rivals::of(self.db, caller, &asking, &patterns, self.now, &rules)??;
        Ok(rivals.conflicts(&patterns)?)
    }
}
