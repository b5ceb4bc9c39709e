//! An agent's mail: waiting, unread, or all. Reading a page does not change delivery states.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Page, View, Viewed, one_more};
use crate::error::Refusal;
use crate::nouns::{
    Agent, AgentId, Caller, ConversationId, Delivery, DeliveryState, Message, Millis, Priority, Seq,
};
use crate::similar_names;
use crate::store::{Db, all, one, rows};

/// The order in which messages are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboxOrder {
    /// The latest first.
    #[default]
    Newest,
    /// The earliest first.
    Oldest,
    /// The most urgent first, and the earliest of those; only for unread messages.
    Priority,
}

/// Which messages to list.
#[derive(Clone, Debug, Default)]
pub struct InboxQuery {
    /// Only unread ones.
    pub unread: bool,
    /// Only those of one of these kinds.
    pub kinds: Vec<String>,
    /// Only those with at least this priority.
    pub at_least: Option<Priority>,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those accepted after this time.
    pub since: Option<Millis>,
    /// Only those after this seq; in priority order, only those listed after this message.
    pub after: Option<Seq>,
    /// Only those before this seq.
    pub before: Option<Seq>,
    /// Include expired ones.
    pub expired: bool,
    /// The order.
    pub order: InboxOrder,
    /// How many.
    pub limit: usize,
}

/// A message and its delivery to one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// The message.
    pub message: Arc<Message>,
    /// The recipient's delivery.
    pub delivery: Delivery,
}

/// Counts of an agent's mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailCounts {
    /// Unread.
    pub unread: i64,
    /// Unread and urgent.
    pub urgent: i64,
    /// Waiting and not delivered.
    pub queued: i64,
}

