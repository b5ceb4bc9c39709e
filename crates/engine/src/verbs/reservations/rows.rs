//! What is written for reservations: their rows, the index of their paths, and the events of conflicts.

use crate::globs::PathPattern;
use crate::nouns::{AgentId, Audience, Caller, Conflict, Fact, Reservation, Sight};
use crate::sight;
use crate::verbs::Write;

/// Emits the event of a conflict.
pub(super) fn emit_conflict(
    to: &mut Write<'_>,
    asked: &Reservation,
    held: &Conflict,
) -> rusqlite::Result<()> {
    let fact = Fact::ReservationConflict {
        asked: asked.seq,
        asked_by: asked.owner.clone(),
        held: held.reservation,
        held_by: held.holder.clone(),
        path: held.path.clone(),
        held_path: held.held_path.clone(),
    };
    // The holder is named only if it may see the new reservation. The caller sees the holder's: conflicts are only with those.
    let mut told = vec![asked.owner.clone()];
    let holder = Caller::member(held.holder.clone(), "");
    if sight::sees_reservation(to.db, &holder, asked, to.clock())? {
        told.push(held.holder.clone());
    }
    to.emit(fact, Sight::Agents(Sight::list(told))).map(drop)
}

/// Inserts a reservation.
pub(super) fn insert(to: &Write<'_>, held: &Reservation) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO reservations(seq, owner, key, scope, paths, exclusive, reason, status, audience, meta,
                   issued_at, expires_at, released_at, told) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)";
    let paths = serde_json::to_string(&held.paths).unwrap_or_default();
    let params = rusqlite::params![
        held.seq,
        held.owner,
        held.key,
        held.scope,
        paths,
        held.exclusive,
        held.reason,
        held.status,
        held.audience,
        held.meta,
        held.issued_at,
        held.expires_at,
        held.released_at,
        told_text(held),
    ];
    to.exec(sql, params).map(drop)
}

/// Puts an active reservation into the index of paths.
pub(super) fn index(to: &Write<'_>, held: &Reservation) -> rusqlite::Result<()> {
    for path in &held.paths {
        let sql =
            "INSERT INTO reserved_heads(scope, head, reservation) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
        to.exec(sql, (&held.scope, head(path), held.seq))?;
    }
    Ok(())
}

/// What a path is found by in the index. Patterns were checked when they were reserved.
fn head(path: &str) -> String {
    PathPattern::parse(path).ok().and_then(|pattern| pattern.head().map(str::to_owned)).unwrap_or_default()
}

/// Shows a reservation to more agents; to the whole realm if none are named.
pub(super) fn widen(
    to: &Write<'_>,
    held: &mut Reservation,
    told: Option<Vec<AgentId>>,
) -> rusqlite::Result<()> {
    let before = held.told.clone();
    match (&mut held.told, told) {
        (Some(known), Some(more)) => {
            known.extend(more);
            known.sort();
            known.dedup();
        }
        (known @ Some(_), None) => {
            *known = None;
            held.audience = Audience::Observers;
        }
        (None, _) => {}
    }
    if held.told == before {
        return Ok(());
    }
    let sql = "UPDATE reservations SET told = ?2, audience = ?3 WHERE seq = ?1";
    to.exec(sql, (held.seq, told_text(held), held.audience)).map(drop)
}

fn told_text(held: &Reservation) -> Option<String> {
    held.told.as_ref().map(|told| serde_json::to_string(told).unwrap_or_default())
}

/// Writes the status of a reservation that is not active any more, and takes it out of the index of paths.
pub(in crate::verbs) fn end(to: &Write<'_>, reservation: &Reservation) -> rusqlite::Result<()> {
    let sql = "UPDATE reservations SET status = ?2, released_at = ?3 WHERE seq = ?1";
    to.exec(sql, (reservation.seq, reservation.status, reservation.released_at))?;
    for path in &reservation.paths {
        let sql = "DELETE FROM reserved_heads WHERE scope = ?1 AND head = ?2 AND reservation = ?3";
        to.exec(sql, (&reservation.scope, head(path), reservation.seq))?;
    }
    Ok(())
}
