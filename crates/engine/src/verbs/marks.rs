//! Single-use keys (message ids, nonces), stored per sender so that replays are refused across restarts.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::{KeptMark, hash};

/// A label that its sender must not have used before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The label, as the door spells it.
    pub label: String,
    /// When it may be used again; never if absent.
    #[serde(default)]
    pub until: Option<Millis>,
    /// A digest of the content. With one, the label may come again for the same content.
    #[serde(default)]
    pub digest: Option<Vec<u8>>,
}

/// The longest label, in bytes.
const LONGEST: usize = 1_024;

/// Keys that their sender has not used before, with the hashes of their labels.
pub(super) struct Fresh<'a> {
    sender: AgentId,
    marks: &'a [Mark],
    hashes: Vec<i64>,
}

/// Refuses keys that this sender has used.
pub(super) fn check<'a>(to: &Decide<'_>, sender: &AgentId, marks: &'a [Mark]) -> Decided<Fresh<'a>> {
    let clock = to.clock();
    if marks.iter().any(|mark| mark.label.is_empty() || mark.label.len() > LONGEST) {
        return Err(Refusal::BadValue { field: "label", why: "1 to 1024 bytes" }.into());
    }
    let hashes: Vec<i64> = marks.iter().map(|mark| hash(&mark.label)).collect();
    let mut cache = to.cache.borrow_mut();
    let known = cache.marks(to.db)?;
    if known.may_have(to.db, &hashes)? {
        for mark in marks {
            let stands_for_another =
                |digest: &Option<Vec<u8>>| digest.is_none() || digest.as_ref() != mark.digest.as_ref();
            if known.with_label(to.db, &mark.label)?.iter().any(|before| {
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
    /// Stores them as used by the event at `seq`.
    pub(super) fn keep(self, to: &mut Write<'_>, seq: Seq) -> rusqlite::Result<()> {
        let connection = to.connection();
        let mut cache = to.cache.borrow_mut();
        let known = cache.marks(to.db)?;
        for (mark, hash) in self.marks.iter().zip(self.hashes) {
            let (sender, digest) = (self.sender.clone(), mark.digest.clone());
            let kept = KeptMark { sender, message: seq, digest, until: mark.until };
            known.add(connection, hash, &mark.label, &kept)?;
        }
        Ok(())
    }
}

/// The senders that used a label, with the messages it came with, the latest first.
pub(super) fn with_label(to: &Decide<'_>, label: &str) -> rusqlite::Result<Vec<(AgentId, Seq)>> {
    let mut found = to.cache.borrow_mut().marks(to.db)?.with_label(to.db, label)?;
    found.sort_by_key(|mark| std::cmp::Reverse(mark.message));
    Ok(found.into_iter().map(|mark| (mark.sender, mark.message)).collect())
}

/// Deletes expired keys, at most `limit`; returns how many.
pub(super) fn forget_due(to: &mut Write<'_>, limit: u32) -> rusqlite::Result<usize> {
    let clock = to.clock();
    to.cache.borrow_mut().marks(to.db)?.forget_due(to.connection(), clock, limit)
}
