//! Which reservations overlap, found within a counted budget: members choose the patterns, and the writer compares
//! them.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::error::Refusal;
use crate::globs::{PathPattern, Steps};
use crate::limits::Rules;
use crate::nouns::{AgentId, Caller, Conflict, Millis, Reservation, ReservationStatus, Seq};
use crate::sight;
use crate::store::{Db, all, rows};

/// What reading one reservation costs, in [`Steps`].
const ROW_STEPS: usize = 1_024;
/// What parsing one byte of a pattern costs, in [`Steps`].
const PARSE_STEPS: usize = 16;
/// Text that all conflicts of one command may carry together, in bytes.
const CONFLICT_BYTES: usize = 1 << 20;

/// A reservation with its patterns parsed. Patterns that do not parse overlap with nothing.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) reservation: Reservation,
    patterns: Vec<PathPattern>,
}

impl Held {
    /// Parses the patterns; `None` if the budget does not suffice.
    pub(crate) fn parse(reservation: Reservation, steps: &Steps) -> Option<Self> {
        let bytes: usize = reservation.paths.iter().map(String::len).sum();
        if !steps.spend(ROW_STEPS + PARSE_STEPS * bytes) {
            return None;
        }
        let patterns = reservation.paths.iter().filter_map(|path| PathPattern::parse(path).ok()).collect();
        Some(Self { reservation, patterns })
    }

    /// The first overlap with another reservation.
    pub(crate) fn first_overlap(&self, earlier: &Self, steps: &Steps) -> Option<Conflict> {
        for mine in &self.patterns {
            for theirs in &earlier.patterns {
                if overlap(mine, theirs, steps) {
                    return Some(conflict(&earlier.reservation, mine, theirs));
                }
            }
        }
        None
    }
}

/// Active reservations of other agents that patterns may overlap with, as far as the caller may see them.
#[derive(Debug)]
pub(crate) struct Rivals {
    held: Vec<Held>,
    steps: Steps,
    /// Conflicts, and bytes of their text, that may still be reported.
    left: Cell<(usize, usize)>,
}

/// For whom patterns are compared, and whether they are to be exclusive.
pub(crate) struct Asking<'a> {
    pub(crate) scope: &'a str,
    pub(crate) owner: &'a AgentId,
    pub(crate) exclusive: bool,
}

impl Rivals {
    /// Reads every reservation that may overlap with one of the patterns. Two shared reservations never do.
    pub(crate) fn of(
        db: Db<'_>,
        caller: &Caller,
        asking: &Asking<'_>,
        patterns: &[PathPattern],
        now: Millis,
        rules: &Rules,
    ) -> rusqlite::Result<Result<Self, Refusal>> {
        let steps = Steps::new(rules.glob_steps);
        let mut held = Vec::new();
        for seq in candidates(db, asking.scope, patterns)? {
            if !steps.spend(ROW_STEPS) {
                return Ok(Err(too_much()));
            }
            let Some(rival) = rows::reservation_at(db, seq)? else { continue };
            let in_force = rival.status == ReservationStatus::Active && rival.expires_at > now;
            let counts = in_force && rival.owner != *asking.owner && (asking.exclusive || rival.exclusive);
            if !counts || !sight::sees_reservation(db, caller, &rival, now)? {
                continue;
            }
            match Held::parse(rival, &steps) {
                Some(rival) => held.push(rival),
                None => return Ok(Err(too_much())),
            }
        }
        Ok(Ok(Self { held, steps, left: Cell::new((rules.conflicts as usize, CONFLICT_BYTES)) }))
    }

    /// Overlaps with a pattern, in the order in which the reservations were made; no more than the rules let one command
    /// report.
    pub(crate) fn conflicts_of(&self, pattern: &PathPattern) -> Result<Vec<Conflict>, Refusal> {
        let mut found = Vec::new();
        let (mut count, mut bytes) = self.left.get();
        'rivals: for rival in &self.held {
            for theirs in &rival.patterns {
                if count == 0 || bytes == 0 {
                    break 'rivals;
                }
                if overlap(pattern, theirs, &self.steps) {
                    let conflict = conflict(&rival.reservation, pattern, theirs);
                    bytes = bytes.saturating_sub(size(&conflict));
                    count -= 1;
                    found.push(conflict);
                }
            }
        }
        self.left.set((count, bytes));
        if self.steps.is_spent() { Err(too_much()) } else { Ok(found) }
    }

    /// As [`Self::conflicts_of`], for several patterns.
    pub(crate) fn conflicts(&self, patterns: &[PathPattern]) -> Result<Vec<Conflict>, Refusal> {
        let mut found = Vec::new();
        for pattern in patterns {
            found.extend(self.conflicts_of(pattern)?);
        }
        Ok(found)
    }
}

fn too_much() -> Refusal {
    Refusal::TooMuchWork {
        what: "comparing these paths with the reservations in force",
        instead: "reserve fewer paths at a time, or patterns with a literal first folder and fewer wildcards",
    }
}

fn overlap(mine: &PathPattern, theirs: &PathPattern, steps: &Steps) -> bool {
    let apart = matches!((mine.head(), theirs.head()), (Some(mine), Some(theirs)) if mine != theirs);
    if apart {
        steps.spend(1);
        return false;
    }
    mine.overlaps_within(theirs, steps)
}

fn conflict(held: &Reservation, path: &PathPattern, held_path: &PathPattern) -> Conflict {
    Conflict {
        path: path.as_str().to_owned(),
        held_path: held_path.as_str().to_owned(),
        holder: held.owner.clone(),
        reservation: held.seq,
        key: held.key.clone(),
        exclusive: held.exclusive,
        expires_at: held.expires_at,
        reason: held.reason.clone(),
    }
}

fn size(conflict: &Conflict) -> usize {
    conflict.path.len()
        + conflict.held_path.len()
        + conflict.key.len()
        + conflict.reason.as_ref().map_or(0, String::len)
}

/// Reservations of the scope whose paths could start like one of these. Patterns with different literal first segments
/// never overlap, so only those with the same first segment and those with a wildcard there are read.
fn candidates(db: Db<'_>, scope: &str, patterns: &[PathPattern]) -> rusqlite::Result<BTreeSet<Seq>> {
    let heads: Option<BTreeSet<&str>> = patterns.iter().map(PathPattern::head).collect();
    let Some(heads) = heads else {
        let sql = "SELECT seq FROM reservations WHERE scope = ?1 AND status = 'active'";
        return Ok(all(db, sql, [scope], |row| row.get(0))?.into_iter().collect());
    };
    let mut found = BTreeSet::new();
    for head in heads.into_iter().chain([""]) {
        let sql = "SELECT reservation FROM reserved_heads WHERE scope = ?1 AND head = ?2";
        found.extend(all(db, sql, (scope, head), |row| row.get::<_, Seq>(0))?);
    }
    Ok(found)
}
