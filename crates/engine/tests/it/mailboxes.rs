//! Mailbox streams: first the backlog, then new messages, each once and in order.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, DeliveryState, Seq};
use posthaste_engine::verbs::agents::{Register, Unregister, Update};
use posthaste_engine::views::TurnQuery;
use posthaste_engine::{Dispatch, Engine, EngineError, MailboxStream, Refusal};

use crate::harness::{Realm, conversation_id, id, member, message, say};
use crate::rng::Rng;

/// A message that has not arrived by then counts as lost.
const DEADLINE: Duration = Duration::from_secs(20);

async fn attach(engine: &Engine, caller: &Caller, agent: &str) -> MailboxStream {
    engine.attach(caller, &id(agent)).await.expect("a mailbox stream")
}

async fn texts(stream: &mut MailboxStream, count: usize) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..count {
        let next = tokio::time::timeout(DEADLINE, stream.next()).await.expect("a message in time");
        found.push(next.expect("a message").message.body.as_str().to_owned());
    }
    found
}

async fn assert_silent(stream: &mut MailboxStream) {
    let more = tokio::time::timeout(Duration::from_millis(20), stream.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn backlog_comes_before_new_messages() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    for text in ["1", "2", "3"] {
        realm.send(&ann, "bob", text).await;
    }
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    realm.send(&ann, "bob", "4").await;
    assert_eq!(texts(&mut stream, 4).await, ["1", "2", "3", "4"]);
    realm.send(&ann, "ann", "not for bob").await;
    realm.send(&ann, "bob", "5").await;
    assert_eq!(texts(&mut stream, 1).await, ["5"]);
    assert_silent(&mut stream).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_arrive_once_and_in_order_despite_small_queues_and_cancelled_waits() {
    for (mailbox_messages, page) in [(1, 1_000), (3, 7), (256, 1_000)] {
        let realm = Realm::with(Limits { mailbox_messages, page, ..Limits::default() });
        let bob = realm.agent("bob").await;
        const SENDERS: usize = 4;
        const EACH: usize = 50;
        let mut senders = Vec::new();
        for n in 0..SENDERS {
            let caller = realm.agent(&format!("sender-{n}")).await;
            // Half of them are backlog.
            for _ in 0..EACH / 2 {
                realm.send(&caller, "bob", "early").await;
            }
            senders.push(caller);
        }
        let mut stream = attach(&realm.engine, &bob, "bob").await;
        let writing: Vec<_> = senders
            .into_iter()
            .map(|caller| {
                let engine = realm.engine.clone();
                tokio::spawn(async move {
                    let to = vec![posthaste_engine::nouns::Address::Agent(id("bob"))];
                    let message = posthaste_engine::verbs::mail::SendMessage::text(to, "late");
                    let mut sent = Vec::new();
                    for _ in 0..EACH / 2 {
                        sent.push(
                            engine.submit(&caller, message.clone()).await.expect("a receipt").message.seq,
                        );
                    }
                    sent
                })
            })
            .collect();
        let mut rng = Rng::new(mailbox_messages as u64);
        let (mut got, started) = (Vec::<Seq>::new(), std::time::Instant::now());
        while got.len() < SENDERS * EACH {
            let patience = Duration::from_micros(rng.below(1_000) as u64);
            if let Ok(next) = tokio::time::timeout(patience, stream.next()).await {
                got.push(next.expect("a message").message.seq);
            }
            assert!(started.elapsed() < DEADLINE, "only {} messages arrived", got.len());
        }
        assert!(got.is_sorted_by(|a, b| a < b), "each once, in order: {got:?}");
        for task in writing {
            for seq in task.await.expect("receipts") {
                assert!(got.binary_search(&seq).is_ok(), "{seq} never arrived");
            }
        }
        assert_silent(&mut stream).await;
    }
}

#[tokio::test]
async fn backlog_longer_than_a_page_is_complete() {
    let realm = Realm::with(Limits { page: 5, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let all: Vec<String> = (0..23).map(|n| n.to_string()).collect();
    for text in &all {
        realm.send(&ann, "bob", text).await;
    }
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    assert_eq!(texts(&mut stream, 23).await, all);
}

#[tokio::test]
async fn receipt_says_delivered_only_if_a_stream_queued_the_message() {
    let realm = Realm::with(Limits { mailbox_messages: 2, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let state = async |text: &str| realm.send(&ann, "bob", text).await.receipts[0].state;
    assert!(!realm.engine.is_attached(&id("bob")));
    assert_eq!(state("no stream").await, DeliveryState::Queued);
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    assert!(realm.engine.is_attached(&id("bob")));
    assert_eq!(realm.engine.listeners().0, 1);
    assert_eq!(state("backlog not read yet").await, DeliveryState::Queued);
    assert_eq!(texts(&mut stream, 2).await.len(), 2);
    assert_silent(&mut stream).await;
    assert_eq!(state("one").await, DeliveryState::Delivered);
    assert_eq!(state("two").await, DeliveryState::Delivered);
    assert_eq!(state("no room").await, DeliveryState::Queued);
    assert_eq!(texts(&mut stream, 3).await, ["one", "two", "no room"]);
    assert_silent(&mut stream).await;
    assert_eq!(state("room again").await, DeliveryState::Delivered);
    drop(stream);
    assert!(!realm.engine.is_attached(&id("bob")));
    assert_eq!(realm.engine.listeners().0, 0);
    assert_eq!(state("gone").await, DeliveryState::Queued);
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    assert_eq!(
        texts(&mut stream, 7).await.len(),
        7,
        "nothing was marked delivered, so everything comes again"
    );
}

/// Regression: 256 messages of any size were queued per connected agent, so 20 agents that did not read held 3 GB.
#[tokio::test]
async fn stream_queues_are_bounded_in_bytes() {
    let realm =
        Realm::with(Limits { mailbox_bytes: 10_000, all_mailboxes_bytes: 18_000, ..Limits::default() });
    let ann = realm.agent("ann").await;
    let (bob, cyd) = (realm.agent("bob").await, realm.agent("cyd").await);
    let state =
        async |to: &str, bytes: usize| realm.send(&ann, to, &"x".repeat(bytes)).await.receipts[0].state;
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    assert_silent(&mut stream).await;
    let mut other = attach(&realm.engine, &cyd, "cyd").await;
    assert_silent(&mut other).await;
    assert_eq!(state("bob", 12_000).await, DeliveryState::Delivered, "one alone may be larger");
    assert_eq!(state("bob", 1_000).await, DeliveryState::Queued, "its own queue is full");
    assert_eq!(state("cyd", 4_000).await, DeliveryState::Delivered);
    assert_eq!(state("cyd", 4_000).await, DeliveryState::Queued, "all queues together are full");
    let lengths = |texts: Vec<String>| texts.iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths(texts(&mut stream, 2).await), [12_000, 1_000], "the rest waits in the database");
    drop(stream);
    assert_eq!(lengths(texts(&mut other, 2).await), [4_000, 4_000]);
    assert_silent(&mut other).await;
    assert_eq!(state("cyd", 9_000).await, DeliveryState::Delivered, "what was read makes room");
}

#[tokio::test]
async fn two_streams_of_one_agent_both_get_its_messages() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let bob = realm.agent("bob").await;
    let mut streams = [attach(&realm.engine, &bob, "bob").await, attach(&realm.engine, &bob, "bob").await];
    realm.send(&ann, "bob", "both").await;
    for stream in &mut streams {
        assert_eq!(texts(stream, 1).await, ["both"]);
    }
    let [first, mut second] = streams;
    drop(first);
    assert!(realm.engine.is_attached(&id("bob")), "the other stream is still attached");
    realm.send(&ann, "bob", "one").await;
    assert_eq!(texts(&mut second, 1).await, ["one"]);
}

#[tokio::test]
async fn only_agent_owner_and_operator_may_attach() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let eve = realm.agent("eve").await;
    let bot = Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot).await.expect("a free name");
    for allowed in [&ann, &member("bot"), &Caller::office()] {
        attach(&realm.engine, allowed, "bot").await;
    }
    for denied in [&eve, &Caller::stranger(id("bot"), "test"), &Caller::observer(id("eve"), "test")] {
        let refused = realm.engine.attach(denied, &id("bot")).await.expect_err("not its mail");
        assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    }
    assert_eq!(realm.engine.listeners().0, 0);
}

fn is_gone<T>(answer: Result<T, EngineError>) -> bool {
    matches!(answer, Err(EngineError::Refused(Refusal::NoSuchAgent { .. })))
}

#[tokio::test]
async fn mailbox_stream_ends_when_an_agent_changes_owner() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let cat = realm.agent("cat").await;
    let bot = Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot).await.expect("a free name");
    let mut stream = attach(&realm.engine, &ann, "bot").await;
    realm.send(&cat, "bot", "for ann's bot").await;
    assert_eq!(texts(&mut stream, 1).await, ["for ann's bot"]);
    // The stream waits while the agent changes owner.
    let waiting = tokio::spawn(async move { stream.next().await });
    let given = Update { owner: Some(id("cat")), ..Update::of(id("bot")) };
    realm.engine.submit(&ann, given).await.expect("hers to give");
    realm.send(&cat, "bot", "for cat's bot").await;
    assert!(is_gone(waiting.await.unwrap()));
    let mut stream = attach(&realm.engine, &cat, "bot").await;
    assert_eq!(texts(&mut stream, 2).await.last().map(String::as_str), Some("for cat's bot"));
}

