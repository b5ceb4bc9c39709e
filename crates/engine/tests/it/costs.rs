//! Cost limits of reads: a read is stopped when its time budget is used up or its caller goes away, and holds its reader
//! until then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::Message;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::views::{
    InboxMessage, InboxOrder, InboxQuery, Page, Replay, SearchOrder, SearchQuery, TurnQuery, View, Viewed,
};
use posthaste_engine::{CallerQuota, EngineError, Filter, Refusal, Start, one_request};

use crate::harness::{Realm, conversation_id, id, message};

/// Reads forever, in many short statements.
fn read_forever(view: &View<'_>) -> Viewed<i64> {
    loop {
        view.head()?;
    }
}

fn is_too_costly<T>(answer: &Viewed<T>) -> bool {
    matches!(answer, Err(EngineError::Refused(Refusal::TooCostly { .. })))
}

#[tokio::test]
async fn read_is_stopped_when_its_time_budget_is_used_up() {
    let limits = Limits { read_cpu: Duration::from_millis(30), ..Limits::default() };
    let realm = Realm::with(limits);
    assert!(is_too_costly(&realm.engine.read(read_forever).await));
    // Also if the view swallows the error of the stopped statement.
    let swallowed = realm.engine.read(|view| {
        while view.head().is_ok() {}
        Ok(())
    });
    assert!(is_too_costly(&swallowed.await));
    // The connection is still usable.
    realm.engine.read(|view| view.head()).await.expect("a head");
}

