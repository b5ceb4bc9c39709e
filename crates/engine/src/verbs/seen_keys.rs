//! Single-use keys (message ids, nonces, idempotency keys), stored per sender so that repetitions are recognised across
//! restarts.

use serde::{Deserialize, Serialize};

use super::{Decide, Decided, Write};
use crate::error::Refusal;
use crate::nouns::{AgentId, Millis, Seq};
use crate::store::{SeenLabel, label_hash};

/// A label that its sender must not have used before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SingleUseKey {
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
const MAX_LABEL_BYTES: usize = 1_024;

/// Keys that their sender has not used before, with the hashes of their labels.
pub(super) struct UnusedKeys<'a> {
    sender: AgentId,
    keys: &'a [SingleUseKey],
    hashes: Vec<i64>,
}

/// Refuses keys that this sender has used.
pub(super) fn check<'a>(
    to: &Decide<'_>,
    sender: &AgentId,
    keys: &'a [SingleUseKey],
) -> Decided<UnusedKeys<'a>> {
    let clock = to.clock();
    if keys.iter().any(|key| key.label.is_empty() || key.label.len() > MAX_LABEL_BYTES) {
        return Err(Refusal::BadValue { field: "label", why: "1 to 1024 bytes" }.into());
    }
    let hashes: Vec<i64> = keys.iter().map(|key| label_hash(&key.label)).collect();
    let mut cache = to.cache.borrow_mut();
    let seen = cache.seen_keys(to.db)?;
    if seen.may_have_seen(to.db, &hashes)? {
        for key in keys {
            let has_other_content =
                |digest: &Option<Vec<u8>>| digest.is_none() || digest.as_ref() != key.digest.as_ref();
            if seen.uses_of_label(to.db, &key.label)?.iter().any(|used| {
                used.sender == *sender
                    && used.expires_at.is_none_or(|expires_at| expires_at > clock)
                    && has_other_content(&used.digest)
            }) {
                return Err(Refusal::KeyReused { key: key.label.clone() }.into());
            }
        }
    }
    Ok(UnusedKeys { sender: sender.clone(), keys, hashes })
}

impl UnusedKeys<'_> {
    /// Stores them as used by the event at `seq`.
    pub(super) fn store(self, to: &mut Write<'_>, seq: Seq) -> rusqlite::Result<()> {
        let mut cache = to.cache.borrow_mut();
        let seen = cache.seen_keys(to.db)?;
        for (key, hash) in self.keys.iter().zip(self.hashes) {
            let (sender, digest) = (self.sender.clone(), key.digest.clone());
            let used = SeenLabel { sender, seq, digest, expires_at: key.until };
            seen.add_label(to.connection(), hash, &key.label, &used)?;
        }
        Ok(())
    }
}

/// The senders that used a label, with the events it came with, the latest first.
pub(super) fn uses_of_label(to: &Decide<'_>, label: &str) -> rusqlite::Result<Vec<(AgentId, Seq)>> {
    let mut uses = to.cache.borrow_mut().seen_keys(to.db)?.uses_of_label(to.db, label)?;
    uses.sort_by_key(|used| std::cmp::Reverse(used.seq));
    Ok(uses.into_iter().map(|used| (used.sender, used.seq)).collect())
}

/// Deletes expired labels, at most `limit`; returns how many.
pub(super) fn delete_expired(to: &mut Write<'_>, limit: u32) -> rusqlite::Result<usize> {
    to.cache.borrow_mut().seen_keys(to.db)?.delete_expired(to.connection(), to.clock(), limit)
}

/// Stores the idempotency key of a message, unless its sender has used it.
pub(super) fn store_message_key(
    to: &mut Write<'_>,
    sender: &AgentId,
    key: &str,
    digest: Vec<u8>,
    message: Seq,
) -> rusqlite::Result<()> {
    let mut cache = to.cache.borrow_mut();
    cache.seen_keys(to.db)?.add_message_key(to.connection(), sender, key, digest, message)
}

/// Deletes the idempotency keys of a sender whose name is reused.
pub(super) fn delete_message_keys_of(to: &mut Write<'_>, sender: &AgentId) -> rusqlite::Result<()> {
    to.cache.borrow_mut().seen_keys(to.db)?.delete_message_keys_of(to.connection(), sender)
}
