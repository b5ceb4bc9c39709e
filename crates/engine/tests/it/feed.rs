//! Feeds: stored events and the live tail in one stream, without gaps or duplicates, in order, and only what the caller
//! may see.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Audience, Caller, ConversationId, Event, Json, Seq, TurnVisibility};
use posthaste_engine::verbs::conversations::{Create, Invitee};
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::verbs::turns::Say;
use posthaste_engine::{Engine, Feed, Filter, Overflow, Refusal, Start, Step};

use crate::harness::{Realm, id};
use crate::rng::Rng;

pub async fn follow(engine: &Engine, caller: &Caller, filter: Filter, start: Start) -> Feed {
    engine.follow(caller, filter, start, 1_000).await.expect("a feed")
}

/// The next event and its number; an overflow is a failure.
pub async fn event(feed: &mut Feed) -> (u64, Arc<Event>) {
    match feed.next().await.expect("a step") {
        Step::Event { number, event } => (number, event),
        Step::Overflow(lost) => panic!("{lost:?}"),
    }
}

/// Lets a feed read the event log up to `seq`; it must have no event for its caller there.
async fn assert_no_more(feed: &mut Feed, seq: Seq) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while feed.seq() < seq {
        let more = tokio::time::timeout(Duration::from_millis(1), feed.next()).await;
        assert!(more.is_err(), "{more:?}");
        assert!(tokio::time::Instant::now() < deadline, "it has read up to {}, not to {seq}", feed.seq());
    }
}

async fn overflow(feed: &mut Feed) -> Overflow {
    match feed.next().await.expect("a step") {
        Step::Overflow(lost) => lost,
        Step::Event { event, .. } => panic!("{event:?}"),
    }
}

/// The seqs of the next `count` events.
pub async fn seqs(feed: &mut Feed, count: usize) -> Vec<Seq> {
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(event(feed).await.1.seq);
    }
    found
}

async fn announce(engine: &Engine) -> Seq {
    let said = Announce { word: "tick".to_owned(), data: Json::new("1").unwrap(), to: None };
    engine.submit(&Caller::office(), said).await.expect("an announcement")
}

async fn announce_all(engine: &Engine, count: usize) {
    for _ in 0..count {
        announce(engine).await;
    }
}

/// Polls the next step once and cancels.
async fn poll_once(feed: &mut Feed) {
    tokio::select! {
        biased;
        step = feed.next() => panic!("held, but got {step:?}"),
        () = std::future::ready(()) => {}
    }
}

