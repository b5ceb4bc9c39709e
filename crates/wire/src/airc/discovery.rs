//! The discovery document, `/.well-known/airc`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

type Text = Cow<'static, str>;

/// What a registry says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    /// `AIRC`.
    pub protocol: Text,
    /// The version of the protocol.
    pub protocol_version: Text,
    /// The registry's name, for people.
    pub registry_name: String,
    /// The registry's name in the `aud` of messages.
    pub registry_id: String,
    /// The registry's address.
    pub registry_url: String,
    /// Paths of the current version.
    pub endpoints: Endpoints,
    /// Paths of each version.
    pub versions: Versions,
    /// Whether Safe Mode is offered to the caller.
    pub safe_mode: bool,
    /// What is signed, and how.
    pub signing: SigningRules,
    /// How callers authenticate.
    pub auth: AuthRules,
    /// How often a caller may ask.
    pub rate_limits: RateLimits,
    /// How large messages may be, and how long presence lasts.
    pub limits: Limits,
    /// Payload types that the registry knows.
    pub capabilities: Vec<Text>,
    /// Extensions that the registry implements.
    pub extensions: Vec<Extension>,
    /// Targets with many recipients.
    pub broadcast_targets: Vec<Text>,
    /// Whether registries exchange messages.
    pub federation_enabled: bool,
    /// Where other registries deliver messages.
    pub relay_endpoint: Option<String>,
    /// The same, in the form of the second draft.
    pub federation: Federation,
}

/// Paths of the current version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoints {
    /// Identities.
    pub identity: String,
    /// Registration.
    pub register: String,
    /// Presence.
    pub presence: String,
    /// Messages.
    pub messages: String,
    /// Consent.
    pub consent: String,
    /// Health.
    pub health: String,
}

/// Paths of each version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The full protocol.
    #[serde(rename = "0.2")]
    pub full: VersionPaths,
    /// Safe Mode; absent where it is off.
    #[serde(default, rename = "0.1", skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<VersionPaths>,
}

/// Paths of one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionPaths {
    /// Identities.
    pub identity: String,
    /// Presence.
    pub presence: String,
    /// Messages.
    pub messages: String,
    /// Consent.
    pub consent: String,
    /// `required` or `optional`.
    pub signing: Text,
}

/// What is signed, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningRules {
    /// `Ed25519`.
    pub algorithm: Text,
    /// Whether messages must be signed.
    pub required: bool,
    /// The canonical form that is signed.
    pub canonicalization: Text,
    /// How far a timestamp may be from the server's clock.
    pub clock_window_seconds: i64,
}

/// How callers authenticate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthRules {
    /// `bearer`.
    #[serde(rename = "type")]
    pub kind: Text,
    /// Whether a token is needed.
    pub required: bool,
    /// Where tokens are renewed.
    pub token_endpoint: String,
}

/// How often a caller may ask; `u32::MAX` stands for no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// Requests of any kind.
    pub requests_per_minute: u64,
    /// Messages.
    pub messages_per_minute: u64,
    /// Messages to many recipients.
    pub broadcasts_per_minute: u64,
    /// Heartbeats.
    pub heartbeats_per_minute: u64,
    /// Requests for consent.
    pub consent_requests_per_hour: u64,
    /// Registrations from one address.
    pub registrations_per_hour: u64,
}

/// How large messages may be, and how long presence lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of one message.
    pub max_payload_bytes: usize,
    /// How long a heartbeat counts.
    pub presence_ttl_seconds: i64,
}

/// An extension of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
}

/// Whether registries exchange messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Federation {
    /// Whether they do.
    pub enabled: bool,
    /// Whether any registry may.
    pub public: bool,
    /// Where other registries deliver messages.
    pub relay_endpoint: Option<String>,
}
