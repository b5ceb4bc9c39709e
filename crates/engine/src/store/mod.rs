//! The database: one SQLite file per realm, which is its event log as well.

mod digest;
mod history;
mod index;
mod late;
mod many;
mod name_hash;
mod open;
mod portable;
mod position;
pub(crate) mod rows;
mod schema;
mod seen_keys;
mod wal;

pub use digest::digest;
pub(crate) use history::write_history;
pub(crate) use index::{Tail, lay_out};
pub(crate) use late::{LateCopy, LateRows, LateTurn};
pub use name_hash::short;
pub use open::{Inspection, check_integrity, open_reader, open_writer};
pub(crate) use open::{fold, inspect, open_checkpointer};
pub use portable::{PortableError, count_rows, read_rows, write_rows};
pub(crate) use position::Position;
pub use position::{accept_loss, check_position, forget_position};
pub use schema::VERSION;
pub(crate) use seen_keys::{
    SeenKeys, SeenLabel, count_message_keys_of, label_hash, message_key, seqs_with_label,
};

use rusqlite::{Connection, OptionalExtension, Params, Row};

/// Runs a kept statement that changes rows; says how many.
pub(crate) fn exec(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
    db.prepare_cached(sql)?.execute(params)
}

/// The first row of a kept query, if there is one.
pub(crate) fn one<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    db.prepare_cached(sql)?.query_row(params, read).optional()
}

/// All rows of a kept query.
pub(crate) fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(sql)?.query_map(params, read)?.collect()
}
