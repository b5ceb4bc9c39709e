//! An agent's mail: what is waiting, what is unread, what there is. Reading is never consuming.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Page, View, Viewed, one_more};
use crate::error::Refusal;
use crate::near;
use crate::nouns::{
    Agent, AgentId, Caller, ConversationId, Delivery, DeliveryState, Message, Millis, Priority, Seq,
};
use crate::store::{Db, all, one, rows};

/// In which order letters are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboxOrder {
    /// The latest first.
    #[default]
    Newest,
    /// The earliest first.
    Oldest,
    /// The most pressing first, and the earliest of those; only for letters that are unread.
    Priority,
}

/// Which letters to list.
#[derive(Clone, Debug, Default)]
pub struct InboxQuery {
    /// Only those the agent has not looked at.
    pub unread: bool,
    /// Only those of one of these kinds.
    pub kinds: Vec<String>,
    /// Only those at least this pressing.
    pub at_least: Option<Priority>,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those accepted after this time.
    pub since: Option<Millis>,
    /// Only those after this place in the history; in the order of priority, only those listed after this letter.
    pub after: Option<Seq>,
    /// Only those before this place in the history.
    pub before: Option<Seq>,
    /// Those whose time has run out as well.
    pub expired: bool,
    /// In which order.
    pub order: InboxOrder,
    /// How many.
    pub limit: usize,
}

/// A letter in somebody's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxMessage {
    /// The letter.
    pub message: Arc<Message>,
    /// The recipient's copy.
    pub delivery: Delivery,
}

/// How much mail an agent has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailCounts {
    /// Not looked at.
    pub unread: i64,
    /// Not looked at, and pressing.
    pub urgent: i64,
    /// Kept for the agent and not handed over.
    pub queued: i64,
}

impl View<'_> {
    /// An agent's mail, for the agent itself, its owner, or those who run the office.
    ///
    /// # Errors
    /// Refused for anybody else, as if there were no such agent.
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
        // In the order of priority a page ends at a letter of some tier; more pressing ones were listed before it.
        let reached = match query.order {
            InboxOrder::Priority if after > 0 => self.tier_of(agent, after)?,
            _ => None,
        };
        let mut copies = Vec::new();
        for fast_path in lanes(query) {
            let low = match reached {
                Some(reached) if fast_path.tier.is_some_and(|tier| tier < reached) => continue,
                Some(reached) if fast_path.tier.is_some_and(|tier| tier > reached) => low,
                _ => low.max(after),
            };
            copies.extend(self.fast_path(agent, &fast_path, query, (low, high), limit)?);
        }
        match query.order {
            InboxOrder::Newest => copies.sort_by_key(|copy| Reverse(copy.0.message)),
            InboxOrder::Oldest => copies.sort_by_key(|copy| copy.0.message),
            InboxOrder::Priority => copies.sort_by_key(|copy| (copy.1, copy.0.message)),
        }
        copies.dedup_by_key(|copy| copy.0.message);
        let page = Page::of(copies, limit, |copy| copy.0.message);
        self.letters(page.items.into_iter().map(|(delivery, _)| delivery), page.next)
    }

    /// The letters of these copies, as far as the answer has room.
    fn letters(
        &self,
        copies: impl ExactSizeIterator<Item = Delivery>,
        next: Option<Seq>,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let mut page = self.filling(copies.len());
        for delivery in copies {
            if !page.take(letter(self.db, delivery)?) {
                break;
            }
        }
        let page = page.page(|letter| letter.message.seq);
        Ok(Page { next: page.next.or(next), ..page })
    }

    /// How pressing an agent's letter is.
    fn tier_of(&self, agent: &AgentId, message: Seq) -> Viewed<Option<Priority>> {
        let sql = "SELECT priority FROM deliveries WHERE agent = ?1 AND message = ?2";
        Ok(one(self.db, sql, (agent, message), |row| row.get(0))?)
    }

    fn fast_path(
        &self,
        agent: &AgentId,
        fast_path: &FastPath,
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
            let (index, of_kind) = match (kind, fast_path.index) {
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
                rows::DELIVERY, fast_path.condition
            );
            let params =
                (agent, low, high, self.now, one_more(limit), &query.conversation, kind, query.expired);
            let read = |row: &rusqlite::Row<'_>| Ok((rows::delivery(row, 0)?, row.get(8)?));
            found.extend(all(self.db, &sql, params, read)?);
        }
        Ok(found)
    }

    /// How much mail an agent has, counted the same way as it is listed.
    ///
    /// # Errors
    /// Refused for anybody but the agent, its owner, or those who run the office.
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

    /// How many letters an agent has not looked at, counted no further than `most`: for those who only want to know
    /// whether there are any, and about how many.
    ///
    /// # Errors
    /// Refused for anybody but the agent, its owner, or those who run the office.
    pub fn unread_up_to(&self, caller: &Caller, agent: &AgentId, most: i64) -> Viewed<i64> {
        let me = self.mailbox(caller, agent)?;
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_waiting
                   WHERE agent = ?1 AND state < 2 AND message > ?2 AND (expires_at IS NULL OR expires_at > ?3)
                   LIMIT ?4)";
        Ok(one(self.db, sql, (agent, me.born, self.now, most), |row| row.get(0))?.unwrap_or(0))
    }

    /// Letters that are kept for an agent and have not been handed over, in the order they were sent.
    ///
    /// # Errors
    /// Refused for anybody but the agent, its owner, or those who run the office.
    pub fn waiting(
        &self,
        caller: &Caller,
        agent: &AgentId,
        after: Seq,
        limit: usize,
    ) -> Viewed<Page<InboxMessage, Seq>> {
        let me = self.mailbox(caller, agent)?;
        let limit = self.page(limit);
        let mut copies: Vec<Delivery> = Vec::new();
        for tier in Priority::TIERS {
            let sql = format!(
                "SELECT {} FROM deliveries d INDEXED BY deliveries_waiting
                 WHERE d.agent = ?1 AND d.state = 0 AND d.state < 2 AND d.priority = ?2 AND d.message > ?3 AND (d.expires_at IS NULL OR d.expires_at > ?4) ORDER BY d.message LIMIT ?5",
                rows::DELIVERY
            );
            let params = (agent, tier, after.max(me.born), self.now, one_more(limit));
            copies.extend(all(self.db, &sql, params, |row| rows::delivery(row, 0))?);
        }
        copies.sort_by_key(|copy| copy.message);
        let page = Page::of(copies, limit, |copy| copy.message);
        self.letters(page.items.into_iter(), page.next)
    }

    /// The agent, if the caller may open its mail.
    pub(crate) fn mailbox(&self, caller: &Caller, agent: &AgentId) -> Viewed<Agent> {
        let found = rows::active_agent(self.db, agent)?;
        let near = match &found {
            Some(_) => Vec::new(),
            None => near::names(self.db, caller, agent.as_str())?,
        };
        let found = found.filter(|found| {
            let owner = found.owner.as_ref().is_some_and(|owner| caller.is(owner));
            caller.may_act_for(agent) || (caller.rights.member && owner)
        });
        found.ok_or_else(|| Refusal::NoSuchAgent { agent: agent.to_string(), near }.into())
    }
}

