//! Whoever has a share has no more than that of the queue, whatever it asks for, and others stand right behind it.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::{CallerQuota, EngineError, Refusal};

use crate::harness::{Realm, letter, member, named};
use crate::watched::Watched;

#[tokio::test]
async fn a_flood_of_one_caller_takes_its_share_of_the_queue_and_no_more() {
    let limits = Limits { share_commands: 5, share_alone: 5, ..Limits::default() };
    let mut realm = Watched::new(limits.clone());
    for name in ["ann", "bob"] {
        realm.engine.submit(&member(name), named(name)).await.expect("a free name");
    }
    let held = realm.hold().await;
    let share = CallerQuota::new(&limits);
    // Several handles, as several connections have them.
    let flood: Vec<_> = (0..200)
        .map(|_| {
            let engine = realm.engine.with_caller_quota(share.clone());
            tokio::spawn(async move { engine.submit(&member("bob"), letter("ann", "flood")).await })
        })
        .collect();
    realm.queued(5).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(realm.engine.queue_depth(), 5, "the others wait in front of the queue");
    let engine = realm.engine.with_caller_quota(CallerQuota::new(&limits));
    let other = tokio::spawn(async move { engine.submit(&member("ann"), letter("bob", "other")).await });
    realm.queued(6).await;
    realm.go_on();
    held.await.unwrap().expect("a word");
    let other = other.await.unwrap().expect("a letter");
    let mut before = 0;
    for one in flood {
        let sent = one.await.unwrap().expect("nobody is turned away");
        before += usize::from(sent.message.seq < other.message.seq);
    }
    assert_eq!(before, 5, "so many of the flood stood before it");
}

#[tokio::test]
async fn whoever_is_alone_has_more_of_the_queue_until_somebody_comes() {
    let limits = Limits { share_commands: 2, share_alone: 20, ..Limits::default() };
    let mut realm = Watched::new(limits.clone());
    let share = CallerQuota::new(&limits);
    // Somebody without a share would be company.
    let alone = realm.engine.with_caller_quota(share.clone());
    alone.submit(&member("ann"), named("ann")).await.expect("a free name");
    for others_are_about in [false, true] {
        let held = realm.hold().await;
        if others_are_about {
            let engine = realm.engine.with_caller_quota(CallerQuota::new(&limits));
            tokio::spawn(async move { engine.submit(&member("ann"), letter("ann", "other")).await });
            realm.queued(1).await;
        }
        let flood: Vec<_> = (0..50)
            .map(|_| {
                let engine = realm.engine.with_caller_quota(share.clone());
                tokio::spawn(async move { engine.submit(&member("ann"), letter("ann", "flood")).await })
            })
            .collect();
        let room = if others_are_about { 1 + 2 } else { 20 };
        realm.queued(room).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(realm.engine.queue_depth(), room);
        realm.go_on();
        held.await.unwrap().expect("a word");
        for one in flood {
            one.await.unwrap().expect("nobody is turned away");
        }
    }
}

#[tokio::test]
async fn whoever_waits_too_long_for_its_own_share_is_told_that_the_office_is_busy() {
    let queue_wait = Duration::from_millis(50);
    let limits = Limits { share_commands: 1, share_alone: 1, queue_wait, ..Limits::default() };
    let mut realm = Watched::new(limits.clone());
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let engine = realm.engine.with_caller_quota(CallerQuota::new(&limits));
    let first = engine.clone();
    let first = tokio::spawn(async move { first.submit(&member("ann"), letter("ann", "1")).await });
    realm.queued(1).await;
    let second = engine.submit(&member("ann"), letter("ann", "2")).await;
    assert!(matches!(second, Err(EngineError::Refused(Refusal::Busy))), "{second:?}");
    realm.go_on();
    held.await.unwrap().expect("a word");
    first.await.unwrap().expect("a letter");
    // What was given back can be had again.
    engine.submit(&member("ann"), letter("ann", "3")).await.expect("a letter");
}

#[tokio::test]
async fn reading_leaves_a_reader_to_others() {
    let realm = Realm::with(Limits { readers: 2, ..Limits::default() });
    let engine = realm.engine.with_caller_quota(CallerQuota::new(realm.engine.limits()));
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let wait = std::sync::Arc::new(wait);
    let busy: Vec<_> = (0..10)
        .map(|_| {
            let (engine, wait) = (engine.clone(), wait.clone());
            tokio::spawn(async move {
                engine
                    .read(move |view| {
                        // Ends when the test lets go.
                        let _ = wait.lock().expect("a lock").recv();
                        view.head()
                    })
                    .await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let other = tokio::time::timeout(Duration::from_secs(5), realm.engine.read(|view| view.head())).await;
    other.expect("a reader is left").expect("a place");
    drop(go);
    for one in busy {
        one.await.unwrap().expect("a place");
    }
}
