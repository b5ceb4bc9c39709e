//! The ledger reports violations, and nothing else.

use std::collections::HashMap;

use super::*;

const AB: Channel = Channel { from: 1, to: 2, loose: false };
const FAST: Channel = Channel { from: 1, to: 2, loose: true };

fn tag(n: u64) -> Tag {
    Tag { channel: AB, n }
}

/// A ledger with `count` messages sent and acknowledged.
fn sent(count: u64) -> Ledger {
    let ledger = Ledger::default();
    for _ in 0..count {
        let tag = ledger.next(AB);
        ledger.settle(tag, Outcome::Acked);
    }
    ledger
}

fn database(ledger: &Ledger, numbers: &[u64]) {
    for n in numbers {
        ledger.in_database(tag(*n), "event 9");
    }
}

fn read(ledger: &Ledger, numbers: &[u64], session: ReaderSession) {
    for n in numbers {
        ledger.at_reader(tag(*n), session);
    }
}

#[track_caller]
fn finds(ledger: &Ledger, expected: &[(&str, u64)]) {
    let (_, found) = ledger.findings();
    let found: Vec<_> =
        found.iter().map(|one| (one.rule, Tag::find(&one.evidence).map_or(0, |tag| tag.n))).collect();
    assert_eq!(found, expected);
}

#[test]
fn correct_mail_is_no_finding() {
    let ledger = sent(3);
    database(&ledger, &[1, 2, 3]);
    read(&ledger, &[1, 2, 3], ReaderSession::Durable);
    ledger.close(|_| true);
    finds(&ledger, &[]);
    let totals = ledger.totals();
    assert_eq!((totals.acknowledged, totals.in_database, totals.at_readers), (3, 3, 3));
    assert!(ledger.is_in_database(tag(3)) && !ledger.is_in_database(tag(4)));
}

#[test]
fn acknowledged_messages_that_are_not_there_are_missing() {
    let ledger = sent(3);
    database(&ledger, &[1, 3]);
    finds(&ledger, &[("database: missing", 2)]);
    let ledger = sent(3);
    database(&ledger, &[1, 2]);
    finds(&ledger, &[]);
    assert_eq!(ledger.owed(), 1);
    ledger.close(|_| false);
    finds(&ledger, &[("database: missing", 3)]);
}

#[test]
fn messages_that_are_there_twice_are_doubled() {
    let ledger = sent(1);
    database(&ledger, &[1, 1]);
    finds(&ledger, &[("database: doubled", 1)]);
    for outcome in [Outcome::Acked, Outcome::Unknown] {
        let ledger = Ledger::default();
        let first = ledger.next(AB);
        database(&ledger, &[1]);
        ledger.settle(first, outcome);
        finds(&ledger, &[]);
        database(&ledger, &[1]);
        finds(&ledger, &[("database: doubled", 1)]);
    }
    let ledger = Ledger::default();
    ledger.next(AB);
    database(&ledger, &[1, 1]);
    finds(&ledger, &[("database: doubled", 1)]);
}

#[test]
fn messages_after_later_ones_are_out_of_order() {
    let ledger = sent(3);
    database(&ledger, &[2, 1, 3]);
    finds(&ledger, &[("database: missing", 1), ("database: out of order", 1)]);
    // Two on their way at once, on one connection, keep their order as well.
    let ledger = Ledger::default();
    ledger.next(AB);
    ledger.next(AB);
    database(&ledger, &[2, 1]);
    finds(&ledger, &[("database: out of order", 1)]);
}

#[test]
fn unanswered_messages_may_be_there_once_or_not_at_all() {
    let ledger = Ledger::default();
    for _ in 0..2 {
        let tag = ledger.next(AB);
        ledger.settle(tag, Outcome::Unknown);
    }
    let third = ledger.next(AB);
    ledger.settle(third, Outcome::Acked);
    database(&ledger, &[3, 1]);
    read(&ledger, &[3, 1], ReaderSession::Durable);
    ledger.close(|_| true);
    finds(&ledger, &[]);
    let totals = ledger.totals();
    assert_eq!((totals.unanswered_and_kept, totals.unanswered_and_absent), (1, 1));
}

