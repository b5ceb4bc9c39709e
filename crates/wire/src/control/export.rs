//! The lines of an exported realm: a header, one line per row of the database, and an end line with a checksum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ExportLine {
    /// The first line.
    Header(ExportHeader),
    /// A row of the database.
    Row(ExportRow),
    /// The last line.
    End(ExportEnd),
}

/// The first line of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    /// Always `realm`.
    pub posthaste: String,
    /// The version of the lines' form.
    pub form: i64,
    /// The version of the database's tables.
    pub database: i64,
    /// The name of the realm.
    pub realm: String,
}

/// A row of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportRow {
    /// The table.
    pub table: String,
    /// The columns that are not null: integers, strings, `{"hex": …}` for bytes, and `{"real": …}` for fractions.
    pub row: Map<String, Value>,
}

/// The last line of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportEnd {
    /// Number and checksum of the lines before.
    pub end: ExportChecksum,
}

/// Number and checksum of the lines of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExportChecksum {
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the lines before, in lower-case hex.
    pub sha256: String,
}

/// The query of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupQuery {
    /// Every realm of the server, for its operator; else the realm of the path.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub all: bool,
}
