//! What must be true of mail, and who says what about it: senders say what they heard, the auditor what is in the books,
//! readers what reached them. A contradiction is a finding.
//!
//! What is remembered does not grow with the mail: a number that was acknowledged, is in the books and lies behind the
//! last one is settled by being behind it. Only exceptions are kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::mark::{Channel, Mark};

/// Findings that are told in full; beyond it they are only counted.
const TOLD: usize = 200;

/// What a sender heard of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The office has it.
    Acked,
    /// The office does not want it: nothing may come of it.
    Refused,
    /// The answer never came: it may have been taken, or not, but not twice.
    Unknown,
}

/// Which rule does not hold, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) rule: &'static str,
    pub(super) evidence: String,
}

/// How much there was, by what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    /// Without an answer, and not in the books.
    pub(super) unanswered_and_absent: u64,
    /// Without an answer, but in the books.
    pub(super) unanswered_and_kept: u64,
    pub(super) in_books: u64,
    pub(super) at_readers: u64,
    /// Came again after a connection or the office was lost, as at-least-once delivery has it.
    pub(super) repeated_after_a_loss: u64,
    /// Of the fast lane, acknowledged and then gone with a killed office.
    pub(super) loose_lost_in_kills: u64,
}

#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lines: HashMap<Channel, Line>,
    /// How often the office has been killed.
    epoch: u64,
    findings: Vec<Finding>,
    count: u64,
    totals: Totals,
}

/// One channel.
#[derive(Debug, Default)]
struct Line {
    /// The last number given out.
    last: u64,
    /// Sent, and nothing heard yet.
    pending: BTreeMap<u64, Pending>,
    /// Acknowledged in that epoch, and not seen in the books yet.
    owed: BTreeMap<u64, u64>,
    /// What is neither acknowledged nor pending.
    odd: BTreeMap<u64, Odd>,
    books_last: u64,
    books_count: u64,
    reader: Reader,
}

#[derive(Debug)]
struct Pending {
    epoch: u64,
    in_books: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Odd {
    Refused,
    Unknown {
        in_books: bool,
    },
    /// Told as missing.
    Missing,
}

/// How far the recipient has come.
#[derive(Debug, Default)]
struct Reader {
    sitting: u64,
    last: u64,
    count: u64,
    /// Passed over, while their senders had not heard or will never hear.
    passed: BTreeSet<u64>,
}

/// One unbroken reading of an inbox. Within it nothing comes twice and nothing is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sitting {
    /// By a cursor that outlives connections and offices, from the very beginning.
    Lasting,
    /// Over one connection; what was not noted as handed over when the last one broke comes again.
    Number(u64),
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next letter of a channel, about to be sent.
    pub(super) fn next(&self, channel: Channel) -> Mark {
        let mut inner = self.lock();
        let epoch = inner.epoch;
        let line = inner.lines.entry(channel).or_default();
        line.last += 1;
        line.pending.insert(line.last, Pending { epoch, in_books: false });
        Mark { channel, n: line.last }
    }

