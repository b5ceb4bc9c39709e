//! Instances of swarms, written `role:id@swarm`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The role on whose behalf an instance runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnerRole {
    /// An administrator.
    Admin,
    /// An end-user.
    User,
    /// A remote swarm.
    Swarm,
}

impl OwnerRole {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Swarm => "swarm",
        }
    }
}

/// An instance of a swarm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The role on whose behalf it runs.
    pub role: OwnerRole,
    /// The id within that role, such as a user name.
    pub id: String,
    /// The swarm that hosts it.
    pub swarm: String,
}

impl Owner {
    /// Parses `role:id@swarm`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, rest) = text.split_once(':')?;
        let (id, swarm) = rest.rsplit_once('@')?;
        let role = match role {
            "admin" => OwnerRole::Admin,
            "user" => OwnerRole::User,
            "swarm" => OwnerRole::Swarm,
            _ => return None,
        };
        let is_valid = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
        (is_valid(id) && is_valid(swarm)).then(|| Self { role, id: id.to_owned(), swarm: swarm.to_owned() })
    }

    /// The instance's name within its swarm.
    #[must_use]
    pub fn instance(&self) -> String {
        format!("{}:{}", self.role.as_str(), self.id)
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("an instance has the form role:id@swarm"))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.role.as_str(), self.id, self.swarm)
    }
}
