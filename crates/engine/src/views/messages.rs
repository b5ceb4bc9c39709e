//! Single letters, what an agent has sent, and how each fared.

use std::sync::Arc;

use super::{Page, View, Viewed, one_more};
use crate::error::Refusal;
use crate::nouns::{
    AgentId, Audience, Caller, ConversationId, Delivery, DeliveryState, Message, MessageId, RecipientKind,
    Seq,
};
use crate::sight;
use crate::store::{all, message_key, rows};

/// A letter with what became of it, as far as the caller may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    /// The letter.
    pub message: Arc<Message>,
    /// Copies. The sender sees all. A recipient sees its own, and to whom else a copy went that was not blind, but not
    /// how those fared: that is between each of them and the sender, unless the letter is open to observers.
    pub deliveries: Vec<Delivery>,
}

impl View<'_> {
    /// One letter.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message(&self, caller: &Caller, id: MessageId) -> Viewed<Tracked> {
        let message = rows::message_by_id(self.db, id)?;
        self.tracked(caller, message.map(|message| self.bring(message)))
    }

    /// The letter at a place in the history.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message_at(&self, caller: &Caller, seq: Seq) -> Viewed<Tracked> {
        let message = rows::message_at(self.db, seq)?;
        self.tracked(caller, message.map(|message| self.bring(message)))
    }

    /// The letter that a sender calls by its own name.
    ///
    /// # Errors
    /// Refused if there is none that the caller may look at.
    pub fn message_by_key(&self, caller: &Caller, sender: &AgentId, key: &str) -> Viewed<Tracked> {
        let message = match message_key(self.db, sender, key)? {
            Some((_, seq)) => rows::message_at(self.db, seq)?,
            None => None,
        };
        self.tracked(caller, message.map(|message| self.bring(message)))
    }

    /// What an agent has sent, the latest first.
    ///
    /// # Errors
    /// Refused for anybody but the agent, its owner, or those who run the office.
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
        let found = self.stretch_of(&sql, params, rows::message)?;
        let page = self.page_of(found, limit, |message| message.seq);
        // The caller was let into the mailbox, so it may see what the agent may.
        let own = Caller { agent: agent.clone(), ..caller.clone() };
        let items =
            page.items.into_iter().map(|message| self.tracked(&own, Some(message))).collect::<Viewed<_>>()?;
        Ok(Page { items, next: page.next })
    }

    /// The letters of a conversation that the caller sent or received, or may observe, in order.
    ///
    /// # Errors
    /// When the books cannot be read.
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
    /// When the books cannot be read.
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
        let mut page = self.filling(limit);
        let mut from = from;
        'read: loop {
            let batch = self.stretch_of(&sql, (conversation, from, one_more(limit)), rows::message)?;
            let exhausted = batch.rows.len() <= limit && !batch.cut;
            for message in batch.rows {
                from = message.seq;
                if sight::sees_message(self.db, caller, &message)? && !page.take(message) {
                    break 'read;
                }
            }
            if exhausted {
                break;
            }
        }
        let page = page.page(|message| message.seq);
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
            deliveries.retain(|copy| copy.copy != RecipientKind::Bcc || caller.is(&copy.agent));
            let open = caller.rights.observe && message.audience == Audience::Observers;
            for copy in deliveries.iter_mut().filter(|copy| !open && !caller.is(&copy.agent)) {
                *copy = Delivery {
                    message: copy.message,
                    agent: copy.agent.clone(),
                    copy: copy.copy,
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
