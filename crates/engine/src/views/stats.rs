//! The realm at a glance: how much is said, by whom and to whom. Every answer rests on a bounded stretch of the history,
//! so a glance costs the same however long the history is.

use std::collections::BTreeMap;

use super::{AgentQuery, View, Viewed, require_member};
use crate::nouns::{AgentId, AgentKind, Caller, Millis, Seq};
use crate::sight;
use crate::store::{all, one, rows};

/// One minute.
const MINUTE: Millis = 60_000;
/// As many lines of history are looked at for one plot. Where there are more, each minute has an equal share in them, and
/// the rest of a busy minute is reckoned from its share.
const LOOKED_AT: Seq = 12_000;
/// The most minutes of one plot: a day.
const MOST_MINUTES: usize = 1_440;
/// Agents counted one by one for somebody who may not see all of them.
const MUSTERED: usize = 5_000;
/// Letters looked at to say who writes to whom.
const TIED_LETTERS: usize = 2_000;
/// Letters of one agent looked at to say how it comes in and whom it writes to.
const TRACED_LETTERS: i64 = 200;

/// Letters of one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minute {
    /// When it began.
    pub from: Millis,
    /// Letters by the way they came in.
    pub letters: BTreeMap<String, i64>,
    /// Lines of history, letters among them.
    pub events: i64,
    /// Whether the letters were counted, not reckoned from a sample.
    pub exact: bool,
}

/// Agents that came the same way and are of one sort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentGroup {
    /// The way they came in.
    pub via: String,
    /// What sort they are.
    pub kind: AgentKind,
    /// How many.
    pub count: i64,
}

/// How often one agent wrote to another lately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Who wrote.
    pub from: AgentId,
    /// To whom.
    pub to: AgentId,
    /// How often.
    pub letters: i64,
}

/// What an agent's latest letters tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// When it last wrote.
    pub last_sent: Option<Millis>,
    /// The ways its letters came in, the most used first.
    pub doors: Vec<(String, i64)>,
    /// Whom it wrote to, the most often first.
    pub partners: Vec<(AgentId, i64)>,
}

impl View<'_> {
    /// Letters per minute, for so many minutes up to now. Says how many, never whose.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn rate(&self, caller: &Caller, minutes: usize) -> Viewed<Vec<Minute>> {
        require_member(caller)?;
        let minutes = minutes.clamp(1, MOST_MINUTES);
        let this = self.now - self.now.rem_euclid(MINUTE);
        let first = this - MINUTE * (i64::try_from(minutes).unwrap_or(1) - 1);
        let mut low = self.last_seq_at(first - 1)?;
        let head = self.head()?;
        let share = if head - low <= LOOKED_AT { Seq::MAX } else { (LOOKED_AT / minutes as Seq).max(8) };
        let mut plot = Vec::with_capacity(minutes);
        for n in 0..minutes {
            let from = first + MINUTE * i64::try_from(n).unwrap_or(0);
            // The history has no gaps, so places are as good as a count.
            let high = if low == head { head } else { self.last_seq_at_from(low, head, from + MINUTE - 1)? };
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
        let letters = counted.into_iter().map(|(via, count)| (via, scaled(count))).collect();
        Ok(Minute { from, letters, events, exact })
    }

    /// As [`View::last_seq_at`], between two places.
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

    /// How many agents there are that the caller may know of, by the way they came in and their sort.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn muster(&self, caller: &Caller) -> Viewed<Vec<AgentGroup>> {
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
                Some(next) if seen < MUSTERED => query.after = Some(next),
                _ => break,
            }
        }
        Ok(counts.into_iter().map(|((via, kind), count)| AgentGroup { via, kind, count }).collect())
    }

    /// Who wrote to whom lately, as far as the caller may look at the letters; the strongest ties first.
    ///
    /// # Errors
    /// Refused for strangers.
    pub fn ties(&self, caller: &Caller, limit: usize) -> Viewed<Vec<Link>> {
        require_member(caller)?;
        let sql = format!("SELECT {} FROM messages m ORDER BY m.seq DESC LIMIT ?1", *rows::MESSAGE_HEAD);
        let letters = all(self.db, &sql, [i64::try_from(TIED_LETTERS).unwrap_or(0)], rows::message)?;
        let mut counts: BTreeMap<(AgentId, AgentId), i64> = BTreeMap::new();
        for letter in letters {
            if !sight::sees_message(self.db, caller, &letter)? {
                continue;
            }
            let to = self.shown_recipients(caller, &letter.from, letter.seq)?;
            for agent in to {
                *counts.entry((letter.from.clone(), agent)).or_default() += 1;
            }
        }
        let mut ties: Vec<Link> =
            counts.into_iter().map(|((from, to), letters)| Link { from, to, letters }).collect();
        ties.sort_by_key(|tie| std::cmp::Reverse(tie.letters));
        ties.truncate(self.page(limit));
        Ok(ties)
    }

    /// To whom a letter went, without the blind copies that are none of the caller's business.
    fn shown_recipients(&self, caller: &Caller, from: &AgentId, seq: Seq) -> Viewed<Vec<AgentId>> {
        let sql = "SELECT agent FROM deliveries WHERE message = ?1 AND (recipient_kind <> 'bcc' OR ?2 OR agent = ?3)
                   ORDER BY agent LIMIT 64";
        let all_copies = caller.may_act_for(from);
        Ok(all(self.db, sql, (seq, all_copies, &caller.agent), |row| row.get(0))?)
    }

    /// What an agent's latest letters tell of it, as far as the caller may look at them. When it last wrote is known to
    /// whoever may open its mail.
    ///
    /// # Errors
    /// Refused if the caller may not know of the agent.
    pub fn traces(&self, caller: &Caller, id: &AgentId) -> Viewed<Traces> {
        let agent = self.agent(caller, id)?;
        let mut traces = Traces::default();
        if self.mailbox(caller, id).is_ok() {
            let sql = "SELECT at FROM messages WHERE sender = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT 1";
            traces.last_sent = one(self.db, sql, (id, agent.born), |row| row.get(0))?;
        }
        let sql = format!(
            "SELECT {} FROM messages m WHERE m.sender = ?1 AND m.seq > ?2 ORDER BY m.seq DESC LIMIT ?3",
            *rows::MESSAGE_HEAD
        );
        let mut doors: BTreeMap<String, i64> = BTreeMap::new();
        let mut partners: BTreeMap<AgentId, i64> = BTreeMap::new();
        for letter in all(self.db, &sql, (id, agent.born, TRACED_LETTERS), rows::message)? {
            if !sight::sees_message(self.db, caller, &letter)? {
                continue;
            }
            for to in self.shown_recipients(caller, id, letter.seq)? {
                *partners.entry(to).or_default() += 1;
            }
            *doors.entry(letter.via).or_default() += 1;
        }
        traces.doors = most_first(doors);
        traces.partners = most_first(partners);
        traces.partners.truncate(20);
        Ok(traces)
    }
}

fn most_first<T: Ord>(counts: BTreeMap<T, i64>) -> Vec<(T, i64)> {
    let mut counts: Vec<(T, i64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
