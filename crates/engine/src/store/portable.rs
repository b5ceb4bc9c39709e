//! The database as lines of JSON and back: every row of every table. The full-text index is not written, but rebuilt.

use std::io::{self, BufRead, Read, Write};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::schema::VERSION;
use super::{marks, name_hash, skeletons};
use crate::error::Fault;
use crate::stamp::Stamp;

/// The format version of the lines.
const FORMAT: i64 = 1;
/// The longest line that is read, in bytes: the largest message with the largest envelope, with everything escaped.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Why a database could not be exported or imported.
#[derive(Debug, Error)]
pub enum PortableError {
    /// The stream.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// The database.
    #[error(transparent)]
    Database(#[from] Fault),
    /// Not a valid export.
    #[error("line {line}: {why}")]
    Damaged {
        /// Which line.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Interrupted by the caller.
    #[error("interrupted; nothing was changed")]
    Stopped,
}

impl From<rusqlite::Error> for PortableError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Number of rows in the database.
///
/// # Errors
/// When they cannot be read.
pub fn count_rows(db: &Connection) -> Result<u64, Fault> {
    let mut count = 0;
    for table in tables(db)? {
        let rows: i64 = db.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| row.get(0))?;
        count += u64::try_from(rows).unwrap_or(0);
    }
    Ok(count)
}

/// Writes one snapshot of the database, between a header line and a line with a checksum. `each` is called with every
/// row's number and returns whether to continue.
///
/// # Errors
/// When the database cannot be read or the stream cannot be written.
pub fn write_rows(
    db: &Connection,
    realm: &str,
    out: &mut dyn Write,
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, PortableError> {
    let snapshot = db.unchecked_transaction()?;
    let version: i64 = snapshot.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut out = Sealed { out, hash: Sha256::new() };
    out.line(&json!({ "posthaste": "realm", "form": FORMAT, "db": version, "realm": realm }))?;
    let mut count = 0;
    for table in tables(&snapshot)? {
        let mut statement = snapshot.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut cursor = statement.query([])?;
        while let Some(row) = cursor.next()? {
            let mut fields = Map::new();
            for (index, column) in columns.iter().enumerate() {
                let value = to_json(row.get_ref(index)?);
                if !value.is_null() {
                    fields.insert(column.clone(), value);
                }
            }
            out.line(&json!({ "table": table, "row": fields }))?;
            count += 1;
            if !each(count) {
                return Err(PortableError::Stopped);
            }
        }
    }
    let seal = out.seal();
    out.line(&json!({ "end": { "rows": count, "sha256": seal } }))?;
    out.out.flush()?;
    snapshot.finish()?;
    Ok(count)
}

/// Reads lines into a new database, which must have been created by [`super::open_writer`]; its rows are replaced. All
/// or nothing. The event log gets a new id, because from here on it is another one.
///
/// # Errors
/// When the lines are damaged, truncated or of a newer version, or the database fails; then it is unchanged.
pub fn read_rows(
    db: &mut Connection,
    input: &mut dyn BufRead,
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, PortableError> {
    let change = db.transaction()?;
    let known = tables(&change)?;
    for table in &known {
        change.execute(&format!("DELETE FROM \"{table}\""), [])?;
    }
    let (mut number, mut count, mut sealed) = (0_u64, 0_u64, false);
    let mut hash = Sha256::new();
    loop {
        let mut line = Vec::new();
        input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        number += 1;
        let damaged = |why: String| PortableError::Damaged { line: number, why };
        if sealed {
            return Err(damaged("something follows the last line".to_owned()));
        }
        if line.len() as u64 == MAX_LINE_BYTES || line.last() != Some(&b'\n') {
            return Err(damaged("cut off".to_owned()));
        }
        let value: Json = serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
        if number == 1 {
            check_head(&value).map_err(damaged)?;
        } else if let Some(end) = value.get("end") {
            let seal = hex(&hash.clone().finalize());
            if end["rows"].as_u64() != Some(count) || end["sha256"].as_str() != Some(&seal) {
                return Err(damaged("the seal is broken: lines are missing or were changed".to_owned()));
            }
            sealed = true;
        } else {
            insert(&change, &known, &value).map_err(damaged)?;
            count += 1;
            if !each(count) {
                return Err(PortableError::Stopped);
            }
        }
        hash.update(&line);
    }
    if !sealed {
        return Err(PortableError::Damaged { line: number, why: "the last line is missing".to_owned() });
    }
    // Exports of databases in which the index was never behind do not contain it.
    let sql = "INSERT INTO meta(key, value) SELECT 'indexed', coalesce(max(seq), 0) FROM events WHERE true
               ON CONFLICT DO NOTHING";
    change.execute(sql, [])?;
    change.execute("INSERT INTO found(found) VALUES('rebuild')", [])?;
    marks::place_all(&change)?;
    // Nor do exports of databases in which turns had no numbers contain these.
    name_hash::number_turns(&change)?;
    // Nor do exports of version 10 contain skeletons.
    skeletons::fill(&change)?;
    let name = Stamp::new().id.to_string();
    change.execute("UPDATE meta SET value = ?1 WHERE key = 'history'", [name])?;
    change.commit()?;
    Ok(count)
}

fn check_head(head: &Json) -> Result<(), String> {
    if head["posthaste"] != "realm" {
        return Err("this is not what `posthaste export` writes".to_owned());
    }
    match (head["form"].as_i64(), head["db"].as_i64()) {
        (Some(form), Some(db)) if form <= FORMAT && db <= VERSION => Ok(()),
        _ => Err("it was written by a newer program".to_owned()),
    }
}

fn insert(db: &Connection, known: &[String], line: &Json) -> Result<(), String> {
    // Databases of version 4 had the latest marks in another table.
    let table = match line["table"].as_str().unwrap_or_default() {
        "new_marks" => "marks",
        table => table,
    };
    // Only our own tables; a name from outside never gets into a statement.
    if !known.iter().any(|name| name == table) {
        return Err(format!("there is no table {table:?}"));
    }
    let Some(fields) = line["row"].as_object() else { return Err("a row is missing".to_owned()) };
    // Marks are numbered again, in the order of the lines.
    let is_given = |field: &String| table != "marks" || field != "n";
    let (fields, given): (Vec<&String>, Vec<&Json>) =
        fields.iter().filter(|(field, _)| is_given(field)).unzip();
    let columns: Vec<String> = {
        let statement = db.prepare_cached(&format!("SELECT * FROM \"{table}\" LIMIT 0"));
        let statement = statement.map_err(|error| error.to_string())?;
        statement.column_names().map(str::to_owned).collect()
    };
    if let Some(unknown) = fields.iter().find(|field| !columns.contains(field)) {
        return Err(format!("the table {table} has no column {unknown:?}"));
    }
    let names: Vec<String> = fields.iter().map(|field| format!("\"{field}\"")).collect();
    let parameters = vec!["?"; names.len()].join(",");
    let values = given.into_iter().map(from_json).collect::<Result<Vec<Value>, String>>()?;
    let sql = format!("INSERT INTO \"{table}\"({}) VALUES({parameters})", names.join(","));
    let mut statement = db.prepare_cached(&sql).map_err(|error| error.to_string())?;
    statement.execute(params_from_iter(values)).map(drop).map_err(|error| error.to_string())
}

/// The tables that hold rows of their own; the full-text index and the places of marks are rebuilt.
fn tables(db: &Connection) -> Result<Vec<String>, Fault> {
    let sql =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = db.prepare(sql)?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names
        .into_iter()
        .filter(|name| name != "found" && !name.starts_with("found_") && name != "mark_places")
        .collect())
}

fn to_json(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => json!(number),
        // A float is written so that it cannot be taken for an integer.
        ValueRef::Real(number) => json!({ "real": number.to_bits().to_string() }),
        ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => json!({ "hex": hex(bytes) }),
    }
}

fn from_json(value: &Json) -> Result<Value, String> {
    let bad = || format!("{value} is no value of a row");
    match value {
        Json::Null => Ok(Value::Null),
        Json::Number(number) => number.as_i64().map(Value::Integer).ok_or_else(bad),
        Json::String(text) => Ok(Value::Text(text.clone())),
        Json::Object(object) => match (object.get("hex"), object.get("real")) {
            (Some(Json::String(text)), None) => unhex(text).map(Value::Blob).ok_or_else(bad),
            (None, Some(Json::String(bits))) => {
                bits.parse().map(|bits| Value::Real(f64::from_bits(bits))).map_err(|_| bad())
            }
            _ => Err(bad()),
        },
        Json::Bool(_) | Json::Array(_) => Err(bad()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// A stream that is hashed as it is written.
struct Sealed<'a> {
    out: &'a mut dyn Write,
    hash: Sha256,
}

impl Sealed<'_> {
    fn line(&mut self, value: &Json) -> io::Result<()> {
        let mut line = value.to_string().into_bytes();
        line.push(b'\n');
        self.hash.update(&line);
        self.out.write_all(&line)
    }

    fn seal(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Db, Marks, open_writer, short};

    /// A new database into which these rows of an earlier version were read.
    fn read_in(version: i64, rows: &[(&str, Json)]) -> (tempfile::TempDir, Connection) {
        let directory = tempfile::tempdir().unwrap();
        let mut db = open_writer(&directory.path().join("db.db")).unwrap();
        let mut lines = Vec::new();
        let mut out = Sealed { out: &mut lines, hash: Sha256::new() };
        out.line(&json!({ "posthaste": "realm", "form": FORMAT, "db": version, "realm": "main" })).unwrap();
        for (table, row) in rows {
            out.line(&json!({ "table": table, "row": row })).unwrap();
        }
        let seal = out.seal();
        out.line(&json!({ "end": { "rows": rows.len(), "sha256": seal } })).unwrap();
        assert_eq!(read_rows(&mut db, &mut lines.as_slice(), &mut |_| true).unwrap(), rows.len() as u64);
        (directory, db)
    }

    #[test]
    fn turns_of_version_6_are_read_in_with_numbers() {
        let conversation = json!({ "id": "c", "kind": "talk", "status": "active", "created_by": "ann",
            "audience": "parties", "participant_count": 0, "turn_count": 1, "thread_count": 0,
            "created_at": 1, "updated_at": 1, "seq": 5 });
        let turn = json!({ "seq": 6, "id": { "hex": "0a" }, "conversation": "c", "author": "ann",
            "content_type": "text", "at": 1 });
        let (_directory, db) = read_in(6, &[("turns", turn), ("conversations", conversation)]);
        let sql = "SELECT talk, author_hash, type_hash FROM turns";
        let numbers = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        assert_eq!(numbers, Ok((5, short("ann"), short("text"))));
    }

    #[test]
    fn marks_of_version_4_are_read_in_with_all_others() {
        let mark = |label: &str, message: i64| json!({ "label": label, "sender": "ann", "message": message });
        let mut late = mark("id:2", 8);
        late["n"] = json!(i64::MAX);
        let (_directory, db) = read_in(4, &[("marks", mark("id:1", 7)), ("new_marks", late)]);
        let marks = Marks::read(Db::new(&db)).unwrap();
        for (label, message) in [("id:1", 7), ("id:2", 8)] {
            assert_eq!(marks.with_label(Db::new(&db), label).unwrap()[0].message, message, "{label}");
        }
    }
}
