//! Addresses: what sort of correspondent, and its name, with `@swarm` if it is elsewhere.

use serde_json::{Value, json};

use super::fields::{FieldError, Fields};

/// What sort of correspondent an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressType {
    /// Runs the swarm.
    Admin,
    /// Works in it.
    Agent,
    /// Gives it tasks.
    User,
    /// The swarm itself.
    System,
}

impl AddressType {
    /// Every sort.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Agent, Self::User, Self::System];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Agent => "agent",
            Self::User => "user",
            Self::System => "system",
        }
    }

    /// The sort of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

/// A correspondent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MailAddress {
    /// What sort.
    pub address_type: AddressType,
    /// Its name.
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

    /// Every agent of the local swarm.
    #[must_use]
    pub fn all() -> Self {
        Self::agent("all")
    }

    pub(crate) fn read(value: &Value) -> Result<Self, FieldError> {
        let fields = Fields::of(value)
            .map_err(|_| FieldError::new("", "must be an object with `address_type` and `address`"))?
            .only(&["address_type", "address"])?;
        let word = fields.text("address_type")?;
        let address_type = AddressType::from_word(word)
            .ok_or_else(|| FieldError::new("address_type", "must be admin, agent, user or system"))?;
        Ok(Self { address_type, address: fields.full_text("address")?.to_owned() })
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "address_type": self.address_type.as_str(), "address": self.address })
    }
}

/// Name and swarm of an address: `worker@beta` is the worker of beta, `worker` the local one.
#[must_use]
pub fn split(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once('@') {
        Some((name, swarm)) if !name.is_empty() && !swarm.is_empty() => (name, Some(swarm)),
        _ => (address, None),
    }
}
