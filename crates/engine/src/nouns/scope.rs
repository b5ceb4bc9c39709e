//! Scopes: named groups that can be addressed.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, ScopeId, Seq};

coded! {
    /// How one becomes a member.
    JoinPolicy {
        /// By asking.
        Open = "open",
        /// By being added by a member.
        Invite = "invite",
        /// By playing one of the scope's roles.
        Role = "role",
        /// By those who run the office.
        System = "system",
    }
}

coded! {
    /// Who may see that a scope exists.
    ScopeVisibility {
        /// Everybody in the realm.
        Public = "public",
        /// Its members.
        Members = "members",
        /// Those who run the office.
        System = "system",
    }
}

coded! {
    /// Who may see letters to a scope, besides those who send and receive them.
    #[derive(Default)]
    MessagesSeenBy {
        /// Everybody who may observe.
        #[default]
        Public = "public",
        /// Those of them who are members.
        Members = "members",
        /// Those who run the office.
        System = "system",
    }
}

impl MessagesSeenBy {
    /// Whether the scope asks for nothing in particular.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::Public
    }
}

coded! {
    /// Who may write to a scope.
    SendPolicy {
        /// Everybody who can see it.
        Any = "any",
        /// Its members.
        Members = "members",
    }
}

/// A named group of agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Its name.
    pub id: ScopeId,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The scope it is part of.
    pub parent: Option<ScopeId>,
    /// How one becomes a member.
    pub join_policy: JoinPolicy,
    /// Roles that may join under [`JoinPolicy::Role`], and that join by themselves on registration.
    pub roles: Vec<String>,
    /// Who may see that it exists.
    pub visibility: ScopeVisibility,
    /// Who may write to it.
    pub send_policy: SendPolicy,
    /// Who may see letters to it, besides those who send and receive them.
    #[serde(default, skip_serializing_if = "MessagesSeenBy::is_usual")]
    pub letters: MessagesSeenBy,
    /// Whether it goes away with its last member.
    pub auto_delete: bool,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// Who made it.
    pub created_by: AgentId,
    /// When it was made.
    pub created_at: Millis,
    /// Its place in the realm's history.
    pub seq: Seq,
}
