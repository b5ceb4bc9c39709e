//! The ledger finds what it is there to find, and nothing else.

use std::collections::HashMap;

use super::*;

const AB: Channel = Channel { from: 1, to: 2, loose: false };
const FAST: Channel = Channel { from: 1, to: 2, loose: true };

fn mark(n: u64) -> Mark {
    Mark { channel: AB, n }
}

/// A ledger with so many letters sent and acknowledged.
fn sent(count: u64) -> Ledger {
    let ledger = Ledger::default();
    for _ in 0..count {
        let mark = ledger.next(AB);
        ledger.settle(mark, Outcome::Acked);
    }
    ledger
}

fn books(ledger: &Ledger, numbers: &[u64]) {
    for n in numbers {
        ledger.in_books(mark(*n), "event 9");
    }
}

fn read(ledger: &Ledger, numbers: &[u64], sitting: Sitting) {
    for n in numbers {
        ledger.at_reader(mark(*n), sitting);
    }
}

#[track_caller]
fn finds(ledger: &Ledger, expected: &[(&str, u64)]) {
    let (_, found) = ledger.findings();
    let found: Vec<_> =
        found.iter().map(|one| (one.rule, Mark::find(&one.evidence).map_or(0, |mark| mark.n))).collect();
    assert_eq!(found, expected);
}

#[test]
fn mail_as_it_should_be_is_no_finding() {
    let ledger = sent(3);
    books(&ledger, &[1, 2, 3]);
    read(&ledger, &[1, 2, 3], Sitting::Lasting);
    ledger.close(|_| true);
    finds(&ledger, &[]);
    let totals = ledger.totals();
    assert_eq!((totals.acknowledged, totals.in_books, totals.at_readers), (3, 3, 3));
    assert!(ledger.is_in_books(mark(3)) && !ledger.is_in_books(mark(4)));
}

#[test]
fn what_was_acknowledged_and_is_not_there_is_missing() {
    let ledger = sent(3);
    books(&ledger, &[1, 3]);
    finds(&ledger, &[("books: missing", 2)]);
    let ledger = sent(3);
    books(&ledger, &[1, 2]);
    finds(&ledger, &[]);
    assert_eq!(ledger.owed(), 1);
    ledger.close(|_| false);
    finds(&ledger, &[("books: missing", 3)]);
}

#[test]
fn what_is_there_twice_is_doubled_whatever_its_sender_heard() {
    let ledger = sent(1);
    books(&ledger, &[1, 1]);
    finds(&ledger, &[("books: doubled", 1)]);
    for outcome in [Outcome::Acked, Outcome::Unknown] {
        let ledger = Ledger::default();
        let first = ledger.next(AB);
        books(&ledger, &[1]);
        ledger.settle(first, outcome);
        finds(&ledger, &[]);
        books(&ledger, &[1]);
        finds(&ledger, &[("books: doubled", 1)]);
    }
    let ledger = Ledger::default();
    ledger.next(AB);
    books(&ledger, &[1, 1]);
    finds(&ledger, &[("books: doubled", 1)]);
}

#[test]
fn what_comes_behind_a_later_one_is_out_of_order() {
    let ledger = sent(3);
    books(&ledger, &[2, 1, 3]);
    finds(&ledger, &[("books: missing", 1), ("books: out of order", 1)]);
    // Two on their way at once, on one connection, keep their order as well.
    let ledger = Ledger::default();
    ledger.next(AB);
    ledger.next(AB);
    books(&ledger, &[2, 1]);
    finds(&ledger, &[("books: out of order", 1)]);
}

#[test]
fn what_nobody_answered_may_be_there_once_or_not_at_all() {
    let ledger = Ledger::default();
    for _ in 0..2 {
        let mark = ledger.next(AB);
        ledger.settle(mark, Outcome::Unknown);
    }
    let third = ledger.next(AB);
    ledger.settle(third, Outcome::Acked);
    books(&ledger, &[3, 1]);
    read(&ledger, &[3, 1], Sitting::Lasting);
    ledger.close(|_| true);
    finds(&ledger, &[]);
    let totals = ledger.totals();
    assert_eq!((totals.unanswered_and_kept, totals.unanswered_and_absent), (1, 1));
}

