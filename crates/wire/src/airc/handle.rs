//! Handles, and the words that a message can be aimed at.

use std::fmt;

/// Names that nobody can have: broadcast targets, and those who run the registry.
pub const RESERVED: &[&str] =
    &["contacts", "public", "system", "thread", "registry", "admin", "posthaste", "airc", "all", "everyone"];

/// A handle in its one spelling: lower case, without `@`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(String);

/// Why a text is no handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// Too short, too long, or with other characters.
    #[error("a handle is 3 to 32 of a-z, 0-9 and _")]
    Shape,
    /// A word that means something else.
    #[error("this handle is reserved")]
    Reserved,
}

impl Handle {
    /// Reads a handle as somebody wrote it: case and a leading `@` do not matter.
    pub fn parse(text: &str) -> Result<Self, HandleError> {
        let text = text.trim();
        let text = text.strip_prefix('@').unwrap_or(text).to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !(3..=32).contains(&text.len()) || !text.bytes().all(plain) {
            return Err(HandleError::Shape);
        }
        Ok(Self(text))
    }

    /// Reads a handle that somebody wants to have.
    pub fn parse_new(text: &str) -> Result<Self, HandleError> {
        let handle = Self::parse(text)?;
        if RESERVED.contains(&handle.as_str()) { Err(HandleError::Reserved) } else { Ok(handle) }
    }

    /// The handle as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whom a message is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everyone with mutual consent.
    Contacts,
    /// Everyone.
    Public,
    /// A form that is not supported, such as `@thread:ID`.
    Unsupported(String),
    /// Somebody, as written but for a leading `@`; [`Handle::parse`] gives the usual spelling.
    One(String),
}

impl Target {
    /// Reads `to`. Broadcast words are known in any case, so that nobody dodges the rules for them by writing `@PUBLIC`.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        match text.to_ascii_lowercase().as_str() {
            "@contacts" => Self::Contacts,
            "@public" => Self::Public,
            other if other.starts_with("@thread:") => Self::Unsupported(text.to_owned()),
            _ => Self::One(text.strip_prefix('@').unwrap_or(text).to_owned()),
        }
    }

    /// Whether it reaches more than one.
    pub fn is_broadcast(&self) -> bool {
        matches!(self, Self::Contacts | Self::Public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_have_one_spelling() {
        for text in ["alice_1", "@alice_1", " Alice_1 ", "ALICE_1"] {
            assert_eq!(Handle::parse(text).unwrap().as_str(), "alice_1", "{text}");
        }
        let long = "x".repeat(33);
        // The last looks like alice but begins with a Cyrillic letter.
        for text in [
            "",
            "@",
            "ab",
            "has spaces",
            &long,
            "semi;drop--",
            "dash-handle",
            "ünïcode",
            "@@bob",
            "\u{430}lice",
        ] {
            assert_eq!(Handle::parse(text), Err(HandleError::Shape), "{text}");
        }
        assert_eq!(Handle::parse_new("@Public"), Err(HandleError::Reserved));
    }

    #[test]
    fn targets_are_known_in_any_case() {
        assert_eq!(Target::parse(" @PUBLIC "), Target::Public);
        assert_eq!(Target::parse("@Contacts"), Target::Contacts);
        assert_eq!(Target::parse("contacts"), Target::One("contacts".into()));
        assert_eq!(Target::parse("@Bob"), Target::One("Bob".into()));
        assert!(matches!(Target::parse("@thread:bd-1"), Target::Unsupported(_)));
    }
}
