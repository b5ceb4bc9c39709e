//! How messages are addressed. Relative addresses are resolved against the sender when the message is sent.

use serde::{Deserialize, Serialize};

use super::{AgentId, RealmName, ScopeId};

/// One way of naming recipients. A message may have several addresses, and each recipient gets it once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// One agent, by id.
    Agent(AgentId),
    /// The members of a scope, without the sender.
    Scope(ScopeId),
    /// Agents with a role, within a scope or in the whole realm.
    Role {
        /// The role's name.
        role: String,
        /// Only members of this scope.
        within: Option<ScopeId>,
    },
    /// The sender's parent.
    Parent,
    /// The sender's children, or all below down to a depth.
    Children {
        /// Number of levels; default 1.
        depth: Option<u32>,
    },
    /// Other agents with the sender's parent.
    Siblings,
    /// The sender's parent, its parent, and so on.
    Ancestors {
        /// Number of levels up; default all.
        depth: Option<u32>,
    },
    /// All agents below the sender.
    Descendants {
        /// Number of levels down; default all.
        depth: Option<u32>,
    },
    /// All agents of one kind.
    Kind(super::AgentKind),
    /// All agents of the realm except the sender.
    All,
    /// The sender's accepted contacts.
    Contacts,
    /// All agents of the realm, for senders whose privacy is public.
    Public,
    /// An agent of another realm or server; a gateway delivers the message.
    Remote {
        /// Its name there.
        agent: String,
        /// Its realm.
        realm: RealmName,
    },
}

impl Address {
    /// Whether it stands for agents that must be looked up.
    #[must_use]
    pub fn is_group(&self) -> bool {
        !matches!(self, Self::Agent(_) | Self::Remote { .. } | Self::Parent)
    }

    /// The scope that it names, if any.
    #[must_use]
    pub fn scope(&self) -> Option<&ScopeId> {
        match self {
            Self::Scope(scope) | Self::Role { within: Some(scope), .. } => Some(scope),
            _ => None,
        }
    }

    /// Whether it names one agent, as opposed to a group, in which absent or unwilling members are skipped.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Remote { .. })
    }
}
