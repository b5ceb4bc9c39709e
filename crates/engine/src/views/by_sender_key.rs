//! Messages by the labels their senders gave them, and the exchange between two agents.

use std::sync::Arc;

use super::inbox::InboxMessage;
use super::page_weight::RowBatch;
use super::{Page, View, Viewed, one_more};
use crate::nouns::{AgentId, Caller, Seq};
use crate::store::{rows, seqs_with_label};

impl View<'_> {
    /// The messages in an agent's inbox that came with this label (a [`crate::verbs::seen_keys::SingleUseKey`]), the latest
    /// first; there are several if several senders used it. For the agent, its owner and administrators.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn messages_with_label(
        &self,
        caller: &Caller,
        agent: &AgentId,
        label: &str,
    ) -> Viewed<Vec<InboxMessage>> {
        let me = self.mailbox(caller, agent)?;
        let limit = i64::try_from(self.limits.page).unwrap_or(i64::MAX);
        let seqs = seqs_with_label(self.db, label, me.born, limit)?;
        let mut found = self.page_builder(seqs.len());
        for seq in seqs {
            if let Some(delivery) = rows::delivery_of(self.db, agent, seq)?
                && let Some(message) = rows::message_at(self.db, seq)?
                && !found.push(InboxMessage { message: Arc::new(message), delivery })
            {
                break;
            }
        }
        Ok(found.items)
    }

    /// What two agents sent to each other, in order; for the agent, its owner and administrators.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn exchange(
        &self,
        caller: &Caller,
        agent: &AgentId,
        other: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        self.exchanged(caller, (agent, other), after, limit, false)
    }

    /// The latest messages that they sent to each other after a seq, in order.
    ///
    /// # Errors
    /// As for [`View::exchange`].
    pub fn latest_exchange(
        &self,
        caller: &Caller,
        agent: &AgentId,
        other: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Vec<InboxMessage>> {
        let mut latest = self.exchanged(caller, (agent, other), after, limit, true)?.items;
        latest.reverse();
        Ok(latest)
    }

    fn exchanged(
        &self,
        caller: &Caller,
        (agent, other): (&AgentId, &AgentId),
        after: Seq,
        limit: usize,
        newest_first: bool,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let order = if newest_first { "DESC" } else { "ASC" };
        // Each direction is read in seq order, and only as far as the page goes.
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.sender = ?1 AND m.seq > ?3
             AND EXISTS(SELECT 1 FROM deliveries d WHERE d.agent = ?2 AND d.message = m.seq AND d.state < 4)
             ORDER BY m.seq {order} LIMIT ?4",
            rows::MESSAGE
        );
        let low = after.max(me.born);
        let mut parts = Vec::new();
        for (from, to) in [(agent, other), (other, agent)] {
            parts.push(self.read_rows(&sql, (from, to, low, one_more(limit)), rows::message)?);
            if agent == other {
                break;
            }
        }
        let messages = RowBatch::merged(parts, newest_first, limit, |message| message.seq);
        let page = self.page_of(messages, limit, |message| message.seq);
        let mut items = Vec::with_capacity(page.items.len());
        for message in page.items {
            let to = if message.from == *agent { other } else { agent };
            if let Some(delivery) = rows::delivery_of(self.db, to, message.seq)? {
                items.push(InboxMessage { message: Arc::new(message), delivery });
            }
        }
        Ok(Page { items, next: page.next })
    }
}
