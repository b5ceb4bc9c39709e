//! An agent's copies and a letter's copies, without what the letters say: for whoever keeps a mailbox elsewhere in step
//! with this one.

use super::weigh::Weigh;
use super::{Page, View, Viewed, one_more, require_admin};
use crate::nouns::{AgentId, Caller, Delivery, DeliveryState, MessageId, Millis, Seq};
use crate::store::rows;

/// One of an agent's copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The letter's place in the history.
    pub seq: Seq,
    /// The letter.
    pub message: MessageId,
    /// Who sent it.
    pub from: AgentId,
    /// The sender's own name for it.
    pub key: Option<String>,
    /// The door it came by.
    pub via: String,
    /// When it was accepted.
    pub at: Millis,
    /// How far the copy has come.
    pub state: DeliveryState,
}

impl View<'_> {
    /// Every copy an agent ever got, in order; for the agent, its owner, or those who run the office.
    ///
    /// # Errors
    /// Refused for anybody else, as if there were no such agent.
    pub fn ledger(
        &self,
        caller: &Caller,
        agent: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<LedgerLine, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let sql = "SELECT d.message, m.id, m.sender, m.key, m.via, m.at, d.state
                   FROM deliveries d JOIN messages m ON m.seq = d.message
                   WHERE d.agent = ?1 AND d.message > ?2 ORDER BY d.message LIMIT ?3";
        let lines = self.stretch_of(sql, (agent, after.max(me.born), one_more(limit)), |row| {
            Ok(LedgerLine {
                seq: row.get(0)?,
                message: row.get(1)?,
                from: row.get(2)?,
                key: row.get(3)?,
                via: row.get(4)?,
                at: row.get(5)?,
                state: row.get(6)?,
            })
        })?;
        Ok(self.page_of(lines, limit, |line| line.seq))
    }

    /// Every copy of a letter, by recipient, however many there are; for those who run the office.
    ///
    /// # Errors
    /// Refused for anybody else.
    pub fn copies(
        &self,
        caller: &Caller,
        letter: Seq,
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
        let found = self.stretch_of(&sql, (letter, after, one_more(limit)), |row| rows::delivery(row, 0))?;
        Ok(self.page_of(found, limit, |copy| copy.agent.clone()))
    }
}

impl Weigh for LedgerLine {
    fn weight(&self) -> usize {
        256 + self.key.as_ref().map_or(0, String::len)
    }
}
