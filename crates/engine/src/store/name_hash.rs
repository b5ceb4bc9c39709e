//! The hash by which turns are indexed under their author and content type. Names are long, and four indices of them were
//! larger than the content of the turns. Two names may share a hash, so queries compare the names as well.

use rusqlite::Connection;

use super::{all, exec};
use crate::nouns::Seq;

/// Turns that are updated per query.
const AT_ONCE: i64 = 1_000;

/// The hash of a name (FNV-1a). Part of the database format.
#[must_use]
pub fn short(name: &str) -> i32 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.cast_signed()
}

/// Fills in the hashes of turns that were written before there were any.
pub(super) fn number_turns(db: &Connection) -> rusqlite::Result<()> {
    let mut last: Seq = 0;
    loop {
        let sql = "SELECT seq, author, content_type FROM turns WHERE seq > ?1 AND talk IS NULL ORDER BY seq LIMIT ?2";
        let found = all(super::Db::new(db), sql, (last, AT_ONCE), |row| {
            Ok((row.get::<_, Seq>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })?;
        let Some((end, ..)) = found.last() else { return Ok(()) };
        last = *end;
        for (seq, author, content_type) in &found {
            let sql = "UPDATE turns SET author_hash = ?2, type_hash = ?3,
                           talk = coalesce((SELECT seq FROM conversations WHERE id = conversation), 0) WHERE seq = ?1";
            exec(db, sql, (seq, short(author), short(content_type)))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_in_existing_databases() {
        assert_eq!(short(""), 0x811c_9dc5_u32.cast_signed());
        assert_eq!(short("a"), 0xe40c_292c_u32.cast_signed());
        assert_eq!(short("foobar"), 0xbf9c_f968_u32.cast_signed());
    }
}
