//! The database: one SQLite file per realm, which is its event log as well.

mod db;
mod digest;
pub(crate) mod multi_insert;
mod name_hash;
mod open;
mod portable;
mod position;
mod recent_texts;
pub(crate) mod rows;
mod schema;
mod seen_keys;
mod wal;

pub use db::Db;
pub(crate) use db::{all, one};
pub use digest::digest;
pub use name_hash::short;
pub use open::{Inspection, check_integrity, open_reader, open_writer};
pub(crate) use open::{inspect, open_checkpointer, passive_checkpoint};
pub use portable::{PortableError, count_rows, read_rows, write_rows};
pub(crate) use position::Position;
pub use position::{accept_loss, check_position, forget_position};
pub(crate) use recent_texts::{TEXTS_AFTER, index_recent_texts, indexed_up_to};
pub use schema::VERSION;
pub(crate) use seen_keys::{
    SeenKeys, SeenLabel, count_message_keys_of, label_hash, message_key, seqs_with_label,
};

use rusqlite::{Connection, Params};

/// Runs a cached statement that changes rows; returns how many.
pub(crate) fn exec(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
    db.prepare_cached(sql)?.execute(params)
}
