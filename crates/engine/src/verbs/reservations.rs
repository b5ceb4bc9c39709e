//! Reserving paths. Advisory: an overlap is reported to both sides and never in the way.

mod per_path;

pub use per_path::{ReserveEach, ReservedEach, plain};

use serde::{Deserialize, Serialize};

use super::{Decided, Write};
use crate::account;
use crate::error::Refusal;
use crate::globs::PathPattern;
use crate::limits::Rules;
use crate::nouns::{
    AgentId, Audience, Conflict, Fact, Json, Millis, Reservation, ReservationStatus, Reserved, Seq, Sight,
};
use crate::overlaps::{Asking, Rivals};
use crate::sight;
use crate::store::{all, one, rows};

/// Reserves paths for the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// The caller's own name for it; made up if absent. The same content under the same key is taken once.
    #[serde(default)]
    pub key: Option<String>,
    /// Where the paths live.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether the caller wants the paths alone.
    pub exclusive: bool,
    /// What for.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it was taken, if the door knows better; now if not said.
    #[serde(default)]
    pub issued_at: Option<Millis>,
    /// When it lapses.
    pub expires_at: Millis,
    /// Whether the whole realm may see it, or only accepted contacts.
    pub audience: Audience,
    /// Whatever else.
    #[serde(default)]
    pub meta: Option<Json>,
}

impl Reserve {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Reserved> {
        to.require_member()?;
        to.acting_agent()?;
        let patterns = self.check(to)?;
        let owner = to.caller.agent.clone();
        if let Some(key) = &self.key
            && let Some(held) = by_key(to, &owner, key)?
        {
            if self.is_same(&held) && held.status == ReservationStatus::Active && held.expires_at > to.clock()
            {
                let conflicts = conflicts_of(to, &held)?;
                return Ok(Reserved { reservation: held, conflicts });
            }
            return Err(Refusal::ReservationExists { key: key.clone() }.into());
        }
        check_room(to, &self.scope, &owner, self.paths.len())?;
        let conflicts = self.rivals(to, &patterns)?.conflicts(&patterns)?;
        self.take(to, owner, &patterns, None, conflicts)
    }

    /// The reservations that these patterns are compared with.
    pub(super) fn rivals(&self, to: &Write<'_>, patterns: &[PathPattern]) -> Decided<Rivals> {
        let asking = Asking { scope: &self.scope, owner: &to.caller.agent, exclusive: self.exclusive };
        Ok(Rivals::of(to.db, to.caller, &asking, patterns, to.clock(), to.rules)??)
    }

    /// Writes a lease down that was checked, with what it overlaps with.
    pub(super) fn take(
        &self,
        to: &mut Write<'_>,
        owner: AgentId,
        patterns: &[PathPattern],
        told: Option<Vec<AgentId>>,
        conflicts: Vec<Conflict>,
    ) -> Decided<Reserved> {
        let live = self.expires_at > to.clock();
        let seq = to.next_seq();
        let reservation = Reservation {
            seq,
            owner,
            key: self.key.clone().unwrap_or_else(|| to.fresh_id().to_string()),
            scope: self.scope.clone(),
            paths: self.paths.clone(),
            exclusive: self.exclusive,
            reason: self.reason.clone(),
            status: if live { ReservationStatus::Active } else { ReservationStatus::Expired },
            audience: self.audience,
            told,
            meta: self.meta.clone(),
            issued_at: self.issued_at.unwrap_or(to.clock()),
            expires_at: self.expires_at,
            released_at: None,
        };
        write(to, &reservation)?;
        if !live {
            let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
            to.emit(Fact::ReservationExpired { reservation: Box::new(reservation.clone()) }, sight)?;
            return Ok(Reserved { reservation, conflicts: Vec::new() });
        }
        for pattern in patterns {
            let sql = "INSERT INTO reserved_heads(scope, head, reservation) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
            to.exec(sql, (&reservation.scope, pattern.head().unwrap_or(""), seq))?;
        }
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        to.emit(Fact::ReservationMade { reservation: Box::new(reservation.clone()) }, sight)?;
        for conflict in &conflicts {
            tell_conflict(to, &reservation, conflict)?;
        }
        Ok(Reserved { reservation, conflicts })
    }

