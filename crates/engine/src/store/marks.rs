//! Marks in the books. Names that come once are as random as names can be: each in its place would dirty a page of its own.
//! So they are written down in the order they come. Where to find one is another table, of nothing but short hashes, that
//! follows some thousands of marks behind; what it does not have yet is remembered. For each that comes one is given its
//! place, always the next in the order of the places: the round goes over each page once and begins anew, so that many
//! share a page and nobody waits for thousands.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{Db, all, exec, one};
use crate::nouns::{AgentId, Millis, Seq};

/// Marks that wait for a place. More would share pages even better, and be longer to look through for readers, who have
/// no memory of them: twice as many came since the oldest of these.
const MOST: usize = 8_192;

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
    /// Their numbers.
    numbers: BTreeSet<i64>,
    /// The last hash that the round came to.
    round: i64,
    /// All up to this number have a place. It is not given again, even if that mark is forgotten, nor is any before it.
    placed: i64,
    next: i64,
    /// Whether the books know of the two above.
    is_written: bool,
}

impl Marks {
    /// What is to be remembered of the books as they are.
    pub(crate) fn read(db: Db<'_>) -> rusqlite::Result<Self> {
        let known = |key: &str| one(db, "SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0));
        let (placed, round) = (known("placed")?.unwrap_or(0), known("round")?.unwrap_or(i64::MIN));
        let mut found = Self {
            unplaced: BTreeSet::new(),
            numbers: BTreeSet::new(),
            round,
            placed,
            next: placed + 1,
            is_written: true,
        };
        let sql = "SELECT n, label FROM marks WHERE n > ?1 ORDER BY n";
        for (n, label) in all(db, sql, [placed], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))? {
            let place = (hash(&label), n);
            let sql = "SELECT 1 FROM mark_places WHERE hash = ?1 AND n = ?2";
            if one(db, sql, place, |_| Ok(()))?.is_none() {
                found.unplaced.insert(place);
                found.numbers.insert(n);
            }
            found.next = n + 1;
        }
        Ok(found)
    }

