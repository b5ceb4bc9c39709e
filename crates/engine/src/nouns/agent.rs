//! Agents: everything that can send or receive.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Bounds, Json, Millis, ScopeId, Seq};

coded! {
    /// What an agent is.
    AgentKind {
        /// A program that works.
        Agent = "agent",
        /// A person.
        User = "user",
        /// A person who administers the server.
        Admin = "admin",
        /// A program that watches and asks.
        Client = "client",
        /// A bridge to another server.
        Gateway = "gateway",
        /// The server or a part of it.
        System = "system",
    }
}

coded! {
    /// Who may see an agent in the directory and write to it. Its owner and its owner's other agents always may.
    Visibility {
        /// All members of the realm.
        Public = "public",
        /// Agents that share a scope with it.
        Scope = "scope",
        /// Its parent, and the parent's owner.
        ParentOnly = "parent-only",
        /// Only administrators.
        System = "system",
    }
}

coded! {
    /// Whose first message an agent accepts.
    ContactPolicy {
        /// Any sender's.
        Open = "open",
        /// Accepted contacts' only; the first message of another sender is refused and leaves a pending request.
        Contacts = "contacts",
        /// Accepted contacts' only, and no requests either.
        Closed = "closed",
    }
}

coded! {
    /// How widely an agent shows its presence and may broadcast.
    Privacy {
        /// To all members of the realm.
        Public = "public",
        /// To accepted contacts.
        Contacts = "contacts",
        /// To no other agent.
        Invisible = "invisible",
    }
}

/// An agent's entry in the directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Unique in the realm.
    pub id: AgentId,
    /// What kind of agent it is.
    pub kind: AgentKind,
    /// Its display name.
    pub name: Option<String>,
    /// What it is for, in a sentence.
    pub description: Option<String>,
    /// Its role, by which it can be addressed.
    pub role: Option<String>,
    /// The agent that made it.
    pub parent: Option<AgentId>,
    /// The caller that registered it and may change it.
    pub owner: Option<AgentId>,
    /// Its state, a value that the door defines: `active`, `idle`, `suspended`, …
    pub state: String,
    /// Who may see it.
    pub visibility: Visibility,
    /// Whose first message it accepts.
    pub contact_policy: ContactPolicy,
    /// How widely it shows its presence.
    pub privacy: Privacy,
    /// Public keys, in the format of the door that checks them.
    pub keys: Option<Json>,
    /// What it can do, as declared.
    pub capabilities: Option<Json>,
    /// Its bounds.
    pub bounds: Option<Bounds>,
    /// Data that a door stores and reads back.
    pub meta: Option<Json>,
    /// The door by which it was registered.
    pub via: String,
    /// The scopes it is a member of.
    pub scopes: Vec<ScopeId>,
    /// When it was first registered.
    pub created_at: Millis,
    /// When its entry last changed.
    pub updated_at: Millis,
    /// When it left, if it did.
    pub retired_at: Option<Millis>,
    /// Mail up to this seq belongs to an earlier holder of the name.
    pub born: Seq,
}

impl Agent {
    /// Whether the agent is registered.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.retired_at.is_none()
    }

    /// Whether it is suspended: it keeps receiving but may not send.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.state == Self::SUSPENDED
    }

    /// Whether it has stopped: it does nothing until it is registered again.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == Self::RETIRED
    }

    /// The state of an agent that was told to pause.
    pub const SUSPENDED: &'static str = "suspended";
    /// The state after a pause ends.
    pub const IDLE: &'static str = "idle";
    /// The state of an agent that was just registered.
    pub const REGISTERED: &'static str = "registered";
    /// The state of an agent whose owner or parent is gone.
    pub const ORPHANED: &'static str = "orphaned";
    /// The state of an agent that has stopped or left.
    pub const RETIRED: &'static str = "stopped";
    /// The state of an agent that has left for good: its name is never reused.
    pub const REVOKED: &'static str = "revoked";
}
