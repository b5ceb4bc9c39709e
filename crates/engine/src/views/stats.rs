//! Statistics of a realm: how many messages there are, from whom and to whom. Every view reads a bounded part of the
//! event log, so it costs the same however long the log is.

use std::collections::BTreeMap;

use super::{AgentQuery, View, Viewed, require_member};
use crate::nouns::{AgentId, AgentKind, Caller, Millis, Seq};
use crate::sight;
use crate::store::{all, one, rows};

/// One minute, in milliseconds.
const MINUTE_MS: Millis = 60_000;
/// Events read for one rate plot. If there are more, each minute gets an equal share, and the rest of a busy minute is
/// extrapolated from its share.
const SAMPLED_EVENTS: Seq = 12_000;
/// The most minutes of one plot: a day.
const MAX_MINUTES: usize = 1_440;
/// Agents counted one by one for a caller that may not see all of them.
const MAX_COUNTED_AGENTS: usize = 5_000;
/// Messages read to find the links between agents.
const LINK_MESSAGES: usize = 2_000;
/// Messages of one agent read for its recent activity.
const ACTIVITY_MESSAGES: i64 = 200;

/// Counts of one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it began.
    pub from: Millis,
    /// Messages by the door they came through.
    pub messages: BTreeMap<String, i64>,
    /// Events, including those of messages.
    pub events: i64,
    /// Whether the messages were counted, not extrapolated from a sample.
    pub exact: bool,
}

/// Number of agents of one door and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentGroup {
    /// The door by which they were registered.
    pub via: String,
    /// Their kind.
    pub kind: AgentKind,
    /// How many.
    pub count: i64,
}

/// How often one agent recently wrote to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sender.
    pub from: AgentId,
    /// The recipient.
    pub to: AgentId,
    /// Number of messages.
    pub messages: i64,
}

/// What an agent's latest messages show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentActivity {
    /// When it last sent a message.
    pub last_sent: Option<Millis>,
    /// The doors that it used, the most used first.
    pub doors: Vec<(String, i64)>,
    /// The recipients, the most frequent first.
    pub partners: Vec<(AgentId, i64)>,
}