    /// Whether a label of one of these hashes may have come before; if not, none has.
    pub(crate) fn may_have(&self, db: Db<'_>, hashes: &[i64]) -> rusqlite::Result<bool> {
        let is_unplaced =
            |hash: &i64| self.unplaced.range((*hash, i64::MIN)..=(*hash, i64::MAX)).next().is_some();
        if hashes.iter().any(is_unplaced) {
            return Ok(true);
        }
        // Most come in pairs, and to ask once costs little more than half. (`IN` would make a table of the two.)
        for pair in hashes.chunks(2) {
            let sql = "SELECT 1 WHERE EXISTS(SELECT 1 FROM mark_places WHERE hash = ?1)
                OR EXISTS(SELECT 1 FROM mark_places WHERE hash = ?2)";
            if one(db, sql, (pair[0], pair[pair.len() - 1]), |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The marks with a label.
    pub(crate) fn with_label(&self, db: Db<'_>, label: &str) -> rusqlite::Result<Vec<KeptMark>> {
        let hash = hash(label);
        let mut numbers: Vec<i64> =
            self.unplaced.range((hash, i64::MIN)..=(hash, i64::MAX)).map(|(_, n)| *n).collect();
        let sql = "SELECT n FROM mark_places WHERE hash = ?1";
        numbers.extend(all(db, sql, [hash], |row| row.get::<_, i64>(0))?);
        let mut found = Vec::new();
        for n in numbers {
            // Another label may have the same hash.
            let sql = "SELECT sender, message, digest, until FROM marks WHERE n = ?1 AND label = ?2";
            found.extend(one(db, sql, (n, label), |row| {
                let (sender, message) = (row.get(0)?, row.get(1)?);
                Ok(KeptMark { sender, message, digest: row.get(2)?, until: row.get(3)? })
            })?);
        }
        Ok(found)
    }

    /// Writes a mark down, whose label has that hash.
    pub(crate) fn add(
        &mut self,
        db: &Connection,
        hash: i64,
        label: &str,
        mark: &KeptMark,
    ) -> rusqlite::Result<()> {
        let sql =
            "INSERT INTO marks(n, label, sender, message, digest, until) VALUES(?1, ?2, ?3, ?4, ?5, ?6)";
        exec(db, sql, (self.next, label, &mark.sender, mark.message, &mark.digest, mark.until))?;
        self.unplaced.insert((hash, self.next));
        self.numbers.insert(self.next);
        self.next += 1;
        if self.unplaced.len() > MOST {
            self.place_one(db)?;
        }
        Ok(())
    }

    /// Forgets marks whose time has passed, at most so many; says how many these were.
    pub(crate) fn forget_due(
        &mut self,
        db: &Connection,
        clock: Millis,
        limit: u32,
    ) -> rusqlite::Result<usize> {
        let sql =
            "SELECT n, label FROM marks WHERE until IS NOT NULL AND until <= ?1 ORDER BY until, n LIMIT ?2";
        let due: Vec<(i64, String)> =
            all(Db::new(db), sql, (clock, limit), |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (n, label) in &due {
            let place = (hash(label), *n);
            exec(db, "DELETE FROM marks WHERE n = ?1", [n])?;
            if self.unplaced.remove(&place) {
                self.numbers.remove(n);
            } else {
                exec(db, "DELETE FROM mark_places WHERE hash = ?1 AND n = ?2", place)?;
            }
        }
        if !due.is_empty() {
            self.settle();
            // As if the books had just been read: the numbers do not depend on what is remembered.
            let last: Option<i64> =
                one(Db::new(db), "SELECT max(n) FROM marks", [], |row| row.get(0))?.flatten();
            self.next = last.unwrap_or(0).max(self.placed) + 1;
        }
        Ok(due.len())
    }

    /// Gives the next of the round its place.
    fn place_one(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let ahead = self.unplaced.range((Excluded((self.round, i64::MAX)), Unbounded)).next();
        let Some(place) = ahead.or(self.unplaced.first()).copied() else { return Ok(()) };
        exec(db, "INSERT INTO mark_places(hash, n) VALUES(?1, ?2)", place)?;
        self.unplaced.remove(&place);
        self.numbers.remove(&place.1);
        self.round = place.0;
        self.settle();
        Ok(())
    }

    /// Finds out anew up to where all have a place.
    fn settle(&mut self) {
        self.placed = self.numbers.first().map_or(self.next, |oldest| *oldest) - 1;
        self.is_written = false;
    }

    /// Brings the books up to what is remembered. Comes before each commit.
    pub(crate) fn flush(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if self.is_written {
            return Ok(());
        }
        let sql = "INSERT INTO meta(key, value) VALUES('placed', ?1), ('round', ?2)
                   ON CONFLICT DO UPDATE SET value = excluded.value";
        exec(db, sql, (self.placed, self.round))?;
        self.is_written = true;
        Ok(())
    }
}

/// Gives every mark a place, wherever they came from: for books of an earlier make and for rows that were read in.
pub(super) fn place_all(db: &Connection) -> rusqlite::Result<()> {
    exec(db, "DELETE FROM mark_places", [])?;
    exec(db, "DELETE FROM meta WHERE key IN ('placed', 'round')", [])?;
    let mut marks = Marks::read(Db::new(db))?;
    while !marks.unplaced.is_empty() {
        marks.place_one(db)?;
    }
    marks.flush(db)
}

/// What a label is found by. It is part of the books: another hash is another version of them.
pub(crate) fn hash(label: &str) -> i64 {
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

    fn add(marks: &mut Marks, db: &Connection, n: usize) {
        let label = format!("id:{n}");
        let until = n.is_multiple_of(3).then_some(n as i64);
        let kept = KeptMark { sender: AgentId::new("ann").unwrap(), message: n as i64, digest: None, until };
        marks.add(db, hash(&label), &label, &kept).unwrap();
    }

    /// Writes marks down and forgets some, and reads the books again after every so many.
    fn keep(marks: usize, forgotten_at: &[usize], read_every: usize) -> Connection {
        let db = db();
        let mut known = Marks::read(Db::new(&db)).unwrap();
        for n in 1..=marks {
            add(&mut known, &db, n);
            if forgotten_at.contains(&n) {
                known.forget_due(&db, n as i64, 1_000).unwrap();
            }
            if n.is_multiple_of(read_every) {
                known.flush(&db).unwrap();
                known = Marks::read(Db::new(&db)).unwrap();
            }
        }
        known.flush(&db).unwrap();
        db
    }

    fn rows(db: &Connection, sql: &str) -> Vec<(i64, i64)> {
        all(Db::new(db), sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }

    #[test]
    fn each_is_found_with_and_without_a_place() {
        let db = keep(3 * MOST, &[], usize::MAX);
        let marks = Marks::read(Db::new(&db)).unwrap();
        assert_eq!(marks.unplaced.len(), MOST);
        assert_eq!(rows(&db, "SELECT hash, n FROM mark_places").len(), 2 * MOST);
        for n in (1..=3 * MOST).step_by(7) {
            let label = format!("id:{n}");
            assert!(marks.may_have(Db::new(&db), &[1, hash(&label)]).unwrap(), "{n}");
            let found = marks.with_label(Db::new(&db), &label).unwrap();
            assert_eq!(found.iter().map(|mark| mark.message).collect::<Vec<_>>(), [n as i64]);
        }
        assert!(!marks.may_have(Db::new(&db), &[hash("id:0"), hash("nonce:1")]).unwrap());
        // Readers look through what has come since the oldest without a place.
        assert!(marks.next - marks.placed < 3 * MOST as i64, "{} to {}", marks.placed, marks.next);
    }

    #[test]
    fn the_books_do_not_depend_on_what_was_remembered() {
        let forgotten_at = [100, MOST + 50, 2 * MOST, 2 * MOST + 400];
        let all_of = |db: &Connection| {
            let marks = rows(db, "SELECT n, message FROM marks ORDER BY n");
            let places = rows(db, "SELECT hash, n FROM mark_places");
            let meta = "SELECT key = 'placed', value FROM meta WHERE key IN ('placed', 'round') ORDER BY 1";
            (marks, places, rows(db, meta))
        };
        let count = 2 * MOST + 500;
        let once = all_of(&keep(count, &forgotten_at, usize::MAX));
        assert!(!once.1.is_empty() && once.0.len() < count);
        for read_every in [1_000, 3_333] {
            assert_eq!(all_of(&keep(count, &forgotten_at, read_every)), once, "{read_every}");
        }
    }

    #[test]
    fn those_read_in_all_get_a_place() {
        let db = keep(50, &[], usize::MAX);
        place_all(&db).unwrap();
        let marks = Marks::read(Db::new(&db)).unwrap();
        assert!(marks.unplaced.is_empty());
        assert_eq!((marks.placed, marks.next), (50, 51));
        assert_eq!(marks.with_label(Db::new(&db), "id:9").unwrap().len(), 1);
    }
}