    /// Refuses what could not be told of: other content under a known name, or more than one may have.
    pub(super) fn check_announced(&self, to: &Write<'_>) -> Decided<()> {
        self.patterns(to)?;
        check_end(to, self.expires_at)?;
        let owner = &to.caller.agent;
        let known = match &self.key {
            Some(key) => by_key(to, owner, key)?,
            None => None,
        };
        match known {
            Some(held) if self.is_same(&held) => Ok(()),
            Some(held) => Err(Refusal::ReservationExists { key: held.key }.into()),
            None if self.expires_at <= to.clock() => Ok(()),
            None => check_room(to, &self.scope, owner, self.paths.len()),
        }
    }

    /// Takes the reservation as somebody is told of it, after [`Self::check_announced`]. One that is known is shown to
    /// those who are told now as well; one that has lapsed already is written down as such.
    pub(super) fn announce(&self, to: &mut Write<'_>, told: Option<Vec<AgentId>>) -> Decided<Reserved> {
        let owner = to.caller.agent.clone();
        let known = match &self.key {
            Some(key) => by_key(to, &owner, key)?,
            None => None,
        };
        if let Some(mut held) = known {
            widen(to, &mut held, told)?;
            let live = held.status == ReservationStatus::Active && held.expires_at > to.clock();
            let conflicts = if live { conflicts_of(to, &held)? } else { Vec::new() };
            return Ok(Reserved { reservation: held, conflicts });
        }
        let patterns = self.patterns(to)?;
        let live = self.expires_at > to.clock();
        let conflicts = if live { self.rivals(to, &patterns)?.conflicts(&patterns)? } else { Vec::new() };
        self.take(to, owner, &patterns, told, conflicts)
    }

    fn is_same(&self, held: &Reservation) -> bool {
        held.scope == self.scope && held.paths == self.paths && held.exclusive == self.exclusive
    }

    pub(super) fn check(&self, to: &Write<'_>) -> Decided<Vec<PathPattern>> {
        let patterns = self.patterns(to)?;
        if self.expires_at <= to.clock() {
            return Err(Refusal::AlreadyExpired { at: self.expires_at }.into());
        }
        check_end(to, self.expires_at)?;
        Ok(patterns)
    }

    fn patterns(&self, to: &Write<'_>) -> Decided<Vec<PathPattern>> {
        if self.scope.is_empty() || self.scope.len() > 1_024 || self.scope.chars().any(char::is_control) {
            return Err(Refusal::BadValue {
                field: "scope",
                why: "1 to 1024 bytes without control characters",
            }
            .into());
        }
        if self.paths.is_empty() {
            return Err(Refusal::BadValue { field: "paths", why: "at least one path is needed" }.into());
        }
        if self.paths.len() > to.rules.paths_per_reservation as usize {
            return Err(
                Refusal::TooMany { what: "paths", limit: to.rules.paths_per_reservation.into() }.into()
            );
        }
        if let Some(reason) = &self.reason
            && reason.len() > MOST_REASON
        {
            let what = "the reason";
            return Err(Refusal::TooLarge { what, limit: MOST_REASON, got: reason.len() }.into());
        }
        Ok(self.paths.iter().map(|path| new_pattern(path, to.rules)).collect::<Result<_, _>>()?)
    }
}

/// Reads a pattern that is reserved from now on: of those that every later one is compared with only cheap ones are taken.
pub(crate) fn new_pattern(path: &str, rules: &Rules) -> Result<PathPattern, Refusal> {
    let bad = |why: String| Refusal::BadPath { path: path.chars().take(MOST_SHOWN).collect(), why };
    if path.len() > rules.path_bytes as usize {
        return Err(bad(format!("it is longer than {} bytes", rules.path_bytes)));
    }
    let pattern = PathPattern::parse(path).map_err(|why| bad(why.to_string()))?;
    let weight = pattern.weight();
    if weight.wildcards > rules.path_wildcards as usize {
        let most = rules.path_wildcards;
        return Err(bad(format!(
            "it has more than {most} wildcards; name folders or reserve several patterns"
        )));
    }
    if weight.expanded > EXPANDED * rules.path_bytes as usize {
        return Err(bad("its braces stand for too much text; reserve several patterns".to_owned()));
    }
    Ok(pattern)
}

