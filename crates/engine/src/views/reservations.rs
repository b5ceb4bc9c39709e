//! Who has reserved what, and what would overlap.

use rusqlite::Connection;

use super::{Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::globs::PathPattern;
use crate::nouns::{AgentId, Audience, Caller, Conflict, Millis, Reservation, ReservationStatus, Seq};
use crate::sight;
use crate::store::{all, rows};

/// Which reservations to list.
#[derive(Clone, Debug, Default)]
pub struct ReservationQuery {
    /// In this scope.
    pub scope: Option<String>,
    /// Held by this agent.
    pub owner: Option<AgentId>,
    /// Those that ended as well.
    pub ended: bool,
    /// After this number.
    pub after: Seq,
    /// How many.
    pub limit: usize,
}

/// Reservations that are compared with the others when clashes are looked for: those that lapse first.
const COMPARED: usize = 400;

/// Two reservations in force that overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The later one.
    pub reservation: Reservation,
    /// Where it meets the earlier one.
    pub with: Conflict,
}

impl View<'_> {
    /// Reservations in force that the caller may see, those that lapse first at the front.
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
        for held in self.stretch_of(&sql, (self.now, limit), rows::reservation)?.rows {
            if sight::sees_reservation(self.books, caller, &held, self.now)? {
                seen.push(held);
            }
        }
        Ok(seen)
    }

    /// Pairs of reservations in force that overlap, each pair once, as far as the caller may see both.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn clashes(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Clash>> {
        let limit = self.page(limit);
        let mut clashes = Vec::new();
        for reservation in self.in_force(caller, COMPARED)? {
            self.budget.checkpoint()?;
            for with in conflicts_with(self.books, caller, &reservation, self.now)? {
                if with.reservation < reservation.seq && clashes.len() < limit {
                    clashes.push(Clash { reservation: reservation.clone(), with });
                }
            }
        }
        Ok(clashes)
    }

    /// Reservations in the order they were taken. One past its expiry is never shown as active.
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
        let mut page = self.filling(limit);
        let mut after = query.after;
        'read: loop {
            let params = (after, &query.scope, &query.owner, query.ended, self.now, one_more(limit));
            let batch = self.stretch_of(&sql, params, rows::reservation)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for mut held in batch.rows {
                after = held.seq;
                if held.status == ReservationStatus::Active && held.expires_at <= self.now {
                    held.status = ReservationStatus::Expired;
                }
                if sight::sees_reservation(self.books, caller, &held, self.now)? && !page.take(held) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        Ok(page.page(|held| held.seq))
    }

    /// The reservations that their holders call so, as far as the caller may see them.
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
        let found = self.stretch_of(&sql, (key, limit), rows::reservation)?;
        let mut seen = Vec::new();
        for held in found.rows {
            if sight::sees_reservation(self.books, caller, &held, self.now)? {
                seen.push(held);
            }
        }
        Ok(seen)
    }

    /// What these paths would overlap with, if the caller reserved them. Changes nothing.
    ///
    /// # Errors
    /// Refused for strangers and for paths that cannot be read.
    pub fn would_conflict(
        &self,
        caller: &Caller,
        scope: &str,
        paths: &[String],
        exclusive: bool,
    ) -> Viewed<Vec<Conflict>> {
        require_member(caller)?;
        for path in paths {
            PathPattern::parse(path)
                .map_err(|why| Refusal::BadPath { path: path.clone(), why: why.to_string() })?;
        }
        let asked = Reservation {
            seq: 0,
            owner: caller.agent.clone(),
            key: String::new(),
            scope: scope.to_owned(),
            paths: paths.to_vec(),
            exclusive,
            reason: None,
            status: ReservationStatus::Active,
            audience: Audience::Parties,
            told: None,
            meta: None,
            issued_at: self.now,
            expires_at: Millis::MAX,
            released_at: None,
        };
        Ok(conflicts_with(self.books, caller, &asked, self.now)?)
    }
}

/// Others' reservations in force that overlap with this one and that the caller may see. Two shared ones never do.
pub(crate) fn conflicts_with(
    books: &Connection,
    caller: &Caller,
    asked: &Reservation,
    now: Millis,
) -> rusqlite::Result<Vec<Conflict>> {
    let mut conflicts = Vec::new();
    for path in &asked.paths {
        let Ok(pattern) = PathPattern::parse(path) else { continue };
        for held in candidates(books, asked, &pattern, now)? {
            if !(asked.exclusive || held.exclusive) || !sight::sees_reservation(books, caller, &held, now)? {
                continue;
            }
            for held_path in &held.paths {
                if PathPattern::parse(held_path).is_ok_and(|held| held.overlaps(&pattern)) {
                    conflicts.push(Conflict {
                        path: path.clone(),
                        held_path: held_path.clone(),
                        holder: held.owner.clone(),
                        reservation: held.seq,
                        key: held.key.clone(),
                        exclusive: held.exclusive,
                        expires_at: held.expires_at,
                        reason: held.reason.clone(),
                    });
                }
            }
        }
    }
    Ok(conflicts)
}

/// Others' reservations in force whose paths could start like this one. Patterns with different literal first segments
/// never overlap, so only the same one and the open-ended ones are read.
fn candidates(
    books: &Connection,
    asked: &Reservation,
    pattern: &PathPattern,
    now: Millis,
) -> rusqlite::Result<Vec<Reservation>> {
    let sql = format!(
        "SELECT DISTINCT {} FROM reserved_heads h JOIN reservations r ON r.seq = h.reservation
         WHERE h.scope = ?1 AND (?2 IS NULL OR h.head IN (?2, '')) AND r.owner <> ?3 AND r.status = 'active'
         AND r.expires_at > ?4 ORDER BY r.seq",
        rows::RESERVATION
    );
    all(books, &sql, (&asked.scope, pattern.head(), &asked.owner, now), rows::reservation)
}