impl View<'_> {
    /// An agent's mail, for the agent itself, its owner and administrators.
    ///
    /// # Errors
    /// Refused for other callers, as if there were no such agent.
    pub fn inbox(
        &self,
        caller: &Caller,
        agent: &AgentId,
        query: &InboxQuery,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(query.limit);
        let since = match query.since {
            Some(time) => self.last_seq_at(time)?,
            None => 0,
        };
        let low = me.born.max(since);
        let after = query.after.unwrap_or(0);
        let high = query.before.unwrap_or(Seq::MAX);
        // In priority order a page ends at a message of some tier; more urgent tiers are complete.
        let reached = match query.order {
            InboxOrder::Priority if after > 0 => self.tier_of(agent, after)?,
            _ => None,
        };
        let mut deliveries = Vec::new();
        for range in index_ranges(query) {
            let low = match reached {
                Some(reached) if range.tier.is_some_and(|tier| tier < reached) => continue,
                Some(reached) if range.tier.is_some_and(|tier| tier > reached) => low,
                _ => low.max(after),
            };
            deliveries.extend(self.read_range(agent, &range, query, (low, high), limit)?);
        }
        match query.order {
            InboxOrder::Newest => deliveries.sort_by_key(|found| Reverse(found.0.message)),
            InboxOrder::Oldest => deliveries.sort_by_key(|found| found.0.message),
            InboxOrder::Priority => deliveries.sort_by_key(|found| (found.1, found.0.message)),
        }
        deliveries.dedup_by_key(|found| found.0.message);
        let page = Page::from_rows(deliveries, limit, |found| found.0.message);
        self.with_messages(page.items.into_iter().map(|(delivery, _)| delivery), page.next)
    }

    /// The messages of these deliveries, as far as the answer has room.
    fn with_messages(
        &self,
        deliveries: impl ExactSizeIterator<Item = Delivery>,
        next: Option<Seq>,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let mut page = self.page_builder(deliveries.len());
        for delivery in deliveries {
            if !page.push(inbox_message(self.db, delivery)?) {
                break;
            }
        }
        let page = page.finish(|found| found.message.seq);
        Ok(Page { next: page.next.or(next), ..page })
    }

    /// The priority of an agent's message.
    fn tier_of(&self, agent: &AgentId, message: Seq) -> Viewed<Option<Priority>> {
        let sql = "SELECT priority FROM deliveries WHERE agent = ?1 AND message = ?2";
        Ok(one(self.db, sql, (agent, message), |row| row.get(0))?)
    }

    /// The deliveries of one index range that match the query, in seq order.
    fn read_range(
        &self,
        agent: &AgentId,
        range: &IndexRange,
        query: &InboxQuery,
        (low, high): (Seq, Seq),
        limit: usize,
    ) -> Viewed<Vec<(Delivery, Priority)>> {
        let direction = if query.order == InboxOrder::Newest { "DESC" } else { "ASC" };
        let within = match &query.conversation {
            Some(_) => "AND (SELECT conversation FROM messages WHERE seq = d.message) = ?6",
            None => "AND ?6 IS NULL",
        };
        let kinds: Vec<Option<&str>> = match query.kinds.as_slice() {
            [] => vec![None],
            kinds => kinds.iter().map(|kind| Some(kind.as_str())).collect(),
        };
        let mut found = Vec::new();
        for kind in kinds {
            let plain = kind.is_some_and(|kind| rows::indexed_kind(kind).is_empty());
            let (index, of_kind) = match (kind, range.index) {
                (None, index) => (index, "AND ?7 IS NULL"),
                (Some(_), index) if plain => (
                    index,
                    "AND d.kind IN ('', ?7) AND (SELECT kind FROM messages WHERE seq = d.message) = ?7",
                ),
                (Some(_), "") => ("INDEXED BY deliveries_by_kind", "AND d.kind = ?7 AND d.kind <> ''"),
                (Some(_), index) => (index, "AND d.kind = ?7"),
            };
            let sql = format!(
                "SELECT {}, d.priority FROM deliveries d {index}
                 WHERE d.agent = ?1 AND d.message > ?2 AND d.message < ?3
                 AND (d.expires_at IS NULL OR d.expires_at > ?4 OR d.state IN (2, 3) OR ?8) AND {} {of_kind} {within}
                 ORDER BY d.message {direction} LIMIT ?5",
                rows::DELIVERY, range.condition
            );
            let params =
                (agent, low, high, self.now, one_more(limit), &query.conversation, kind, query.expired);
            let read = |row: &rusqlite::Row<'_>| Ok((rows::delivery(row, 0)?, row.get(8)?));
            found.extend(all(self.db, &sql, params, read)?);
        }
        Ok(found)
    }

    /// Counts of an agent's mail, with the same conditions as the lists.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub fn mail_counts(&self, caller: &Caller, agent: &AgentId) -> Viewed<MailCounts> {
        let me = self.mailbox(caller, agent)?;
        let sql = "SELECT count(*), coalesce(sum(priority < 3), 0), coalesce(sum(state = 0), 0)
                   FROM deliveries INDEXED BY deliveries_waiting WHERE agent = ?1 AND state < 2 AND message > ?2
                   AND (expires_at IS NULL OR expires_at > ?3)";
        let counts = one(self.db, sql, (agent, me.born, self.now), |row| {
            Ok(MailCounts { unread: row.get(0)?, urgent: row.get(1)?, queued: row.get(2)? })
        })?;
        Ok(counts.unwrap_or_default())
    }

    /// Number of an agent's unread messages, counted up to `most`: for callers that only show whether there are any,
    /// and about how many.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub fn unread_up_to(&self, caller: &Caller, agent: &AgentId, most: i64) -> Viewed<i64> {
        let me = self.mailbox(caller, agent)?;
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_waiting
                   WHERE agent = ?1 AND state < 2 AND message > ?2 AND (expires_at IS NULL OR expires_at > ?3)
                   LIMIT ?4)";
        Ok(one(self.db, sql, (agent, me.born, self.now, most), |row| row.get(0))?.unwrap_or(0))
    }

    /// Messages that wait for an agent and have not been delivered, in the order in which they were sent.
    ///
    /// # Errors
    /// Refused for callers other than the agent, its owner and administrators.
    pub fn waiting(
        &self,
        caller: &Caller,
        agent: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let mut deliveries: Vec<Delivery> = Vec::new();
        for tier in Priority::TIERS {
            let sql = format!(
                "SELECT {} FROM deliveries d INDEXED BY deliveries_waiting
                 WHERE d.agent = ?1 AND d.state = 0 AND d.state < 2 AND d.priority = ?2 AND d.message > ?3 AND (d.expires_at IS NULL OR d.expires_at > ?4) ORDER BY d.message LIMIT ?5",
                rows::DELIVERY
            );
            let params = (agent, tier, after.max(me.born), self.now, one_more(limit));
            deliveries.extend(all(self.db, &sql, params, |row| rows::delivery(row, 0))?);
        }
        deliveries.sort_by_key(|delivery| delivery.message);
        let page = Page::from_rows(deliveries, limit, |delivery| delivery.message);
        self.with_messages(page.items.into_iter(), page.next)
    }

    /// The agent, if the caller may read its mail.
    pub(crate) fn mailbox(&self, caller: &Caller, agent: &AgentId) -> Viewed<Agent> {
        let found = rows::active_agent(self.db, agent)?;
        let near = match &found {
            Some(_) => Vec::new(),
            None => similar_names::find(self.db, caller, agent.as_str())?,
        };
        let found = found.filter(|found| {
            let owner = found.owner.as_ref().is_some_and(|owner| caller.is(owner));
            caller.may_act_for(agent) || (caller.rights.member && owner)
        });
        found.ok_or_else(|| Refusal::NoSuchAgent { agent: agent.to_string(), near }.into())
    }
}

