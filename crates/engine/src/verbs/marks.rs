//! Marks: names that come once. A sender's letter number or one-time word is kept, so that the same thing shown again
//! is known for what it is, also after a restart.

use serde::{Deserialize, Serialize};

use super::{Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::{KeptMark, hash};

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

/// Marks that their sender has not used before, and what each is found by.
pub(super) struct Fresh<'a> {
    sender: AgentId,
    marks: &'a [Mark],
    hashes: Vec<i64>,
}

/// Refuses marks that this sender has used.
pub(super) fn check<'a>(to: &mut Write<'_>, sender: &AgentId, marks: &'a [Mark]) -> Decided<Fresh<'a>> {
    let clock = to.clock();
    if marks.iter().any(|mark| mark.label.is_empty() || mark.label.len() > LONGEST) {
        return Err(Refusal::BadValue { field: "label", why: "1 to 1024 bytes" }.into());
    }
    let hashes: Vec<i64> = marks.iter().map(|mark| hash(&mark.label)).collect();
    let connection = to.connection();
    let mut cache = to.cache.borrow_mut();
    let known = cache.marks(connection)?;
    if known.may_have(connection, &hashes)? {
        for mark in marks {
            let stands_for_another =
                |digest: &Option<Vec<u8>>| digest.is_none() || digest.as_ref() != mark.digest.as_ref();
            if known.with_label(connection, &mark.label)?.iter().any(|before| {
                before.sender == *sender
                    && before.until.is_none_or(|until| until > clock)
                    && stands_for_another(&before.digest)
            }) {
                return Err(Refusal::KeyReused { key: mark.label.clone() }.into());
            }
        }
    }
    Ok(Fresh { sender: sender.clone(), marks, hashes })
}

impl Fresh<'_> {
    /// Keeps them for what stands at a place in the history.
    pub(super) fn keep(self, to: &mut Write<'_>, at: Seq) -> rusqlite::Result<()> {
        let connection = to.connection();
        let mut cache = to.cache.borrow_mut();
        let known = cache.marks(connection)?;
        for (mark, hash) in self.marks.iter().zip(self.hashes) {
            let (sender, digest) = (self.sender.clone(), mark.digest.clone());
            let kept = KeptMark { sender, message: at, digest, until: mark.until };
            known.add(connection, hash, &mark.label, &kept)?;
        }
        Ok(())
    }
}

/// Who used a label for what, the latest first.
pub(super) fn with_label(to: &mut Write<'_>, label: &str) -> rusqlite::Result<Vec<(AgentId, Seq)>> {
    let mut found = to.cache.borrow_mut().marks(to.connection())?.with_label(to.connection(), label)?;
    found.sort_by_key(|mark| std::cmp::Reverse(mark.message));
    Ok(found.into_iter().map(|mark| (mark.sender, mark.message)).collect())
}

/// Forgets marks whose time has passed; says how many.
pub(super) fn forget_due(to: &mut Write<'_>, limit: u32) -> rusqlite::Result<usize> {
    let clock = to.clock();
    to.cache.borrow_mut().marks(to.connection())?.forget_due(to.connection(), clock, limit)
}
