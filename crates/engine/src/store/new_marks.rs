//! Marks that came lately. Names that come once are as random as names can be: each in its place would dirty a page of its
//! own. So they are written down in the order they come, remembered, and put in their places many at a time.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{all, exec, one};
use crate::nouns::{AgentId, Millis, Seq};

/// Marks that wait before they are put in their places. More would make them cheaper still, and longer to look through
/// for readers, who have no memory of them.
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

/// The marks that are not in their places yet, by label.
#[derive(Debug, Default)]
pub(crate) struct NewMarks {
    by_label: HashMap<String, Vec<KeptMark>>,
    count: usize,
}

impl NewMarks {
    /// The new marks as the books have them.
    pub(crate) fn read(books: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT label, sender, message, digest, until FROM new_marks ORDER BY n";
        let mut found = Self::default();
        for (label, mark) in all(books, sql, [], |row| {
            let (sender, message) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, KeptMark { sender, message, digest: row.get(3)?, until: row.get(4)? }))
        })? {
            found.remember(label, mark);
        }
        Ok(found)
    }

    /// The new marks with a label.
    pub(crate) fn with_label(&self, label: &str) -> &[KeptMark] {
        self.by_label.get(label).map_or(&[], Vec::as_slice)
    }

    /// Writes a mark down.
    pub(crate) fn add(&mut self, books: &Connection, label: &str, mark: KeptMark) -> rusqlite::Result<()> {
        let sql = "INSERT INTO new_marks(label, sender, message, digest, until) VALUES(?1, ?2, ?3, ?4, ?5)";
        exec(books, sql, (label, &mark.sender, mark.message, &mark.digest, mark.until))?;
        self.remember(label.to_owned(), mark);
        Ok(())
    }

    /// Whether there are so many that they should be put in their places.
    pub(crate) fn are_many(&self) -> bool {
        self.count >= MOST
    }

    /// Puts all in their places but those whose time has passed; says how many these were.
    pub(crate) fn settle(&mut self, books: &Connection, clock: Millis) -> rusqlite::Result<usize> {
        if self.count == 0 {
            return Ok(0);
        }
        let sql = "SELECT count(*) FROM new_marks WHERE until <= ?1";
        let passed: i64 = one(books, sql, [clock], |row| row.get(0))?.unwrap_or(0);
        // In their order, so that each page is gone to once.
        let sql = "INSERT INTO marks(label, sender, message, digest, until)
             SELECT label, sender, message, digest, until FROM new_marks WHERE until IS NULL OR until > ?1
             ORDER BY label, sender, message
             ON CONFLICT DO UPDATE SET digest = excluded.digest, until = excluded.until";
        exec(books, sql, [clock])?;
        exec(books, "DELETE FROM new_marks", [])?;
        *self = Self::default();
        Ok(usize::try_from(passed).unwrap_or(0))
    }

    fn remember(&mut self, label: String, mark: KeptMark) {
        self.by_label.entry(label).or_default().push(mark);
        self.count += 1;
    }
}
