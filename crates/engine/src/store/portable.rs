//! Export and import: a database as lines of JSON, every row of every table. The full-text index is not written;
//! it is made again from what is.

use std::io::{self, BufRead, Read, Write};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::schema::VERSION;
use super::{Db, seen_keys};
use crate::error::Fault;
use crate::stamp::Stamp;
use crate::views;

/// The form of the lines. Form 1 was written before the first release, for other tables.
const FORM: i64 = 2;
/// The longest line that is read: the largest message with the largest envelope, with every character escaped.
const LONGEST_LINE: u64 = 64 << 20;

/// Why an export or import failed.
#[derive(Debug, Error)]
pub enum PortableError {
    /// The stream.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] Fault),
    /// Not what was once written.
    #[error("line {line}: {why}")]
    Damaged {
        /// Which line.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The caller stopped it.
    #[error("interrupted; nothing was changed")]
    Stopped,
}

impl From<rusqlite::Error> for PortableError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// How many rows a database has.
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

/// Writes one snapshot of a database, between a header line and a line with its checksum. `each` is called with every row's
/// number and returns whether to continue.
///
/// # Errors
/// When the database cannot be read or the stream cannot be written.
pub fn write_rows(
    db: &Connection,
    realm: &str,
    out: &mut dyn Write,
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, PortableError> {
    let moment = db.unchecked_transaction()?;
    let version: i64 = moment.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let mut out = Sealed { out, hash: Sha256::new() };
    out.line(&json!({ "posthaste": "realm", "form": FORM, "database": version, "realm": realm }))?;
    let mut count = 0;
    for table in tables(&moment)? {
        let mut statement = moment.prepare(&format!("SELECT * FROM \"{table}\""))?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut cursor = statement.query([])?;
        while let Some(row) = cursor.next()? {
            let mut fields = Map::new();
            for (place, column) in columns.iter().enumerate() {
                let value = to_json(row.get_ref(place)?);
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
    moment.finish()?;
    Ok(count)
}

/// Replaces the content of a database that [`super::open_writer`] has just made; all or nothing. Its event log gets a new name,
/// because from here on it differs from the exported one.
///
/// # Errors
/// When the lines are damaged, cut off or of a newer version, or the database fails; then it is unchanged.
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
        input.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        number += 1;
        let damaged = |why: String| PortableError::Damaged { line: number, why };
        if sealed {
            return Err(damaged("something follows the last line".to_owned()));
        }
        if line.len() as u64 == LONGEST_LINE || line.last() != Some(&b'\n') {
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
    let damaged = |why: String| PortableError::Damaged { line: number, why };
    views::rules(Db::new(&change)).map_err(|fault| damaged(fault.to_string()))?;
    // Lines that do not say how far the index was are taken in completely.
    let sql = "INSERT INTO meta(key, value) SELECT 'indexed', coalesce(max(seq), 0) FROM events WHERE true
               ON CONFLICT DO NOTHING";
    change.execute(sql, [])?;
    change.execute("INSERT INTO fulltext(fulltext) VALUES('rebuild')", [])?;
    seen_keys::rebuild_index(&change)?;
    let name = Stamp::new().id.to_string();
    change.execute("UPDATE meta SET value = ?1 WHERE key = 'history'", [name])?;
    change.commit()?;
    Ok(count)
}

fn check_head(head: &Json) -> Result<(), String> {
    if head["posthaste"] != "realm" {
        return Err("this is not what `posthaste export` writes".to_owned());
    }
    match (head["form"].as_i64(), head["database"].as_i64()) {
        (Some(1), _) => {
            Err("it was written by a build before the first release, for other tables".to_owned())
        }
        (Some(FORM), Some(1..=VERSION)) => Ok(()),
        _ => Err("it was written by a newer program".to_owned()),
    }
}

fn insert(db: &Connection, known: &[String], line: &Json) -> Result<(), String> {
    let table = line["table"].as_str().unwrap_or_default();
    // Only our own tables; a name from outside never gets into a statement.
    if !known.iter().any(|name| name == table) {
        return Err(format!("there is no table {table:?}"));
    }
    let Some(fields) = line["row"].as_object() else { return Err("a row is missing".to_owned()) };
    // Keys are numbered anew, in the order of the lines.
    let is_given = |field: &String| table != "seen_keys" || field != "n";
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
    let places = vec!["?"; names.len()].join(",");
    let values = given.into_iter().map(from_json).collect::<Result<Vec<Value>, String>>()?;
    let sql = format!("INSERT INTO \"{table}\"({}) VALUES({places})", names.join(","));
    let mut statement = db.prepare_cached(&sql).map_err(|error| error.to_string())?;
    statement.execute(params_from_iter(values)).map(drop).map_err(|error| error.to_string())
}

/// The tables that hold rows of their own; the full-text index and the hashes of labels are made again.
fn tables(db: &Connection) -> Result<Vec<String>, Fault> {
    let sql =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = db.prepare(sql)?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(names
        .into_iter()
        .filter(|name| name != "fulltext" && !name.starts_with("fulltext_") && name != "seen_key_hashes")
        .collect())
}

fn to_json(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => json!(number),
        // A fraction is written so that it cannot be taken for an integer.
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
