//! Back-pressure: a full queue makes callers wait and then refuses them as busy; another process's lock is no failure.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::Address;
use posthaste_engine::store::open_writer;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::{Engine, EngineError, Refusal};
use tokio::time::Instant;

use crate::harness::{Realm, id, member, named};
use crate::pausable::PausableRealm;

fn small_queue(queue_wait: Duration) -> Limits {
    Limits { queue_commands: 2, queue_wait, ..Limits::default() }
}

fn is_busy<T: std::fmt::Debug>(answer: &Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Refused(Refusal::Busy)))
}

/// Waits until the engine reports what is stuck.
async fn until_stuck(engine: &Engine) -> String {
    let reported = async {
        loop {
            match engine.stuck() {
                Some(why) => return why,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reported).await.expect("a report")
}

#[tokio::test]
async fn full_queue_blocks_callers_then_returns_busy() {
    let patience = Duration::from_millis(100);
    let mut realm = PausableRealm::new(small_queue(patience));
    let held = realm.hold().await;
    let queue = |name: &'static str| {
        let engine = realm.engine.clone();
        tokio::spawn(async move { engine.submit(&member(name), named(name)).await })
    };
    let waiting = [queue("ann"), queue("bob")];
    realm.queued(2).await;
    let started = Instant::now();
    let refused = realm.engine.submit(&member("eve"), named("eve")).await;
    assert!(is_busy(&refused), "{refused:?}");
    assert!(started.elapsed() >= patience, "it waited for a queue slot first");
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for answer in waiting {
        answer.await.unwrap().expect("queued commands are executed");
    }
    realm
        .engine
        .submit(&member("eve"), named("eve"))
        .await
        .expect("the name is free: a busy command has no effect");
}

#[tokio::test]
async fn freed_queue_slot_is_given_to_a_waiting_caller() {
    let mut realm = PausableRealm::new(small_queue(Duration::from_secs(60)));
    let held = realm.hold().await;
    let names = ["a", "b", "c", "d", "e"];
    let waiting = names.map(|name| {
        let engine = realm.engine.clone();
        tokio::spawn(async move { engine.submit(&member(name), named(name)).await })
    });
    realm.queued(2).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    for answer in waiting {
        answer.await.unwrap().expect("a queue slot after a while");
    }
}

#[tokio::test]
async fn queue_is_bounded_by_bytes() {
    let limits =
        Limits { queue_bytes: 300 << 10, queue_wait: Duration::from_millis(50), ..Limits::default() };
    let mut realm = PausableRealm::new(limits);
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let large = || SendMessage::text(vec![Address::Agent(id("ann"))], "x".repeat(100 << 10));
    let held = realm.hold().await;
    let waiting = [(); 2].map(|()| {
        let engine = realm.engine.clone();
        tokio::spawn(async move { engine.submit(&member("ann"), large()).await })
    });
    realm.queued(2).await;
    let third = realm.engine.submit(&member("ann"), large()).await;
    assert!(is_busy(&third), "three of 100 KiB and a few bytes do not fit into 300: {third:?}");
    let engine = realm.engine.clone();
    let small = tokio::spawn(async move { engine.submit(&member("bob"), named("bob")).await });
    realm.queued(3).await;
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    small.await.unwrap().expect("a small command still fits");
    for answer in waiting {
        answer.await.unwrap().expect("a receipt");
    }
    realm.engine.submit(&member("ann"), large()).await.expect("the bytes were released");
}

#[tokio::test]
async fn message_larger_than_the_queue_is_accepted_alone() {
    let limits = Limits { queue_bytes: 1 << 10, ..Limits::default() };
    let realm = Realm::with(limits);
    let ann = realm.agent("ann").await;
    realm.send(&ann, "ann", &"x".repeat(10 << 10)).await;
}

#[tokio::test]
async fn abandoned_read_keeps_its_reader_until_it_ends() {
    let stuck_after = Duration::from_millis(20);
    let realm = Realm::with(Limits { readers: 1, stuck_after, ..Limits::default() });
    let (started, has_started) = tokio::sync::oneshot::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let engine = realm.engine.clone();
    let given_up = tokio::spawn(async move {
        let look = engine.read(move |_| {
            started.send(()).expect("the test waits");
            wait.recv().expect("the test resumes it");
            Ok(())
        });
        look.await
    });
    has_started.await.expect("a read");
    given_up.abort();
    assert!(given_up.await.expect_err("given up").is_cancelled());
    let engine = realm.engine.clone();
    let second = tokio::spawn(async move { engine.read(|view| view.head()).await });
    let why = until_stuck(&realm.engine).await;
    assert!(why.contains("readers"), "{why}");
    assert!(!second.is_finished(), "two reads ran at once on one connection");
    go_on.send(()).expect("a read");
    assert_eq!(second.await.unwrap().expect("a head"), 0);
}

#[tokio::test]
async fn foreign_database_lock_is_waited_for() {
    let stuck_after = Duration::from_millis(20);
    let realm = Realm::with(Limits { queue_wait: Duration::from_secs(60), stuck_after, ..Limits::default() });
    let outside = open_writer(realm.engine.path()).expect("db");
    outside.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let engine = realm.engine.clone();
    let waiting = tokio::spawn(async move { engine.submit(&member("ann"), named("ann")).await });
    let why = until_stuck(&realm.engine).await;
    assert!(why.contains("writer"), "{why}");
    assert!(!waiting.is_finished(), "no answer before the lock is free");
    outside.execute_batch("ROLLBACK").expect("a lock");
    waiting.await.unwrap().expect("a free name");
}

#[tokio::test]
async fn foreign_lock_held_too_long_returns_busy_without_poisoning() {
    let realm = Realm::with(Limits { queue_wait: Duration::from_millis(50), ..Limits::default() });
    let outside = open_writer(realm.engine.path()).expect("db");
    outside.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let refused = realm.engine.submit(&member("ann"), named("ann")).await;
    assert!(is_busy(&refused), "{refused:?}");
    assert_eq!(realm.engine.poisoned(), None, "nothing was written, so nothing failed");
    outside.execute_batch("ROLLBACK").expect("a lock");
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
}

/// Regression: only the wait for a queue slot was limited, so callers behind a stuck writer waited forever.
#[tokio::test]
async fn command_not_started_in_time_is_dropped() {
    let mut realm =
        PausableRealm::new(Limits { answer_wait: Duration::from_millis(50), ..Limits::default() });
    let held = realm.hold().await;
    let waiting = realm.engine.submit(&member("ann"), named("ann")).await;
    assert!(is_busy(&waiting), "{waiting:?}");
    let applied = realm.applied.load(std::sync::atomic::Ordering::Relaxed);
    realm.go_on();
    held.await.unwrap().expect("the command in progress is waited for");
    realm.engine.flush().await;
    assert_eq!(
        realm.applied.load(std::sync::atomic::Ordering::Relaxed),
        applied,
        "it was removed from the queue"
    );
    realm.engine.submit(&member("ann"), named("ann")).await.expect("the name is free");
}

#[tokio::test]
async fn stuck_writer_or_readers_are_reported_without_blocking() {
    let stuck_after = Duration::from_millis(20);
    let mut realm = PausableRealm::new(Limits { stuck_after, readers: 2, ..Limits::default() });
    assert_eq!(realm.engine.stuck(), None);
    let held = realm.hold().await;
    let why = until_stuck(&realm.engine).await;
    assert!(why.contains("writer"), "{why}");
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    realm.engine.flush().await;
    assert_eq!(realm.engine.stuck(), None);

    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    for _ in 0..2 {
        let (engine, wait) = (realm.engine.clone(), wait.clone());
        tokio::spawn(async move {
            engine
                .read(move |_| {
                    // Ends when the test does.
                    let _ = wait.lock().map(|wait| wait.recv());
                    Ok(())
                })
                .await
        });
    }
    let why = until_stuck(&realm.engine).await;
    assert!(why.contains("readers"), "{why}");
    drop(go_on);
}
