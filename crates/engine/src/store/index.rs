//! The full-text index follows the letters in large pieces: one pass over many costs a fraction of one for each. Which
//! letters are not in it yet depends on the commands alone, and a search lays those few out in a small index of its own,
//! so that nobody can tell the difference.

use rusqlite::Connection;

use super::{exec, one};
use crate::nouns::Seq;

/// Letters that wait for the index before a pass is made; bounds what a search has to lay out.
const MOST_LETTERS: u32 = 256;
/// The same in bytes, for letters that are large.
const MOST_BYTES: u32 = 256 << 10;

/// The letters and turns that are not in the index yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The place up to which everything is in the index.
    after: Seq,
    letters: u32,
    bytes: u32,
}

/// What both parts of the tail have in common; the text of letters and of turns that are not letters.
const TAIL: &str = "SELECT seq, subject, body FROM messages WHERE seq > ?1
     UNION ALL SELECT seq, NULL, content FROM turns WHERE seq > ?1 AND message IS NULL";

impl Tail {
    /// The tail as the books have it.
    pub(crate) fn of(db: &Connection) -> rusqlite::Result<Self> {
        let after = indexed_up_to(db)?;
        let sql = format!(
            "SELECT count(*), coalesce(sum(length(CAST(subject AS BLOB))), 0)
                 + coalesce(sum(length(CAST(body AS BLOB))), 0) FROM ({TAIL})"
        );
        let (letters, bytes) = db.query_row(&sql, [after], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { after, letters, bytes })
    }

    /// One more letter that waits for the index.
    pub(crate) fn note(&mut self, subject: Option<&str>, body: &str) {
        self.letters += 1;
        let bytes = u32::try_from(subject.map_or(0, str::len) + body.len()).unwrap_or(u32::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether it is time for a pass.
    pub(crate) fn is_long(&self) -> bool {
        self.letters >= MOST_LETTERS || self.bytes >= MOST_BYTES
    }

    /// Puts everything up to a place, the last that is taken, into the index.
    pub(crate) fn index(&mut self, db: &Connection, last: Seq) -> rusqlite::Result<()> {
        if self.letters == 0 {
            return Ok(());
        }
        // In the order of their places: the index would begin a new piece for each step back.
        let sql = "INSERT INTO fulltext(rowid, subject, body)
             SELECT seq, subject, body FROM messages WHERE seq > ?1
             UNION ALL SELECT seq, NULL, content FROM turns WHERE seq > ?1 AND message IS NULL ORDER BY 1";
        exec(db, sql, [self.after])?;
        exec(db, "UPDATE meta SET value = ?1 WHERE key = 'indexed'", [last])?;
        *self = Self { after: last, ..Self::default() };
        Ok(())
    }
}

/// The place up to which everything is in the index.
fn indexed_up_to(db: &Connection) -> rusqlite::Result<Seq> {
    Ok(one(db, "SELECT value FROM meta WHERE key = 'indexed'", [], |row| row.get(0))?.unwrap_or(0))
}

/// Lays the tail out in an index of its own on a reader's connection; says whether there is one. What an earlier search
/// on the same connection laid out is kept for as long as it is still the tail, so that each letter is taken in once.
pub(crate) fn lay_out(db: &Connection) -> rusqlite::Result<bool> {
    let after = indexed_up_to(db)?;
    let sql =
        "SELECT max(coalesce((SELECT max(seq) FROM messages), 0), coalesce((SELECT max(seq) FROM turns), 0))";
    let end: Seq = one(db, sql, [], |row| row.get(0))?.unwrap_or(0);
    if end <= after {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'fresh'";
    if one(db, sql, [], |_| Ok(()))?.is_none() {
        db.execute_batch(
            "CREATE TEMP VIEW fresh_letters(seq, subject, body) AS
                 SELECT seq, subject, body FROM main.messages
                 UNION ALL SELECT seq, NULL, content FROM main.turns WHERE message IS NULL;
             CREATE VIRTUAL TABLE temp.fresh USING fts5(
                 subject, body, content='fresh_letters', content_rowid='seq', tokenize='unicode61');
             CREATE TABLE temp.laid_out(after INTEGER NOT NULL, up_to INTEGER NOT NULL);
             INSERT INTO temp.laid_out VALUES(0, 0);",
        )?;
    }
    let laid_out: Option<(Seq, Seq)> =
        one(db, "SELECT after, up_to FROM temp.laid_out", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let from = match laid_out {
        Some((begun, up_to)) if begun == after => up_to,
        _ => {
            exec(db, "INSERT INTO temp.fresh(fresh) VALUES('delete-all')", [])?;
            after
        }
    };
    if end > from {
        exec(db, &format!("INSERT INTO temp.fresh(rowid, subject, body) {TAIL} ORDER BY 1"), [from])?;
        exec(db, "UPDATE temp.laid_out SET after = ?1, up_to = ?2", (after, end))?;
    }
    Ok(true)
}
