//! What a read may cost: it is stopped when its time is used up and when its caller leaves, and holds its reader until
//! then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::views::{SearchOrder, SearchQuery, View, Viewed};
use posthaste_engine::{EngineError, Refusal, Share, one_request};

use crate::harness::Realm;

/// Reads without end, in many short statements.
fn read_for_ever(view: &View<'_>) -> Viewed<i64> {
    loop {
        view.head()?;
    }
}

fn is_too_costly<T>(answer: &Viewed<T>) -> bool {
    matches!(answer, Err(EngineError::Refused(Refusal::TooCostly { .. })))
}

#[tokio::test]
async fn a_read_is_stopped_when_its_time_is_used_up() {
    let limits = Limits { read_cpu: Duration::from_millis(30), ..Limits::default() };
    let realm = Realm::with(limits);
    assert!(is_too_costly(&realm.engine.read(read_for_ever).await));
    // Also where the view makes something of the statement that was stopped.
    let swallowed = realm.engine.read(|view| {
        while view.head().is_ok() {}
        Ok(())
    });
    assert!(is_too_costly(&swallowed.await));
    // The connection is as good as before.
    realm.engine.read(|view| view.head()).await.expect("a place");
}

#[tokio::test]
async fn the_operator_has_more_time() {
    let limits = Limits {
        read_cpu: Duration::from_millis(10),
        long_read_cpu: Duration::from_millis(60),
        ..Limits::default()
    };
    let realm = Realm::with(limits);
    let steps = |engine: posthaste_engine::Engine| async move {
        let (count, counted) = mpsc::channel();
        let answer = engine
            .read(move |view| {
                loop {
                    view.head()?;
                    let _ = count.send(());
                    if false {
                        return Ok(());
                    }
                }
            })
            .await;
        assert!(is_too_costly(&answer));
        counted.iter().count()
    };
    let (short, long) = (steps(realm.engine.clone()).await, steps(realm.engine.unhurried()).await);
    assert!(long > short * 2, "{long} against {short}");
}

#[tokio::test]
async fn a_read_is_stopped_when_its_caller_leaves() {
    let hour = Duration::from_secs(3600);
    let realm = Realm::with(Limits { read_cpu: hour, read_wall: hour, ..Limits::default() });
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let engine = realm.engine.clone();
    let caller = tokio::spawn(async move {
        let read = engine.read(move |view| {
            begin.send(()).expect("the test waits");
            let looked = read_for_ever(view);
            let _ = end.send(looked.is_err());
            looked
        });
        let _ = read.await;
    });
    begun.await.expect("a read");
    caller.abort();
    let stopped = tokio::time::timeout(Duration::from_secs(30), ended).await;
    assert!(stopped.expect("it is stopped").expect("an end"));
}

/// Before, callers that hung up gave back their share while their reads went on, until no reader was left.
#[tokio::test]
async fn a_caller_that_hangs_up_keeps_the_readers_its_reads_hold() {
    let realm = Realm::with(Limits { readers: 4, ..Limits::default() });
    let share = Share::new(realm.engine.limits());
    let release = Arc::new(AtomicBool::new(false));
    let (begin, begun) = mpsc::channel();
    for _ in 0..10 {
        let (engine, release) = (realm.engine.sharing(share.clone()), release.clone());
        let begin = begin.clone();
        let caller = tokio::spawn(async move {
            // Held up where no interrupt is heard.
            let held_up = move |view: &View<'_>| {
                begin.send(()).expect("the test listens");
                while !release.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                view.head()
            };
            engine.read(held_up).await
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        caller.abort();
    }
    for _ in 0..20 {
        let other = tokio::time::timeout(Duration::from_secs(10), realm.engine.read(|view| view.head()));
        other.await.expect("a reader is left").expect("a place");
    }
    assert_eq!(begun.try_iter().count(), realm.engine.limits().share_readers, "reads that went on at once");
    release.store(true, Ordering::Release);
}

#[tokio::test]
async fn the_reads_of_one_request_share_one_bound() {
    let limits = Limits { read_cpu: Duration::from_millis(40), ..Limits::default() };
    let realm = Realm::with(limits);
    one_request(async {
        assert!(is_too_costly(&realm.engine.read(read_for_ever).await));
        let next = realm.engine.read(|view| view.head()).await;
        assert!(is_too_costly(&next), "{next:?}");
    })
    .await;
    realm.engine.read(|view| view.head()).await.expect("another request");
}

#[tokio::test]
async fn reads_end_when_the_process_does() {
    let realm = Realm::with(Limits { read_cpu: Duration::from_secs(3600), ..Limits::default() });
    let (begin, begun) = tokio::sync::oneshot::channel();
    let engine = realm.engine.clone();
    let read = tokio::spawn(async move {
        let read = engine.read(move |view| {
            begin.send(()).expect("the test waits");
            read_for_ever(view)
        });
        read.await
    });
    begun.await.expect("a read");
    realm.engine.stop_reading();
    let ended = tokio::time::timeout(Duration::from_secs(4), read).await.expect("an end").expect("no panic");
    assert!(matches!(ended, Err(EngineError::Failed(_))), "{ended:?}");
}

/// Before, sixteen words took minutes here and two hundred half a day: the snippet compared every match with every other.
#[tokio::test]
async fn a_search_for_many_words_in_a_text_that_repeats_them_is_answered() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", &"a ".repeat(8_000)).await;
    realm.send(&anna, "bert", &"a ".repeat(500_000)).await;
    let search = |text: String, order| {
        let query = SearchQuery { text, order, limit: 1_000, ..SearchQuery::default() };
        let anna = anna.clone();
        realm.engine.read(move |view| view.search(&anna, &query))
    };
    let most = vec!["a"; 16].join(" OR ");
    for order in [SearchOrder::Best, SearchOrder::Newest] {
        let found = search(most.clone(), order).await.expect("an answer in time");
        assert_eq!(found.hits.len(), 2);
        assert!(found.hits.iter().all(|hit| hit.snippet.starts_with("[a] [a]")));
    }
    for query in [
        vec!["a"; 17].join(" OR "),
        vec!["a"; 200].join(" OR "),
        vec!["\"a b\""; 17].join(" "),
        format!("({})", vec!["a*"; 17].join(" OR ")),
        format!("\"{}\"", "a ".repeat(100)),
    ] {
        let refused = search(query.clone(), SearchOrder::Best).await;
        assert!(
            matches!(refused, Err(EngineError::Refused(Refusal::BadQuery { .. }))),
            "{query}: {refused:?}"
        );
    }
}

/// A search that cannot look at every match in its time says so and shows what it has found.
#[tokio::test]
async fn a_search_that_runs_out_of_time_shows_what_it_found() {
    let realm = Realm::with(Limits { read_wall: Duration::from_millis(1), ..Limits::default() });
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for n in 0..600 {
        realm.send(&anna, "bert", &format!("heron {n}")).await;
    }
    let query = SearchQuery { text: "heron".to_owned(), limit: 1_000, ..SearchQuery::default() };
    match realm.engine.read(move |view| view.search(&anna, &query)).await {
        Ok(found) => assert!(found.partial && found.hits.len() < 600, "{}", found.hits.len()),
        refused => assert!(is_too_costly(&refused), "{refused:?}"),
    }
}
