//! Agents: everyone who can send or receive.

use serde::{Deserialize, Serialize};

use super::coded::coded;
use super::{AgentId, Bounds, Json, Millis, ScopeId, Seq};

coded! {
    /// What sort of correspondent an agent is.
    AgentKind {
        /// A program that works.
        Agent = "agent",
        /// A person.
        User = "user",
        /// A person who runs the office.
        Admin = "admin",
        /// A program that watches and asks.
        Client = "client",
        /// A bridge to another office.
        Gateway = "gateway",
        /// The office or a part of it.
        System = "system",
    }
}

coded! {
    /// Who may find an agent in the address book and write to it. Its owner and its owner's other agents always may.
    Visibility {
        /// Everybody in the realm.
        Public = "public",
        /// Those who share a scope with it.
        Scope = "scope",
        /// Its parent, and whoever owns that.
        ParentOnly = "parent-only",
        /// Only those who run the office.
        System = "system",
    }
}

coded! {
    /// Whose first letter an agent accepts.
    ContactPolicy {
        /// Anybody's.
        Open = "open",
        /// Only accepted contacts'; a stranger's first letter is refused and leaves a pending request.
        Contacts = "contacts",
        /// Nobody's but accepted contacts', and no requests either.
        Closed = "closed",
    }
}

coded! {
    /// How widely an agent shows its presence and may broadcast.
    Privacy {
        /// To everybody in the realm.
        Public = "public",
        /// To accepted contacts.
        Contacts = "contacts",
        /// To nobody.
        Invisible = "invisible",
    }
}

/// One entry of the address book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Unique in the realm.
    pub id: AgentId,
    /// What sort of correspondent it is.
    pub kind: AgentKind,
    /// What people call it.
    pub name: Option<String>,
    /// What it is for, in a sentence.
    pub description: Option<String>,
    /// The part it plays, by which it can be addressed.
    pub role: Option<String>,
    /// The agent that made it.
    pub parent: Option<AgentId>,
    /// The caller that registered it and may change it.
    pub owner: Option<AgentId>,
    /// What it is doing, in a door's words: `active`, `idle`, `suspended`, …
    pub state: String,
    /// Who may find it.
    pub visibility: Visibility,
    /// Whose first letter it accepts.
    pub contact_policy: ContactPolicy,
    /// How widely it shows itself.
    pub privacy: Privacy,
    /// Public keys, in the words of the door that checks them.
    pub keys: Option<Json>,
    /// What it can do, as declared.
    pub capabilities: Option<Json>,
    /// What it is kept to.
    pub bounds: Option<Bounds>,
    /// Whatever else a door wants back.
    pub meta: Option<Json>,
    /// The door it came by.
    pub via: String,
    /// The scopes it is a member of.
    pub scopes: Vec<ScopeId>,
    /// When it was first registered.
    pub created_at: Millis,
    /// When its entry last changed.
    pub updated_at: Millis,
    /// When it left, if it did.
    pub retired_at: Option<Millis>,
    /// Mail up to this point of the history belongs to an earlier holder of the name.
    pub born: Seq,
}

impl Agent {
    /// Whether the entry is in force.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.retired_at.is_none()
    }

    /// Whether it has been told to pause: it keeps receiving but may not send.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.state == Self::SUSPENDED
    }

    /// Whether it has ended: it does nothing any more until somebody registers it anew.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == Self::RETIRED
    }

    /// The state of an agent that was told to pause.
    pub const SUSPENDED: &'static str = "suspended";
    /// The state after a pause ends.
    pub const IDLE: &'static str = "idle";
    /// The state of an agent that has just arrived.
    pub const REGISTERED: &'static str = "registered";
    /// The state of an agent that nobody stands behind any more.
    pub const ORPHANED: &'static str = "orphaned";
    /// The state of an agent that has ended or left.
    pub const RETIRED: &'static str = "stopped";
    /// The state of an agent that has left for good: nobody takes its name again.
    pub const REVOKED: &'static str = "revoked";
}
