//! Request bodies: JSON objects whose members may go by several names, depending on the client.

use serde_json::{Map, Value};

use crate::canonical::canonicalize;

/// A request body: a JSON object in which no member occurs twice.
#[derive(Clone, Debug)]
pub struct Fields {
    /// The original text.
    pub text: String,
    /// Its members.
    pub members: Map<String, Value>,
}

/// Why a request body is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// The body is not a JSON object, or has no canonical form.
    #[error("{0}")]
    Json(String),
    /// A member has another type.
    #[error("{0}: a string is expected")]
    NotAString(String),
}

impl Fields {
    /// Parses a body.
    pub fn parse(text: String) -> Result<Self, FieldsError> {
        canonicalize(&text).map_err(|error| FieldsError::Json(error.to_string()))?;
        match serde_json::from_str(&text) {
            Ok(Value::Object(members)) => Ok(Self { text, members }),
            Ok(_) => Err(FieldsError::Json("a JSON object is expected".to_owned())),
            Err(error) => Err(FieldsError::Json(error.to_string())),
        }
    }

    /// The string under the first of these names that is present; null counts as absent.
    pub fn text(&self, names: &[&str]) -> Result<Option<&str>, FieldsError> {
        for name in names {
            match self.members.get(*name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => return Ok(Some(text)),
                Some(_) => return Err(FieldsError::NotAString((*name).to_owned())),
            }
        }
        Ok(None)
    }

    /// The value under the first of these names that is present; null counts as absent.
    pub fn get(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.members.get(*name)).filter(|value| !value.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_every_name() {
        let fields = Fields::parse(r#"{"handle":null,"username":"ann","n":1}"#.to_owned()).unwrap();
        assert_eq!(fields.text(&["handle", "username"]), Ok(Some("ann")));
        assert_eq!(fields.text(&["name"]), Ok(None));
        assert_eq!(fields.text(&["n"]), Err(FieldsError::NotAString("n".to_owned())));
        assert_eq!(fields.get(&["handle"]), None);
        for text in ["", "[]", r#"{"a":1,"a":2}"#, "{\"a\":1e400}"] {
            assert!(matches!(Fields::parse(text.to_owned()), Err(FieldsError::Json(_))), "{text}");
        }
    }
}