/// Refuses an end further away than the rules allow.
fn check_end(to: &Write<'_>, expires_at: Millis) -> Decided<()> {
    let days = to.rules.reservation_days;
    let latest = to.clock().saturating_add(Millis::from(days) * DAY).saturating_add(CLOCK_SKEW);
    if expires_at > latest {
        let what = "days for a reservation (renew it before it ends)";
        return Err(Refusal::TooMany { what, limit: days.into() }.into());
    }
    Ok(())
}

const DAY: Millis = 24 * 60 * 60 * 1000;
/// How much the clock of a client that computes the end itself may be ahead.
const CLOCK_SKEW: Millis = 60 * 60 * 1000;
/// How much of a refused path the refusal repeats, in characters.
const MOST_SHOWN: usize = 256;
/// How many times as long as it may be written a pattern may be once its braces are expanded.
const EXPANDED: usize = 4;
/// The longest reason for a reservation, in bytes: every conflict repeats it.
const MOST_REASON: usize = 4_096;

/// Prolongs a reservation of the caller's, even a lapsed one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renew {
    /// Which.
    pub which: Which,
    /// When it lapses now.
    pub expires_at: Millis,
}

/// One reservation, by number or by its holder's name for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// By number.
    Number(Seq),
    /// By the holder's name for it.
    Key(String),
}

impl Renew {
    /// The reservation, if it can be prolonged.
    pub(super) fn check(&self, to: &Write<'_>) -> Decided<Reservation> {
        let reservation = own(to, &self.which)?;
        if reservation.status == ReservationStatus::Released {
            return Err(Refusal::NoSuchReservation.into());
        }
        if self.expires_at <= to.clock() {
            return Err(Refusal::AlreadyExpired { at: self.expires_at }.into());
        }
        check_end(to, self.expires_at)?;
        let in_force = reservation.status == ReservationStatus::Active && reservation.expires_at > to.clock();
        if !in_force {
            check_room(to, &reservation.scope, &reservation.owner, reservation.paths.len())?;
        }
        Ok(reservation)
    }

    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Reserved> {
        let reservation = self.check(to)?;
        let conflicts = conflicts_of(to, &reservation)?;
        self.prolong(to, reservation, conflicts)
    }

    /// Writes down that a reservation goes on, with what it overlaps with.
    pub(super) fn prolong(
        &self,
        to: &mut Write<'_>,
        mut reservation: Reservation,
        conflicts: Vec<Conflict>,
    ) -> Decided<Reserved> {
        reservation.status = ReservationStatus::Active;
        reservation.expires_at = self.expires_at;
        let sql = "UPDATE reservations SET status = 'active', expires_at = ?2 WHERE seq = ?1";
        to.exec(sql, (reservation.seq, reservation.expires_at))?;
        for path in &reservation.paths {
            // The patterns were checked when the reservation was taken.
            let head = PathPattern::parse(path).ok().and_then(|pattern| pattern.head().map(str::to_owned));
            let sql = "INSERT INTO reserved_heads(scope, head, reservation) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING";
            to.exec(sql, (&reservation.scope, head.unwrap_or_default(), reservation.seq))?;
        }
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        to.emit(Fact::ReservationRenewed { reservation: Box::new(reservation.clone()) }, sight)?;
        Ok(Reserved { reservation, conflicts })
    }
}

/// Gives reservations of the caller's back: the named ones, or all that are in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// Which; all of the caller's in force if empty.
    pub which: Vec<Which>,
    /// Whose, for those who run the office; the caller's if not said.
    #[serde(default)]
    pub owner: Option<AgentId>,
}

