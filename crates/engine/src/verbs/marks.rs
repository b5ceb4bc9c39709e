//! Marks: names that come once. A sender's letter number or one-time word is kept, so that the same thing shown again
//! is known for what it is, also after a restart.

use serde::{Deserialize, Serialize};

use super::{Applied, Apply};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::KeptMark;

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
        let before = to.memory.marks(to.books)?.with_label(to.books, &mark.label)?;
        if before.iter().any(|known| {
            known.sender == *sender
                && known.until.is_none_or(|until| until > clock)
                && stands_for_another(&known.digest)
        }) {
            return Err(Refusal::KeyReused { key: mark.label.clone() }.into());
        }
    }
    Ok(())
}

/// Keeps marks for what stands at a place in the history.
pub(super) fn keep(to: &mut Apply<'_>, sender: &AgentId, marks: &[Mark], at: Seq) -> rusqlite::Result<()> {
    let known = to.memory.marks(to.books)?;
    for mark in marks {
        let kept =
            KeptMark { sender: sender.clone(), message: at, digest: mark.digest.clone(), until: mark.until };
        known.add(to.books, &mark.label, &kept)?;
    }
    Ok(())
}

/// Who used a label for what, the latest first.
pub(super) fn with_label(to: &mut Apply<'_>, label: &str) -> rusqlite::Result<Vec<(AgentId, Seq)>> {
    let mut found = to.memory.marks(to.books)?.with_label(to.books, label)?;
    found.sort_by_key(|mark| std::cmp::Reverse(mark.message));
    Ok(found.into_iter().map(|mark| (mark.sender, mark.message)).collect())
}

/// Forgets marks whose time has passed; says how many.
pub(super) fn forget_due(to: &mut Apply<'_>, limit: u32) -> rusqlite::Result<usize> {
    let clock = to.clock();
    to.memory.marks(to.books)?.forget_due(to.books, clock, limit)
}
