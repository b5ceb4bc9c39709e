//! Contacts: consent between two agents, one record per direction.

use super::coded::coded;
use super::{AgentId, Millis};

coded! {
    /// What one agent has decided about another.
    ContactState {
        /// Requested, not answered.
        Pending = "pending",
        /// May send messages.
        Accepted = "accepted",
        /// May neither send nor request.
        Blocked = "blocked",
    }
}

/// Whether `from` may send to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The agent that wants to send.
    pub from: AgentId,
    /// The agent that decides.
    pub to: AgentId,
    /// What was decided.
    pub state: ContactState,
    /// The reason given with the request.
    pub reason: Option<String>,
    /// When the decision expires.
    pub expires_at: Option<Millis>,
    /// When it was first requested.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
}