    /// What its sender heard.
    pub(super) fn settle(&self, mark: Mark, outcome: Outcome) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&mark.channel) else { return };
        let Some(pending) = line.pending.remove(&mark.n) else { return };
        let passed = line.reader.passed.contains(&mark.n);
        match outcome {
            Outcome::Acked => {
                if !pending.in_books {
                    line.owed.insert(mark.n, pending.epoch);
                }
                inner.totals.acknowledged += 1;
                if passed && !mark.channel.loose {
                    inner.find(
                        "reader: left out",
                        format!("{mark} was acknowledged after later ones had come"),
                    );
                }
            }
            Outcome::Refused => {
                line.odd.insert(mark.n, Odd::Refused);
                inner.totals.refused += 1;
                if pending.in_books {
                    inner
                        .find("books: refused but there", format!("{mark} was refused after it was written"));
                }
            }
            Outcome::Unknown => {
                line.odd.insert(mark.n, Odd::Unknown { in_books: pending.in_books });
                match pending.in_books {
                    true => inner.totals.unanswered_and_kept += 1,
                    false => inner.totals.unanswered_and_absent += 1,
                }
            }
        }
    }

    /// What the auditor comes across, in the order of the books. `place` says where, for the evidence.
    pub(super) fn in_books(&self, mark: Mark, place: &str) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&mark.channel).filter(|line| (1..=line.last).contains(&mark.n))
        else {
            return inner.find("books: never sent", format!("{mark} at {place}"));
        };
        // Numbers that were acknowledged under the same office and should have come before this one.
        let mut missing = Vec::new();
        let epoch =
            match (line.pending.get_mut(&mark.n), line.owed.remove(&mark.n), line.odd.get_mut(&mark.n)) {
                (Some(pending), _, _) => {
                    if std::mem::replace(&mut pending.in_books, true) {
                        return inner.find("books: doubled", format!("{mark}, again at {place}"));
                    }
                    pending.epoch
                }
                (None, Some(epoch), _) => epoch,
                (None, None, Some(Odd::Unknown { in_books })) => {
                    if std::mem::replace(in_books, true) {
                        return inner.find("books: doubled", format!("{mark}, again at {place}"));
                    }
                    // A letter whose sender gave up on the answer keeps no order with those it sent afterwards.
                    line.books_count += 1;
                    line.books_last = line.books_last.max(mark.n);
                    inner.totals.in_books += 1;
                    inner.totals.unanswered_and_kept += 1;
                    inner.totals.unanswered_and_absent -= 1;
                    return;
                }
                (None, None, Some(Odd::Refused)) => {
                    return inner.find("books: refused but there", format!("{mark} at {place}"));
                }
                (None, None, Some(Odd::Missing)) => {
                    line.books_count += 1;
                    return inner.find("books: out of order", format!("{mark} at {place}, after later ones"));
                }
                (None, None, None) => {
                    return inner.find("books: doubled", format!("{mark}, again at {place}"));
                }
            };
        line.books_count += 1;
        let behind = mark.n < line.books_last;
        if !behind {
            line.books_last = mark.n;
            missing.extend(line.owed.range(..mark.n).filter(|(_, of)| **of == epoch).map(|(n, _)| *n));
            for n in &missing {
                line.owed.remove(n);
                line.odd.insert(*n, Odd::Missing);
            }
        }
        let last = line.books_last;
        inner.totals.in_books += 1;
        if behind {
            inner.find("books: out of order", format!("{mark} at {place}, after number {last}"));
        }
        for n in missing {
            let mark = Mark { channel: mark.channel, n };
            inner.find("books: missing", format!("{mark} was acknowledged; a later one is at {place}"));
        }
    }

    /// What reached the recipient.
    pub(super) fn at_reader(&self, mark: Mark, sitting: Sitting) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&mark.channel).filter(|line| (1..=line.last).contains(&mark.n))
        else {
            return inner.find("reader: never sent", mark.to_string());
        };
        let begins = match sitting {
            Sitting::Lasting => false,
            Sitting::Number(number) => std::mem::replace(&mut line.reader.sitting, number) != number,
        };
        let before = line.reader.last;
        if begins {
            line.reader.last = mark.n;
            line.reader.passed.clear();
            inner.totals.at_readers += 1;
            inner.totals.repeated_after_a_loss += u64::from(mark.n <= before);
            return;
        }
        if mark.n <= before {
            let unknown = matches!(line.odd.get(&mark.n), Some(Odd::Unknown { .. }));
            match line.reader.passed.remove(&mark.n) {
                true if unknown => {
                    line.reader.count += 1;
                    inner.totals.at_readers += 1;
                }
                true => inner.find("reader: out of order", format!("{mark} came after number {before}")),
                false => inner.find("reader: doubled", format!("{mark} came again")),
            }
            return;
        }
        let mut left_out = Vec::new();
        for n in before + 1..mark.n {
            match (line.pending.contains_key(&n), line.odd.get(&n)) {
                (true, _) | (_, Some(Odd::Unknown { .. })) => {
                    line.reader.passed.insert(n);
                }
                (false, Some(Odd::Refused | Odd::Missing)) => {}
                (false, None) if mark.channel.loose => {}
                (false, None) => left_out.push(n),
            }
        }
        line.reader.last = mark.n;
        line.reader.count += 1;
        inner.totals.at_readers += 1;
        for n in left_out {
            let lost = Mark { channel: mark.channel, n };
            inner.find("reader: left out", format!("{lost} was acknowledged; {mark} came without it"));
        }
    }

    /// One of several who follow a channel, and remembers by itself how far it has come.
    pub(super) fn at_follower(&self, mark: Mark, seen: &mut HashMap<Channel, u64>) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get(&mark.channel) else {
            return inner.find("follower: never sent", mark.to_string());
        };
        let unknown = |n: u64| matches!(line.odd.get(&n), Some(Odd::Unknown { .. }));
        let Some(before) = seen.insert(mark.channel, mark.n) else { return };
        if mark.n <= before {
            seen.insert(mark.channel, before);
            if !unknown(mark.n) {
                let text = format!("{mark} came after number {before}");
                inner.find("follower: doubled or out of order", text);
            }
            return;
        }
        let acked = |n: &u64| !line.pending.contains_key(n) && !line.odd.contains_key(n);
        // A killed office forgets what came by the fast lane, and followers go on across kills.
        let counts = |n: &u64| !mark.channel.loose && acked(n);
        let left_out: Vec<u64> = (before + 1..mark.n).filter(counts).collect();
        for n in left_out {
            let lost = Mark { channel: mark.channel, n };
            inner.find("follower: left out", format!("{lost} was acknowledged; {mark} came without it"));
        }
    }

    /// Whether the auditor has come across it.
    pub(super) fn is_in_books(&self, mark: Mark) -> bool {
        let inner = self.lock();
        let Some(line) = inner.lines.get(&mark.channel) else { return false };
        match (line.pending.get(&mark.n), line.odd.get(&mark.n)) {
            (Some(pending), _) => pending.in_books,
            (None, Some(odd)) => matches!(odd, Odd::Unknown { in_books: true }),
            (None, None) => mark.n <= line.last && !line.owed.contains_key(&mark.n),
        }
    }

    /// The office has been killed and is not open yet.
    pub(super) fn office_died(&self) -> u64 {
        let mut inner = self.lock();
        inner.epoch += 1;
        inner.epoch
    }

    /// Anything else that does not hold.
    pub(super) fn find(&self, rule: &'static str, evidence: String) {
        self.lock().find(rule, evidence);
    }

    /// How many letters lasting readers have not come to yet.
    pub(super) fn unread(&self, lasting: impl Fn(u32) -> bool) -> u64 {
        let inner = self.lock();
        let lines = inner.lines.iter().filter(|(channel, _)| lasting(channel.to));
        lines.map(|(_, line)| line.books_count.saturating_sub(line.reader.count)).sum()
    }

    /// How many acknowledged letters the auditor has not come across yet, and must.
    pub(super) fn owed(&self) -> u64 {
        let inner = self.lock();
        let kept = inner.lines.iter().filter(|(channel, _)| !channel.loose);
        kept.map(|(_, line)| line.owed.len() as u64).sum()
    }

    /// How many are on their way without an answer.
    pub(super) fn pending(&self) -> u64 {
        let inner = self.lock();
        inner.lines.values().map(|line| line.pending.len() as u64).sum()
    }

    /// How much of what is in the books goes to each recipient or conversation.
    pub(super) fn kept_by_recipient(&self) -> HashMap<u32, u64> {
        let mut counts = HashMap::new();
        for (channel, line) in &self.lock().lines {
            *counts.entry(channel.to).or_default() += line.books_count;
        }
        counts
    }

    /// Everything has been said and the auditor has read to the end: what is owed now is missing.
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
                let mark = Mark { channel: *channel, n };
                found.push(("books: missing", format!("{mark} was acknowledged and is not there")));
            }
            for n in line.pending.keys() {
                let mark = Mark { channel: *channel, n: *n };
                found.push(("sender: never answered", mark.to_string()));
            }
            if lasting(channel.to) && line.reader.count != line.books_count {
                let text = format!(
                    "{} to {}: {} in the books, {} read, number {} last",
                    channel.from, channel.to, line.books_count, line.reader.count, line.reader.last
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

    /// How many findings there are, and the first of them.
    pub(super) fn findings(&self) -> (u64, Vec<Finding>) {
        let inner = self.lock();
        (inner.count, inner.findings.clone())
    }
}

impl Inner {
    fn find(&mut self, rule: &'static str, evidence: String) {
        self.count += 1;
        if self.findings.len() < TOLD {
            self.findings.push(Finding { rule, evidence });
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
