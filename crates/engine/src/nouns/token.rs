//! Bearer tokens, of which the database stores only a hash.

use super::Millis;
use super::coded::coded;

coded! {
    /// What a token authenticates its bearer as.
    TokenRole {
        /// An administrator.
        Admin = "admin",
        /// A person.
        User = "user",
        /// A program.
        Agent = "agent",
    }
}

/// A token's metadata; never the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The id by which it is listed and revoked.
    pub id: String,
    /// The role of its bearer.
    pub role: TokenRole,
    /// The name of its bearer.
    pub name: String,
    /// The only door that accepts it, by the door's tag; every door if absent.
    pub door: Option<String>,
    /// Whether its bearer may observe traffic between others that is not marked private.
    pub observe: bool,
    /// When it was made.
    pub created_at: Millis,
    /// When it expires.
    pub expires_at: Option<Millis>,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
}

impl Token {
    /// Whether a door accepts it at all.
    #[must_use]
    pub fn opens(&self, door: &str) -> bool {
        self.door.as_ref().is_none_or(|only| only == door)
    }

    /// Whether it is neither revoked nor expired.
    #[must_use]
    pub fn is_valid(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