#[tokio::test]
async fn mailbox_stream_ends_when_a_name_is_reused() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let cat = realm.agent("cat").await;
    let bot = || Register { id: Some(id("bot")), ..Register::default() };
    realm.engine.submit(&ann, bot()).await.expect("a free name");
    let mut stream = attach(&realm.engine, &ann, "bot").await;
    assert_silent(&mut stream).await;
    realm
        .engine
        .submit(&ann, Unregister { agent: id("bot"), reason: None, cause: None })
        .await
        .expect("hers");
    realm.engine.submit(&cat, bot()).await.expect("a free name");
    let sent = realm.send(&cat, "bot", "for cat's bot").await;
    assert_eq!(sent.receipts[0].state, DeliveryState::Queued, "no permitted stream is attached");
    assert!(is_gone(stream.next().await));
    assert!(is_gone(stream.next().await), "and it stays ended");
}

#[tokio::test]
async fn mailbox_stream_survives_agent_updates() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let mut stream = attach(&realm.engine, &ann, "ann").await;
    for round in ["1", "2", "3"] {
        let renamed = Update { name: Some(round.to_owned()), ..Update::of(id("ann")) };
        realm.engine.submit(&ann, renamed).await.expect("hers");
        realm.send(&ann, "ann", round).await;
        assert_eq!(texts(&mut stream, 1).await, [round]);
    }
    assert_silent(&mut stream).await;
}

