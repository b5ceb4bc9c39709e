//! Multi-row inserts: a statement with sixteen rows costs about half of sixteen statements, because each B-tree is
//! searched once.

use rusqlite::{CachedStatement, Connection, ToSql};

/// Rows per statement. Rows that do not fill a larger group are written in smaller ones.
const GROUP_SIZES: [usize; 3] = [16, 4, 1];

/// The statements that insert rows into one table.
#[derive(Debug)]
pub(crate) struct MultiInsert {
    /// One statement for each group size.
    sql: [String; GROUP_SIZES.len()],
    columns: usize,
}

impl MultiInsert {
    /// For a table, with columns as in SQL.
    pub(crate) fn new(table: &str, columns: &str) -> Self {
        let count = columns.split(',').count();
        let row = format!("({})", vec!["?"; count].join(","));
        let sql = GROUP_SIZES.map(|rows| {
            // A failure rolls back the whole batch, so SQLite need not be able to undo the statement alone.
            format!("INSERT OR FAIL INTO {table}({columns}) VALUES{}", vec![row.as_str(); rows].join(","))
        });
        Self { sql, columns: count }
    }

    /// Inserts rows, each bound by `bind`.
    pub(crate) fn write<T>(
        &self,
        db: &Connection,
        mut rows: &[T],
        bind: impl Fn(&mut Columns<'_, '_>, &T) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        for (size, sql) in GROUP_SIZES.into_iter().zip(&self.sql) {
            if rows.len() < size {
                continue;
            }
            let mut statement = db.prepare_cached(sql)?;
            let groups = rows.chunks_exact(size);
            rows = groups.remainder();
            for group in groups {
                let mut columns = Columns { statement: &mut statement, bound: 0 };
                for row in group {
                    bind(&mut columns, row)?;
                }
                debug_assert_eq!(columns.bound, size * self.columns);
                statement.raw_execute()?;
            }
        }
        Ok(())
    }
}

/// The parameters of a group's rows, in order.
pub(crate) struct Columns<'s, 'b> {
    statement: &'s mut CachedStatement<'b>,
    bound: usize,
}

impl Columns<'_, '_> {
    /// The next column.
    pub(crate) fn put(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.bound += 1;
        self.statement.raw_bind_parameter(self.bound, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_inserted_once_for_any_count() {
        let insert = MultiInsert::new("numbers", "n, twice");
        for count in [0, 1, 3, 4, 5, 15, 16, 17, 39, 64] {
            let db = Connection::open_in_memory().unwrap();
            db.execute_batch("CREATE TABLE numbers(n INTEGER PRIMARY KEY, twice INTEGER)").unwrap();
            let rows: Vec<i64> = (1..=count).collect();
            insert
                .write(&db, &rows, |columns, n| {
                    columns.put(n)?;
                    columns.put(n * 2)
                })
                .unwrap();
            let sql = "SELECT count(*), coalesce(sum(n), 0), coalesce(sum(twice), 0) FROM numbers";
            let found: (i64, i64, i64) =
                db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
            let sum = count * (count + 1) / 2;
            assert_eq!(found, (count, sum, sum * 2));
        }
    }
}
