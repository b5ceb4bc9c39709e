//! The same commands in the same order give the same database, regardless of batching, serialisation or restarts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;
use posthaste_engine::store::{check_integrity, digest, open_reader, open_writer};
use posthaste_engine::testing::{Answer, apply_batches};
use posthaste_engine::verbs::Command;
use posthaste_engine::{Fault, Record};
use tempfile::TempDir;

use crate::commands::Commands;
use crate::rng::Rng;

const COMMANDS: usize = 10_000;
const SEED: u64 = 7_678;
const LOG_ID: &str = "the same event log";

fn records() -> Vec<Record> {
    Commands::new(SEED).take(COMMANDS).collect()
}

/// Splits the records into batches of random sizes up to `most`.
fn batches(records: &[Record], most: usize) -> Vec<Vec<Record>> {
    let mut rng = Rng::new(most as u64);
    let (mut rest, mut cut) = (records, Vec::new());
    while !rest.is_empty() {
        let (batch, after) = rest.split_at((1 + rng.below(most)).min(rest.len()));
        cut.push(batch.to_vec());
        rest = after;
    }
    cut
}

struct Database {
    path: PathBuf,
    answers: Vec<Answer>,
    _directory: TempDir,
}

impl Database {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        Self { path: directory.path().join("main.db"), answers: Vec::new(), _directory: directory }
    }

    fn of(batches: Vec<Vec<Record>>) -> Self {
        let mut db = Self::new();
        db.apply(batches);
        db
    }

    fn apply(&mut self, batches: Vec<Vec<Record>>) {
        let realm = RealmName::new("main").expect("a realm name");
        self.answers.extend(apply_batches(&self.path, realm, LOG_ID, batches).expect("db"));
    }

    fn digest(&self, with_index: bool) -> String {
        digest(&open_reader(&self.path).expect("db"), with_index).expect("a digest")
    }

    fn answer_texts(&self) -> Vec<String> {
        self.answers.iter().map(|answer| format!("{answer:?}")).collect()
    }
}

/// The event log, one line per event.
fn event_lines(path: &Path) -> Vec<String> {
    let db = open_reader(path).expect("db");
    let sql =
        "SELECT seq || '|' || at || '|' || actor || '|' || coalesce(cause, '') || '|' || fact FROM events
               ORDER BY seq";
    let mut lines = db.prepare(sql).expect("a query");
    lines.query_map([], |row| row.get(0)).expect("events").collect::<Result<_, _>>().expect("text")
}

fn assert_same(a: &Database, b: &Database, with_index: bool) {
    // Line by line first: the first difference is more useful than two digests.
    let (ours, theirs) = (event_lines(&a.path), event_lines(&b.path));
    let differing = ours.iter().zip(&theirs).find(|(a, b)| a != b);
    assert_eq!((differing, ours.len()), (None, theirs.len()), "the same event log");
    assert!(ours.len() > COMMANDS / 4, "only {} events: the commands did too little", ours.len());
    let (ours, theirs) = (a.answer_texts(), b.answer_texts());
    assert_eq!(ours.iter().zip(&theirs).find(|(a, b)| a != b), None, "the same answers");
    assert_eq!(a.digest(with_index), b.digest(with_index), "the same rows in every table");
}

#[test]
fn same_batches_of_all_verbs_give_an_identical_database() {
    let records = records();
    let first = Database::of(batches(&records, 64));
    let second = Database::of(batches(&records, 64));
    assert_same(&first, &second, true);

    let failed = |answer: &&Answer| matches!(answer, Err(posthaste_engine::EngineError::Failed(_)));
    let failure = first.answers.iter().find(failed);
    assert!(failure.is_none(), "no command may fail internally: {failure:?}");
    let with = records.iter().zip(&first.answers);
    let done: BTreeSet<&str> =
        with.clone().filter(|(_, a)| a.is_ok()).map(|(r, _)| r.command.word()).collect();
    let every: BTreeSet<&str> = Command::WORDS.iter().copied().collect();
    assert_eq!(
        every.difference(&done).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "verbs that never succeeded"
    );
    let refused = with.filter(|(_, answer)| answer.is_err()).count();
    assert!(refused > COMMANDS / 10, "only {refused} refusals: invalid commands must be covered too");

    let db = open_writer(&first.path).expect("db");
    assert_eq!(check_integrity(&db).expect("a check"), Vec::<String>::new());
    db.execute("INSERT INTO fulltext(fulltext, rank) VALUES('integrity-check', 1)", [])
        .expect("a sound index");
}

