//! The deliveries of an agent and of a message, without contents: for bridges that keep a mailbox elsewhere in step
//! with this one.

use super::page_weight::Weigh;
use super::{Page, View, Viewed, one_more, require_admin};
use crate::nouns::{AgentId, Caller, Delivery, DeliveryState, MessageId, Millis, Seq};
use crate::store::rows;

/// One delivery of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryIndexRow {
    /// The message's seq.
    pub seq: Seq,
    /// The message.
    pub message: MessageId,
    /// The sender.
    pub from: AgentId,
    /// The sender's key for it.
    pub key: Option<String>,
    /// The door by which it was sent.
    pub via: String,
    /// When it was accepted.
    pub at: Millis,
    /// The state of the delivery.
    pub state: DeliveryState,
}

impl View<'_> {
    /// Every delivery that an agent ever got, in order; for the agent, its owner and administrators.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn delivery_index(
        &self,
        caller: &Caller,
        agent: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<DeliveryIndexRow, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let sql = "SELECT d.message, m.id, m.sender, m.key, m.via, m.at, d.state
                   FROM deliveries d JOIN messages m ON m.seq = d.message
                   WHERE d.agent = ?1 AND d.message > ?2 ORDER BY d.message LIMIT ?3";
        let found = self.read_rows(sql, (agent, after.max(me.born), one_more(limit)), |row| {
            Ok(DeliveryIndexRow {
                seq: row.get(0)?,
                message: row.get(1)?,
                from: row.get(2)?,
                key: row.get(3)?,
                via: row.get(4)?,
                at: row.get(5)?,
                state: row.get(6)?,
            })
        })?;
        Ok(self.page_of(found, limit, |row| row.seq))
    }

    /// Every delivery of a message, by recipient; for administrators.
    ///
    /// # Errors
    /// Refused for other callers.
    pub fn deliveries_of(
        &self,
        caller: &Caller,
        message: Seq,
        after: Option<&AgentId>,
        limit: usize,
    ) -> Viewed<Page<Delivery, AgentId>> {
        require_admin(caller)?;
        let limit = self.page(limit);
        let sql = format!(
            "SELECT {} FROM deliveries d WHERE d.message = ?1 AND (?2 IS NULL OR d.agent > ?2)
             ORDER BY d.agent LIMIT ?3",
            rows::DELIVERY
        );
        let found = self.read_rows(&sql, (message, after, one_more(limit)), |row| rows::delivery(row, 0))?;
        Ok(self.page_of(found, limit, |delivery| delivery.agent.clone()))
    }
}

impl Weigh for DeliveryIndexRow {
    fn weight(&self) -> usize {
        256 + self.key.as_ref().map_or(0, String::len)
    }
}
