//! Identifiers: validated text ids chosen by callers, 128-bit ids made by the server, and sequence numbers.

use std::fmt;
use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Unix time in milliseconds.
pub type Millis = i64;

/// The number of an event in its realm's event log; starts at 1 and has no gaps.
pub type Seq = i64;

/// The longest text id that is accepted, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Why a text is not an identifier.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdError {
    /// Nothing was given.
    #[error("an identifier must not be empty")]
    Empty,
    /// Too many bytes.
    #[error("an identifier is at most {MAX_ID_BYTES} bytes long")]
    TooLong,
    /// Control characters, or white space at either end.
    #[error("an identifier has no control characters and no white space at its ends")]
    BadCharacter,
    /// A realm name becomes a file name, so fewer characters are allowed.
    #[error(
        "a realm name starts with a-z, A-Z or 0-9, goes on with these, '.', '_' or '-', and is at most 64 long"
    )]
    BadRealm,
}

fn check_text(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong);
    }
    if text.chars().any(char::is_control) || text.trim() != text {
        return Err(IdError::BadCharacter);
    }
    Ok(())
}

fn check_realm(text: &str) -> Result<(), IdError> {
    let mut bytes = text.bytes();
    let starts_well = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let goes_on_well = bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if starts_well && goes_on_well && text.len() <= 64 { Ok(()) } else { Err(IdError::BadRealm) }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name that came from outside.
            ///
            /// # Errors
            /// Says what is wrong with the text.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                $check(text.as_ref())?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0.as_bytes())))
            }
        }

        impl FromSql for $name {
            // The database only holds checked ids, so a bad one is damage and reported as such.
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let text = value.as_str()?;
                Self::new(text).map_err(|error| FromSqlError::Other(Box::new(error)))
            }
        }
    };
}

text_id!(
    /// Names an agent within its realm.
    AgentId,
    check_text
);
text_id!(
    /// Names a scope within its realm.
    ScopeId,
    check_text
);
text_id!(
    /// Names a conversation within its realm; thread labels and task ids of the doors are conversation ids too.
    ConversationId,
    check_text
);
text_id!(
    /// Names a realm; becomes a file name.
    RealmName,
    check_realm
);

/// A task is a conversation that can be completed, under the same id.
pub type TaskId = ConversationId;

/// The server's own agent id in every realm.
const OFFICE: &str = "posthaste";

impl AgentId {
    /// The server itself: the sender of messages that no agent sent.
    #[must_use]
    pub fn office() -> Self {
        Self(Arc::from(OFFICE))
    }

    /// Whether this is the server itself.
    #[must_use]
    pub fn is_office(&self) -> bool {
        self.as_str() == OFFICE
    }
}

impl RealmName {
    /// The default realm.
    #[must_use]
    pub fn main() -> Self {
        Self(Arc::from("main"))
    }
}

macro_rules! made_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                let bytes = value.as_blob()?;
                Uuid::from_slice(bytes).map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
            }
        }
    };
}

made_id!(
    /// Names a message; globally unique.
    MessageId
);
made_id!(
    /// Names a turn of a conversation.
    TurnId
);
made_id!(
    /// Names a thread inside a conversation.
    ThreadId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_are_checked() {
        assert_eq!(AgentId::new(""), Err(IdError::Empty));
        assert_eq!(AgentId::new("a\0b"), Err(IdError::BadCharacter));
        assert_eq!(AgentId::new(" a"), Err(IdError::BadCharacter));
        assert_eq!(AgentId::new("x".repeat(257)), Err(IdError::TooLong));
        assert_eq!(AgentId::new("role:id@elsewhere").unwrap().as_str(), "role:id@elsewhere");
    }

    #[test]
    fn a_realm_name_cannot_leave_its_directory() {
        for bad in ["", ".", "..", "../etc", "a/b", "a\\b", ".hidden", "-flag", "ä", "a b", "a\0"] {
            assert_eq!(RealmName::new(bad), Err(IdError::BadRealm), "{bad:?}");
        }
        for good in ["main", "a..b", "Team_1", "0-x.y"] {
            assert!(RealmName::new(good).is_ok(), "{good:?}");
        }
    }
}
