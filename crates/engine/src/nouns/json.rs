//! JSON kept as the text it came in: checked once, never re-parsed, handed on byte for byte.

use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

/// The text was not one JSON value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not JSON: {0}")]
pub struct JsonError(String);

/// One JSON value as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Json(Arc<str>);

impl Json {
    /// Checks that the text is one JSON value and keeps it as it is.
    ///
    /// # Errors
    /// Says where the text stops being JSON.
    pub fn new(text: impl AsRef<str>) -> Result<Self, JsonError> {
        let raw: &RawValue = serde_json::from_str(text.as_ref()).map_err(|e| JsonError(e.to_string()))?;
        Ok(Self(Arc::from(raw.get())))
    }

    /// Keeps a value that a parser has already checked.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Arc::from(raw.get()))
    }

    /// Keeps text that its maker put together out of values that were checked.
    #[must_use]
    pub fn from_checked(text: &str) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "not one JSON value: {text}");
        Self(Arc::from(text))
    }

    /// The text of a value.
    #[must_use]
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(Arc::from(value.to_string()))
    }

    /// The text, as it came in.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parsed value, for the few places that must look inside.
    #[must_use]
    pub fn value(&self) -> serde_json::Value {
        // The text was checked when it came in; books that were damaged since then yield null instead of a panic.
        serde_json::from_str(&self.0).unwrap_or(serde_json::Value::Null)
    }
}

impl TryFrom<String> for Json {
    type Error = JsonError;
    fn try_from(text: String) -> Result<Self, JsonError> {
        Self::new(text)
    }
}

impl From<Json> for String {
    fn from(json: Json) -> String {
        json.0.as_ref().to_owned()
    }
}

impl ToSql for Json {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_bytes())))
    }
}

impl FromSql for Json {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(Arc::from(value.as_str()?)))
    }
}
