//! Suggestions for an unknown agent name: visible agents with a similar name.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::confusables::skeleton;
use crate::names::edit_distance;
use crate::nouns::{Agent, AgentId, Caller};
use crate::sight;
use crate::store::{Db, all, rows};

/// Names in a suggestion.
const MAX_SUGGESTIONS: usize = 3;
/// Agents compared with an unknown name, for each index that is searched.
const MAX_CANDIDATES: u32 = 100;

/// Agents visible to the caller whose name is similar, the most similar first. Case and accents are ignored.
pub(crate) fn find(db: Db<'_>, caller: &Caller, name: &str) -> rusqlite::Result<Vec<AgentId>> {
    let wanted = fold(name);
    let wanted_skeleton = skeleton(&wanted);
    let (by_id, by_skeleton) = ("id", "skeleton");
    let start = |text: &str, chars: usize| text.chars().take(chars).collect::<String>();
    let mut found: Vec<(usize, AgentId)> = Vec::new();
    // The one-character skeleton prefix finds names whose first character has an accent.
    for (column, prefix) in [
        (by_id, start(name, 2)),
        (by_skeleton, start(&wanted_skeleton, 2)),
        (by_skeleton, start(&wanted_skeleton, 1)),
    ] {
        if prefix.is_empty() {
            continue;
        }
        let sql = format!(
            "SELECT {} FROM agents WHERE {column} >= ?1 AND {column} < ?1 || char(0x10FFFF) AND retired_at IS NULL
             ORDER BY {column} LIMIT {MAX_CANDIDATES}",
            rows::AGENT
        );
        let agents: Vec<Agent> = all(db, &sql, [prefix], rows::agent)?;
        for agent in agents {
            if found.iter().any(|(_, id)| *id == agent.id) {
                continue;
            }
            if let Some(distance) = small_distance(&fold(agent.id.as_str()), &wanted)
                && sight::sees_agent(db, caller, &agent)?
            {
                found.push((distance, agent.id));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, id)| id).take(MAX_SUGGESTIONS).collect())
}

/// A name without case and accents.
fn fold(name: &str) -> String {
    name.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().to_lowercase()
}

/// The edit distance of two names, if it is at most 2.
fn small_distance(a: &str, b: &str) -> Option<usize> {
    let (length, other) = (a.chars().count(), b.chars().count());
    if length > 64 || length.abs_diff(other) > 2 {
        return None;
    }
    Some(edit_distance(a, b)).filter(|distance| *distance <= 2)
}

#[cfg(test)]
mod tests {
    use super::{fold, small_distance};

    #[test]
    fn names_within_two_edits_are_similar() {
        assert!(small_distance("worker-1", "worker-2").is_some());
        assert!(small_distance("alice", "alcie").is_some());
        assert!(small_distance("alice", "bob").is_none());
        assert_eq!(fold("José"), "jose");
    }
}
