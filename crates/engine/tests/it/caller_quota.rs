//! A caller's quota bounds its part of the queue, so that a flood does not delay other callers.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::{CallerQuota, EngineError, Refusal};

use crate::harness::{Realm, member, message, named};
use crate::pausable::PausableRealm;

#[tokio::test]
async fn flood_from_one_caller_is_limited_to_its_quota() {
    let limits = Limits { share_commands: 5, ..Limits::default() };
    let mut realm = PausableRealm::new(limits.clone());
    for name in ["ann", "bob"] {
        realm.engine.submit(&member(name), named(name)).await.expect("a free name");
    }
    let held = realm.hold().await;
    let quota = CallerQuota::new(&limits);
    // One handle per command, as if the caller had several connections.
    let flood: Vec<_> = (0..200)
        .map(|_| {
            let engine = realm.engine.with_caller_quota(quota.clone());
            tokio::spawn(async move { engine.submit(&member("bob"), message("ann", "flood")).await })
        })
        .collect();
    realm.queued(5).await;
    let engine = realm.engine.with_caller_quota(CallerQuota::new(&limits));
    let other = tokio::spawn(async move { engine.submit(&member("ann"), message("bob", "other")).await });
    // Tasks run in the order in which they were spawned, so all of the flood has tried by now.
    realm.queued(6).await;
    assert_eq!(realm.engine.queue_depth(), 6, "the rest of the flood waits outside the queue");
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    let other = other.await.unwrap().expect("a receipt");
    let mut before = 0;
    for one in flood {
        let sent = one.await.unwrap().expect("no command is refused");
        before += usize::from(sent.message.seq < other.message.seq);
    }
    assert_eq!(before, 1, "callers are served in turn");
}

#[tokio::test]
async fn first_command_of_another_caller_is_in_the_next_batch() {
    let limits = Limits { share_commands: 1_000, batch_commands: 2, ..Limits::default() };
    let mut realm = PausableRealm::new(limits.clone());
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let quotas = [CallerQuota::new(&limits), CallerQuota::new(&limits)];
    let send = |quota: &std::sync::Arc<CallerQuota>| {
        let engine = realm.engine.with_caller_quota(quota.clone());
        tokio::spawn(async move { engine.submit(&member("ann"), message("ann", "text")).await })
    };
    let flood: Vec<_> = (0..1_000).map(|_| send(&quotas[0])).collect();
    realm.queued(1_000).await;
    let other = send(&quotas[1]);
    realm.queued(1_001).await;
    let before = realm.engine.meter().batches.count();
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    let other = other.await.unwrap().expect("a receipt");
    let mut earlier = 0;
    for one in flood {
        let sent = one.await.unwrap().expect("a receipt");
        earlier += usize::from(sent.message.seq < other.message.seq);
    }
    assert_eq!(earlier, 1, "one turn of the flood comes first");
    let batches = realm.engine.meter().batches.count() - before;
    assert!(batches > 500, "batches of two: {batches}");
}

#[tokio::test]
async fn caller_waiting_too_long_for_its_quota_gets_busy() {
    let queue_wait = Duration::from_millis(50);
    let limits = Limits { share_commands: 1, queue_wait, ..Limits::default() };
    let mut realm = PausableRealm::new(limits.clone());
    realm.engine.submit(&member("ann"), named("ann")).await.expect("a free name");
    let held = realm.hold().await;
    let engine = realm.engine.with_caller_quota(CallerQuota::new(&limits));
    let first = engine.clone();
    let first = tokio::spawn(async move { first.submit(&member("ann"), message("ann", "1")).await });
    realm.queued(1).await;
    let second = engine.submit(&member("ann"), message("ann", "2")).await;
    assert!(matches!(second, Err(EngineError::Refused(Refusal::Busy))), "{second:?}");
    realm.go_on();
    held.await.unwrap().expect("an announcement");
    first.await.unwrap().expect("a receipt");
    // A released quota can be used again.
    engine.submit(&member("ann"), message("ann", "3")).await.expect("a receipt");
}

#[tokio::test]
async fn reads_leave_a_reader_for_other_callers() {
    let realm = Realm::with(Limits { readers: 2, ..Limits::default() });
    let engine = realm.engine.with_caller_quota(CallerQuota::new(realm.engine.limits()));
    let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let wait = std::sync::Arc::new(wait);
    let busy: Vec<_> = (0..10)
        .map(|_| {
            let (engine, wait, begin) = (engine.clone(), wait.clone(), begin.clone());
            tokio::spawn(async move {
                engine
                    .read(move |view| {
                        begin.send(()).expect("the test listens");
                        // Ends when the test drops the sender.
                        let _ = wait.lock().expect("a lock").recv();
                        view.head()
                    })
                    .await
            })
        })
        .collect();
    begun.recv().await.expect("a read");
    let other = tokio::time::timeout(Duration::from_secs(5), realm.engine.read(|view| view.head())).await;
    other.expect("a reader is left").expect("a head");
    drop(go);
    for one in busy {
        one.await.unwrap().expect("a head");
    }
}