/// Reads everything after a seq up to `end`, asserting that it comes once and in order.
async fn collect(mut feed: Feed, after: Seq, end: Seq) {
    for (number, expected) in (1..).zip(after + 1..=end) {
        let (got, event) = event(&mut feed).await;
        assert_eq!((got, event.seq), (number, expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn feeds_have_no_gaps_or_duplicates_during_concurrent_writes() {
    // With few events in memory, feeds fall back to the database repeatedly.
    for live_events in [4, 4_096] {
        let realm = Realm::with(Limits { live_events, batch_commands: 3, ..Limits::default() });
        let engine = &realm.engine;
        announce_all(engine, 20).await;
        const END: Seq = 20 + 4 * 60;
        let mut followers = Vec::new();
        for after in [0, 7, 20] {
            let feed = follow(engine, &Caller::office(), Filter::everything(), Start::After(after)).await;
            followers.push(tokio::spawn(collect(feed, after, END)));
        }
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let engine = engine.clone();
                tokio::spawn(async move { announce_all(&engine, 60).await })
            })
            .collect();
        // Some start in the middle.
        for _ in 0..5 {
            let feed = follow(engine, &Caller::office(), Filter::everything(), Start::Now).await;
            let after = feed.seq();
            followers.push(tokio::spawn(collect(feed, after, END)));
        }
        for task in writers.into_iter().chain(followers) {
            task.await.expect("a complete event log");
        }
        assert_eq!(engine.listeners(), (0, 0), "ended feeds are not counted");
    }
}

#[tokio::test]
async fn slow_feed_still_gets_everything() {
    let realm = Realm::with(Limits { live_events: 8, ..Limits::default() });
    let feed = follow(&realm.engine, &Caller::office(), Filter::everything(), Start::Now).await;
    announce_all(&realm.engine, 300).await;
    collect(feed, 0, 300).await;
    let lagged = realm.engine.meter().lagged.load(Ordering::Relaxed);
    assert!(lagged >= 292, "only {lagged} were read from the db");
}

#[tokio::test]
async fn feed_that_keeps_up_never_reads_the_database() {
    let realm = Realm::new();
    let mut feed = follow(&realm.engine, &Caller::office(), Filter::everything(), Start::Now).await;
    for _ in 0..50 {
        let seq = announce(&realm.engine).await;
        assert_eq!(event(&mut feed).await.1.seq, seq);
    }
    assert_eq!(realm.engine.meter().lagged.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn cancelled_next_loses_nothing() {
    let realm = Realm::with(Limits { live_events: 8, ..Limits::default() });
    // Many more than one chunk.
    announce_all(&realm.engine, 500).await;
    let mut feed = follow(&realm.engine, &Caller::office(), Filter::everything(), Start::After(0)).await;
    let (mut rng, mut next) = (Rng::new(3), 1);
    while next <= 500 {
        let patience = Duration::from_micros(rng.below(1_500) as u64);
        if let Ok(step) = tokio::time::timeout(patience, feed.next()).await {
            let Step::Event { number, event } = step.expect("a step") else { panic!("an overflow") };
            assert_eq!((number as Seq, event.seq), (next, next));
            next += 1;
        }
    }
}

#[tokio::test]
async fn cursor_of_another_event_log_is_refused() {
    let realm = Realm::new();
    announce_all(&realm.engine, 3).await;
    for seq in [4, Seq::MAX, -1, Seq::MIN] {
        let refused =
            realm.engine.follow(&Caller::office(), Filter::everything(), Start::After(seq), 8).await;
        assert_eq!(refused.expect_err("a stale cursor").refusal(), Some(&Refusal::StaleCursor), "{seq}");
        let all = Filter::everything();
        let refused = realm.engine.read(move |view| view.events(&Caller::office(), seq, &all, 8)).await;
        assert_eq!(refused.expect_err("a stale cursor").refusal(), Some(&Refusal::StaleCursor), "{seq}");
    }
    let mut at_the_end =
        follow(&realm.engine, &Caller::office(), Filter::everything(), Start::After(3)).await;
    announce(&realm.engine).await;
    assert_eq!(seqs(&mut at_the_end, 1).await, [4]);
}

#[tokio::test]
async fn paused_feed_keeps_its_buffer_and_reports_exactly_what_it_dropped() {
    for live_events in [4, 4_096] {
        let realm = Realm::with(Limits { live_events, ..Limits::default() });
        let engine = &realm.engine;
        let mut feed =
            engine.follow(&Caller::office(), Filter::everything(), Start::Now, 3).await.expect("a feed");
        announce_all(engine, 2).await;
        assert_eq!(seqs(&mut feed, 2).await, [1, 2]);
        feed.pause();
        assert!(feed.is_held());
        announce_all(engine, 300).await;
        poll_once(&mut feed).await;
        feed.resume();
        assert!(!feed.is_held());
        assert_eq!(seqs(&mut feed, 3).await, [3, 4, 5]);
        assert_eq!(overflow(&mut feed).await, Overflow { dropped: 297, oldest: 6, newest: 302 });
        announce(engine).await;
        let (number, event) = event(&mut feed).await;
        assert_eq!((number, event.seq), (6, 303), "dropped events use no number");
    }
}

#[tokio::test]
async fn only_events_that_match_the_filter_count_as_dropped() {
    let realm = Realm::new();
    let wanted = Filter::Kinds(vec!["agent.*".to_owned()]);
    let mut feed = realm.engine.follow(&Caller::office(), wanted, Start::Now, 1).await.expect("a feed");
    feed.pause();
    for name in ["a", "b", "c"] {
        realm.agent(name).await;
        announce_all(&realm.engine, 3).await;
    }
    feed.resume();
    assert_eq!(seqs(&mut feed, 1).await, [1]);
    assert_eq!(overflow(&mut feed).await, Overflow { dropped: 2, oldest: 5, newest: 9 });
}

#[tokio::test]
async fn pause_within_the_buffer_loses_nothing() {
    let realm = Realm::new();
    let mut feed =
        realm.engine.follow(&Caller::office(), Filter::everything(), Start::Now, 3).await.expect("a feed");
    feed.pause();
    announce_all(&realm.engine, 3).await;
    feed.resume();
    assert_eq!(seqs(&mut feed, 3).await, [1, 2, 3]);
    feed.pause();
    feed.resume();
    announce(&realm.engine).await;
    assert_eq!(seqs(&mut feed, 1).await, [4]);
}

#[tokio::test]
async fn first_ack_enables_flow_control_and_a_full_window_holds_the_feed() {
    let realm = Realm::new();
    let engine = &realm.engine;
    let mut feed =
        engine.follow(&Caller::office(), Filter::everything(), Start::Now, 2).await.expect("a feed");
    announce_all(engine, 5).await;
    assert_eq!(seqs(&mut feed, 4).await, [1, 2, 3, 4], "without an ack there is no window");
    feed.ack(1_000);
    assert_eq!(seqs(&mut feed, 1).await, [5], "an ack beyond the last delivered event is limited to it");
    announce(engine).await;
    assert_eq!(seqs(&mut feed, 1).await, [6]);
    assert!(feed.is_held(), "two are unacknowledged, and the window is two");
    poll_once(&mut feed).await;
    announce_all(engine, 10).await;
    feed.ack(3);
    assert!(feed.is_held(), "an older ack has no effect");
    feed.ack(5);
    assert_eq!(seqs(&mut feed, 1).await, [7]);
    assert!(feed.is_held());
    feed.ack(7);
    assert_eq!(seqs(&mut feed, 1).await, [8], "two were kept");
    assert_eq!(overflow(&mut feed).await, Overflow { dropped: 8, oldest: 9, newest: 16 });
    announce(engine).await;
    assert_eq!(seqs(&mut feed, 1).await, [17]);
}

#[tokio::test]
async fn overflow_is_reported_even_if_next_is_cancelled_while_counting() {
    let realm = Realm::with(Limits { live_events: 8, ..Limits::default() });
    announce_all(&realm.engine, 600).await;
    let (mut rng, mut cancelled) = (Rng::new(5), 0);
    for _ in 0..10 {
        let mut feed = realm
            .engine
            .follow(&Caller::office(), Filter::everything(), Start::After(0), 2)
            .await
            .expect("a feed");
        feed.pause();
        feed.resume();
        let mut steps = Vec::new();
        while steps.len() < 3 {
            let patience = Duration::from_micros(rng.below(3_000) as u64);
            match tokio::time::timeout(patience, feed.next()).await {
                Ok(step) => steps.push(step.expect("a step")),
                Err(_) => cancelled += 1,
            }
        }
        let [Step::Event { event: first, .. }, Step::Event { event: second, .. }, Step::Overflow(lost)] =
            &steps[..]
        else {
            panic!("{steps:?}")
        };
        assert_eq!((first.seq, second.seq), (1, 2));
        assert_eq!(*lost, Overflow { dropped: 598, oldest: 3, newest: 600 });
    }
    assert!(cancelled > 0, "the test never cancelled");
}

#[tokio::test]
async fn restricted_turn_is_hidden_from_others_live_and_replayed() {
    let realm = Realm::new();
    let mut callers = Vec::new();
    for name in ["ann", "bob", "cat", "eve"] {
        callers.push(realm.agent(name).await);
    }
    let observer = Caller::observer(id("eve"), "test");
    let [ann, bob, cat, eve] = &callers[..] else { unreachable!() };
    let conversation = ConversationId::new("chat").unwrap();
    let part = |name: &str| Invitee { agent: id(name), role: None, permissions: Default::default() };
    let create = Create {
        id: Some(conversation.clone()),
        kind: "chat".to_owned(),
        subject: None,
        parent: None,
        parent_turn: None,
        participants: vec![part("bob"), part("cat")],
        first: None,
        audience: Audience::Observers,
        meta: None,
    };
    realm.engine.submit(ann, create).await.expect("a conversation");
    let start = realm.engine.read(|view| view.head()).await.expect("a head");
    let listening = [ann, bob, cat, eve, &observer];
    let turns = || Filter::Kinds(vec!["turn.added".to_owned()]);
    let mut live = Vec::new();
    for caller in listening {
        live.push(follow(&realm.engine, caller, turns(), Start::Now).await);
    }
    let mut said = Vec::new();
    let visible = [
        TurnVisibility::Private,
        TurnVisibility::Agents(vec![id("bob")]),
        TurnVisibility::Roles(vec!["initiator".to_owned()]),
        TurnVisibility::Internal,
        TurnVisibility::All,
    ];
    for visibility in visible {
        let say = Say {
            conversation: conversation.clone(),
            thread: None,
            content_type: "text".to_owned(),
            content: Json::new("\"words\"").unwrap(),
            in_reply_to: None,
            visibility: Some(visibility),
            meta: None,
        };
        said.push(realm.engine.submit(ann, say).await.expect("a turn").seq);
    }
    let own: Vec<Seq> = said.clone();
    let expected: [Vec<Seq>; 5] = [own, vec![said[1], said[4]], vec![said[4]], Vec::new(), vec![said[4]]];
    for ((caller, mut live), expected) in listening.into_iter().zip(live).zip(expected) {
        let mut later = follow(&realm.engine, caller, turns(), Start::After(start)).await;
        let (asking, filter) = (caller.clone(), turns());
        let replay =
            realm.engine.read(move |view| view.events(&asking, start, &filter, 100)).await.expect("a replay");
        let replayed: Vec<Seq> = replay.events.iter().map(|event| event.seq).collect();
        assert_eq!(replayed, expected, "replayed to {:?}", caller.agent);
        assert_eq!(seqs(&mut live, expected.len()).await, expected, "live to {:?}", caller.agent);
        assert_eq!(seqs(&mut later, expected.len()).await, expected, "later to {:?}", caller.agent);
        for feed in [&mut live, &mut later] {
            assert_no_more(feed, said[4]).await;
        }
    }
}

#[tokio::test]
async fn stranger_gets_no_events() {
    let realm = Realm::new();
    announce(&realm.engine).await;
    let stranger = Caller::stranger(id("eve"), "test");
    let mut feed = follow(&realm.engine, &stranger, Filter::everything(), Start::After(0)).await;
    announce(&realm.engine).await;
    assert_no_more(&mut feed, 2).await;
}
