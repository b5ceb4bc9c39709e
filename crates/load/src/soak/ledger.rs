//! The rules about mail. Senders report the answers they got, the auditor what is in the event log, readers what they
//! received. A contradiction is a finding.
//!
//! Memory does not grow with the mail: a number that was acknowledged, was found and is below the last one needs no entry.
//! Only exceptions are kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::tag::{Channel, Tag};

/// Findings that are reported in full; further ones are only counted.
const MAX_FINDINGS: usize = 200;

/// The answer that a sender got for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Accepted.
    Acked,
    /// Refused: it must not appear anywhere.
    Refused,
    /// No answer: it may have been accepted once, or not.
    Unknown,
}

/// Which rule does not hold, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) evidence: String,
}

/// Numbers of messages, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    /// Without an answer, and not found.
    pub(super) unanswered_and_absent: u64,
    /// Without an answer, and found.
    pub(super) unanswered_and_kept: u64,
    pub(super) in_database: u64,
    pub(super) at_readers: u64,
    /// Delivered again after a connection or the server was lost: delivery is at least once.
    pub(super) repeated_after_a_loss: u64,
    /// Fire-and-forget messages that were acknowledged and then lost in a kill.
    pub(super) loose_lost_in_kills: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: HashMap<Channel, ChannelState>,
    /// How often the server was killed.
    epoch: u64,
    findings: Vec<Finding>,
    count: u64,
    totals: Totals,
}

/// One channel.
#[derive(Debug, Default)]
struct ChannelState {
    /// The last number given out.
    last: u64,
    /// Sent and not answered yet.
    pending: BTreeMap<u64, Pending>,
    /// Acknowledged, and not found by the auditor yet; with the epoch.
    owed: BTreeMap<u64, u64>,
    /// Neither acknowledged nor pending.
    odd: BTreeMap<u64, Odd>,
    database_last: u64,
    database_count: u64,
    reader: Reader,
}

#[derive(Debug)]
struct Pending {
    epoch: u64,
    in_database: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Odd {
    Refused,
    Unknown {
        in_database: bool,
    },
    /// Reported as missing.
    Missing,
}

/// What the recipient has received.
#[derive(Debug, Default)]
struct Reader {
    session: u64,
    last: u64,
    count: u64,
    /// Skipped numbers whose senders had no answer yet, or never got one.
    passed: BTreeSet<u64>,
}

/// One session of reading an inbox. Within it no message comes twice, and none is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderSession {
    /// By a cursor that outlives connections and restarts, from the beginning.
    Durable,
    /// Over one connection; messages not yet noted as delivered when the last one broke come again.
    Numbered(u64),
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of the next message of a channel, which is about to be sent.
    pub(super) fn next(&self, channel: Channel) -> Tag {
        let mut inner = self.lock();
        let epoch = inner.epoch;
        let line = inner.lines.entry(channel).or_default();
        line.last += 1;
        line.pending.insert(line.last, Pending { epoch, in_database: false });
        Tag { channel, n: line.last }
    }