#[tokio::test]
async fn closed_stream_drains_its_queue_and_ends() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    realm.send(&ann, "bob", "first").await;
    assert_eq!(texts(&mut stream, 1).await, ["first"]);
    let held = realm.send(&ann, "bob", "queued in memory").await;
    assert_eq!(held.receipts[0].state, DeliveryState::Delivered);
    realm.engine.close_mailboxes(&id("bob"));
    assert!(!realm.engine.is_attached(&id("bob")));
    let kept = realm.send(&ann, "bob", "kept").await;
    assert_eq!(kept.receipts[0].state, DeliveryState::Queued);
    assert_eq!(texts(&mut stream, 1).await, ["queued in memory"]);
    assert!(stream.next().await.is_err());
    let mut again = attach(&realm.engine, &bob, "bob").await;
    assert!(
        texts(&mut again, 3).await.contains(&"kept".to_owned()),
        "what was not marked delivered comes again"
    );
}

/// Messages delivered from memory are written later, and no caller waits for enqueued commands here.
#[tokio::test]
async fn flush_waits_for_everything_written_before() {
    let realm = Realm::new();
    let (ann, bob) = (realm.agent("ann").await, realm.agent("bob").await);
    let mut stream = attach(&realm.engine, &bob, "bob").await;
    // Until the stream has read the backlog, nothing is delivered from memory.
    assert_silent(&mut stream).await;
    realm.conversation(&ann, "chat", &[]).await;
    let all = TurnQuery { limit: 100, ..TurnQuery::default() };
    for n in 1..=20 {
        let sent = realm.engine.dispatch(&ann, message("bob", "delivered")).await.unwrap();
        assert!(matches!(sent, Dispatch::Delivered(_)), "{sent:?}");
        drop(realm.engine.enqueue(&ann, say("chat", "enqueued")).await.unwrap());
        realm.engine.flush().await;
        let turns = realm.see(|view| view.turns(&ann, &conversation_id("chat"), &all));
        assert_eq!((realm.inbox("bob").len(), turns.items.len()), (n, n));
    }
    // With nothing pending, flush returns at once.
    tokio::time::timeout(DEADLINE, realm.engine.flush()).await.unwrap();
}
