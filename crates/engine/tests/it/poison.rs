//! After a failed write the realm is read-only, reports the reason, and keeps every acknowledged write.

use std::path::Path;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, Caller, Seq};
use posthaste_engine::store::{check_integrity, open_reader};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::views::InboxQuery;
use posthaste_engine::{Engine, EngineError, Fault};

use crate::harness::{id, member, named};
use crate::pausable::{PausableRealm, realm_name};
use crate::subprocess;

fn is_poisoned<T: std::fmt::Debug>(answer: &Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Failed(Fault::Poisoned { .. })))
}

/// The seq of every message in ann's inbox, oldest first.
fn inbox(engine: &Engine) -> Vec<Seq> {
    let (mut found, mut query) = (Vec::new(), InboxQuery { limit: 1_000, ..InboxQuery::default() });
    loop {
        let page =
            engine.read_blocking(|view| view.inbox(&member("ann"), &id("ann"), &query)).expect("an inbox");
        found.extend(page.items.iter().map(|item| item.message.seq));
        query.before = page.next;
        if page.next.is_none() {
            found.reverse();
            return found;
        }
    }
}

/// Asserts that the database is sound and that no message is stored incompletely.
fn assert_sound(path: &Path) {
    let db = open_reader(path).expect("db");
    assert_eq!(check_integrity(&db).expect("a check"), Vec::<String>::new());
    let incomplete = "SELECT count(*) FROM messages m WHERE
                      NOT EXISTS(SELECT 1 FROM deliveries d WHERE d.message = m.seq)
                      OR NOT EXISTS(SELECT 1 FROM events e WHERE e.message = m.seq)";
    assert_eq!(db.query_row(incomplete, [], |row| row.get::<_, i64>(0)).expect("a count"), 0);
    let gaps = "SELECT max(seq) - count(*) FROM events";
    assert_eq!(db.query_row(gaps, [], |row| row.get::<_, i64>(0)).expect("a count"), 0);
}

/// Writes until the file may not grow any more, then checks the realm's state.
async fn write_until_full(directory: &Path) {
    let path = directory.join("main.db");
    let (engine, guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let message = || SendMessage::text(vec![Address::Agent(id("ann"))], "x".repeat(3_000));
    let mut acknowledged = Vec::new();
    let failed = loop {
        // Several at a time, so that whole batches fail too.
        let together: Vec<_> = (0..4)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.submit(&member("ann"), message()).await })
            })
            .collect();
        let mut failed = None;
        for answer in together {
            match answer.await.expect("an answer") {
                Ok(sent) => {
                    println!("acknowledged {}", sent.message.seq);
                    acknowledged.push(sent.message.seq);
                }
                refused => failed = Some(refused),
            }
        }
        if let Some(failed) = failed {
            break failed;
        }
    };
    assert!(is_poisoned(&failed), "{failed:?}");
    let reason = engine.poisoned().expect("a reason").to_owned();
    assert!(!reason.is_empty());
    let later = engine.submit(&Caller::office(), named("late")).await;
    assert!(is_poisoned(&later), "it stays poisoned: {later:?}");
    assert_eq!(engine.poisoned(), Some(reason.as_str()), "the first reason is kept");
    acknowledged.sort_unstable();
    assert_eq!(inbox(&engine), acknowledged, "reads still work and show what was acknowledged");
    drop(engine);
    guard.join();
    println!("done");
}

#[tokio::test]
async fn full_disk_poisons_without_losing_acknowledged_writes() {
    if let Some(directory) = subprocess::assigned_directory() {
        return write_until_full(&directory).await;
    }
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let test = "poison::full_disk_poisons_without_losing_acknowledged_writes";
    // Files may grow to a MiB or two; beyond that a write fails instead of killing the process.
    let mut child = subprocess::command(test, directory.path(), "ulimit -f 3000; trap '' XFSZ");
    let output = child.output().expect("a second process");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("done"),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut acknowledged: Vec<Seq> =
        printed.lines().filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).collect();
    acknowledged.sort_unstable();
    assert!(acknowledged.len() > 10, "only {}: the disk was full too early", acknowledged.len());

    // Without the file size limit there is space again.
    let path = directory.path().join("main.db");
    assert_sound(&path);
    let (engine, guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    assert_eq!(inbox(&engine), acknowledged, "every acknowledged message, and no refused one");
    let next = SendMessage::text(vec![Address::Agent(id("ann"))], "there is space again");
    let sent = engine.submit(&member("ann"), next).await.expect("a receipt");
    assert_eq!(
        Some(sent.message.seq),
        acknowledged.last().map(|last| last + 1),
        "no gap at the failed write"
    );
    drop(engine);
    guard.join();
    assert_sound(&path);
}

/// Before, a panic poisoned the realm; on a replicated log it would have stopped every server at the same command.
#[tokio::test]
async fn panic_in_a_verb_leaves_out_only_that_command() {
    let mut realm = PausableRealm::new(Limits { batch_commands: 4, ..Limits::default() });
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let queue = |name: &'static str| {
        let engine = realm.engine.clone();
        tokio::spawn(async move { engine.submit(&member(name), named(name)).await })
    };
    let mut waiting = vec![queue("bob")];
    realm.queued(1).await;
    let panicked = realm.queue_panic();
    realm.queued(2).await;
    // Some of these are in the batch that panics, the others after it.
    waiting.extend(["c", "d", "e", "f", "g"].map(queue));
    realm.queued(7).await;
    realm.go_on();
    held.await.unwrap().expect("the earlier batch is not affected");
    let panicked = panicked.await.unwrap();
    assert!(matches!(panicked, Err(EngineError::Failed(Fault::Internal { .. }))), "{panicked:?}");
    for answer in waiting {
        answer.await.unwrap().expect("a free name");
    }
    assert_eq!(realm.engine.poisoned(), None);
    let head = realm.engine.read(|view| view.head()).await.expect("a head");
    assert_eq!(head, 8, "ann, the announcement that was held, and six more; no gap");

    let (path, _directory) = realm.closed();
    assert_sound(&path);
    let (engine, _guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    let found = |name: &str| engine.read_blocking(|view| view.agent(&Caller::office(), &id(name))).is_ok();
    assert!(["ann", "bob", "c", "d", "e", "f", "g"].into_iter().all(found), "what was acknowledged");
}

#[tokio::test]
async fn events_after_poisoning_are_not_published() {
    let realm = PausableRealm::new(Limits::default());
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let everything = posthaste_engine::Filter::everything;
    let mut feed = realm
        .engine
        .follow(&Caller::office(), everything(), posthaste_engine::Start::After(0), 16)
        .await
        .expect("a feed");
    let first = feed.next().await.expect("a step");
    assert!(matches!(&first, posthaste_engine::Step::Event { event, .. } if event.seq == 1), "{first:?}");
    // What is committed now goes into a file that cannot be opened again.
    std::fs::remove_file(realm.engine.path()).expect("a file");
    let poisoned = realm.engine.submit(&member("bob"), named("bob")).await;
    assert!(is_poisoned(&poisoned), "{poisoned:?}");
    let later = realm.engine.submit(&member("late"), named("late")).await;
    assert!(is_poisoned(&later), "it stays so: {later:?}");
    tokio::select! {
        biased;
        step = feed.next() => panic!("published: {step:?}"),
        () = tokio::task::yield_now() => {}
    }
    assert_eq!(feed.seq(), 1);
}