/// A part of an agent's mail that one index returns in seq order. The index is named: without statistics SQLite would
/// rather scan the whole mailbox.
struct IndexRange {
    index: &'static str,
    condition: String,
    /// The only tier that it contains, if it is one.
    tier: Option<Priority>,
}

/// The ranges that together contain what is asked for; each is read in order, so none is read to its end.
fn index_ranges(query: &InboxQuery) -> Vec<IndexRange> {
    let tiers = Priority::TIERS.iter().filter(|tier| query.at_least.is_none_or(|least| **tier <= least));
    // There are few unread messages, so this comes before the kinds.
    if query.unread || query.order == InboxOrder::Priority {
        let states = [DeliveryState::Queued, DeliveryState::Delivered];
        let range = |tier: &Priority, state: DeliveryState| IndexRange {
            index: "INDEXED BY deliveries_waiting",
            condition: format!("d.state = {} AND d.state < 2 AND d.priority = {}", state as u8, tier.tier()),
            tier: Some(*tier),
        };
        return tiers.flat_map(|tier| states.map(|state| range(tier, state))).collect();
    }
    if query.kinds.is_empty() && query.at_least.is_some_and(|least| least <= Priority::HIGH) {
        let range = |tier: &Priority| IndexRange {
            index: "INDEXED BY deliveries_urgent",
            condition: format!("d.priority = {} AND d.priority < 3 AND d.state < 4", tier.tier()),
            tier: Some(*tier),
        };
        return tiers.map(range).collect();
    }
    let least = query.at_least.unwrap_or(Priority::BULK).tier();
    let worst = if query.expired { DeliveryState::Expired } else { DeliveryState::Acked } as u8;
    vec![IndexRange {
        index: "",
        condition: format!("d.state <= {worst} AND d.priority <= {least}"),
        tier: None,
    }]
}

fn inbox_message(db: Db<'_>, delivery: Delivery) -> Viewed<InboxMessage> {
    let message = rows::message_at(db, delivery.message)?.ok_or(Refusal::NoSuchMessage)?;
    Ok(InboxMessage { message: Arc::new(message), delivery })
}