#[test]
fn refused_and_unsent_messages_may_not_be_there() {
    let ledger = Ledger::default();
    let first = ledger.next(AB);
    ledger.settle(first, Outcome::Refused);
    database(&ledger, &[1, 2]);
    finds(&ledger, &[("database: refused but there", 1), ("database: never sent", 2)]);
    let ledger = Ledger::default();
    let first = ledger.next(AB);
    database(&ledger, &[1]);
    ledger.settle(first, Outcome::Refused);
    finds(&ledger, &[("database: refused but there", 1)]);
}

#[test]
fn a_reader_gets_each_message_once() {
    let ledger = sent(4);
    read(&ledger, &[1, 3, 3, 2, 4], ReaderSession::Durable);
    finds(&ledger, &[("reader: left out", 2), ("reader: doubled", 3), ("reader: doubled", 2)]);
    // Passed over while its sender had not heard yet.
    let ledger = Ledger::default();
    let (first, second) = (ledger.next(AB), ledger.next(AB));
    ledger.settle(second, Outcome::Acked);
    read(&ledger, &[2], ReaderSession::Durable);
    finds(&ledger, &[]);
    ledger.settle(first, Outcome::Acked);
    finds(&ledger, &[("reader: left out", 1)]);
    read(&ledger, &[1], ReaderSession::Durable);
    finds(&ledger, &[("reader: left out", 1), ("reader: out of order", 1)]);
    // The end of it never came.
    let ledger = sent(2);
    database(&ledger, &[1, 2]);
    read(&ledger, &[1], ReaderSession::Durable);
    assert_eq!(ledger.unread(|_| true), 1);
    ledger.close(|_| true);
    assert_eq!(ledger.findings().1[0].rule, "reader: not all came");
}

#[test]
fn a_new_connection_may_repeat_what_the_lost_one_had() {
    let ledger = sent(5);
    read(&ledger, &[1, 2, 3], ReaderSession::Numbered(1));
    read(&ledger, &[2, 3, 4], ReaderSession::Numbered(2));
    finds(&ledger, &[]);
    assert_eq!(ledger.totals().repeated_after_a_loss, 1);
    read(&ledger, &[4], ReaderSession::Numbered(2));
    finds(&ledger, &[("reader: doubled", 4)]);
    // What a lost connection may have had is not asked for.
    read(&ledger, &[5], ReaderSession::Numbered(3));
    finds(&ledger, &[("reader: doubled", 4)]);
}

#[test]
fn fire_and_forget_messages_are_lost_only_in_kills() {
    let ledger = Ledger::default();
    for _ in 0..2 {
        let tag = ledger.next(FAST);
        ledger.settle(tag, Outcome::Acked);
    }
    ledger.in_database(Tag { channel: FAST, n: 2 }, "event 9");
    finds(&ledger, &[("database: missing", 1)]);
    let ledger = Ledger::default();
    let first = ledger.next(FAST);
    ledger.settle(first, Outcome::Acked);
    assert_eq!(ledger.server_killed(), 1);
    let second = ledger.next(FAST);
    ledger.settle(second, Outcome::Acked);
    ledger.in_database(second, "event 9");
    ledger.close(|_| false);
    finds(&ledger, &[]);
    assert_eq!(ledger.totals().loose_lost_in_kills, 1);
    // A durable message survives the kill.
    let ledger = sent(1);
    ledger.server_killed();
    ledger.close(|_| false);
    finds(&ledger, &[("database: missing", 1)]);
}

#[test]
fn a_follower_sees_each_once_and_in_order() {
    let ledger = sent(4);
    let mut seen = HashMap::new();
    for n in [2, 3, 3, 2] {
        ledger.at_follower(tag(n), &mut seen);
    }
    let rule = "follower: doubled or out of order";
    finds(&ledger, &[(rule, 3), (rule, 2)]);
    let ledger = sent(4);
    let mut seen = HashMap::new();
    for n in [1, 3] {
        ledger.at_follower(tag(n), &mut seen);
    }
    finds(&ledger, &[("follower: left out", 2)]);
}

#[test]
fn findings_are_counted_beyond_the_reported_ones() {
    let ledger = Ledger::default();
    for _ in 0..MAX_FINDINGS + 5 {
        ledger.find("rule", String::new());
    }
    let (count, stop) = ledger.findings();
    assert_eq!((count, stop.len()), (MAX_FINDINGS as u64 + 5, MAX_FINDINGS));
}
