//! The deferred full-text index: texts are indexed many at a time, because one pass for each costs the server 1.3 times the CPU
//! for a send and 1.7 times for a turn. Which texts are not indexed yet depends on the commands alone; searches add those from `store::recent_texts`.

use rusqlite::Connection;

use crate::nouns::Seq;
use crate::store::{Db, TEXTS_AFTER, exec, indexed_up_to};

/// Texts that wait for the index before a pass is made; bounds what a search has to index for itself.
const PASS_AFTER_TEXTS: u32 = 256;
/// The same in bytes, for large texts.
const PASS_AFTER_BYTES: u32 = 256 << 10;

/// The messages and turns that are not in the full-text index yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnindexedTexts {
    /// The seq up to which everything is in the index.
    after: Seq,
    texts: u32,
    bytes: u32,
}

impl UnindexedTexts {
    /// As the database has them.
    pub(crate) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let after = indexed_up_to(Db::new(db))?;
        let sql = format!(
            "SELECT count(*), coalesce(sum(length(CAST(subject AS BLOB))), 0)
                 + coalesce(sum(length(CAST(body AS BLOB))), 0) FROM ({TEXTS_AFTER})"
        );
        let (texts, bytes) = db.query_row(&sql, [after], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { after, texts, bytes })
    }

    /// Counts one more text.
    pub(crate) fn note(&mut self, subject: Option<&str>, body: &str) {
        self.texts += 1;
        let bytes = u32::try_from(subject.map_or(0, str::len) + body.len()).unwrap_or(u32::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether enough is missing for a pass.
    pub(crate) fn is_due(&self) -> bool {
        self.texts >= PASS_AFTER_TEXTS || self.bytes >= PASS_AFTER_BYTES
    }

    /// Indexes everything up to the event `last`.
    pub(crate) fn index(&mut self, db: &Connection, last: Seq) -> rusqlite::Result<()> {
        if self.texts == 0 {
            return Ok(());
        }
        // In the order of their seq: FTS5 would begin a new segment for each step back.
        exec(
            db,
            &format!("INSERT INTO fulltext(rowid, subject, body) {TEXTS_AFTER} ORDER BY 1"),
            [self.after],
        )?;
        exec(db, "UPDATE meta SET value = ?1 WHERE key = 'indexed'", [last])?;
        *self = Self { after: last, ..Self::default() };
        Ok(())
    }
}
