//! Scopes: named groups that can be addressed.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Json, Millis, ScopeId, Seq};

coded! {
    /// How agents become members.
    JoinPolicy {
        /// By joining.
        Open = "open",
        /// By being added by a member.
        Invite = "invite",
        /// By having one of the scope's roles.
        Role = "role",
        /// By an administrator.
        System = "system",
    }
}

coded! {
    /// Who may see that a scope exists.
    ScopeVisibility {
        /// All members of the realm.
        Public = "public",
        /// Its members.
        Members = "members",
        /// Administrators.
        System = "system",
    }
}

coded! {
    /// Who may see messages to a scope, besides their senders and recipients.
    #[derive(Default)]
    MessagesSeenBy {
        /// Callers that may observe.
        #[default]
        Public = "public",
        /// Members that may observe.
        Members = "members",
        /// Administrators.
        System = "system",
    }
}

impl MessagesSeenBy {
    /// Whether it is the default, which is not serialised.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Self::Public
    }
}

coded! {
    /// Who may write to a scope.
    SendPolicy {
        /// All callers that can see it.
        Any = "any",
        /// Its members.
        Members = "members",
    }
}

/// A named group of agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Its id.
    pub id: ScopeId,
    /// Its display name.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The scope it is part of.
    pub parent: Option<ScopeId>,
    /// How agents become members.
    pub join_policy: JoinPolicy,
    /// Roles that may join under [`JoinPolicy::Role`], and that join automatically on registration.
    pub roles: Vec<String>,
    /// Who may see that it exists.
    pub visibility: ScopeVisibility,
    /// Who may write to it.
    pub send_policy: SendPolicy,
    /// Who may see messages to it, besides their senders and recipients.
    #[serde(default, rename = "letters", skip_serializing_if = "MessagesSeenBy::is_usual")]
    pub messages_seen_by: MessagesSeenBy,
    /// Whether it is deleted with its last member.
    pub auto_delete: bool,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// The agent that created it.
    pub created_by: AgentId,
    /// When it was created.
    pub created_at: Millis,
    /// Its seq in the event log.
    pub seq: Seq,
}
