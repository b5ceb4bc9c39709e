//! Single-use keys in the database (table `seen_keys`): idempotency keys of messages, and labels such as message ids and
//! nonces that their sender must not use again.
//!
//! Labels are random, so each would dirty an index page of its own. Rows are therefore written in order of arrival, and
//! the index of label hashes follows up to [`UNINDEXED`] labels late: each new label moves one waiting label into the
//! index, always the next in hash order, so that several share a page. Measured against an ordinary index, this saves a
//! tenth of the writer's CPU for a signed message at 50,000 labels and a quarter or more at 500,000.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{Db, all, exec, one};
use crate::nouns::{AgentId, Millis, Seq};

/// Labels that wait for the index. More would share pages even better, but a reader has to look through the rows since
/// the oldest of them, up to three times as many.
const UNINDEXED: usize = 8_192;

/// A label as its sender used it.
#[derive(Clone, Debug)]
pub(crate) struct SeenLabel {
    pub(crate) sender: AgentId,
    /// The event that it came with.
    pub(crate) seq: Seq,
    pub(crate) digest: Option<Vec<u8>>,
    pub(crate) expires_at: Option<Millis>,
}

/// The labels that are not in the index yet, and the number of the next row. Everything here can be read from the
/// database again, so a restart changes nothing.
#[derive(Debug)]
pub(crate) struct SeenKeys {
    /// Hash and row number of each label that is not in the index.
    unindexed: BTreeSet<(i64, i64)>,
    /// The same row numbers, for the lowest of them.
    unindexed_rows: BTreeSet<i64>,
    /// The hash that was indexed last.
    cursor: i64,
    /// All labels up to this row are in the index, and readers scan the rows after it. Neither this row number nor a lower one is used again.
    indexed_up_to: i64,
    next_row: i64,
    /// Whether `meta` has the present `cursor` and `indexed_up_to`.
    is_written: bool,
}

