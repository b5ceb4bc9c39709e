//! Names like one that is not known: what its writer may have meant.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::names::slips;
use crate::nouns::{Agent, AgentId, Caller};
use crate::sight;
use crate::skeleton::skeleton;
use crate::store::{Db, all, rows};

/// Names in a suggestion.
const MOST: usize = 3;
/// Entries compared with an unknown name, for each way of finding them.
const COMPARED: u32 = 100;

/// Agents that the caller may know of with a name like this one, the nearest first. Case and accents do not count.
pub(crate) fn names(db: Db<'_>, caller: &Caller, name: &str) -> rusqlite::Result<Vec<AgentId>> {
    let wanted = fold(name);
    let looks = skeleton(&wanted);
    let (by_id, by_looks) = ("id", "skeleton");
    let start = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
    let mut found: Vec<(usize, AgentId)> = Vec::new();
    // One letter of its looks finds a name whose first letter has an accent.
    for (column, prefix) in
        [(by_id, start(name, 2)), (by_looks, start(&looks, 2)), (by_looks, start(&looks, 1))]
    {
        if prefix.is_empty() {
            continue;
        }
        let sql = format!(
            "SELECT {} FROM agents WHERE {column} >= ?1 AND {column} < ?1 || char(0x10FFFF) AND retired_at IS NULL
             ORDER BY {column} LIMIT {COMPARED}",
            rows::AGENT
        );
        let agents: Vec<Agent> = all(db, &sql, [prefix], rows::agent)?;
        for agent in agents {
            if found.iter().any(|(_, id)| *id == agent.id) {
                continue;
            }
            if let Some(slips) = little(&fold(agent.id.as_str()), &wanted)
                && sight::sees_agent(db, caller, &agent)?
            {
                found.push((slips, agent.id));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, id)| id).take(MOST).collect())
}

/// A name without case and accents.
fn fold(name: &str) -> String {
    name.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().to_lowercase()
}

/// How many slips of the pen two names are apart, if they are few.
fn little(a: &str, b: &str) -> Option<usize> {
    let (long, other) = (a.chars().count(), b.chars().count());
    if long > 64 || long.abs_diff(other) > 2 {
        return None;
    }
    Some(slips(a, b)).filter(|slips| *slips <= 2)
}

#[cfg(test)]
mod tests {
    use super::{fold, little};

    #[test]
    fn near_names_are_near() {
        assert!(little("worker-1", "worker-2").is_some());
        assert!(little("alice", "alcie").is_some());
        assert!(little("alice", "bob").is_none());
        assert_eq!(fold("José"), "jose");
    }
}
