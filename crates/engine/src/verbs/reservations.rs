//! Reserving paths. Advisory: an overlap is reported to both holders and prevents nothing.

mod limits;
mod per_path;
mod rows;

pub(crate) use limits::new_pattern;
pub use per_path::{ReserveEach, ReservedEach, plain};
pub(super) use rows::end;

use serde::{Deserialize, Serialize};

use self::limits::{check_end, check_room};
use self::rows::{emit_conflict, index, insert, widen};
use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::globs::PathPattern;
use crate::nouns::{
    AgentId, Audience, Conflict, Fact, Json, Millis, Reservation, ReservationStatus, Reserved, Seq,
};
use crate::overlaps::{Asking, Rivals};
use crate::sight;
use crate::store::rows as tables;
use crate::store::{all, one};

/// The longest reason for a reservation, in bytes: every conflict repeats it.
const MAX_REASON_BYTES: usize = 4_096;

/// Reserves paths for the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// The caller's key for it; generated if absent. Reserving the same content under the same key again returns the first
    /// reservation.
    #[serde(default)]
    pub key: Option<String>,
    /// What the paths are relative to: a repository, for example.
    pub scope: String,
    /// The patterns, relative to the scope.
    pub paths: Vec<String>,
    /// Whether it is exclusive.
    pub exclusive: bool,
    /// The reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// When it was issued, if the door knows; now if absent.
    #[serde(default)]
    pub issued_at: Option<Millis>,
    /// When it expires.
    pub expires_at: Millis,
    /// Whether the whole realm may see it, or only accepted contacts.
    pub audience: Audience,
    /// Other data.
    #[serde(default)]
    pub meta: Option<Json>,
}

impl Reserve {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Reserved> + use<'v>> {
        let plan = self.plan(to)?;
        Ok(|to: &mut Write<'_>| match plan {
            Plan::Held(reserved) => Ok(reserved),
            Plan::New(conflicts) => self.write(to, None, conflicts),
        })
    }

    fn plan(&self, to: &Decide<'_>) -> Decided<Plan> {
        to.require_member()?;
        to.acting_agent()?;
        let patterns = self.check(to)?;
        let owner = &to.caller.agent;
        if let Some(key) = &self.key
            && let Some(held) = by_key(to, owner, key)?
        {
            if self.is_same(&held) && is_live(to, &held) {
                let conflicts = conflicts_of(to, &held)?;
                return Ok(Plan::Held(Reserved { reservation: held, conflicts }));
            }
            return Err(Refusal::ReservationExists { key: key.clone() }.into());
        }
        check_room(to, &self.scope, owner, self.paths.len())?;
        let conflicts = self.rivals(to, &patterns)?.conflicts(&patterns)?;
        Ok(Plan::New(conflicts))
    }

    /// The reservations that these patterns are compared with.
    fn rivals(&self, to: &Decide<'_>, patterns: &[PathPattern]) -> Decided<Rivals> {
        let asking = Asking { scope: &self.scope, owner: &to.caller.agent, exclusive: self.exclusive };
        Ok(Rivals::of(to.db, to.caller, &asking, patterns, to.clock(), to.rules)??)
    }

    /// Writes a reservation that was checked. `told` restricts it to some agents.
    fn write(
        &self,
        to: &mut Write<'_>,
        told: Option<Vec<AgentId>>,
        conflicts: Vec<Conflict>,
    ) -> rusqlite::Result<Reserved> {
        let live = self.expires_at > to.clock();
        let reservation = Reservation {
            seq: to.next_seq(),
            owner: to.caller.agent.clone(),
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
        insert(to, &reservation)?;
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        if !live {
            to.emit(Fact::ReservationExpired { reservation: Box::new(reservation.clone()) }, sight)?;
            return Ok(Reserved { reservation, conflicts: Vec::new() });
        }
        index(to, &reservation)?;
        to.emit(Fact::ReservationMade { reservation: Box::new(reservation.clone()) }, sight)?;
        for conflict in &conflicts {
            emit_conflict(to, &reservation, conflict)?;
        }
        Ok(Reserved { reservation, conflicts })
    }

    /// Checks a reservation that a message announces. Unlike [`Reserve::decide`] it accepts one that is known or has expired.
    /// Refuses other content under a known key, and more than the holder may have.
    pub(super) fn check_announced(&self, to: &Decide<'_>) -> Decided<Announcement<'_>> {
        let patterns = self.patterns(to)?;
        check_end(to, self.expires_at)?;
        let owner = &to.caller.agent;
        let known = match &self.key {
            Some(key) => by_key(to, owner, key)?,
            None => None,
        };
        match &known {
            Some(held) if self.is_same(held) => {}
            Some(held) => return Err(Refusal::ReservationExists { key: held.key.clone() }.into()),
            None if self.expires_at <= to.clock() => {}
            None => check_room(to, &self.scope, owner, self.paths.len())?,
        }
        Ok(Announcement { reserve: self, known, patterns, conflicts: Vec::new() })
    }

    fn is_same(&self, held: &Reservation) -> bool {
        held.scope == self.scope && held.paths == self.paths && held.exclusive == self.exclusive
    }

    fn check(&self, to: &Decide<'_>) -> Decided<Vec<PathPattern>> {
        let patterns = self.patterns(to)?;
        if self.expires_at <= to.clock() {
            return Err(Refusal::AlreadyExpired { at: self.expires_at }.into());
        }
        check_end(to, self.expires_at)?;
        Ok(patterns)
    }

    fn patterns(&self, to: &Decide<'_>) -> Decided<Vec<PathPattern>> {
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
            && reason.len() > MAX_REASON_BYTES
        {
            let what = "the reason";
            return Err(Refusal::TooLarge { what, limit: MAX_REASON_BYTES, got: reason.len() }.into());
        }
        Ok(self.paths.iter().map(|path| new_pattern(path, to.rules)).collect::<Result<_, _>>()?)
    }
}

enum Plan {
    /// The caller has it already.
    Held(Reserved),
    /// It is new, and overlaps with these.
    New(Vec<Conflict>),
}

/// A reservation that a message announces, checked.
pub(super) struct Announcement<'v> {
    reserve: &'v Reserve,
    known: Option<Reservation>,
    patterns: Vec<PathPattern>,
    conflicts: Vec<Conflict>,
}

