//! What mail still waits for: acknowledgements that were asked for and not given, and letters that reached nobody.

use std::sync::Arc;

use super::{InboxMessage, Page, View, Viewed, one_more, require_member};
use crate::error::Refusal;
use crate::nouns::{AgentId, Caller, Message, Millis, Seq};
use crate::sight;
use crate::store::{all, rows};

/// Letters looked at for one page of acknowledgements; what is older is on a later page.
const LOOKED_AT: usize = 2_000;

impl View<'_> {
    /// Letters that an agent was asked to acknowledge and has not, the latest first: all, or those that were sent before
    /// a time. For the agent itself, its owner, or those who run the office. A page may be short, or even empty, and
    /// still not be the last.
    ///
    /// # Errors
    /// Refused for anybody else, as if there were no such agent.
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
        let asking: Vec<Seq> = all(self.db, sql, (high, me.born, one_more(LOOKED_AT)), |row| row.get(0))?;
        let mut page = self.filling(limit);
        let mut next = None;
        for (n, seq) in asking.iter().enumerate() {
            let before = n.checked_sub(1).map(|last| asking[last]);
            if n == LOOKED_AT || page.is_full() {
                next = before;
                break;
            }
            let Some(delivery) = rows::delivery_of(self.db, agent, *seq)? else { continue };
            if delivery.state < crate::nouns::DeliveryState::Acked {
                let message = rows::message_at(self.db, *seq)?.ok_or(Refusal::NoSuchMessage)?;
                if !page.take(InboxMessage { message: Arc::new(message), delivery }) {
                    next = before;
                    break;
                }
            }
        }
        Ok(Page { items: page.items, next })
    }

    /// Deliveries that expired or were given up, the latest first, as far as the caller may look at the letters: the
    /// sender of each, its recipient, or those who run the office.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn dead_letters(
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
        let params = (before.unwrap_or(Seq::MAX), one_more(LOOKED_AT));
        let dead = all(self.db, &sql, params, |row| rows::delivery(row, 0))?;
        let mut page: Page<InboxMessage, Seq> = Page { items: Vec::new(), next: None };
        let mut last: Option<Seq> = None;
        for (n, delivery) in dead.into_iter().enumerate() {
            // A page ends between two letters, so that none of a letter's copies falls between two pages. Only where the
            // answer has no room for them are further copies of a letter left out.
            let no_room = self.budget.is_full();
            let full = page.items.len() >= limit || n >= LOOKED_AT || no_room;
            if full && last != Some(delivery.message) {
                page.next = last;
                break;
            }
            if no_room && !page.items.is_empty() {
                continue;
            }
            last = Some(delivery.message);
            let Some(message) = rows::message_at(self.db, delivery.message)? else { continue };
            if self.sees_fate(caller, &message, &delivery.agent)? {
                page.items.push(self.bring(InboxMessage { message: Arc::new(message), delivery }));
            }
        }
        Ok(page)
    }

    /// How one recipient fared is between that recipient and the sender.
    fn sees_fate(&self, caller: &Caller, message: &Message, agent: &AgentId) -> Viewed<bool> {
        let party = caller.rights.admin || caller.is(&message.from) || caller.is(agent);
        Ok(party && sight::sees_message(self.db, caller, message)?)
    }
}
