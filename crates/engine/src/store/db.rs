//! Read access to a database, as a type: code with a [`Db`] can query and cannot change a row.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

/// A connection, for queries only.
#[derive(Clone, Copy, Debug)]
pub struct Db<'a>(pub(super) &'a Connection);

impl<'a> Db<'a> {
    /// Queries through a connection.
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self(connection)
    }

    /// A cached query.
    pub(crate) fn prepare(self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        let statement = self.0.prepare_cached(sql)?;
        debug_assert!(statement.readonly(), "a query that writes: {sql}");
        Ok(statement)
    }
}

/// The first row of a cached query, if there is one.
pub(crate) fn one<T>(
    db: Db<'_>,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    db.prepare(sql)?.query_row(params, read).optional()
}

/// All rows of a cached query.
pub(crate) fn all<T>(
    db: Db<'_>,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map(params, read)?.collect()
}
