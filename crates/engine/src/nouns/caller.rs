//! The caller of a verb or view: an agent's name, and the rights that its door vouches for.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// Rights of a caller beyond its own mail. A caller with none of these is a stranger and sees nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// Belongs to the realm: may see what is public in the realm.
    pub member: bool,
    /// May watch traffic that its senders marked as open to observers.
    pub observe: bool,
    /// Administrator: may see and change everything.
    pub admin: bool,
}

/// An authenticated caller. The door vouches for it; the engine only checks its rights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The agent on whose behalf the call is made.
    pub agent: AgentId,
    /// What the caller may do.
    pub rights: Rights,
    /// The door's tag, stored with everything that the caller writes.
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

    /// An administrator.
    #[must_use]
    pub fn admin(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights { member: true, observe: true, admin: true }, via: via.to_owned() }
    }

    /// The server itself.
    #[must_use]
    pub fn office() -> Self {
        Self::admin(AgentId::office(), "office")
    }

    /// A caller that the realm does not know.
    #[must_use]
    pub fn stranger(agent: AgentId, via: &str) -> Self {
        Self { agent, rights: Rights::default(), via: via.to_owned() }
    }

    /// Whether this caller is that agent.
    #[must_use]
    pub fn is(&self, agent: &AgentId) -> bool {
        self.agent == *agent
    }

    /// Whether this caller is that agent or an administrator.
    #[must_use]
    pub fn may_act_for(&self, agent: &AgentId) -> bool {
        self.rights.admin || (self.rights.member && self.is(agent))
    }
}