impl Announcement<'_> {
    /// Finds what it overlaps with; refuses a comparison that costs too much.
    pub(super) fn compare(mut self, to: &Decide<'_>) -> Decided<Self> {
        self.conflicts = match &self.known {
            Some(held) if is_live(to, held) => conflicts_of(to, held)?,
            None if self.reserve.expires_at > to.clock() => {
                self.reserve.rivals(to, &self.patterns)?.conflicts(&self.patterns)?
            }
            _ => Vec::new(),
        };
        Ok(self)
    }

    /// Writes it. One that is known is shown to the agents that are told now as well; one that has expired is written as
    /// such.
    pub(super) fn write(self, to: &mut Write<'_>, told: Option<Vec<AgentId>>) -> rusqlite::Result<Reserved> {
        let Some(mut held) = self.known else { return self.reserve.write(to, told, self.conflicts) };
        widen(to, &mut held, told)?;
        Ok(Reserved { reservation: held, conflicts: self.conflicts })
    }
}

/// Extends a reservation of the caller's, even an expired one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Renew {
    /// The reservation.
    pub which: Which,
    /// When it expires.
    pub expires_at: Millis,
}

/// One reservation, by number or by its holder's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// By number.
    Number(Seq),
    /// By the holder's key.
    Key(String),
}

impl Renew {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Reserved> + use<'v>> {
        let renewal = self.check(to)?.compare(to)?;
        Ok(|to: &mut Write<'_>| renewal.write(to))
    }

    /// Refuses what cannot be extended.
    pub(super) fn check(&self, to: &Decide<'_>) -> Decided<Renewal> {
        let held = own(to, &self.which)?;
        if held.status == ReservationStatus::Released {
            return Err(Refusal::NoSuchReservation.into());
        }
        if self.expires_at <= to.clock() {
            return Err(Refusal::AlreadyExpired { at: self.expires_at }.into());
        }
        check_end(to, self.expires_at)?;
        if !is_live(to, &held) {
            check_room(to, &held.scope, &held.owner, held.paths.len())?;
        }
        Ok(Renewal { held, expires_at: self.expires_at, conflicts: Vec::new() })
    }
}

/// A reservation that is extended.
pub(super) struct Renewal {
    held: Reservation,
    expires_at: Millis,
    conflicts: Vec<Conflict>,
}

impl Renewal {
    /// Finds what it overlaps with; refuses a comparison that costs too much.
    pub(super) fn compare(mut self, to: &Decide<'_>) -> Decided<Self> {
        self.conflicts = conflicts_of(to, &self.held)?;
        Ok(self)
    }

    pub(super) fn write(self, to: &mut Write<'_>) -> rusqlite::Result<Reserved> {
        let Self { held: mut reservation, expires_at, conflicts } = self;
        reservation.status = ReservationStatus::Active;
        reservation.expires_at = expires_at;
        let sql = "UPDATE reservations SET status = 'active', expires_at = ?2 WHERE seq = ?1";
        to.exec(sql, (reservation.seq, reservation.expires_at))?;
        index(to, &reservation)?;
        let sight = sight::of_reservation(to.db, &reservation, to.clock())?;
        to.emit(Fact::ReservationRenewed { reservation: Box::new(reservation.clone()) }, sight)?;
        Ok(Reserved { reservation, conflicts })
    }
}