impl Release {
    pub(crate) fn apply(&self, to: &mut Write<'_>) -> Decided<Vec<Reservation>> {
        to.require_member()?;
        let owner = match &self.owner {
            Some(owner) if !to.caller.is(owner) => {
                to.require_admin()?;
                owner.clone()
            }
            _ => to.caller.agent.clone(),
        };
        let held = if self.which.is_empty() {
            let sql = format!(
                "SELECT {} FROM reservations r INDEXED BY reservations_held
                 WHERE r.owner = ?1 AND r.status = 'active' ORDER BY r.seq",
                rows::RESERVATION
            );
            all(to.db, &sql, [&owner], rows::reservation)?
        } else {
            let most = to.rules.paths_per_reservation.saturating_mul(to.rules.reservations_per_scope);
            if self.which.len() > most as usize {
                return Err(Refusal::TooManyReservations {
                    what: "reservations in one call",
                    limit: most.into(),
                }
                .into());
            }
            let find = |which| of_owner(to, &owner, which);
            let mut held = self.which.iter().map(find).collect::<Decided<Vec<_>>>()?;
            // Named by number and by key, it is still one.
            held.sort_by_key(|held| held.seq);
            held.dedup_by_key(|held| held.seq);
            held
        };
        let mut released = Vec::new();
        for mut reservation in held {
            // A lapsed one that is named is put away for good: its holder cannot renew it any more.
            if reservation.status != ReservationStatus::Released {
                reservation.status = ReservationStatus::Released;
                reservation.released_at = Some(to.now);
                end(to, &reservation)?;
                let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
                to.emit(Fact::ReservationReleased { reservation: Box::new(reservation.clone()) }, sight)?;
            }
            released.push(reservation);
        }
        Ok(released)
    }
}

/// Ends a reservation of the caller's such that it can be prolonged again.
pub(super) fn lapse(to: &mut Write<'_>, which: &Which) -> Decided<Reservation> {
    let mut reservation = own(to, which)?;
    if reservation.status == ReservationStatus::Active {
        reservation.status = ReservationStatus::Expired;
        end(to, &reservation)?;
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        to.emit(Fact::ReservationExpired { reservation: Box::new(reservation.clone()) }, sight)?;
    }
    Ok(reservation)
}

