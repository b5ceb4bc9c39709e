//! Handles and message targets.

use std::fmt;

/// Handles that cannot be registered: broadcast targets and names of the registry and its operators.
pub const RESERVED_HANDLES: &[&str] =
    &["contacts", "public", "system", "thread", "registry", "admin", "posthaste", "airc", "all", "everyone"];

/// A normalized handle: lower case, without `@`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(String);

/// Why a text is not a valid handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// Too short, too long, or with invalid characters.
    #[error("a handle is 3 to 32 of a-z, 0-9 and _")]
    Shape,
    /// The handle is one of [`RESERVED_HANDLES`].
    #[error("this handle is reserved")]
    Reserved,
}

impl Handle {
    /// Parses a handle, ignoring case and a leading `@`.
    pub fn parse(text: &str) -> Result<Self, HandleError> {
        let text = text.trim();
        let text = text.strip_prefix('@').unwrap_or(text).to_ascii_lowercase();
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !(3..=32).contains(&text.len()) || !text.bytes().all(is_valid) {
            return Err(HandleError::Shape);
        }
        Ok(Self(text))
    }

    /// Parses a handle for registration; reserved handles are refused.
    pub fn parse_new(text: &str) -> Result<Self, HandleError> {
        let handle = Self::parse(text)?;
        if RESERVED_HANDLES.contains(&handle.as_str()) { Err(HandleError::Reserved) } else { Ok(handle) }
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

/// The recipients of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// All agents with mutual consent.
    Contacts,
    /// All agents.
    Public,
    /// A form that is not supported, such as `@thread:ID`.
    Unsupported(String),
    /// One agent, as written but without a leading `@`; [`Handle::parse`] normalizes it.
    One(String),
}

impl Target {
    /// Parses `to`. Broadcast targets are case-insensitive, so that `@PUBLIC` cannot bypass their rules.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        match text.to_ascii_lowercase().as_str() {
            "@contacts" => Self::Contacts,
            "@public" => Self::Public,
            other if other.starts_with("@thread:") => Self::Unsupported(text.to_owned()),
            _ => Self::One(text.strip_prefix('@').unwrap_or(text).to_owned()),
        }
    }

    /// Whether the target may have several recipients.
    pub fn is_broadcast(&self) -> bool {
        matches!(self, Self::Contacts | Self::Public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_normalized() {
        for text in ["alice_1", "@alice_1", " Alice_1 ", "ALICE_1"] {
            assert_eq!(Handle::parse(text).unwrap().as_str(), "alice_1", "{text}");
        }
        let long = "x".repeat(33);
        // The last one looks like alice but begins with a Cyrillic character.
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
    fn broadcast_targets_are_case_insensitive() {
        assert_eq!(Target::parse(" @PUBLIC "), Target::Public);
        assert_eq!(Target::parse("@Contacts"), Target::Contacts);
        assert_eq!(Target::parse("contacts"), Target::One("contacts".into()));
        assert_eq!(Target::parse("@Bob"), Target::One("Bob".into()));
        assert!(matches!(Target::parse("@thread:bd-1"), Target::Unsupported(_)));
    }
}
