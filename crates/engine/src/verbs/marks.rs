//! Marks: names that come once. A sender's letter number or one-time word is kept, so that the same thing shown again
//! is known for what it is, also after a restart.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::{all, exec};

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
pub(super) fn check(to: &Apply<'_>, sender: &AgentId, marks: &[Mark]) -> Applied<()> {
    for mark in marks {
        if mark.label.is_empty() || mark.label.len() > LONGEST {
            return Err(Refusal::BadValue { field: "label", why: "1 to 1024 bytes" }.into());
        }
        let sql =
            "SELECT digest FROM marks WHERE label = ?1 AND sender = ?2 AND (until IS NULL OR until > ?3)";
        let before: Vec<Option<Vec<u8>>> =
            all(to.books, sql, (&mark.label, sender, to.clock()), |row| row.get(0))?;
        if before.iter().any(|digest| digest.is_none() || *digest != mark.digest) {
            return Err(Refusal::KeyReused { key: mark.label.clone() }.into());
        }
    }
    Ok(())
}

/// Keeps marks for what stands at a place in the history.
pub(super) fn keep(to: &Apply<'_>, sender: &AgentId, marks: &[Mark], at: Seq) -> rusqlite::Result<()> {
    for mark in marks {
        let sql = "INSERT INTO marks(label, sender, message, digest, until) VALUES(?1, ?2, ?3, ?4, ?5)
                   ON CONFLICT DO UPDATE SET digest = ?4, until = ?5";
        exec(to.books, sql, (&mark.label, sender, at, &mark.digest, mark.until))?;
    }
    Ok(())
}

/// Forgets marks whose time has passed; says how many.
pub(super) fn forget_due(to: &Apply<'_>, limit: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM marks WHERE (label, sender, message) IN (
                   SELECT label, sender, message FROM marks WHERE until IS NOT NULL AND until <= ?1
                   ORDER BY until, label, sender, message LIMIT ?2)";
    exec(to.books, sql, (to.clock(), limit))
}
