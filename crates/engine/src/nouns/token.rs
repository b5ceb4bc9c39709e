//! Bearer tokens, of which the books keep only a hash.

use super::Millis;
use super::coded::coded;

coded! {
    /// What the bearer of a token is taken for.
    TokenRole {
        /// Someone who runs the office.
        Admin = "admin",
        /// A person.
        User = "user",
        /// A program.
        Agent = "agent",
    }
}

/// What is known of a token; never the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// By which it is listed and revoked.
    pub id: String,
    /// What its bearer is taken for.
    pub role: TokenRole,
    /// Whom its bearer is taken for.
    pub name: String,
    /// The only door it opens, by the door's tag; every door if absent.
    pub door: Option<String>,
    /// Whether its bearer may observe traffic between others that is not marked private.
    pub observe: bool,
    /// When it was made.
    pub created_at: Millis,
    /// When it stops working.
    pub expires_at: Option<Millis>,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
}

impl Token {
    /// Whether it is good for a door at all.
    #[must_use]
    pub fn opens(&self, door: &str) -> bool {
        self.door.as_ref().is_none_or(|only| only == door)
    }

    /// Whether it still opens the door.
    #[must_use]
    pub fn is_valid(&self, now: Millis) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}
