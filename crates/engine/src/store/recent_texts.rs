//! Texts that the full-text index does not have yet, in a small temporary index of a reader's connection, so that a search finds
//! them too.

use super::{Db, exec, one};
use crate::nouns::Seq;

/// The texts after a seq: messages, and turns that are not messages.
pub(crate) const TEXTS_AFTER: &str = "SELECT seq, subject, body FROM messages WHERE seq > ?1
     UNION ALL SELECT seq, NULL, content FROM turns WHERE seq > ?1 AND message IS NULL";

/// The seq up to which the full-text index has every text.
pub(crate) fn indexed_up_to(db: Db<'_>) -> rusqlite::Result<Seq> {
    Ok(one(db, "SELECT value FROM meta WHERE key = 'indexed'", [], |row| row.get(0))?.unwrap_or(0))
}

/// Indexes the recent texts on a reader's connection; returns whether there are any. What an earlier search on the same
/// connection indexed is kept while it is still recent, so that each text is indexed once.
pub(crate) fn index_recent_texts(db: Db<'_>) -> rusqlite::Result<bool> {
    let after = indexed_up_to(db)?;
    let sql =
        "SELECT max(coalesce((SELECT max(seq) FROM messages), 0), coalesce((SELECT max(seq) FROM turns), 0))";
    let end: Seq = one(db, sql, [], |row| row.get(0))?.unwrap_or(0);
    if end <= after {
        return Ok(false);
    }
    let sql = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'recent'";
    if one(db, sql, [], |_| Ok(()))?.is_none() {
        db.0.execute_batch(
            "CREATE TEMP VIEW recent_texts(seq, subject, body) AS
                 SELECT seq, subject, body FROM main.messages
                 UNION ALL SELECT seq, NULL, content FROM main.turns WHERE message IS NULL;
             CREATE VIRTUAL TABLE temp.recent USING fts5(
                 subject, body, content='recent_texts', content_rowid='seq', tokenize='unicode61');
             CREATE TABLE temp.recent_range(after INTEGER NOT NULL, up_to INTEGER NOT NULL);
             INSERT INTO temp.recent_range VALUES(0, 0);",
        )?;
    }
    let recent_range: Option<(Seq, Seq)> =
        one(db, "SELECT after, up_to FROM temp.recent_range", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let from = match recent_range {
        Some((begun, up_to)) if begun == after => up_to,
        _ => {
            exec(db.0, "INSERT INTO temp.recent(recent) VALUES('delete-all')", [])?;
            after
        }
    };
    if end > from {
        exec(
            db.0,
            &format!("INSERT INTO temp.recent(rowid, subject, body) {TEXTS_AFTER} ORDER BY 1"),
            [from],
        )?;
        exec(db.0, "UPDATE temp.recent_range SET after = ?1, up_to = ?2", (after, end))?;
    }
    Ok(true)
}