/// Releases reservations of the caller's: the named ones, or all active ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// The reservations; all active ones if empty.
    pub which: Vec<Which>,
    /// The holder, which only administrators may name; the caller if absent.
    #[serde(default)]
    pub owner: Option<AgentId>,
}

impl Release {
    pub(crate) fn decide<'v>(
        &'v self,
        to: &Decide<'_>,
    ) -> Decided<impl FnOnce(&mut Write<'_>) -> rusqlite::Result<Vec<Reservation>> + use<'v>> {
        let held = self.held(to)?;
        Ok(|to: &mut Write<'_>| held.into_iter().map(|held| release(to, held)).collect())
    }

    fn held(&self, to: &Decide<'_>) -> Decided<Vec<Reservation>> {
        to.require_member()?;
        let owner = match &self.owner {
            Some(owner) if !to.caller.is(owner) => {
                to.require_admin()?;
                owner.clone()
            }
            _ => to.caller.agent.clone(),
        };
        if self.which.is_empty() {
            let sql = format!(
                "SELECT {} FROM reservations r INDEXED BY reservations_held
                 WHERE r.owner = ?1 AND r.status = 'active' ORDER BY r.seq",
                tables::RESERVATION
            );
            Ok(all(to.db, &sql, [&owner], tables::reservation)?)
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
            // The same reservation may be named by number and by key.
            held.sort_by_key(|held| held.seq);
            held.dedup_by_key(|held| held.seq);
            Ok(held)
        }
    }
}

/// Releases a reservation, unless it is released. An expired one cannot be renewed afterwards.
pub(super) fn release(to: &mut Write<'_>, mut held: Reservation) -> rusqlite::Result<Reservation> {
    if held.status != ReservationStatus::Released {
        held.status = ReservationStatus::Released;
        held.released_at = Some(to.now);
        end(to, &held)?;
        let sight = sight::of_reservation(to.db, &held, to.clock())?;
        to.emit(Fact::ReservationReleased { reservation: Box::new(held.clone()) }, sight)?;
    }
    Ok(held)
}

/// Lets an active reservation expire now. It can be renewed afterwards.
pub(super) fn expire(to: &mut Write<'_>, mut held: Reservation) -> rusqlite::Result<Reservation> {
    if held.status == ReservationStatus::Active {
        held.status = ReservationStatus::Expired;
        end(to, &held)?;
        let sight = sight::of_reservation(to.db, &held, to.clock())?;
        to.emit(Fact::ReservationExpired { reservation: Box::new(held.clone()) }, sight)?;
    }
    Ok(held)
}

fn is_live(to: &Decide<'_>, held: &Reservation) -> bool {
    held.status == ReservationStatus::Active && held.expires_at > to.clock()
}

/// What a reservation overlaps with. Its patterns may be older than the rules for new ones.
fn conflicts_of(to: &Decide<'_>, held: &Reservation) -> Decided<Vec<Conflict>> {
    let patterns: Vec<PathPattern> =
        held.paths.iter().filter_map(|path| PathPattern::parse(path).ok()).collect();
    let asking = Asking { scope: &held.scope, owner: &held.owner, exclusive: held.exclusive };
    let rivals = Rivals::of(to.db, to.caller, &asking, &patterns, to.clock(), to.rules)??;
    Ok(rivals.conflicts(&patterns)?)
}

/// A reservation of the caller's.
pub(super) fn own(to: &Decide<'_>, which: &Which) -> Decided<Reservation> {
    to.require_member()?;
    of_owner(to, &to.caller.agent, which)
}

/// A reservation of that owner's. Those of other agents do not exist for it.
fn of_owner(to: &Decide<'_>, owner: &AgentId, which: &Which) -> Decided<Reservation> {
    let found = match which {
        Which::Key(key) => by_key(to, owner, key)?,
        Which::Number(seq) => tables::reservation_at(to.db, *seq)?.filter(|held| held.owner == *owner),
    };
    found.ok_or_else(|| Refusal::NoSuchReservation.into())
}

fn by_key(to: &Decide<'_>, owner: &AgentId, key: &str) -> rusqlite::Result<Option<Reservation>> {
    let sql = format!("SELECT {} FROM reservations r WHERE r.owner = ?1 AND r.key = ?2", tables::RESERVATION);
    one(to.db, &sql, (owner, key), tables::reservation)
}
