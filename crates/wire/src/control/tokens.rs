//! Access tokens: making, listing and revoking them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Millis, Timestamp, is_false};

/// What a token authenticates its bearer as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenRole {
    /// An administrator.
    Admin,
    /// A person.
    User,
    /// A program.
    Agent,
}

/// Makes a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenCreateParams {
    /// The role of its bearer.
    pub role: TokenRole,
    /// The name of its bearer.
    pub name: String,
    /// Whether its bearer may observe traffic between others that is not marked private.
    #[serde(default, skip_serializing_if = "is_false")]
    pub observe: bool,
    /// When it expires; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
}

/// A token's entry; never the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// The id by which it is listed and revoked.
    pub id: String,
    /// The role of its bearer.
    pub role: TokenRole,
    /// The name of its bearer.
    pub name: String,
    /// The only door that accepts it; every door if null.
    pub door: Option<String>,
    /// Whether its bearer may observe traffic between others that is not marked private.
    pub observe: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token that was made. The token itself is told once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCreateResult {
    /// Its entry.
    #[serde(flatten)]
    pub entry: Token,
    /// The token.
    pub token: String,
}

/// The tokens of the realm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenListResult {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// Revokes a token, which is named by its id or by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRevokeParams {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The token itself, for a caller that has it and does not know its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