/// A part of an agent's mail that is read in the order of the history. The index is named: without statistics SQLite
/// would rather walk the whole mailbox.
struct FastPath {
    index: &'static str,
    condition: String,
    /// The one tier it holds, if it is one.
    tier: Option<Priority>,
}

/// The ranges that together hold what is asked for; each is read in order, so none is read to its end.
fn lanes(query: &InboxQuery) -> Vec<FastPath> {
    let tiers = Priority::TIERS.iter().filter(|tier| query.at_least.is_none_or(|least| **tier <= least));
    // What is unread is little beside what there is, so this comes before the kinds.
    if query.unread || query.order == InboxOrder::Priority {
        let states = [DeliveryState::Queued, DeliveryState::Delivered];
        let fast_path = |tier: &Priority, state: DeliveryState| FastPath {
            index: "INDEXED BY deliveries_waiting",
            condition: format!("d.state = {} AND d.state < 2 AND d.priority = {}", state as u8, tier.tier()),
            tier: Some(*tier),
        };
        return tiers.flat_map(|tier| states.map(|state| fast_path(tier, state))).collect();
    }
    if query.kinds.is_empty() && query.at_least.is_some_and(|least| least <= Priority::HIGH) {
        let fast_path = |tier: &Priority| FastPath {
            index: "INDEXED BY deliveries_urgent",
            condition: format!("d.priority = {} AND d.priority < 3 AND d.state < 4", tier.tier()),
            tier: Some(*tier),
        };
        return tiers.map(fast_path).collect();
    }
    let least = query.at_least.unwrap_or(Priority::BULK).tier();
    let worst = if query.expired { DeliveryState::Expired } else { DeliveryState::Acked } as u8;
    vec![FastPath {
        index: "",
        condition: format!("d.state <= {worst} AND d.priority <= {least}"),
        tier: None,
    }]
}

fn letter(db: Db<'_>, delivery: Delivery) -> Viewed<InboxMessage> {
    let message = rows::message_at(db, delivery.message)?.ok_or(Refusal::NoSuchMessage)?;
    Ok(InboxMessage { message: Arc::new(message), delivery })
}