#[tokio::test]
async fn operator_has_a_larger_time_budget() {
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
async fn read_is_stopped_when_its_caller_goes_away() {
    let hour = Duration::from_secs(3600);
    let realm = Realm::with(Limits { read_cpu: hour, read_wall: hour, ..Limits::default() });
    let (begin, begun) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    let engine = realm.engine.clone();
    let caller = tokio::spawn(async move {
        let read = engine.read(move |view| {
            begin.send(()).expect("the test waits");
            let looked = read_forever(view);
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

/// Regression: a disconnected caller's quota was released while its reads went on, until no reader was left.
#[tokio::test]
async fn quota_of_a_disconnected_caller_is_held_until_its_reads_end() {
    let realm = Realm::with(Limits { readers: 4, ..Limits::default() });
    let quota = CallerQuota::new(realm.engine.limits());
    let release = Arc::new(AtomicBool::new(false));
    let (begin, begun) = mpsc::channel();
    let allowed = realm.engine.limits().share_readers;
    for n in 0..10 {
        let (engine, release) = (realm.engine.with_caller_quota(quota.clone()), release.clone());
        let begin = begin.clone();
        let caller = tokio::spawn(async move {
            // Blocks where an interrupt has no effect.
            let blocked = move |view: &View<'_>| {
                begin.send(()).expect("the test listens");
                while !release.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                view.head()
            };
            engine.read(blocked).await
        });
        // The caller starts its read, or waits for its quota.
        tokio::task::yield_now().await;
        if n < allowed {
            begun.recv_timeout(Duration::from_secs(10)).expect("a read begins");
        }
        caller.abort();
    }
    for _ in 0..20 {
        let other = tokio::time::timeout(Duration::from_secs(10), realm.engine.read(|view| view.head()));
        other.await.expect("a reader is left").expect("a head");
    }
    assert_eq!(begun.try_iter().count(), 0, "no more than {allowed} concurrent reads");
    release.store(true, Ordering::Release);
}

#[tokio::test]
async fn reads_of_one_request_share_one_time_budget() {
    let limits = Limits { read_cpu: Duration::from_millis(40), ..Limits::default() };
    let realm = Realm::with(limits);
    one_request(async {
        assert!(is_too_costly(&realm.engine.read(read_forever).await));
        let next = realm.engine.read(|view| view.head()).await;
        assert!(is_too_costly(&next), "{next:?}");
    })
    .await;
    realm.engine.read(|view| view.head()).await.expect("another request");
}

#[tokio::test]
async fn reads_end_on_shutdown() {
    let realm = Realm::with(Limits { read_cpu: Duration::from_secs(3600), ..Limits::default() });
    let (begin, begun) = tokio::sync::oneshot::channel();
    let engine = realm.engine.clone();
    let read = tokio::spawn(async move {
        let read = engine.read(move |view| {
            begin.send(()).expect("the test waits");
            read_forever(view)
        });
        read.await
    });
    begun.await.expect("a read");
    realm.engine.stop_reading();
    let ended = tokio::time::timeout(Duration::from_secs(4), read).await.expect("an end").expect("no panic");
    assert!(matches!(ended, Err(EngineError::Failed(_))), "{ended:?}");
}

/// Regression: the snippet compared every match with every other, so 16 terms took minutes and 200 took half a day.
#[tokio::test]
async fn search_for_many_terms_in_a_repetitive_text_is_answered() {
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

/// A search that cannot check every match in its time budget returns a partial result.
#[tokio::test]
async fn search_out_of_time_returns_a_partial_result() {
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

/// Seq and size of each row of a page, and the cursor of the next page.
type Rows = (Vec<(i64, usize)>, Option<i64>);

/// Regression: a page was bounded only in rows, so 1,000 messages of 1 MB made a page of 1 GB.
#[tokio::test]
async fn pages_of_large_rows_end_early_without_gaps() {
    const ROWS: usize = 30;
    let limits = Limits { page_bytes: 20_000, ..Limits::default() };
    let realm = Realm::with(limits);
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "chat", &["bert"]).await;
    for n in 0..ROWS {
        // The last row is larger than a page may be and has a page of its own.
        let text = format!("{n:02} heron {}", "x".repeat(if n == ROWS - 1 { 50_000 } else { 4_000 }));
        realm.ask(&anna, SendMessage { ack_required: true, ..message("bert", &text) }).await;
        realm.say(&anna, "chat", &text).await;
    }
    let bytes = |items: &[InboxMessage]| items.iter().map(|it| it.message.body.as_str().len()).sum::<usize>();

    for order in [InboxOrder::Newest, InboxOrder::Oldest, InboxOrder::Priority] {
        let (mut seen, mut query) = (Vec::new(), InboxQuery { order, limit: 1_000, ..InboxQuery::default() });
        loop {
            let page = realm.see(|view| view.inbox(&bert, &id("bert"), &query));
            assert!(page.items.len() == 1 || bytes(&page.items) <= 20_000, "{}", bytes(&page.items));
            seen.extend(page.items.iter().map(|it| it.message.seq));
            match page.next {
                Some(next) if order == InboxOrder::Newest => query.before = Some(next),
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen.len(), ROWS, "{order:?}");
        assert!(
            seen.is_sorted_by(|a, b| if order == InboxOrder::Newest { a > b } else { a < b }),
            "{order:?}"
        );
    }

    let walk = |name: &str, page: &dyn Fn(Option<i64>) -> Rows| {
        let (mut seen, mut at, mut pages) = (Vec::new(), None, 0);
        loop {
            let (rows, next) = page(at);
            let bytes: usize = rows.iter().map(|(_, bytes)| bytes).sum();
            assert!(rows.len() <= 1 || bytes <= 20_000, "{name}: {bytes}");
            seen.extend(rows.into_iter().map(|(seq, _)| seq));
            pages += 1;
            match next {
                Some(_) => at = next,
                None => break,
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), ROWS, "{name}");
        assert!(pages > 5, "{name}: {pages} pages");
    };
    let size = |message: &Message| (message.seq, message.body.as_str().len());
    let rows_of = |page: Page<InboxMessage, i64>| {
        (page.items.iter().map(|it| size(&it.message)).collect::<Vec<_>>(), page.next)
    };
    walk("sent", &|at| {
        let page = realm.see(|view| view.sent(&anna, &id("anna"), at, 1_000));
        (page.items.iter().map(|it| size(&it.message)).collect(), page.next)
    });
    walk("waiting", &|at| {
        rows_of(realm.see(|view| view.waiting(&bert, &id("bert"), at.unwrap_or(0), 1_000)))
    });
    walk("unacknowledged", &|at| {
        rows_of(realm.see(|view| view.unacknowledged(&bert, &id("bert"), None, at, 1_000)))
    });
    walk("exchange", &|at| {
        rows_of(realm.see(|view| view.exchange(&bert, &id("bert"), &id("anna"), at.unwrap_or(0), 1_000)))
    });
    for newest_first in [false, true] {
        walk("turns", &|at| {
            let mut query = TurnQuery { newest_first, limit: 1_000, ..TurnQuery::default() };
            if let Some(at) = at {
                let turn = realm.see(|view| view.events(&anna, at - 1, &Filter::everything(), 1)).events[0]
                    .turn_id();
                *(if newest_first { &mut query.before } else { &mut query.after }) = turn;
            }
            let page = realm.see(|view| view.turns(&anna, &conversation_id("chat"), &query));
            let rows = page.items.iter().map(|turn| (turn.seq, turn.content.as_str().len())).collect();
            (rows, page.next.and(page.items.last().map(|turn| turn.seq)))
        });
    }
    let sent = Filter::Kinds(vec!["message.sent".to_owned()]);
    let events = |replay: Replay| {
        let rows =
            replay.events.iter().map(|event| size(event.message.as_ref().expect("a message"))).collect();
        (rows, replay.more.then_some(replay.cursor))
    };
    walk("events", &|at| events(realm.see(|view| view.events(&anna, at.unwrap_or(0), &sent, 1_000))));
    walk("earlier", &|at| {
        events(realm.see(|view| view.earlier(&anna, at.unwrap_or(i64::MAX), &sent, 1_000)))
    });

    let query = SearchQuery { text: "heron".to_owned(), limit: 1_000, ..SearchQuery::default() };
    let found = realm.see(|view| view.search(&anna, &query));
    assert!(found.partial && (1..=5).contains(&found.hits.len()), "{}", found.hits.len());

    // Streams read in chunks and still get everything.
    let mut mail = realm.engine.attach(&bert, &id("bert")).await.expect("its own mail");
    for _ in 0..ROWS {
        mail.next().await.expect("a message");
    }
    let mut feed = realm.engine.follow(&anna, sent, Start::After(0), 100).await.expect("a feed");
    for _ in 0..ROWS {
        feed.next().await.expect("an event");
    }
}

/// Regression: a batch of 100 pages was kept in memory until the last one was written.
#[tokio::test]
async fn answers_of_one_request_share_one_byte_limit() {
    let limits = Limits { page_bytes: 20_000, answer_bytes: 50_000, ..Limits::default() };
    let realm = Realm::with(limits);
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    for _ in 0..10 {
        realm.send(&anna, "bert", &"x".repeat(4_000)).await;
    }
    let query = InboxQuery { limit: 1_000, ..InboxQuery::default() };
    let inbox = || {
        let (bert, query) = (bert.clone(), query.clone());
        realm.engine.read(move |view| view.inbox(&bert, &bert.agent, &query))
    };
    one_request(async {
        let mut rows = 0;
        let refused = loop {
            match inbox().await {
                Ok(page) => rows += page.items.len(),
                refused => break refused,
            }
        };
        assert!((8..=14).contains(&rows), "{rows} rows of 4 KB within 50 KB");
        assert!(is_too_costly(&refused), "{refused:?}");
    })
    .await;
    assert_eq!(inbox().await.expect("another request").items.len(), 4);
}
