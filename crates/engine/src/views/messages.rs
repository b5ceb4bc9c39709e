//! Single messages, what an agent has sent, and the deliveries of each.

use std::sync::Arc;

use super::{Page, View, Viewed, one_more};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Audience, Caller, ConversationId, Delivery, DeliveryState, Message, MessageId, RecipientKind,
    Seq,
};
use crate::sight;
use crate::store::{all, message_key, rows};

/// A message with its deliveries, as far as the caller may see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The message.
    pub message: Arc<Message>,
    /// The sender sees all deliveries. A recipient sees its own, and the other recipients except blind copies, but not
    /// the state of their deliveries: that is between each of them and the sender, unless the message is open to
    /// observers.
    pub deliveries: Vec<Delivery>,
}

impl View<'_> {
    /// One message.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message(&self, caller: &Caller, id: MessageId) -> Viewed<Tracked> {
        let message = rows::message_by_id(self.db, id)?;
        self.tracked(caller, message.map(|message| self.counted(message)))
    }

    /// The message with a seq.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message_at(&self, caller: &Caller, seq: Seq) -> Viewed<Tracked> {
        let message = rows::message_at(self.db, seq)?;
        self.tracked(caller, message.map(|message| self.counted(message)))
    }

    /// The message with a sender's own key.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message_by_key(&self, caller: &Caller, sender: &AgentId, key: &str) -> Viewed<Tracked> {
        let message = match message_key(self.db, sender, key)? {
            Some((_, seq)) => rows::message_at(self.db, seq)?,
            None => None,
        };
        self.tracked(caller, message.map(|message| self.counted(message)))
    }

    /// What an agent has sent, the latest first.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub fn sent(
        &self,
        caller: &Caller,
        agent: &AgentId,
        before: Option<Seq>,
        limit: usize,
    ) -> Viewed<Page<Tracked, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.sender = ?1 AND m.seq < ?2 AND m.seq > ?3 ORDER BY m.seq DESC LIMIT ?4",
            rows::MESSAGE
        );
        let params = (agent, before.unwrap_or(Seq::MAX), me.born, one_more(limit));
        let found = self.read_rows(&sql, params, rows::message)?;
        let page = self.page_of(found, limit, |message| message.seq);
        // The caller may read the mailbox, so it sees what the agent may see.
        let own = Caller { agent: agent.clone(), ..caller.clone() };
        let items =
            page.items.into_iter().map(|message| self.tracked(&own, Some(message))).collect::<Viewed<_>>()?;
        Ok(Page { items, next: page.next })
    }

    /// The messages of a conversation that the caller sent or received, or may observe, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn correspondence(
        &self,
        caller: &Caller,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<Tracked, Seq>> {
        self.corresponded(caller, conversation, after, limit, false)
    }

    /// The latest of them, the latest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn latest_correspondence(
        &self,
        caller: &Caller,
        conversation: &ConversationId,
        limit: usize,
    ) -> Viewed<Page<Tracked, Seq>> {
        self.corresponded(caller, conversation, Seq::MAX, limit, true)
    }

    fn corresponded(
        &self,
        caller: &Caller,
        conversation: &ConversationId,
        from: Seq,
        limit: usize,
        newest_first: bool,
    ) -> Viewed<Page<Tracked, Seq>> {
        let limit = self.page(limit);
        let (beyond, order) = if newest_first { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.conversation = ?1 AND m.seq {beyond} ?2
             ORDER BY m.seq {order} LIMIT ?3",
            rows::MESSAGE
        );
        let mut page = self.page_builder(limit);
        let mut from = from;
        'read: loop {
            let batch = self.read_rows(&sql, (conversation, from, one_more(limit)), rows::message)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for message in batch.rows {
                from = message.seq;
                if sight::sees_message(self.db, caller, &message)? && !page.push(message) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        let page = page.finish(|message| message.seq);
        let items = page
            .items
            .into_iter()
            .map(|message| self.tracked(caller, Some(message)))
            .collect::<Viewed<_>>()?;
        Ok(Page { items, next: page.next })
    }

    fn tracked(&self, caller: &Caller, message: Option<Message>) -> Viewed<Tracked> {
        let message = message.ok_or(Refusal::NoSuchMessage)?;
        if !sight::sees_message(self.db, caller, &message)? {
            return Err(Refusal::NoSuchMessage.into());
        }
        let sql = format!(
            "SELECT {} FROM deliveries d WHERE d.message = ?1 ORDER BY d.agent LIMIT ?2",
            rows::DELIVERY
        );
        let params = (message.seq, one_more(self.limits.page));
        let mut deliveries = all(self.db, &sql, params, |row| rows::delivery(row, 0))?;
        if !caller.may_act_for(&message.from) {
            deliveries.retain(|delivery| delivery.copy != RecipientKind::Bcc || caller.is(&delivery.agent));
            let open = caller.rights.observe && message.audience == Audience::Observers;
            for delivery in deliveries.iter_mut().filter(|delivery| !open && !caller.is(&delivery.agent)) {
                *delivery = Delivery {
                    message: delivery.message,
                    agent: delivery.agent.clone(),
                    copy: delivery.copy,
                    state: DeliveryState::Queued,
                    delivered_at: None,
                    read_at: None,
                    acked_at: None,
                    note: None,
                };
            }
        }
        Ok(Tracked { message: Arc::new(message), deliveries })
    }
}