#[test]
fn what_was_refused_and_what_was_never_sent_may_not_be_there() {
    let ledger = Ledger::default();
    let first = ledger.next(AB);
    ledger.settle(first, Outcome::Refused);
    books(&ledger, &[1, 2]);
    finds(&ledger, &[("books: refused but there", 1), ("books: never sent", 2)]);
    let ledger = Ledger::default();
    let first = ledger.next(AB);
    books(&ledger, &[1]);
    ledger.settle(first, Outcome::Refused);
    finds(&ledger, &[("books: refused but there", 1)]);
}

#[test]
fn a_reader_misses_nothing_and_gets_nothing_twice() {
    let ledger = sent(4);
    read(&ledger, &[1, 3, 3, 2, 4], Sitting::Lasting);
    finds(&ledger, &[("reader: left out", 2), ("reader: doubled", 3), ("reader: doubled", 2)]);
    // Passed over while its sender had not heard yet.
    let ledger = Ledger::default();
    let (first, second) = (ledger.next(AB), ledger.next(AB));
    ledger.settle(second, Outcome::Acked);
    read(&ledger, &[2], Sitting::Lasting);
    finds(&ledger, &[]);
    ledger.settle(first, Outcome::Acked);
    finds(&ledger, &[("reader: left out", 1)]);
    read(&ledger, &[1], Sitting::Lasting);
    finds(&ledger, &[("reader: left out", 1), ("reader: out of order", 1)]);
    // The end of it never came.
    let ledger = sent(2);
    books(&ledger, &[1, 2]);
    read(&ledger, &[1], Sitting::Lasting);
    assert_eq!(ledger.unread(|_| true), 1);
    ledger.close(|_| true);
    assert_eq!(ledger.findings().1[0].rule, "reader: not all came");
}

#[test]
fn a_new_connection_may_repeat_what_the_lost_one_had() {
    let ledger = sent(5);
    read(&ledger, &[1, 2, 3], Sitting::Number(1));
    read(&ledger, &[2, 3, 4], Sitting::Number(2));
    finds(&ledger, &[]);
    assert_eq!(ledger.totals().repeated_after_a_loss, 1);
    read(&ledger, &[4], Sitting::Number(2));
    finds(&ledger, &[("reader: doubled", 4)]);
    // What a lost connection may have had is not asked for.
    read(&ledger, &[5], Sitting::Number(3));
    finds(&ledger, &[("reader: doubled", 4)]);
}

#[test]
fn the_fast_lane_forgets_only_with_a_killed_office() {
    let ledger = Ledger::default();
    for _ in 0..2 {
        let mark = ledger.next(FAST);
        ledger.settle(mark, Outcome::Acked);
    }
    ledger.in_books(Mark { channel: FAST, n: 2 }, "event 9");
    finds(&ledger, &[("books: missing", 1)]);
    let ledger = Ledger::default();
    let first = ledger.next(FAST);
    ledger.settle(first, Outcome::Acked);
    assert_eq!(ledger.office_died(), 1);
    let second = ledger.next(FAST);
    ledger.settle(second, Outcome::Acked);
    ledger.in_books(second, "event 9");
    ledger.close(|_| false);
    finds(&ledger, &[]);
    assert_eq!(ledger.totals().loose_lost_in_kills, 1);
    // A letter that was promised to be kept outlives the office.
    let ledger = sent(1);
    ledger.office_died();
    ledger.close(|_| false);
    finds(&ledger, &[("books: missing", 1)]);
}

#[test]
fn a_follower_sees_each_once_and_in_order() {
    let ledger = sent(4);
    let mut seen = HashMap::new();
    for n in [2, 3, 3, 2] {
        ledger.at_follower(mark(n), &mut seen);
    }
    let rule = "follower: doubled or out of order";
    finds(&ledger, &[(rule, 3), (rule, 2)]);
    let ledger = sent(4);
    let mut seen = HashMap::new();
    for n in [1, 3] {
        ledger.at_follower(mark(n), &mut seen);
    }
    finds(&ledger, &[("follower: left out", 2)]);
}

#[test]
fn findings_are_counted_beyond_those_that_are_told() {
    let ledger = Ledger::default();
    for _ in 0..TOLD + 5 {
        ledger.find("rule", String::new());
    }
    let (count, told) = ledger.findings();
    assert_eq!((count, told.len()), (TOLD as u64 + 5, TOLD));
}
