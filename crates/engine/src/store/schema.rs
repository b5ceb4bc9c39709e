//! The tables and their version. A change to them is a new version: a file `schema/v2.sql` (or code), a step in [`STEPS`],
//! and a golden file for the tests. A version that was released never changes.

use rusqlite::Connection;

use super::exec;
use crate::error::Fault;
use crate::limits::Rules;

/// The version that this program writes (`PRAGMA user_version`).
pub const VERSION: i64 = STEPS.len() as i64;

/// `PRAGMA application_id` of every database since version 1 ("phst"). Builds before the first release set none and had
/// versions of their own, so without it a version number says nothing.
const APPLICATION_ID: i64 = 0x7068_7374;

/// The step at index `n` takes a database from version `n` to version `n + 1`.
const STEPS: [fn(&Connection) -> rusqlite::Result<()>; 1] = [create];

/// The version of a database, 0 for an empty file.
pub(super) fn version_of(db: &Connection) -> Result<i64, Fault> {
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let found = pragma("user_version")?;
    if found > 0 && pragma("application_id")? != APPLICATION_ID {
        return Err(Fault::UnreleasedDatabase { found });
    }
    if found > VERSION {
        return Err(Fault::NewerDatabase { found, known: VERSION });
    }
    Ok(found)
}

/// Brings a database of version `found` to [`VERSION`], inside the caller's transaction.
pub(super) fn migrate(db: &Connection, found: i64) -> Result<(), Fault> {
    let done = usize::try_from(found).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        step(db)?;
    }
    db.pragma_update(None, "user_version", VERSION)?;
    Ok(())
}

/// Version 1. The rules are written in full, so that a program with other defaults does not change them.
fn create(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.execute_batch(include_str!("schema/v1.sql"))?;
    exec(db, "INSERT INTO meta(key, value) VALUES('rules', ?1)", [Rules::default().to_json()]).map(drop)
}
