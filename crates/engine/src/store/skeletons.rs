//! Gives names their skeletons, and entries the token under which they were made, where they were stored before these were.

use rusqlite::Connection;

use super::{all, exec};
use crate::confusables::skeleton;

/// Names that get their skeletons at a time.
const AT_ONCE: i64 = 1_000;

/// Computes the skeleton of every agent's and every token's name that has none. Which token made an entry is said by the
/// door's own mark or by its owner, if that is a token; else the entry counts as the agent's own.
pub(super) fn fill(db: &Connection) -> rusqlite::Result<()> {
    let agents = ("SELECT id, id FROM agents", "UPDATE agents SET skeleton = ?2 WHERE id = ?1");
    let tokens = ("SELECT id, name FROM tokens", "UPDATE tokens SET skeleton = ?2 WHERE id = ?1");
    for (select, update) in [agents, tokens] {
        let sql = format!("{select} WHERE skeleton IS NULL LIMIT ?1");
        loop {
            let found: Vec<(String, String)> =
                all(super::Db::new(db), &sql, [AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if found.is_empty() {
                break;
            }
            for (id, name) in found {
                exec(db, update, (id, skeleton(&name)))?;
            }
        }
    }
    let sql = "UPDATE agents SET bearer = coalesce(
                   CASE WHEN json_valid(meta) THEN
                       (SELECT value FROM json_each(agents.meta) WHERE key LIKE '%:principal') END,
                   (SELECT name FROM tokens WHERE name = owner LIMIT 1), id) WHERE bearer IS NULL";
    exec(db, sql, [])?;
    Ok(())
}
