//! Outstanding mail: acknowledgements that were requested and not given, and deliveries that failed.

use std::sync::Arc;

use super::{InboxMessage, Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, Message, Millis, Seq};
use crate::sight;
use crate::store::{all, rows};

/// Rows read for one page; older ones are on a later page.
const ROWS_PER_PAGE: usize = 2_000;

impl View<'_> {
    /// Messages that an agent was asked to acknowledge and has not, the latest first: all, or those that were sent
    /// before a time. For the agent itself, its owner and administrators. A page may be short, or even empty, and still
    /// not be the last.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn unacknowledged(
        &self,
        caller: &Caller,
        agent: &AgentId,
        sent_before: Option<Millis>,
        before: Option<Seq>,
        limit: usize,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let mut high = before.unwrap_or(Seq::MAX);
        if let Some(time) = sent_before {
            high = high.min(self.last_seq_at(time)?.saturating_add(1));
        }
        let sql = "SELECT seq FROM messages INDEXED BY messages_asking
                   WHERE ack_required <> 0 AND seq < ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3";
        let asking: Vec<Seq> = all(self.db, sql, (high, me.born, one_more(ROWS_PER_PAGE)), |row| row.get(0))?;
        let mut page = self.page_builder(limit);
        let mut next = None;
        for (n, seq) in asking.iter().enumerate() {
            let before = n.checked_sub(1).map(|last| asking[last]);
            if n == ROWS_PER_PAGE || page.is_full() {
                next = before;
                break;
            }
            let Some(delivery) = rows::delivery_of(self.db, agent, *seq)? else { continue };
            if delivery.state < crate::nouns::DeliveryState::Acked {
                let message = rows::message_at(self.db, *seq)?.ok_or(Refusal::NoSuchMessage)?;
                if !page.push(InboxMessage { message: Arc::new(message), delivery }) {
                    next = before;
                    break;
                }
            }
        }
        Ok(Page { items: page.items, next })
    }

    /// Deliveries that expired or were given up, the latest first, as far as the caller may see them: the sender of
    /// each, its recipient, and administrators.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn failed_deliveries(
        &self,
        caller: &Caller,
        before: Option<Seq>,
        limit: usize,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        require_member(caller)?;
        let limit = self.page(limit);
        let sql = format!(
            "SELECT {} FROM deliveries d INDEXED BY deliveries_dead
             WHERE d.state >= 4 AND d.message < ?1 ORDER BY d.message DESC, d.agent LIMIT ?2",
            rows::DELIVERY
        );
        let params = (before.unwrap_or(Seq::MAX), one_more(ROWS_PER_PAGE));
        let failed = all(self.db, &sql, params, |row| rows::delivery(row, 0))?;
        let mut page: Page<InboxMessage, Seq> = Page { items: Vec::new(), next: None };
        let mut last: Option<Seq> = None;
        for (n, delivery) in failed.into_iter().enumerate() {
            // A page ends between two messages, so that no delivery of a message falls between two pages. Only where
            // the answer has no room are further deliveries of a message left out.
            let no_room = self.budget.is_full();
            let full = page.items.len() >= limit || n >= ROWS_PER_PAGE || no_room;
            if full && last != Some(delivery.message) {
                page.next = last;
                break;
            }
            if no_room && !page.items.is_empty() {
                continue;
            }
            last = Some(delivery.message);
            let Some(message) = rows::message_at(self.db, delivery.message)? else { continue };
            if self.sees_delivery(caller, &message, &delivery.agent)? {
                page.items.push(self.counted(InboxMessage { message: Arc::new(message), delivery }));
            }
        }
        Ok(page)
    }

    /// The state of a delivery is between its recipient and the sender.
    fn sees_delivery(&self, caller: &Caller, message: &Message, agent: &AgentId) -> Viewed<bool> {
        let party = caller.rights.admin || caller.is(&message.from) || caller.is(agent);
        Ok(party && sight::sees_message(self.db, caller, message)?)
    }
}
