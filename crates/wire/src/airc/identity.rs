//! Identities and their tokens: what clients ask for and what they are answered.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /identity`, as this program's client sends it; other clients use further names for its members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegisterRequest {
    /// The handle.
    pub handle: String,
    /// The name shown to people.
    pub display_name: Option<String>,
    /// The key that signs messages.
    pub public_key: String,
    /// The key that may replace it.
    pub recovery_key: String,
    /// Payload types that the agent understands.
    pub capabilities: Vec<Cow<'static, str>>,
    /// A signature of the handle.
    pub proof: String,
}

/// `POST /register/challenge`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeRequest {
    /// The handle that the challenge will be bound to.
    pub handle: String,
}

/// A challenge to sign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChallengeAnswer {
    /// Always true.
    pub success: bool,
    /// The text to sign.
    pub challenge: String,
    /// The handle that it is bound to.
    pub handle: String,
    /// When it expires.
    #[serde(rename = "expiresAt")]
    pub expires_at_camel: String,
    /// The same.
    pub expires_at: String,
}

/// `POST /auth/refresh` with a signed challenge in place of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshRequest {
    /// The handle.
    pub handle: String,
    /// The challenge.
    pub challenge: String,
    /// Its signature.
    pub signature: String,
}

/// An identity. Several members appear under two names, because clients of both drafts look for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The handle.
    pub handle: String,
    /// The handle.
    pub username: String,
    /// The name shown to people.
    pub display_name: Option<String>,
    /// The key that signs messages.
    pub public_key: Option<String>,
    /// The key that signs messages.
    #[serde(rename = "publicKey")]
    pub public_key_camel: Option<String>,
    /// The key that may replace it.
    pub recovery_key: Option<String>,
    /// What the agent understands: a list or an object, as it was registered.
    pub capabilities: Value,
    /// The registry's address.
    pub registry: String,
    /// `active`, `suspended` or `revoked`.
    pub status: Cow<'static, str>,
    /// When it was registered.
    pub created_at: String,
    /// When it was registered.
    #[serde(rename = "createdAt")]
    pub created_at_camel: String,
    /// When it last changed.
    pub updated_at: String,
    /// When its key was last replaced.
    pub key_rotated_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
    /// Its earlier keys, oldest first.
    pub previous_keys: Vec<PreviousKey>,
}

/// A key that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousKey {
    /// The key.
    pub public_key: Option<String>,
    /// Until when it signed messages.
    pub valid_until: Option<String>,
}

/// `GET /identity/{handle}`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentityAnswer {
    /// The identity.
    #[serde(flatten)]
    pub identity: Identity,
    /// Always true.
    pub success: bool,
}

/// `GET /api/identity/{handle}/capabilities`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapabilitiesAnswer {
    /// Always true.
    pub success: bool,
    /// The handle.
    pub handle: String,
    /// What the agent understands.
    pub capabilities: Value,
}

/// An identity with a token for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Always true.
    pub success: bool,
    /// The handle.
    pub handle: String,
    /// The handle.
    pub username: String,
    /// The registry's address.
    pub registry: String,
    /// The token.
    pub session_token: String,
    /// The token.
    pub token: String,
    /// A short name of the token.
    #[serde(rename = "sessionId")]
    pub session_id: String,
    /// When the token expires.
    pub expires_at: Option<String>,
    /// When the token expires.
    #[serde(rename = "expiresAt")]
    pub expires_at_camel: Option<String>,
    /// The identity.
    pub identity: Identity,
}

/// `POST /auth/refresh`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefreshAnswer {
    /// The identity and its new token.
    #[serde(flatten)]
    pub session: Session,
    /// The token.
    #[serde(rename = "accessToken")]
    pub access_token: String,
    /// The token.
    #[serde(rename = "refreshToken")]
    pub refresh_token: String,
}

/// `POST /identity/{handle}/rotate`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RotateAnswer {
    /// The identity and its new token.
    #[serde(flatten)]
    pub session: Session,
    /// The new key.
    pub public_key: String,
    /// When it replaced the earlier one.
    pub key_rotated_at: String,
}

/// `POST /identity/{handle}/revoke`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevokeAnswer {
    /// Always true.
    pub success: bool,
    /// The handle.
    pub handle: String,
    /// `revoked`.
    pub status: Cow<'static, str>,
    /// When.
    pub revoked_at: String,
    /// The identity as it is now.
    pub identity: Identity,
}

/// `GET /api/agents`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentsAnswer {
    /// Always true.
    pub success: bool,
    /// How many agents were found.
    pub count: usize,
    /// The agents.
    pub agents: Vec<ListedAgent>,
}

/// An identity in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedAgent {
    /// The identity.
    #[serde(flatten)]
    pub identity: Identity,
    /// Whether a heartbeat came lately.
    pub available: bool,
}
