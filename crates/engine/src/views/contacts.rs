//! Contact states between agents.

use super::{View, Viewed};
use crate::nouns::{AgentId, Caller, Contact, ContactState};
use crate::store::rows;

impl View<'_> {
    /// The contacts and requests of an agent in both directions; for the agent, its owner and administrators. An agent
    /// does not learn which agents have blocked it.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn contacts(&self, caller: &Caller, agent: &AgentId) -> Viewed<Vec<Contact>> {
        self.mailbox(caller, agent)?;
        let sql = format!(
            "SELECT {} FROM contacts WHERE (sender = ?1 AND state <> 'blocked') OR recipient = ?1
             ORDER BY sender, recipient LIMIT ?2",
            rows::CONTACT
        );
        let limit = i64::try_from(self.limits.page).unwrap_or(i64::MAX);
        Ok(self.read_rows(&sql, (agent, limit), rows::contact)?.rows)
    }

    /// Requests that an agent has not answered.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub fn contact_requests(&self, caller: &Caller, agent: &AgentId) -> Viewed<Vec<Contact>> {
        self.mailbox(caller, agent)?;
        let sql = format!(
            "SELECT {} FROM contacts WHERE recipient = ?1 AND state = 'pending'
             AND (expires_at IS NULL OR expires_at > ?2) ORDER BY sender LIMIT ?3",
            rows::CONTACT
        );
        let limit = i64::try_from(self.limits.page).unwrap_or(i64::MAX);
        Ok(self.read_rows(&sql, (agent, self.now, limit), rows::contact)?.rows)
    }

    /// The contact state from one agent to another, for either of them. A blocked agent learns nothing.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn contact(&self, caller: &Caller, from: &AgentId, to: &AgentId) -> Viewed<Option<Contact>> {
        let decides = self.mailbox(caller, to).is_ok();
        if !decides {
            self.mailbox(caller, from)?;
        }
        let contact = rows::contact_of(self.db, from, to)?;
        Ok(contact.filter(|contact| decides || contact.state != ContactState::Blocked))
    }
}
