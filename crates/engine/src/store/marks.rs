//! Marks in the books. Names that come once are as random as names can be: each in its place would dirty a page of its own.
//! So they are written down in the order they come. Where to find one is another table, of nothing but short hashes, that
//! follows some thousands of marks at a time; what it does not have yet is remembered.

use std::collections::BTreeSet;

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{all, exec, one};
use crate::nouns::{AgentId, Millis, Seq};

/// Marks that wait before they are given a place. More would make them cheaper still, and longer to look through for
/// readers, who have no memory of them.
const MOST: usize = 4_096;

/// A mark as the books have it.
#[derive(Clone, Debug)]
pub(crate) struct KeptMark {
    pub(crate) sender: AgentId,
    /// The place in the history that it stands for.
    pub(crate) message: Seq,
    pub(crate) digest: Option<Vec<u8>>,
    pub(crate) until: Option<Millis>,
}

/// Where marks are that have no place yet, and what the next one is called.
#[derive(Debug)]
pub(crate) struct Marks {
    /// By hash and number, as their places will be.
    unplaced: BTreeSet<(i64, i64)>,
    /// The last that was given a place. Its number is not given again, even if it is forgotten: a place must never lead to
    /// another mark.
    placed: i64,
    next: i64,
}

impl Marks {
    /// What is to be remembered of the books as they are.
    pub(crate) fn read(books: &Connection) -> rusqlite::Result<Self> {
        let placed: i64 =
            one(books, "SELECT value FROM meta WHERE key = 'placed'", [], |row| row.get(0))?.unwrap_or(0);
        let mut found = Self { unplaced: BTreeSet::new(), placed, next: placed + 1 };
        let sql = "SELECT n, label FROM marks WHERE n > ?1 ORDER BY n";
        for (n, label) in all(books, sql, [placed], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))? {
            found.unplaced.insert((hash(&label), n));
            found.next = n + 1;
        }
        Ok(found)
    }

    /// Whether a label of one of these hashes may have come before; if not, none has.
    pub(crate) fn may_have(&self, books: &Connection, hashes: &[i64]) -> rusqlite::Result<bool> {
        let is_unplaced =
            |hash: &i64| self.unplaced.range((*hash, i64::MIN)..=(*hash, i64::MAX)).next().is_some();
        if hashes.iter().any(is_unplaced) {
            return Ok(true);
        }
        // Most come in pairs, and to ask once costs little more than half. (`IN` would make a table of the two.)
        for pair in hashes.chunks(2) {
            let sql = "SELECT 1 WHERE EXISTS(SELECT 1 FROM mark_places WHERE hash = ?1)
                OR EXISTS(SELECT 1 FROM mark_places WHERE hash = ?2)";
            if one(books, sql, (pair[0], pair[pair.len() - 1]), |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The marks with a label.
    pub(crate) fn with_label(&self, books: &Connection, label: &str) -> rusqlite::Result<Vec<KeptMark>> {
        let hash = hash(label);
        let mut numbers: Vec<i64> =
            self.unplaced.range((hash, i64::MIN)..=(hash, i64::MAX)).map(|(_, n)| *n).collect();
        let sql = "SELECT n FROM mark_places WHERE hash = ?1";
        numbers.extend(all(books, sql, [hash], |row| row.get::<_, i64>(0))?);
        let mut found = Vec::new();
        for n in numbers {
            // Another label may have the same hash.
            let sql = "SELECT sender, message, digest, until FROM marks WHERE n = ?1 AND label = ?2";
            found.extend(one(books, sql, (n, label), |row| {
                let (sender, message) = (row.get(0)?, row.get(1)?);
                Ok(KeptMark { sender, message, digest: row.get(2)?, until: row.get(3)? })
            })?);
        }
        Ok(found)
    }

    /// Writes a mark down, whose label has that hash.
    pub(crate) fn add(
        &mut self,
        books: &Connection,
        hash: i64,
        label: &str,
        mark: &KeptMark,
    ) -> rusqlite::Result<()> {
        let sql =
            "INSERT INTO marks(n, label, sender, message, digest, until) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
        exec(books, sql, (self.next, label, &mark.sender, mark.message, &mark.digest, mark.until))?;
        self.unplaced.insert((hash, self.next));
        self.next += 1;
        if self.unplaced.len() >= MOST {
            self.place(books)?;
        }
        Ok(())
    }

    /// Forgets marks whose time has passed, at most so many; says how many these were.
    pub(crate) fn forget_due(
        &mut self,
        books: &Connection,
        clock: Millis,
        limit: u32,
    ) -> rusqlite::Result<usize> {
        let sql =
            "SELECT n, label FROM marks WHERE until IS NOT NULL AND until <= ?1 ORDER BY until, n LIMIT ?2";
        let due: Vec<(i64, String)> = all(books, sql, (clock, limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (n, label) in &due {
            let place = (hash(label), *n);
            exec(books, "DELETE FROM marks WHERE n = ?1", [n])?;
            if !self.unplaced.remove(&place) {
                exec(books, "DELETE FROM mark_places WHERE hash = ?1 AND n = ?2", place)?;
            }
        }
        // As if the books had just been read: the numbers do not depend on what is remembered.
        self.next = self.unplaced.iter().map(|(_, n)| *n).max().unwrap_or(self.placed) + 1;
        Ok(due.len())
    }

    /// Gives all a place, in the order of the places, so that each page is gone to once.
    fn place(&mut self, books: &Connection) -> rusqlite::Result<()> {
        for place in std::mem::take(&mut self.unplaced) {
            exec(books, "INSERT INTO mark_places(hash, n) VALUES(?1, ?2)", place)?;
        }
        let sql = "INSERT INTO meta(key, value) VALUES('placed', ?1)
                   ON CONFLICT DO UPDATE SET value = excluded.value";
        self.placed = self.next - 1;
        exec(books, sql, [self.placed]).map(drop)
    }
}

/// Gives every mark a place, wherever they came from: for books of an earlier make and for rows that were read in.
pub(super) fn place_all(books: &Connection) -> rusqlite::Result<()> {
    exec(books, "DELETE FROM mark_places", [])?;
    exec(books, "DELETE FROM meta WHERE key = 'placed'", [])?;
    Marks::read(books)?.place(books)
}

/// What a label is found by. It is part of the books: another hash is another version of them.
pub(crate) fn hash(label: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(Sha256::digest(label));
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}