/// The writer caches state over runs of turns; a command that ends a run must see complete rows.
#[test]
fn write_cache_does_not_change_the_result() {
    let lively = |record: &Record| {
        let word = record.command.word();
        let scene =
            ["register", "create_conversation", "join_conversation", "leave_conversation", "set_state"];
        let ends =
            ["close_conversation", "reopen_conversation", "invite", "remove_participant", "open_thread"];
        ["say", "send", "mark_delivered"].contains(&word) || scene.contains(&word) || ends.contains(&word)
    };
    let mut rng = Rng::new(SEED);
    let records: Vec<Record> = Commands::new(SEED)
        .filter(lively)
        .take(7_000)
        .flat_map(|record| {
            // A speaker adds several turns in a row.
            let times = if record.command.word() == "say" { 1 + rng.below(12) } else { 1 };
            (0..times).map(|n| Record { stamp: later(&record, n), ..record.clone() }).collect::<Vec<_>>()
        })
        .collect();
    let one_by_one = Database::of(records.iter().map(|record| vec![record.clone()]).collect());
    let together = Database::of(batches(&records, 700));
    assert_same(&one_by_one, &together, false);
    let said = "SELECT count(*) FROM turns";
    let db = open_reader(&together.path).expect("db");
    let turns: i64 = db.query_row(said, [], |row| row.get(0)).expect("a count");
    assert!(turns > 300, "only {turns} turns");
    let sums = "SELECT (SELECT sum(turn_count) FROM conversations), (SELECT sum(turns) FROM turn_types)";
    let sums: (i64, i64) = db.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("sums");
    assert_eq!(sums, (turns, turns), "every turn is counted");
}

/// A stamp of its own for the n-th repetition of a command.
fn later(record: &Record, n: usize) -> posthaste_engine::stamp::Stamp {
    let mut stamp = record.stamp;
    // Far enough from the ids that the command itself assigns.
    stamp.id = uuid::Uuid::from_u128(stamp.id.as_u128() ^ ((n as u128) << 40));
    stamp
}

#[test]
fn other_batches_give_the_same_database() {
    let records = records();
    let small = Database::of(batches(&records, 16));
    let large = Database::of(batches(&records, 1_024));
    assert_same(&small, &large, false);
}

#[test]
fn serialised_commands_give_the_same_database() {
    let records = records();
    let decoded: Vec<Record> = records
        .iter()
        .map(|record| Record::from_bytes(&record.to_bytes().expect("bytes")).expect("a record"))
        .collect();
    let differing = records.iter().zip(&decoded).find(|(before, after)| before != after);
    assert_eq!(differing, None, "serialisation keeps the whole command");
    assert_same(&Database::of(batches(&records, 64)), &Database::of(batches(&decoded, 64)), true);
}

#[test]
fn restarts_between_batches_give_the_same_database() {
    let records = records();
    let in_one_go = Database::of(batches(&records, 64));
    let mut restarted = Database::new();
    for part in batches(&records, 64).chunks(5) {
        restarted.apply(part.to_vec());
    }
    assert_same(&in_one_go, &restarted, true);
}

#[test]
fn other_commands_give_another_database() {
    // Otherwise the digests above would prove nothing.
    let records: Vec<Record> = Commands::new(SEED).take(500).collect();
    let others: Vec<Record> = Commands::new(SEED + 1).take(500).collect();
    let (ours, theirs) = (Database::of(batches(&records, 64)), Database::of(batches(&others, 64)));
    assert_ne!(ours.digest(false), theirs.digest(false));
    let mut changed = records.clone();
    changed.iter_mut().for_each(|record| record.stamp.now += 1);
    assert_ne!(
        Database::of(batches(&changed, 64)).digest(false),
        ours.digest(false),
        "one millisecond changes the digest"
    );
}

#[test]
fn applying_refuses_a_newer_database() {
    let db = Database::of(batches(&records()[..10], 4));
    open_writer(&db.path).expect("db").pragma_update(None, "user_version", 99).expect("a pragma");
    let realm = RealmName::new("main").expect("a realm name");
    let refused = apply_batches(&db.path, realm, LOG_ID, Vec::new());
    assert!(matches!(refused, Err(Fault::NewerDatabase { found: 99, .. })), "{refused:?}");
}
