//! The log is folded into the books while they are written.

use posthaste_engine::nouns::Caller;
use posthaste_engine::store::{check_integrity, open_reader};

use crate::harness::{Realm, letter};

/// Letters so large that the log would have some 25,000 pages by the end.
const LETTERS: i64 = 1_500;
const LARGE: usize = 60 << 10;
/// What the log may take: a few times as much as is folded at once.
const SHORT: u64 = 40 << 20;

fn log_bytes(realm: &Realm) -> u64 {
    std::fs::metadata(realm.directory.path().join("main.db-wal")).map_or(0, |log| log.len())
}

async fn write(realm: &Realm, ann: &Caller) {
    let body = "x".repeat(LARGE);
    for _ in 0..LETTERS {
        realm.ask(ann, letter("bob", &body)).await;
    }
}

#[tokio::test]
async fn the_log_stays_short_however_much_is_written() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    write(&realm, &ann).await;
    let log = log_bytes(&realm);
    assert!((1..SHORT).contains(&log), "{log} bytes");
    let realm = realm.reopened();
    let db = open_reader(realm.engine.path()).expect("db");
    let letters: i64 = db.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("a count");
    assert_eq!(letters, LETTERS);
    assert_eq!(check_integrity(&db).expect("a check"), Vec::<String>::new());
}

#[tokio::test]
async fn whoever_reads_for_long_keeps_the_log_only_until_it_is_done() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let reader = open_reader(realm.engine.path()).expect("db");
    reader.execute_batch("BEGIN; SELECT count(*) FROM agents").expect("one moment");
    write(&realm, &ann).await;
    let kept = log_bytes(&realm);
    assert!(kept > SHORT, "{kept} bytes: the moment that is read must still be there");
    let seen: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("a count");
    assert_eq!(seen, 0);
    reader.execute_batch("COMMIT").expect("an end");
    write(&realm, &ann).await;
    let log = log_bytes(&realm);
    assert!(log < kept + SHORT, "{log} bytes after {kept}");
    assert_eq!(check_integrity(&reader).expect("a check"), Vec::<String>::new());
}