impl View<'_> {
    /// Messages per minute, for the last `minutes` minutes. Only numbers, so every member may see them.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn rate(&self, caller: &Caller, minutes: usize) -> Viewed<Vec<Minute>> {
        require_member(caller)?;
        let minutes = minutes.clamp(1, MAX_MINUTES);
        let this = self.now - self.now.rem_euclid(MINUTE_MS);
        let first = this - MINUTE_MS * (i64::try_from(minutes).unwrap_or(1) - 1);
        let mut low = self.last_seq_at(first - 1)?;
        let head = self.head()?;
        let share =
            if head - low <= SAMPLED_EVENTS { Seq::MAX } else { (SAMPLED_EVENTS / minutes as Seq).max(8) };
        let mut plot = Vec::with_capacity(minutes);
        for n in 0..minutes {
            let from = first + MINUTE_MS * i64::try_from(n).unwrap_or(0);
            // The event log has no gaps, so the difference of two seqs is the number of events.
            let high =
                if low == head { head } else { self.last_seq_at_from(low, head, from + MINUTE_MS - 1)? };
            plot.push(self.minute(from, low, high, share)?);
            low = high;
        }
        Ok(plot)
    }

    fn minute(&self, from: Millis, low: Seq, high: Seq, share: Seq) -> Viewed<Minute> {
        let events = high - low;
        let exact = events <= share;
        let start = if exact { low } else { high - share };
        let sql = "SELECT via, count(*) FROM messages WHERE seq > ?1 AND seq <= ?2 GROUP BY via";
        let counted: Vec<(String, i64)> = match events {
            0 => Vec::new(),
            _ => all(self.db, sql, (start, high), |row| Ok((row.get(0)?, row.get(1)?)))?,
        };
        let scaled = |count: i64| if exact { count } else { count * events / share };
        let messages = counted.into_iter().map(|(via, count)| (via, scaled(count))).collect();
        Ok(Minute { from, messages, events, exact })
    }

    /// As [`View::last_seq_at`], between two seqs.
    fn last_seq_at_from(&self, mut low: Seq, mut high: Seq, time: Millis) -> Viewed<Seq> {
        while low < high {
            let middle = low + (high - low + 1) / 2;
            match self.time_of(middle)? {
                Some(at) if at <= time => low = middle,
                _ => high = middle - 1,
            }
        }
        Ok(low)
    }

    /// Number of agents visible to the caller, by door and kind.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn agent_groups(&self, caller: &Caller) -> Viewed<Vec<AgentGroup>> {
        require_member(caller)?;
        if caller.rights.admin {
            let sql = "SELECT via, kind, count(*) FROM agents WHERE retired_at IS NULL GROUP BY via, kind ORDER BY 1, 2";
            return Ok(all(self.db, sql, [], |row| {
                Ok(AgentGroup { via: row.get(0)?, kind: row.get(1)?, count: row.get(2)? })
            })?);
        }
        let mut counts: BTreeMap<(String, AgentKind), i64> = BTreeMap::new();
        let mut query = AgentQuery { limit: self.limits.page, ..AgentQuery::default() };
        let mut seen = 0;
        loop {
            let page = self.agents(caller, &query)?;
            seen += page.items.len();
            for agent in page.items {
                *counts.entry((agent.via, agent.kind)).or_default() += 1;
            }
            match page.next {
                Some(next) if seen < MAX_COUNTED_AGENTS => query.after = Some(next),
                _ => break,
            }
        }
        Ok(counts.into_iter().map(|((via, kind), count)| AgentGroup { via, kind, count }).collect())
    }

    /// Who recently wrote to whom, as far as the caller may see the messages; the most frequent pairs first.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn links(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Link>> {
        require_member(caller)?;
        let sql = format!("SELECT {} FROM messages m ORDER BY m.seq DESC LIMIT ?1", *rows::MESSAGE_HEAD);
        let messages = all(self.db, &sql, [i64::try_from(LINK_MESSAGES).unwrap_or(0)], rows::message)?;
        let mut counts: BTreeMap<(AgentId, AgentId), i64> = BTreeMap::new();
        for message in messages {
            if !sight::sees_message(self.db, caller, &message)? {
                continue;
            }
            let to = self.shown_recipients(caller, &message.from, message.seq)?;
            for agent in to {
                *counts.entry((message.from.clone(), agent)).or_default() += 1;
            }
        }
        let mut links: Vec<Link> =
            counts.into_iter().map(|((from, to), messages)| Link { from, to, messages }).collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.messages));
        links.truncate(self.page(limit));
        Ok(links)
    }

    /// The recipients of a message, without blind copies that the caller may not see.
    fn shown_recipients(&self, caller: &Caller, from: &AgentId, seq: Seq) -> Viewed<Vec<AgentId>> {
        let sql = "SELECT agent FROM deliveries WHERE message = ?1 AND (recipient_kind <> 'bcc' OR ?2 OR agent = ?3)
                   ORDER BY agent LIMIT 64";
        let sees_all = caller.may_act_for(from);
        Ok(all(self.db, sql, (seq, sees_all, &caller.agent), |row| row.get(0))?)
    }

    /// What an agent's latest messages show, as far as the caller may see them. The time of the last message is shown
    /// to callers that may read its mail.
    ///
    /// # Errors
    /// Refused if the caller may not know of the agent.
    pub fn recent_activity(&self, caller: &Caller, id: &AgentId) -> Viewed<RecentActivity> {
        let agent = self.agent(caller, id)?;
        let mut activity = RecentActivity::default();
        if self.mailbox(caller, id).is_ok() {
            let sql = "SELECT at FROM messages WHERE sender = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1";
            activity.last_sent = one(self.db, sql, (id, agent.born), |row| row.get(0))?;
        }
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.sender = ?1 AND m.seq > ?2 ORDER BY m.seq DESC LIMIT ?3",
            *rows::MESSAGE_HEAD
        );
        let mut doors: BTreeMap<String, i64> = BTreeMap::new();
        let mut partners: BTreeMap<AgentId, i64> = BTreeMap::new();
        for message in all(self.db, &sql, (id, agent.born, ACTIVITY_MESSAGES), rows::message)? {
            if !sight::sees_message(self.db, caller, &message)? {
                continue;
            }
            for to in self.shown_recipients(caller, id, message.seq)? {
                *partners.entry(to).or_default() += 1;
            }
            *doors.entry(message.via).or_default() += 1;
        }
        activity.doors = most_first(doors);
        activity.partners = most_first(partners);
        activity.partners.truncate(20);
        Ok(activity)
    }
}

fn most_first<T: Ord>(counts: BTreeMap<T, i64>) -> Vec<(T, i64)> {
    let mut counts: Vec<(T, i64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
