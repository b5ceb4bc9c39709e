//! Limits of reservations: what a pattern may be, how long a reservation may last, and how many paths may be reserved.

use crate::account;
use crate::error::Refusal;
use crate::globs::PathPattern;
use crate::limits::Rules;
use crate::nouns::{AgentId, Millis};
use crate::store::{all, one};
use crate::verbs::{Decide, Decided};

const DAY: Millis = 24 * 60 * 60 * 1000;
/// How far ahead the clock of a client may be that computes the end itself.
const CLOCK_SKEW: Millis = 60 * 60 * 1000;
/// How much of a refused path the refusal repeats, in characters.
const SHOWN_CHARS: usize = 256;
/// How many times the longest path a pattern may be once its braces are expanded.
const EXPANSION_FACTOR: usize = 4;

/// Parses a pattern that is to be reserved. Every later pattern is compared with it, so only cheap ones are accepted.
pub(crate) fn new_pattern(path: &str, rules: &Rules) -> Result<PathPattern, Refusal> {
    let bad = |why: String| Refusal::BadPath { path: path.chars().take(SHOWN_CHARS).collect(), why };
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
    if weight.expanded > EXPANSION_FACTOR * rules.path_bytes as usize {
        return Err(bad("its braces stand for too much text; reserve several patterns".to_owned()));
    }
    Ok(pattern)
}

/// Refuses an end that is later than the rules allow.
pub(super) fn check_end(to: &Decide<'_>, expires_at: Millis) -> Decided<()> {
    let days = to.rules.reservation_days;
    let latest = to.clock().saturating_add(Millis::from(days) * DAY).saturating_add(CLOCK_SKEW);
    if expires_at > latest {
        let what = "days for a reservation (renew it before it ends)";
        return Err(Refusal::TooMany { what, limit: days.into() }.into());
    }
    Ok(())
}

/// Refuses more active paths than all agents together may have in a scope, of which one account has half at most, and more
/// than one agent may have in all scopes.
pub(super) fn check_paths(to: &Decide<'_>, scope: &str, owner: &AgentId, paths: usize) -> Decided<()> {
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

/// Refuses more active reservations than one agent may have in a scope.
pub(super) fn check_room(to: &Decide<'_>, scope: &str, owner: &AgentId, paths: usize) -> Decided<()> {
    let sql = "SELECT count(*) FROM reservations WHERE scope = ?1 AND owner = ?2 AND status = 'active'
               AND expires_at > ?3";
    let held = one(to.db, sql, (scope, owner, to.clock()), |row| row.get::<_, u32>(0))?.unwrap_or(0);
    if held >= to.rules.reservations_per_scope {
        let limit = to.rules.reservations_per_scope.into();
        return Err(Refusal::TooManyReservations { what: "reservations in this scope", limit }.into());
    }
    check_paths(to, scope, owner, paths)
}
