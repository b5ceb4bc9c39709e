//! Marks: names that come once. A sender's letter number or one-time word is kept, so that the same thing shown again
//! is known for what it is, also after a restart.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::{KeptMark, all, exec};

/// A name that must not have come before from the same sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The name, in the door's words.
    pub label: String,
    /// Until when it is remembered; for ever if not said.
    #[serde(default)]
    pub until: Option<Millis>,
    /// A fingerprint of what it stands for. With one, the name may come again for the same thing.
    #[serde(default)]
    pub digest: Option<Vec<u8>>,
}

/// The longest label, in bytes.
const LONGEST: usize = 1_024;

/// Refuses marks that this sender has used.
pub(super) fn check(to: &mut Apply<'_>, sender: &AgentId, marks: &[Mark]) -> Applied<()> {
    let clock = to.clock();
    for mark in marks {
        if mark.label.is_empty() || mark.label.len() > LONGEST {
            return Err(Refusal::BadValue { field: "label", why: "1 to 1024 bytes" }.into());
        }
        let stands_for_another =
            |digest: &Option<Vec<u8>>| digest.is_none() || digest.as_ref() != mark.digest.as_ref();
        let lately = to.memory.new_marks(to.books)?.with_label(&mark.label).iter().any(|known| {
            known.sender == *sender
                && known.until.is_none_or(|until| until > clock)
                && stands_for_another(&known.digest)
        });
        let sql =
            "SELECT digest FROM marks WHERE label = ?1 AND sender = ?2 AND (until IS NULL OR until > ?3)";
        let before: Vec<Option<Vec<u8>>> = all(to.books, sql, (&mark.label, sender, clock), |row| row.get(0))?;
        if lately || before.iter().any(stands_for_another) {
            return Err(Refusal::KeyReused { key: mark.label.clone() }.into());
        }
    }
    Ok(())
}

/// Keeps marks for what stands at a place in the history.
pub(super) fn keep(to: &mut Apply<'_>, sender: &AgentId, marks: &[Mark], at: Seq) -> rusqlite::Result<()> {
    let clock = to.clock();
    let known = to.memory.new_marks(to.books)?;
    for mark in marks {
        let kept = KeptMark {
            sender: sender.clone(),
            message: at,
            digest: mark.digest.clone(),
            until: mark.until,
        };
        known.add(to.books, &mark.label, kept)?;
    }
    if known.are_many() {
        known.settle(to.books, clock)?;
    }
    Ok(())
}

/// Who used a label for what, the latest first.
pub(super) fn with_label(to: &mut Apply<'_>, label: &str) -> rusqlite::Result<Vec<(AgentId, Seq)>> {
    let lately = to.memory.new_marks(to.books)?.with_label(label);
    let mut found: Vec<(AgentId, Seq)> =
        lately.iter().map(|mark| (mark.sender.clone(), mark.message)).collect();
    let sql = "SELECT sender, message FROM marks WHERE label = ?1";
    found.extend(all(to.books, sql, [label], |row| Ok((row.get(0)?, row.get(1)?)))?);
    found.sort_by_key(|(_, message)| std::cmp::Reverse(*message));
    Ok(found)
}

/// Forgets marks whose time has passed; says how many.
pub(super) fn forget_due(to: &mut Apply<'_>, limit: u32) -> rusqlite::Result<usize> {
    let clock = to.clock();
    let passed = to.memory.new_marks(to.books)?.settle(to.books, clock)?;
    let sql = "DELETE FROM marks WHERE (label, sender, message) IN (
                   SELECT label, sender, message FROM marks WHERE until IS NOT NULL AND until <= ?1
                   ORDER BY until, label, sender, message LIMIT ?2)";
    Ok(passed + exec(to.books, sql, (clock, limit))?)
}
