//! After a failed write the realm is read-only, says why, and has lost nothing that it acknowledged.

use std::path::Path;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, Caller, Seq};
use posthaste_engine::store::{check_integrity, open_reader};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::views::InboxQuery;
use posthaste_engine::{Engine, EngineError, Fault};

use crate::child;
use crate::harness::{id, member, named};
use crate::watched::{Watched, realm_name};

fn is_poisoned<T: std::fmt::Debug>(answer: &Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Failed(Fault::Poisoned { .. })))
}

/// The places of every letter in ann's inbox, the earliest first.
fn inbox(engine: &Engine) -> Vec<Seq> {
    let (mut found, mut query) = (Vec::new(), InboxQuery { limit: 1_000, ..InboxQuery::default() });
    loop {
        let page =
            engine.read_blocking(|view| view.inbox(&member("ann"), &id("ann"), &query)).expect("an inbox");
        found.extend(page.items.iter().map(|letter| letter.message.seq));
        query.before = page.next;
        if page.next.is_none() {
            found.reverse();
            return found;
        }
    }
}

/// Asserts that the books are sound, and that no letter is there by half.
fn assert_sound(path: &Path) {
    let db = open_reader(path).expect("db");
    assert_eq!(check_integrity(&db).expect("a check"), Vec::<String>::new());
    let halves = "SELECT count(*) FROM messages m WHERE
                      NOT EXISTS(SELECT 1 FROM deliveries d WHERE d.message = m.seq)
                      OR NOT EXISTS(SELECT 1 FROM events e WHERE e.message = m.seq)";
    assert_eq!(db.query_row(halves, [], |row| row.get::<_, i64>(0)).expect("a count"), 0);
    let gaps = "SELECT max(seq) - count(*) FROM events";
    assert_eq!(db.query_row(gaps, [], |row| row.get::<_, i64>(0)).expect("a count"), 0);
}

/// Writes until the file may not grow any more, then looks at what is left of the realm.
async fn write_until_full(directory: &Path) {
    let path = directory.join("main.db");
    let (engine, guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let letter = || SendMessage::text(vec![Address::Agent(id("ann"))], "x".repeat(3_000));
    let mut acknowledged = Vec::new();
    let failed = loop {
        // A few at a time, so that batches fail, too.
        let together: Vec<_> = (0..4)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move { engine.submit(&member("ann"), letter()).await })
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
    assert!(is_poisoned(&later), "it stays so: {later:?}");
    assert_eq!(engine.poisoned(), Some(reason.as_str()), "the first reason counts");
    acknowledged.sort_unstable();
    assert_eq!(inbox(&engine), acknowledged, "reads go on and show what was acknowledged");
    drop(engine);
    guard.join();
    println!("played");
}

#[tokio::test]
async fn a_full_disk_poisons_and_loses_nothing_that_was_acknowledged() {
    if let Some(directory) = child::part() {
        return write_until_full(&directory).await;
    }
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let test = "poison::a_full_disk_poisons_and_loses_nothing_that_was_acknowledged";
    // Files may grow to a MiB or two; beyond that a write fails instead of killing the process.
    let mut second = child::second_part(test, directory.path(), "ulimit -f 3000; trap '' XFSZ");
    let played = second.output().expect("a second process");
    let said = String::from_utf8_lossy(&played.stdout);
    assert!(
        played.status.success() && said.contains("played"),
        "{said}\n{}",
        String::from_utf8_lossy(&played.stderr)
    );
    let mut acknowledged: Vec<Seq> =
        said.lines().filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).collect();
    acknowledged.sort_unstable();
    assert!(acknowledged.len() > 10, "only {}: the test did not get far", acknowledged.len());

    // There is room again.
    let path = directory.path().join("main.db");
    assert_sound(&path);
    let (engine, guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    assert_eq!(inbox(&engine), acknowledged, "all of it, and nothing that was refused");
    let next = SendMessage::text(vec![Address::Agent(id("ann"))], "there is room again");
    let sent = engine.submit(&member("ann"), next).await.expect("a letter");
    assert_eq!(Some(sent.message.seq), acknowledged.last().map(|last| last + 1), "no gap where it failed");
    drop(engine);
    guard.join();
    assert_sound(&path);
}

#[tokio::test]
async fn a_panic_in_a_verb_poisons_and_nobody_waits_for_ever() {
    let mut realm = Watched::new(Limits { batch_commands: 4, ..Limits::default() });
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
    // Some of these are in the batch that panics, others come after it.
    waiting.extend(["c", "d", "e", "f", "g"].map(queue));
    realm.queued(7).await;
    realm.go_on();
    held.await.unwrap().expect("the batch before is not touched");
    assert!(is_poisoned(&panicked.await.unwrap()));
    for answer in waiting {
        let answer = answer.await.unwrap();
        assert!(is_poisoned(&answer), "{answer:?}");
    }
    let later = realm.engine.submit(&member("late"), named("late")).await;
    assert!(is_poisoned(&later), "{later:?}");
    let seen = realm.engine.read(|view| view.agent(&member("ann"), &id("ann"))).await;
    assert!(seen.is_ok(), "reads go on");

    let (path, _directory) = realm.closed();
    assert_sound(&path);
    let (engine, _guard) = Engine::open(&path, realm_name(), Limits::default()).expect("db");
    assert_eq!(engine.poisoned(), None);
    let found = |name: &str| engine.read_blocking(|view| view.agent(&Caller::office(), &id(name))).is_ok();
    assert_eq!(
        (found("ann"), found("bob"), found("c")),
        (true, false, false),
        "what was acknowledged, no more"
    );
    engine.submit(&member("bob"), named("bob")).await.expect("a restart mends it");
}

#[tokio::test]
async fn what_happens_after_the_poison_is_not_announced() {
    let realm = Watched::new(Limits::default());
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let everything = posthaste_engine::Filter::everything;
    let mut feed = realm
        .engine
        .follow(&Caller::office(), everything(), posthaste_engine::Start::After(0), 16)
        .await
        .expect("a feed");
    assert!(is_poisoned(&realm.queue_panic().await.unwrap()));
    let first = feed.next().await.expect("a step");
    assert!(matches!(&first, posthaste_engine::Step::Event { event, .. } if event.seq == 1), "{first:?}");
    let head = realm.engine.read(|view| view.head()).await.expect("a head");
    assert_eq!((head, feed.seq()), (1, 1));
}