/// Shows a reservation to more people; to all its audience if nobody is named.
fn widen(to: &Write<'_>, held: &mut Reservation, told: Option<Vec<AgentId>>) -> rusqlite::Result<()> {
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

/// Takes a reservation out of force and out of the index of paths.
pub(super) fn end(to: &Write<'_>, reservation: &Reservation) -> rusqlite::Result<()> {
    let sql = "UPDATE reservations SET status = ?2, released_at = ?3 WHERE seq = ?1";
    to.exec(sql, (reservation.seq, reservation.status, reservation.released_at))?;
    for path in &reservation.paths {
        let head = PathPattern::parse(path).ok().and_then(|pattern| pattern.head().map(str::to_owned));
        let sql = "DELETE FROM reserved_heads WHERE scope = ?1 AND head = ?2 AND reservation = ?3";
        to.exec(sql, (&reservation.scope, head.unwrap_or_default(), reservation.seq))?;
    }
    Ok(())
}

/// What a reservation overlaps with, whose patterns may be older than the rules for new ones.
fn conflicts_of(to: &Write<'_>, held: &Reservation) -> Decided<Vec<Conflict>> {
    let patterns: Vec<PathPattern> =
        held.paths.iter().filter_map(|path| PathPattern::parse(path).ok()).collect();
    let asking = Asking { scope: &held.scope, owner: &held.owner, exclusive: held.exclusive };
    let rivals = Rivals::of(to.db, to.caller, &asking, &patterns, to.clock(), to.rules)??;
    Ok(rivals.conflicts(&patterns)?)
}

/// Refuses more paths in force than all agents together may have in a scope, of which one account has half at most, and
/// more than one agent may have in all scopes.
pub(super) fn check_paths(to: &Write<'_>, scope: &str, owner: &AgentId, paths: usize) -> Decided<()> {
    let paths = i64::try_from(paths).unwrap_or(i64::MAX);
    let sql = "SELECT owner, sum(json_array_length(paths)) FROM reservations
               WHERE scope = ?1 AND status = 'active' AND expires_at > ?2 GROUP BY owner";
    let held: Vec<(AgentId, i64)> =
        all(to.db, sql, (scope, to.clock()), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let most = i64::from(to.rules.paths_per_scope);
    let in_all: i64 = held.iter().map(|(_, paths)| paths).sum();
    if in_all + paths > most {
        let what = "reservations in this scope: it is full, counted in paths";
        return Err(Refusal::TooManyReservations { what, limit: to.rules.paths_per_scope.into() }.into());
    }
    if in_all + paths > most / 2 && !to.caller.rights.admin {
        let account = account::of(to.db, owner)?;
        let mut own = paths;
        for (holder, paths) in held {
            if account::of(to.db, &holder)? == account {
                own += paths;
            }
        }
        if own > most / 2 {
            let what = "reservations of one owner's agents in this scope, counted in paths";
            return Err(Refusal::TooManyReservations {
                what,
                limit: u64::from(to.rules.paths_per_scope / 2),
            }
            .into());
        }
    }
    let sql =
        "SELECT coalesce(sum(json_array_length(paths)), 0) FROM reservations INDEXED BY reservations_held
               WHERE owner = ?1 AND status = 'active'";
    let own: i64 = one(to.db, sql, [owner], |row| row.get(0))?.unwrap_or(0);
    if own + paths > i64::from(to.rules.paths_per_agent) {
        let what = "reservations of one agent, counted in paths";
        return Err(Refusal::TooManyReservations { what, limit: to.rules.paths_per_agent.into() }.into());
    }
    Ok(())
}

/// Refuses more leases in force than one agent may have in a scope.
fn check_room(to: &Write<'_>, scope: &str, owner: &AgentId, paths: usize) -> Decided<()> {
    let sql = "SELECT count(*) FROM reservations WHERE scope = ?1 AND owner = ?2 AND status = 'active'
               AND expires_at > ?3";
    let held = one(to.db, sql, (scope, owner, to.clock()), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    if held >= to.rules.reservations_per_scope {
        let limit = to.rules.reservations_per_scope.into();
        return Err(Refusal::TooManyReservations { what: "reservations in this scope", limit }.into());
    }
    check_paths(to, scope, owner, paths)
}

pub(super) fn own(to: &Write<'_>, which: &Which) -> Decided<Reservation> {
    to.require_member()?;
    of_owner(to, &to.caller.agent, which)
}

/// A reservation of that owner's. Somebody else's is not there.
fn of_owner(to: &Write<'_>, owner: &AgentId, which: &Which) -> Decided<Reservation> {
    let found = match which {
        Which::Key(key) => by_key(to, owner, key)?,
        Which::Number(seq) => rows::reservation_at(to.db, *seq)?.filter(|held| held.owner == *owner),
    };
    found.ok_or_else(|| Refusal::NoSuchReservation.into())
}

fn by_key(to: &Write<'_>, owner: &AgentId, key: &str) -> rusqlite::Result<Option<Reservation>> {
    let sql = format!("SELECT {} FROM reservations r WHERE r.owner = ?1 AND r.key = ?2", rows::RESERVATION);
    one(to.db, &sql, (owner, key), rows::reservation)
}

fn tell_conflict(to: &mut Write<'_>, asked: &Reservation, held: &Conflict) -> rusqlite::Result<()> {
    let fact = Fact::ReservationConflict {
        asked: asked.seq,
        asked_by: asked.owner.clone(),
        held: held.reservation,
        held_by: held.holder.clone(),
        path: held.path.clone(),
        held_path: held.held_path.clone(),
    };
    // The holder is told only of reservations it may see; the one who asked may see the holder's, or it would not be here.
    let mut told = vec![asked.owner.clone()];
    let holder = crate::nouns::Caller::member(held.holder.clone(), "");
    if sight::sees_reservation(to.db, &holder, asked, to.clock())? {
        told.push(held.holder.clone());
    }
    to.emit(fact, Sight::Agents(Sight::list(told))).map(drop)
}

fn write(to: &Write<'_>, held: &Reservation) -> rusqlite::Result<()> {
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
