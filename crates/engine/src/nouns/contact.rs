//! Contacts: the consent between two agents, one record for each direction.

use super::coded::coded;
use super::{AgentId, Millis};

coded! {
    /// How one agent stands with another.
    ContactState {
        /// Asked, not answered.
        Pending = "pending",
        /// May write.
        Accepted = "accepted",
        /// May not write, and not ask either.
        Blocked = "blocked",
    }
}

/// Whether `from` may write to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Who wants to write.
    pub from: AgentId,
    /// Who decides.
    pub to: AgentId,
    /// What was decided.
    pub state: ContactState,
    /// What was said when asking.
    pub reason: Option<String>,
    /// When the answer lapses.
    pub expires_at: Option<Millis>,
    /// When it was first asked.
    pub created_at: Millis,
    /// When it last changed.
    pub updated_at: Millis,
}
