//! Addresses: a type and a name, with `@swarm` for addresses in another swarm.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{FieldError, Fields};

/// The type of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressType {
    /// An administrator of the swarm.
    Admin,
    /// An agent of the swarm.
    Agent,
    /// A user, who gives tasks to the swarm.
    User,
    /// The swarm's runtime.
    System,
}

impl AddressType {
    /// All address types.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Agent, Self::User, Self::System];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::User => "user",
            Self::System => "system",
        }
    }

    /// Parses the name on the wire.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// The address of a sender or recipient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailAddress {
    /// The type.
    pub address_type: AddressType,
    /// The name, with `@swarm` if it is in another swarm.
    pub address: String,
}

impl MailAddress {
    /// An agent's address.
    #[must_use]
    pub fn agent(name: impl Into<String>) -> Self {
        Self { address_type: AddressType::Agent, address: name.into() }
    }

    /// The address of a swarm's runtime.
    #[must_use]
    pub fn system(swarm: impl Into<String>) -> Self {
        Self { address_type: AddressType::System, address: swarm.into() }
    }

    /// The address of all agents of the local swarm.
    #[must_use]
    pub fn all() -> Self {
        Self::agent("all")
    }

    pub(crate) fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::new(value)
            .map_err(|_| FieldError::new("", "must be an object with `address_type` and `address`"))?
            .only(&["address_type", "address"])?;
        let address_type = AddressType::parse(fields.text("address_type")?)
            .ok_or_else(|| FieldError::new("address_type", "must be admin, agent, user or system"))?;
        Ok(Self { address_type, address: fields.non_empty_text("address")?.to_owned() })
    }
}

/// Splits an address into name and swarm: `worker@beta` is in swarm beta, `worker` is local.
#[must_use]
pub fn split(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once('@') {
        Some((name, swarm)) if !name.is_empty() && !swarm.is_empty() => (name, Some(swarm)),
        _ => (address, None),
    }
}
