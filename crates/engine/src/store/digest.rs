//! A fingerprint of everything in a database, to test that the same commands give the same database.

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};

use crate::error::Fault;

/// Hashes every row of every table, in order. The insides of the full-text index (`fulltext_…`) depend on how commands
/// were batched into transactions, so they can be left out.
///
/// # Errors
/// When the database cannot be read.
pub fn digest(db: &Connection, with_index: bool) -> Result<String, Fault> {
    let mut tables = db.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    )?;
    let mut names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    names.retain(|name| name != "fulltext" && (with_index || !name.starts_with("fulltext_")));
    let mut hash = Sha256::new();
    for name in names {
        // Table names come from our own schema, so they are safe to put into the statement.
        let mut rows = db.prepare(&format!("SELECT * FROM \"{name}\""))?;
        let columns = rows.column_count();
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut cursor = rows.query([])?;
        while let Some(row) = cursor.next()? {
            let mut line = Vec::new();
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Null => line.push(0),
                    ValueRef::Integer(i) => tagged(&mut line, 1, &i.to_le_bytes()),
                    ValueRef::Real(r) => tagged(&mut line, 2, &r.to_le_bytes()),
                    ValueRef::Text(t) => tagged(&mut line, 3, t),
                    ValueRef::Blob(b) => tagged(&mut line, 4, b),
                }
            }
            lines.push(line);
        }
        lines.sort_unstable();
        hash.update(name.as_bytes());
        hash.update((lines.len() as u64).to_le_bytes());
        for line in lines {
            hash.update((line.len() as u64).to_le_bytes());
            hash.update(line);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn tagged(line: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    line.push(tag);
    line.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    line.extend_from_slice(bytes);
}
