//! The write-ahead log is checkpointed into the database during writes.

use posthaste_engine::nouns::Caller;
use posthaste_engine::store::{check_integrity, open_reader};

use crate::harness::{Realm, message};

/// Without checkpoints, that many messages of that size would need about 25,000 log pages.
const MESSAGES: i64 = 1_500;
const BODY_BYTES: usize = 60 << 10;
/// Largest permitted log: a few times what one checkpoint writes back.
const LOG_BYTES_MAX: u64 = 40 << 20;

fn log_bytes(realm: &Realm) -> u64 {
    std::fs::metadata(realm.directory.path().join("main.db-wal")).map_or(0, |log| log.len())
}

async fn write(realm: &Realm, ann: &Caller) {
    let body = "x".repeat(BODY_BYTES);
    for _ in 0..MESSAGES {
        realm.ask(ann, message("bob", &body)).await;
    }
}

#[tokio::test]
async fn log_stays_short_under_sustained_writes() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    write(&realm, &ann).await;
    let log = log_bytes(&realm);
    assert!((1..LOG_BYTES_MAX).contains(&log), "{log} bytes");
    let realm = realm.reopened();
    let db = open_reader(realm.engine.path()).expect("db");
    let messages: i64 = db.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("a count");
    assert_eq!(messages, MESSAGES);
    assert_eq!(check_integrity(&db).expect("a check"), Vec::<String>::new());
}

#[tokio::test]
async fn long_read_transaction_delays_checkpoints_only_until_it_ends() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let reader = open_reader(realm.engine.path()).expect("db");
    reader.execute_batch("BEGIN; SELECT count(*) FROM agents").expect("a read transaction");
    write(&realm, &ann).await;
    let kept = log_bytes(&realm);
    assert!(kept > LOG_BYTES_MAX, "{kept} bytes: the snapshot in use must be kept");
    let seen: i64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("a count");
    assert_eq!(seen, 0);
    reader.execute_batch("COMMIT").expect("the transaction ends");
    write(&realm, &ann).await;
    let log = log_bytes(&realm);
    assert!(log < kept + LOG_BYTES_MAX, "{log} bytes after {kept}");
    assert_eq!(check_integrity(&reader).expect("a check"), Vec::<String>::new());
}