impl SeenKeys {
    /// The state that the database implies.
    pub(crate) fn read(db: Db<'_>) -> rusqlite::Result<Self> {
        let known = |key: &str| one(db, "SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0));
        let indexed_up_to = known("keys_indexed")?.unwrap_or(0);
        let mut keys = Self {
            unindexed: BTreeSet::new(),
            unindexed_rows: BTreeSet::new(),
            cursor: known("keys_cursor")?.unwrap_or(i64::MIN),
            indexed_up_to,
            next_row: 0,
            is_written: true,
        };
        keys.find_next_row(db)?;
        let sql = "SELECT n, key FROM seen_keys WHERE n > ?1 AND kind = 1";
        let late = all(db, sql, [indexed_up_to], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        for (n, label) in late {
            let entry = (label_hash(&label), n);
            let sql = "SELECT 1 FROM seen_key_hashes WHERE hash = ?1 AND n = ?2";
            if one(db, sql, entry, |_| Ok(()))?.is_none() {
                keys.unindexed.insert(entry);
                keys.unindexed_rows.insert(n);
            }
        }
        Ok(keys)
    }

    /// Whether a label with one of these hashes may have been seen; `false` is certain.
    pub(crate) fn may_have_seen(&self, db: Db<'_>, hashes: &[i64]) -> rusqlite::Result<bool> {
        if hashes.iter().any(|hash| self.unindexed_with(*hash).next().is_some()) {
            return Ok(true);
        }
        // Most labels come in pairs, and one query for two costs little more than half of two. (`IN` would build a table.)
        for pair in hashes.chunks(2) {
            let sql = "SELECT 1 WHERE EXISTS(SELECT 1 FROM seen_key_hashes WHERE hash = ?1)
                OR EXISTS(SELECT 1 FROM seen_key_hashes WHERE hash = ?2)";
            if one(db, sql, (pair[0], pair[pair.len() - 1]), |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Every use of a label, by any sender.
    pub(crate) fn uses_of_label(&self, db: Db<'_>, label: &str) -> rusqlite::Result<Vec<SeenLabel>> {
        let hash = label_hash(label);
        let mut numbers: Vec<i64> = self.unindexed_with(hash).map(|(_, n)| *n).collect();
        let sql = "SELECT n FROM seen_key_hashes WHERE hash = ?1";
        numbers.extend(all(db, sql, [hash], |row| row.get::<_, i64>(0))?);
        let mut uses = Vec::new();
        for n in numbers {
            // Another label may have the same hash.
            let sql = "SELECT sender, seq, digest, expires_at FROM seen_keys WHERE n = ?1 AND key = ?2";
            uses.extend(one(db, sql, (n, label), |row| {
                let (sender, seq) = (row.get(0)?, row.get(1)?);
                Ok(SeenLabel { sender, seq, digest: row.get(2)?, expires_at: row.get(3)? })
            })?);
        }
        Ok(uses)
    }

    /// Stores the use of a label, which has that hash.
    pub(crate) fn add_label(
        &mut self,
        db: &Connection,
        hash: i64,
        label: &str,
        used: &SeenLabel,
    ) -> rusqlite::Result<()> {
        let sql = "INSERT INTO seen_keys(n, kind, sender, key, seq, digest, expires_at)
                   VALUES(?1, 1, ?2, ?3, ?4, ?5, ?6)";
        let n = self.next_row;
        exec(db, sql, (n, &used.sender, label, used.seq, &used.digest, used.expires_at))?;
        self.next_row += 1;
        self.unindexed.insert((hash, n));
        self.unindexed_rows.insert(n);
        if self.unindexed.len() > UNINDEXED {
            self.index_one(db)?;
        }
        Ok(())
    }

    /// Stores the idempotency key of a message, unless its sender has used it.
    pub(crate) fn add_message_key(
        &mut self,
        db: &Connection,
        sender: &AgentId,
        key: &str,
        digest: Vec<u8>,
        message: Seq,
    ) -> rusqlite::Result<()> {
        let sql = "INSERT INTO seen_keys(n, kind, sender, key, seq, digest) VALUES(?1, 0, ?2, ?3, ?4, ?5)
                   ON CONFLICT(sender, key) WHERE kind = 0 DO NOTHING";
        if exec(db, sql, (self.next_row, sender, key, message, digest))? == 0 {
            return Ok(());
        }
        self.next_row += 1;
        // Otherwise labels that wait for the index would end up behind any number of rows.
        self.index_one(db)
    }

    /// Deletes expired labels, at most `limit`; returns how many.
    pub(crate) fn delete_expired(
        &mut self,
        db: &Connection,
        now: Millis,
        limit: u32,
    ) -> rusqlite::Result<usize> {
        let sql = "SELECT n, key FROM seen_keys WHERE expires_at IS NOT NULL AND expires_at <= ?1
                   ORDER BY expires_at, n LIMIT ?2";
        let expired: Vec<(i64, String)> =
            all(Db::new(db), sql, (now, limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (n, label) in &expired {
            let entry = (label_hash(label), *n);
            exec(db, "DELETE FROM seen_keys WHERE n = ?1", [n])?;
            if self.unindexed.remove(&entry) {
                self.unindexed_rows.remove(n);
            } else {
                exec(db, "DELETE FROM seen_key_hashes WHERE hash = ?1 AND n = ?2", entry)?;
            }
        }
        if !expired.is_empty() {
            self.find_indexed_up_to();
            self.find_next_row(Db::new(db))?;
        }
        Ok(expired.len())
    }

    /// Deletes the idempotency keys of a sender.
    pub(crate) fn delete_message_keys_of(
        &mut self,
        db: &Connection,
        sender: &AgentId,
    ) -> rusqlite::Result<()> {
        if exec(db, "DELETE FROM seen_keys WHERE sender = ?1 AND kind = 0", [sender])? > 0 {
            self.find_next_row(Db::new(db))?;
        }
        Ok(())
    }

    /// Moves the next waiting label in hash order into the index, if one waits.
    fn index_one(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let ahead = self.unindexed.range((Excluded((self.cursor, i64::MAX)), Unbounded)).next();
        if let Some(entry) = ahead.or(self.unindexed.first()).copied() {
            exec(db, "INSERT INTO seen_key_hashes(hash, n) VALUES(?1, ?2)", entry)?;
            self.unindexed.remove(&entry);
            self.unindexed_rows.remove(&entry.1);
            self.cursor = entry.0;
        }
        self.find_indexed_up_to();
        Ok(())
    }

    fn unindexed_with(&self, hash: i64) -> impl Iterator<Item = &(i64, i64)> {
        self.unindexed.range((hash, i64::MIN)..=(hash, i64::MAX))
    }

    fn find_indexed_up_to(&mut self) {
        self.indexed_up_to = self.unindexed_rows.first().map_or(self.next_row, |oldest| *oldest) - 1;
        self.is_written = false;
    }

    fn find_next_row(&mut self, db: Db<'_>) -> rusqlite::Result<()> {
        let last: Option<i64> = one(db, "SELECT max(n) FROM seen_keys", [], |row| row.get(0))?.flatten();
        self.next_row = last.unwrap_or(0).max(self.indexed_up_to) + 1;
        Ok(())
    }

    /// Writes what readers and a restart need into `meta`. Called before each commit.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.is_written {
            return Ok(());
        }
        let sql = "INSERT INTO meta(key, value) VALUES('keys_indexed', ?1), ('keys_cursor', ?2)
                   ON CONFLICT DO UPDATE SET value = excluded.value";
        exec(db, sql, (self.indexed_up_to, self.cursor))?;
        self.is_written = true;
        Ok(())
    }
}

/// The digest and message that a sender's idempotency key stands for.
pub(crate) fn message_key(
    db: Db<'_>,
    sender: &AgentId,
    key: &str,
) -> rusqlite::Result<Option<(Vec<u8>, Seq)>> {
    let sql = "SELECT coalesce(digest, x''), seq FROM seen_keys WHERE sender = ?1 AND key = ?2 AND kind = 0";
    one(db, sql, (sender, key), |row| Ok((row.get(0)?, row.get(1)?)))
}

/// How many idempotency keys a sender has used, counted up to `limit`.
pub(crate) fn count_message_keys_of(db: Db<'_>, sender: &AgentId, limit: u32) -> rusqlite::Result<u32> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM seen_keys WHERE sender = ?1 AND kind = 0 LIMIT ?2)";
    Ok(one(db, sql, (sender, limit), |row| row.get(0))?.unwrap_or(0))
}

/// For readers: the events after `after` that came with a label, the latest first.
pub(crate) fn seqs_with_label(db: Db<'_>, label: &str, after: Seq, limit: i64) -> rusqlite::Result<Vec<Seq>> {
    let sql = "SELECT k.seq FROM seen_key_hashes h JOIN seen_keys k ON k.n = h.n
             WHERE h.hash = ?4 AND k.key = ?1 AND k.seq > ?2
         UNION SELECT seq FROM seen_keys
             WHERE n > coalesce((SELECT value FROM meta WHERE key = 'keys_indexed'), 0)
                 AND kind = 1 AND key = ?1 AND seq > ?2
         ORDER BY seq DESC LIMIT ?3";
    all(db, sql, (label, after, limit, label_hash(label)), |row| row.get(0))
}

/// Makes the index anew from all rows, for rows that were imported.
pub(super) fn rebuild_index(db: &Connection) -> rusqlite::Result<()> {
    exec(db, "DELETE FROM seen_key_hashes", [])?;
    exec(db, "DELETE FROM meta WHERE key IN ('keys_indexed', 'keys_cursor')", [])?;
    let mut keys = SeenKeys::read(Db::new(db))?;
    while !keys.unindexed.is_empty() {
        keys.index_one(db)?;
    }
    keys.find_indexed_up_to();
    keys.flush(db)
}

/// The hash that a label is indexed by. Clients choose labels, so it must be one for which collisions cannot be made
/// at will. Part of the database format.
pub(crate) fn label_hash(label: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(Sha256::digest(label));
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema;

    fn db() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        schema::migrate(&db, 0).unwrap();
        db
    }

    fn ann() -> AgentId {
        AgentId::new("ann").unwrap()
    }

    /// Every fifth key is a message's, every third label expires.
    fn add(keys: &mut SeenKeys, db: &Connection, n: usize) {
        let label = format!("id:{n}");
        if n.is_multiple_of(5) {
            return keys.add_message_key(db, &ann(), &label, vec![1], n as i64).unwrap();
        }
        let expires_at = n.is_multiple_of(3).then_some(n as i64);
        let used = SeenLabel { sender: ann(), seq: n as i64, digest: None, expires_at };
        keys.add_label(db, label_hash(&label), &label, &used).unwrap();
    }

    /// Adds keys and deletes expired ones, and reads the state from the database again after every `read_every` keys.
    fn filled(count: usize, sweep_at: &[usize], read_every: usize) -> Connection {
        let db = db();
        let mut keys = SeenKeys::read(Db::new(&db)).unwrap();
        for n in 1..=count {
            add(&mut keys, &db, n);
            if sweep_at.contains(&n) {
                keys.delete_expired(&db, n as i64, 1_000).unwrap();
            }
            if n.is_multiple_of(read_every) {
                keys.flush(&db).unwrap();
                keys = SeenKeys::read(Db::new(&db)).unwrap();
            }
        }
        keys.flush(&db).unwrap();
        db
    }

    fn rows(db: &Connection, sql: &str) -> Vec<(i64, i64)> {
        all(Db::new(db), sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }

    #[test]
    fn labels_are_found_in_and_outside_of_the_index() {
        let count = 4 * UNINDEXED;
        let db = filled(count, &[], usize::MAX);
        let keys = SeenKeys::read(Db::new(&db)).unwrap();
        assert!(!keys.unindexed.is_empty());
        assert!(!rows(&db, "SELECT hash, n FROM seen_key_hashes").is_empty());
        for n in (1..=count).step_by(7).filter(|n| !n.is_multiple_of(5)) {
            let label = format!("id:{n}");
            assert!(keys.may_have_seen(Db::new(&db), &[1, label_hash(&label)]).unwrap(), "{n}");
            let uses = keys.uses_of_label(Db::new(&db), &label).unwrap();
            assert_eq!(uses.iter().map(|used| used.seq).collect::<Vec<_>>(), [n as i64]);
            assert_eq!(seqs_with_label(Db::new(&db), &label, 0, 9).unwrap(), [n as i64]);
        }
        assert!(!keys.may_have_seen(Db::new(&db), &[label_hash("id:0"), label_hash("nonce:1")]).unwrap());
        let to_scan = keys.next_row - keys.indexed_up_to;
        assert!(to_scan < 3 * UNINDEXED as i64, "readers scan {to_scan} rows");
    }

    #[test]
    fn a_message_key_is_not_a_label_of_the_same_text() {
        let db = db();
        let mut keys = SeenKeys::read(Db::new(&db)).unwrap();
        keys.add_message_key(&db, &ann(), "id:1", vec![7], 3).unwrap();
        assert!(!keys.may_have_seen(Db::new(&db), &[label_hash("id:1")]).unwrap());
        assert!(keys.uses_of_label(Db::new(&db), "id:1").unwrap().is_empty());
        assert!(seqs_with_label(Db::new(&db), "id:1", 0, 9).unwrap().is_empty());
        add(&mut keys, &db, 2);
        assert_eq!(message_key(Db::new(&db), &ann(), "id:2").unwrap(), None);
        assert_eq!(message_key(Db::new(&db), &ann(), "id:1").unwrap(), Some((vec![7], 3)));
        assert_eq!(count_message_keys_of(Db::new(&db), &ann(), 9).unwrap(), 1);
        keys.delete_message_keys_of(&db, &ann()).unwrap();
        assert_eq!(message_key(Db::new(&db), &ann(), "id:1").unwrap(), None);
        assert_eq!(keys.uses_of_label(Db::new(&db), "id:2").unwrap().len(), 1, "labels stay");
    }

    #[test]
    fn labels_do_not_wait_for_the_index_behind_many_message_keys() {
        let db = db();
        let mut keys = SeenKeys::read(Db::new(&db)).unwrap();
        for n in [1, 2, 3] {
            add(&mut keys, &db, n);
        }
        for n in 0..4 {
            keys.add_message_key(&db, &ann(), &format!("key {n}"), vec![1], n).unwrap();
        }
        assert!(keys.unindexed.is_empty());
        assert_eq!(keys.indexed_up_to, 7, "readers scan no row");
        assert_eq!(rows(&db, "SELECT hash, n FROM seen_key_hashes").len(), 3);
    }

    #[test]
    fn restarts_do_not_change_what_is_stored() {
        let sweep_at = [100, UNINDEXED + 50, 2 * UNINDEXED, 3 * UNINDEXED + 400];
        let all_of = |db: &Connection| {
            let keys = rows(db, "SELECT n, seq FROM seen_keys ORDER BY n");
            let hashes = rows(db, "SELECT hash, n FROM seen_key_hashes");
            let meta = "SELECT key = 'keys_cursor', value FROM meta WHERE key LIKE 'keys_%' ORDER BY 1";
            (keys, hashes, rows(db, meta))
        };
        let count = 3 * UNINDEXED + 500;
        let once = all_of(&filled(count, &sweep_at, usize::MAX));
        assert!(!once.1.is_empty() && once.0.len() < count);
        for read_every in [1_000, 3_333] {
            assert_eq!(all_of(&filled(count, &sweep_at, read_every)), once, "{read_every}");
        }
    }

    #[test]
    fn a_rebuilt_index_has_every_label() {
        let db = filled(50, &[], usize::MAX);
        rebuild_index(&db).unwrap();
        let keys = SeenKeys::read(Db::new(&db)).unwrap();
        assert!(keys.unindexed.is_empty());
        assert_eq!((keys.indexed_up_to, keys.next_row), (50, 51));
        assert_eq!(keys.uses_of_label(Db::new(&db), "id:9").unwrap().len(), 1);
    }
}