    /// Notes the answer that the sender got.
    pub(super) fn settle(&self, tag: Tag, outcome: Outcome) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&tag.channel) else { return };
        let Some(pending) = line.pending.remove(&tag.n) else { return };
        let passed = line.reader.passed.contains(&tag.n);
        match outcome {
            Outcome::Acked => {
                if !pending.in_database {
                    line.owed.insert(tag.n, pending.epoch);
                }
                inner.totals.acknowledged += 1;
                if passed && !tag.channel.loose {
                    inner.find(
                        "reader: left out",
                        format!("{tag} was acknowledged after later ones had come"),
                    );
                }
            }
            Outcome::Refused => {
                line.odd.insert(tag.n, Odd::Refused);
                inner.totals.refused += 1;
                if pending.in_database {
                    inner.find(
                        "database: refused but there",
                        format!("{tag} was refused after it was written"),
                    );
                }
            }
            Outcome::Unknown => {
                line.odd.insert(tag.n, Odd::Unknown { in_database: pending.in_database });
                match pending.in_database {
                    true => inner.totals.unanswered_and_kept += 1,
                    false => inner.totals.unanswered_and_absent += 1,
                }
            }
        }
    }

    /// Notes a message that the auditor found, in the order of the event log. `place` is its position, for the evidence.
    pub(super) fn in_database(&self, tag: Tag, place: &str) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&tag.channel).filter(|line| (1..=line.last).contains(&tag.n))
        else {
            return inner.find("database: never sent", format!("{tag} at {place}"));
        };
        // Numbers that were acknowledged in the same epoch and should have come before this one.
        let mut missing = Vec::new();
        let epoch = match (line.pending.get_mut(&tag.n), line.owed.remove(&tag.n), line.odd.get_mut(&tag.n)) {
            (Some(pending), _, _) => {
                if std::mem::replace(&mut pending.in_database, true) {
                    return inner.find("database: doubled", format!("{tag}, again at {place}"));
                }
                pending.epoch
            }
            (None, Some(epoch), _) => epoch,
            (None, None, Some(Odd::Unknown { in_database })) => {
                if std::mem::replace(in_database, true) {
                    return inner.find("database: doubled", format!("{tag}, again at {place}"));
                }
                // A message whose sender gave up on the answer has no order with those it sent afterwards.
                line.database_count += 1;
                line.database_last = line.database_last.max(tag.n);
                inner.totals.in_database += 1;
                inner.totals.unanswered_and_kept += 1;
                inner.totals.unanswered_and_absent -= 1;
                return;
            }
            (None, None, Some(Odd::Refused)) => {
                return inner.find("database: refused but there", format!("{tag} at {place}"));
            }
            (None, None, Some(Odd::Missing)) => {
                line.database_count += 1;
                return inner.find("database: out of order", format!("{tag} at {place}, after later ones"));
            }
            (None, None, None) => {
                return inner.find("database: doubled", format!("{tag}, again at {place}"));
            }
        };
        line.database_count += 1;
        let behind = tag.n < line.database_last;
        if !behind {
            line.database_last = tag.n;
            missing.extend(line.owed.range(..tag.n).filter(|(_, of)| **of == epoch).map(|(n, _)| *n));
            for n in &missing {
                line.owed.remove(n);
                line.odd.insert(*n, Odd::Missing);
            }
        }
        let last = line.database_last;
        inner.totals.in_database += 1;
        if behind {
            inner.find("database: out of order", format!("{tag} at {place}, after number {last}"));
        }
        for n in missing {
            let tag = Tag { channel: tag.channel, n };
            inner.find("database: missing", format!("{tag} was acknowledged; a later one is at {place}"));
        }
    }

    /// Notes a message that the recipient received.
    pub(super) fn at_reader(&self, tag: Tag, session: ReaderSession) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&tag.channel).filter(|line| (1..=line.last).contains(&tag.n))
        else {
            return inner.find("reader: never sent", tag.to_string());
        };
        let begins = match session {
            ReaderSession::Durable => false,
            ReaderSession::Numbered(number) => std::mem::replace(&mut line.reader.session, number) != number,
        };
        let before = line.reader.last;
        if begins {
            line.reader.last = tag.n;
            line.reader.passed.clear();
            inner.totals.at_readers += 1;
            inner.totals.repeated_after_a_loss += u64::from(tag.n <= before);
            return;
        }
        if tag.n <= before {
            let unknown = matches!(line.odd.get(&tag.n), Some(Odd::Unknown { .. }));
            match line.reader.passed.remove(&tag.n) {
                true if unknown => {
                    line.reader.count += 1;
                    inner.totals.at_readers += 1;
                }
                true => inner.find("reader: out of order", format!("{tag} came after number {before}")),
                false => inner.find("reader: doubled", format!("{tag} came again")),
            }
            return;
        }
        let mut left_out = Vec::new();
        for n in before + 1..tag.n {
            match (line.pending.contains_key(&n), line.odd.get(&n)) {
                (true, _) | (_, Some(Odd::Unknown { .. })) => {
                    line.reader.passed.insert(n);
                }
                (false, Some(Odd::Refused | Odd::Missing)) => {}
                (false, None) if tag.channel.loose => {}
                (false, None) => left_out.push(n),
            }
        }
        line.reader.last = tag.n;
        line.reader.count += 1;
        inner.totals.at_readers += 1;
        for n in left_out {
            let lost = Tag { channel: tag.channel, n };
            inner.find("reader: left out", format!("{lost} was acknowledged; {tag} came without it"));
        }
    }

    /// Notes a message that a follower received. Each follower keeps its own positions.
    pub(super) fn at_follower(&self, tag: Tag, seen: &mut HashMap<Channel, u64>) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get(&tag.channel) else {
            return inner.find("follower: never sent", tag.to_string());
        };
        let unknown = |n: u64| matches!(line.odd.get(&n), Some(Odd::Unknown { .. }));
        let Some(before) = seen.insert(tag.channel, tag.n) else { return };
        if tag.n <= before {
            seen.insert(tag.channel, before);
            if !unknown(tag.n) {
                let text = format!("{tag} came after number {before}");
                inner.find("follower: doubled or out of order", text);
            }
            return;
        }
        let acked = |n: &u64| !line.pending.contains_key(n) && !line.odd.contains_key(n);
        // Fire-and-forget messages may be lost in a kill, and followers go on across kills.
        let counts = |n: &u64| !tag.channel.loose && acked(n);
        let left_out: Vec<u64> = (before + 1..tag.n).filter(counts).collect();
        for n in left_out {
            let lost = Tag { channel: tag.channel, n };
            inner.find("follower: left out", format!("{lost} was acknowledged; {tag} came without it"));
        }
    }

    /// Whether the auditor has found it.
    pub(super) fn is_in_database(&self, tag: Tag) -> bool {
        let inner = self.lock();
        let Some(line) = inner.lines.get(&tag.channel) else { return false };
        match (line.pending.get(&tag.n), line.odd.get(&tag.n)) {
            (Some(pending), _) => pending.in_database,
            (None, Some(odd)) => matches!(odd, Odd::Unknown { in_database: true }),
            (None, None) => tag.n <= line.last && !line.owed.contains_key(&tag.n),
        }
    }

    /// Begins a new epoch: the server was killed.
    pub(super) fn server_killed(&self) -> u64 {
        let mut inner = self.lock();
        inner.epoch += 1;
        inner.epoch
    }

    /// Notes a finding of another kind.
    pub(super) fn find(&self, rule: &'static str, evidence: String) {
        self.lock().find(rule, evidence);
    }

    /// How many messages durable readers have not received yet.
    pub(super) fn unread(&self, lasting: impl Fn(u32) -> bool) -> u64 {
        let inner = self.lock();
        let lines = inner.lines.iter().filter(|(channel, _)| lasting(channel.to));
        lines.map(|(_, line)| line.database_count.saturating_sub(line.reader.count)).sum()
    }

    /// How many acknowledged messages the auditor has not found yet.
    pub(super) fn owed(&self) -> u64 {
        let inner = self.lock();
        let kept = inner.lines.iter().filter(|(channel, _)| !channel.loose);
        kept.map(|(_, line)| line.owed.len() as u64).sum()
    }

    /// How many messages have no answer yet.
    pub(super) fn pending(&self) -> u64 {
        let inner = self.lock();
        inner.lines.values().map(|line| line.pending.len() as u64).sum()
    }

    /// How many found messages each recipient or conversation has.
    pub(super) fn kept_by_recipient(&self) -> HashMap<u32, u64> {
        let mut counts = HashMap::new();
        for (channel, line) in &self.lock().lines {
            *counts.entry(channel.to).or_default() += line.database_count;
        }
        counts
    }

    /// The last check, after the auditor has read to the end: acknowledged messages that were not found are missing.
    pub(super) fn close(&self, lasting: impl Fn(u32) -> bool) {
        let mut inner = self.lock();
        let epoch = inner.epoch;
        let (mut lost, mut found) = (0, Vec::new());
        for (channel, line) in &mut inner.lines {
            for (n, of) in std::mem::take(&mut line.owed) {
                if channel.loose && of < epoch {
                    lost += 1;
                    continue;
                }
                let tag = Tag { channel: *channel, n };
                found.push(("database: missing", format!("{tag} was acknowledged and is not there")));
            }
            for n in line.pending.keys() {
                let tag = Tag { channel: *channel, n: *n };
                found.push(("sender: never answered", tag.to_string()));
            }
            if lasting(channel.to) && line.reader.count != line.database_count {
                let text = format!(
                    "{} to {}: {} in the database, {} read, number {} last",
                    channel.from, channel.to, line.database_count, line.reader.count, line.reader.last
                );
                found.push(("reader: not all came", text));
            }
        }
        inner.totals.loose_lost_in_kills += lost;
        for (rule, evidence) in found {
            inner.find(rule, evidence);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.lock().totals
    }

    pub(super) fn count(&self) -> u64 {
        self.lock().count
    }

    /// The number of findings, and the first of them.
    pub(super) fn findings(&self) -> (u64, Vec<Finding>) {
        let inner = self.lock();
        (inner.count, inner.findings.clone())
    }
}

impl Inner {
    fn find(&mut self, rule: &'static str, evidence: String) {
        self.count += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { rule, evidence });
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
