//! JSON kept as the text it came in: checked once, not re-serialised, passed on byte for byte.

use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

/// How deep values may nest. The parsers of clients stop at 128 or earlier, and doors wrap values in their own.
const MAX_DEPTH: usize = 100;

/// Why a text is not taken as a JSON value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JsonError {
    /// It is not one JSON value.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// It nests deeper than clients can parse.
    #[error("the JSON nests deeper than {MAX_DEPTH}; flatten it")]
    TooDeep,
    /// A number that no parser can represent.
    #[error("a JSON number is out of range; send it as a string")]
    Number,
    /// Half of a surrogate pair, which is not a character.
    #[error("a JSON string holds half of a surrogate pair (\\ud800 to \\udfff); send whole characters")]
    Surrogate,
}

/// One JSON value as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Json(Arc<str>);

impl Json {
    /// Checks that the text is one JSON value that its readers can parse, and keeps it as it is.
    ///
    /// # Errors
    /// Reports where the text stops being JSON, or what readers could not parse.
    pub fn new(text: impl AsRef<str>) -> Result<Self, JsonError> {
        let raw: &RawValue =
            serde_json::from_str(text.as_ref()).map_err(|error| JsonError::Syntax(error.to_string()))?;
        Self::from_raw(raw)
    }

    /// Keeps a value whose syntax a parser has checked, if its readers can parse it.
    ///
    /// # Errors
    /// Reports what readers could not parse: `Value`, like most parsers, has limits that the syntax does not have.
    pub fn from_raw(raw: &RawValue) -> Result<Self, JsonError> {
        check(raw.get().as_bytes())?;
        Ok(Self(Arc::from(raw.get())))
    }

    /// Keeps text that was assembled from checked values.
    #[must_use]
    pub fn from_checked(text: &str) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "not one JSON value: {text}");
        Self(Arc::from(text))
    }

    /// The text of a value.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self(Arc::from(value.to_string()))
    }

    /// The text, as it came in.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parsed value, for the few places that need it. Text that cannot be parsed, because it was stored before such
    /// values were refused or was damaged since, becomes a JSON string.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_else(|_| Value::String(self.0.as_ref().to_owned()))
    }
}

/// Checks the bytes of a value whose syntax is known to be right, in one pass.
fn check(text: &[u8]) -> Result<(), JsonError> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = text.get(at) {
        at = match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(JsonError::TooDeep);
                }
                at + 1
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at + 1
            }
            b'"' => string_end(text, at + 1)?,
            b'-' | b'0'..=b'9' => number_end(text, at)?,
            _ => at + 1,
        };
    }
    Ok(())
}

/// The position after the string that starts here.
fn string_end(text: &[u8], start: usize) -> Result<usize, JsonError> {
    let mut at = start;
    while let Some(found) =
        text.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'"' | b'\\')))
    {
        at += found;
        if text[at] == b'"' {
            return Ok(at + 1);
        }
        if text.get(at + 1) != Some(&b'u') {
            at += 2;
            continue;
        }
        at += 6;
        match escaped_unit(text, at - 4) {
            Some(0xd800..=0xdbff) => {
                let second = (text.get(at..at + 2) == Some(br"\u")).then(|| escaped_unit(text, at + 2));
                let Some(Some(0xdc00..=0xdfff)) = second else { return Err(JsonError::Surrogate) };
                at += 6;
            }
            Some(0xdc00..=0xdfff) => return Err(JsonError::Surrogate),
            _ => {}
        }
    }
    Ok(text.len())
}

fn escaped_unit(text: &[u8], start: usize) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(start..start + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// The position after the number that starts here. Only a long number or one with an exponent can be out of range.
fn number_end(text: &[u8], start: usize) -> Result<usize, JsonError> {
    let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = text[start..].iter().position(|b| !is_part(b)).unwrap_or(text.len() - start);
    let number = &text[start..start + length];
    if length > 300 || number.iter().any(|b| matches!(b, b'e' | b'E')) {
        let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse::<f64>().ok());
        if !parsed.is_some_and(f64::is_finite) {
            return Err(JsonError::Number);
        }
    }
    Ok(start + length)
}

/// For stored values: they were checked when they came in, by the rules of that time.
impl From<String> for Json {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    #[test]
    fn accepted_json_can_be_parsed_again() {
        let texts = [
            r#"{"a":[1,-2.5e3,"x\"y\\","\ud83d\ude00","é",null,true,1e308,123456789012345678901234567890]}"#
                .to_owned(),
            nested(MAX_DEPTH),
            r#""[[[[ 1e999 \\ud800""#.to_owned(),
        ];
        for text in texts {
            let json = Json::new(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(Ok(json.value()), serde_json::from_str::<Value>(&text).map_err(|_| ()));
        }
    }

    #[test]
    fn json_that_readers_cannot_parse_is_refused() {
        let digits = "9".repeat(400);
        let cases = [
            (nested(MAX_DEPTH + 1), JsonError::TooDeep),
            (nested(400_000), JsonError::TooDeep),
            (r#"{"n":1e400}"#.to_owned(), JsonError::Number),
            (format!("[-{digits}]"), JsonError::Number),
            (r#""\ud800""#.to_owned(), JsonError::Surrogate),
            (r#""\udc00""#.to_owned(), JsonError::Surrogate),
            (r#"{"\ud83dx":1}"#.to_owned(), JsonError::Surrogate),
            (r#""\ud83d\u0041""#.to_owned(), JsonError::Surrogate),
        ];
        for (text, why) in cases {
            assert_eq!(Json::new(&text), Err(why), "{}", &text[..text.len().min(40)]);
        }
        assert!(matches!(Json::new("{"), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn stored_json_that_cannot_be_parsed_becomes_a_string() {
        let old = Json::from(r#"{"order":"7","n":1e400}"#.to_owned());
        assert_eq!(old.value(), Value::String(r#"{"order":"7","n":1e400}"#.to_owned()));
    }
}
