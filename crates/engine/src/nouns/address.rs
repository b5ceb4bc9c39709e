//! How mail is aimed. Relative forms are resolved against the sender when the letter is applied.

use serde::{Deserialize, Serialize};

use super::{AgentId, RealmName, ScopeId};

/// One way of naming recipients; a letter may carry several, and each recipient gets it once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// One agent, by id.
    Agent(AgentId),
    /// The members of a scope, without the sender.
    Scope(ScopeId),
    /// Everyone who plays a role, within a scope or in the whole realm.
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
        /// How many levels; one if not said.
        depth: Option<u32>,
    },
    /// Those with the same parent as the sender.
    Siblings,
    /// The sender's parent, its parent, and so on.
    Ancestors {
        /// How many levels up; all if not said.
        depth: Option<u32>,
    },
    /// Everyone below the sender.
    Descendants {
        /// How many levels down; all if not said.
        depth: Option<u32>,
    },
    /// Everyone of one sort.
    Kind(super::AgentKind),
    /// Everyone in the realm but the sender.
    All,
    /// Everyone with whom the sender has accepted contact.
    Contacts,
    /// Everyone in the realm, for senders that show themselves to everyone.
    Public,
    /// An agent of another realm or office; carried there by a gateway.
    Remote {
        /// Its name over there.
        agent: String,
        /// The realm it lives in.
        realm: RealmName,
    },
}

impl Address {
    /// Whether it stands for agents that have to be looked for.
    #[must_use]
    pub fn is_group(&self) -> bool {
        !matches!(self, Self::Agent(_) | Self::Remote { .. } | Self::Parent)
    }

    /// The scope that it names, if it does.
    #[must_use]
    pub fn scope(&self) -> Option<&ScopeId> {
        match self {
            Self::Scope(scope) | Self::Role { within: Some(scope), .. } => Some(scope),
            _ => None,
        }
    }

    /// Whether the address names someone, as opposed to a group in which absent or unwilling members are passed over.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Remote { .. })
    }
}
