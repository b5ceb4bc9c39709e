//! Who is speaking: an agent's name and what the door that let it in vouches for.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// What a caller may do beyond its own mail. A caller with none of these is a stranger and sees nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Belongs to the realm: may see what the realm shows to everybody.
    pub member: bool,
    /// May watch traffic that its senders marked as open to observers.
    pub observe: bool,
    /// Runs the office: may see and change everything.
    pub admin: bool,
}

/// An authenticated speaker. The door answers for it; the engine only asks what it may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The agent on whose behalf the call is made.
    pub agent: AgentId,
    /// What the caller may do.
    pub rights: Rights,
    /// Which way it came in: an opaque tag, kept with what it writes.
    pub via: String,
}

impl Caller {
    /// An agent of the realm.
    #[must_use]
    pub fn member(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights { member: true, observe: false, admin: false }, via: via.to_owned() }
    }

    /// An agent that may also watch open traffic.
    #[must_use]
    pub fn observer(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights { member: true, observe: true, admin: false }, via: via.to_owned() }
    }

    /// Someone who runs the office.
    #[must_use]
    pub fn admin(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights { member: true, observe: true, admin: true }, via: via.to_owned() }
    }

    /// The office itself, acting on its own account.
    #[must_use]
    pub fn office() -> Self {
        Self::admin(AgentId::office(), "office")
    }

    /// Somebody the realm does not know.
    #[must_use]
    pub fn stranger(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights::default(), via: via.to_owned() }
    }

    /// Whether this caller speaks for that agent.
    #[must_use]
    pub fn is(&self, agent: &AgentId) -> bool {
        self.agent == *agent
    }

    /// Whether this caller speaks for that agent or runs the office.
    #[must_use]
    pub fn may_act_for(&self, agent: &AgentId) -> bool {
        self.rights.admin || (self.rights.member && self.is(agent))
    }
}
