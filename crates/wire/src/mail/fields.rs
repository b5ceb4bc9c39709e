//! Typed access to the fields of a JSON object, with errors that name the field.

use std::fmt;

use serde_json::{Map, Value};

/// A missing, invalid or unknown field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, separated by dots; empty for the whole body.
    pub field: String,
    /// The problem, phrased to follow the field name.
    pub problem: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }

    /// Prepends the field that contains the object.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => outer.to_owned(),
            inner => format!("{outer}.{inner}"),
        };
        self
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "the body {}", self.problem),
            field => write!(f, "field `{field}` {}", self.problem),
        }
    }
}

impl std::error::Error for FieldError {}

/// Implements `Deserialize` by the type's own `read`, which checks the schema and names the field.
macro_rules! deserialize_by_read {
    ($($of:ty),+ $(,)?) => {$(
        impl<'de> serde::Deserialize<'de> for $of {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                Self::read(&value).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use deserialize_by_read;

type FieldResult<T> = Result<T, FieldError>;

/// A JSON object with typed field access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(crate) fn new(value: &'a Value) -> FieldResult<Self> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(FieldError::new("", "must be a JSON object")),
        }
    }

    /// Refuses fields that are not in the schema.
    pub(crate) fn only(self, known: &[&str]) -> FieldResult<Self> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                Err(FieldError::new(key.chars().take(128).collect::<String>(), "is not a known field"))
            }
            None => Ok(self),
        }
    }

    /// The field's value, if it is present and not null.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// The first present field of several names for the same thing.
    pub(crate) fn any(self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    pub(crate) fn required(self, name: &str) -> FieldResult<&'a Value> {
        self.get(name).ok_or_else(|| FieldError::new(name, "is required"))
    }

    pub(crate) fn text(self, name: &str) -> FieldResult<&'a str> {
        text(name, self.required(name)?)
    }

    pub(crate) fn non_empty_text(self, name: &str) -> FieldResult<&'a str> {
        match self.text(name)? {
            "" => Err(FieldError::new(name, "must not be empty")),
            text => Ok(text),
        }
    }

    pub(crate) fn optional_text(self, name: &str) -> FieldResult<Option<&'a str>> {
        self.get(name).map(|value| text(name, value)).transpose()
    }

    pub(crate) fn optional_bool(self, name: &str) -> FieldResult<Option<bool>> {
        let wrong = || FieldError::new(name, "must be true or false");
        self.get(name).map(|value| value.as_bool().ok_or_else(wrong)).transpose()
    }

    pub(crate) fn optional_object(self, name: &str) -> FieldResult<Option<&'a Map<String, Value>>> {
        let wrong = || FieldError::new(name, "must be an object");
        self.get(name).map(|value| value.as_object().ok_or_else(wrong)).transpose()
    }

    pub(crate) fn list(self, name: &str) -> FieldResult<&'a [Value]> {
        let wrong = || FieldError::new(name, "must be an array");
        self.required(name)?.as_array().map(Vec::as_slice).ok_or_else(wrong)
    }

    pub(crate) fn uuid(self, name: &str) -> FieldResult<&'a str> {
        let text = self.text(name)?;
        if is_uuid(text) { Ok(text) } else { Err(FieldError::new(name, "must be a UUID")) }
    }

    pub(crate) fn timestamp(self, name: &str) -> FieldResult<&'a str> {
        let text = self.text(name)?;
        match crate::time::parse_rfc3339(text) {
            Ok(_) => Ok(text),
            Err(_) => Err(FieldError::new(name, "must be an RFC 3339 timestamp")),
        }
    }
}

pub(crate) fn text<'a>(name: &str, value: &'a Value) -> FieldResult<&'a str> {
    value.as_str().ok_or_else(|| FieldError::new(name, "must be a string"))
}

pub(crate) fn texts(name: &str, values: &[Value]) -> FieldResult<Vec<String>> {
    let each = |(at, value): (usize, &Value)| text(&format!("{name}[{at}]"), value).map(str::to_owned);
    values.iter().enumerate().map(each).collect()
}

/// Whether a text is a hyphenated UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}
