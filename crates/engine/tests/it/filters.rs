//! Every filter selects the same events live, caught up from the database, and replayed.

use std::sync::Arc;

use posthaste_engine::nouns::{
    Address, Audience, Caller, ConversationId, Fact, Json, Priority, ScopeId, Seq, ThreadId,
};
use posthaste_engine::verbs::agents::{Register, Unregister};
use posthaste_engine::verbs::conversations::{Close, Create, Invitee, Leave};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::scopes::{CreateScope, JoinScope};
use posthaste_engine::verbs::turns::{FirstTurn, OpenThread, Say};
use posthaste_engine::{Filter, Start, Step, Test};

use crate::harness::{Realm, id, member};

/// Creates a small event log with events for every filter; returns the thread in it.
async fn create_events(realm: &Realm) -> ThreadId {
    let scope = ScopeId::new("crew").unwrap();
    let conversation = ConversationId::new("chat").unwrap();
    let engine = &realm.engine;
    let with = |role: &str, parent: Option<&str>| Register {
        role: Some(role.to_owned()),
        parent: parent.map(id),
        ..Register::default()
    };
    let top = realm.register("top", with("lead", None)).await; // 1
    let mid = realm.register("mid", with("scout", Some("top"))).await; // 2
    let low = realm.register("low", with("clerk", Some("mid"))).await; // 3
    let made = CreateScope { id: Some(scope.clone()), ..CreateScope::default() };
    engine.submit(&top, made).await.expect("a scope"); // 4
    engine.submit(&mid, JoinScope { scope: scope.clone(), agent: id("mid") }).await.expect("a member"); // 5
    let urgent = SendMessage {
        priority: Priority::URGENT,
        ..SendMessage::text(vec![Address::Agent(id("low"))], "now")
    };
    engine.submit(&top, urgent).await.expect("a message"); // 6
    let asked = SendMessage {
        correlation: Some("q1".to_owned()),
        ..SendMessage::text(vec![Address::Scope(scope)], "all hands")
    };
    engine.submit(&low, asked).await.expect("a message"); // 7
    let words = || Json::new("\"words\"").unwrap();
    let create = Create {
        id: Some(conversation.clone()),
        kind: "chat".to_owned(),
        subject: None,
        parent: None,
        parent_turn: None,
        participants: vec![Invitee { agent: id("mid"), role: None, permissions: Default::default() }],
        first: Some(FirstTurn { content_type: "data".to_owned(), content: words(), visibility: None }),
        audience: Audience::Parties,
        meta: None,
    };
    let created = engine.submit(&top, create).await.expect("a conversation"); // 8, 9, 10, 11
    let root = created.first.expect("a turn").id;
    let thread = OpenThread { conversation: conversation.clone(), root, parent: None, subject: None };
    let thread = engine.submit(&mid, thread).await.expect("a thread").id; // 12
    let say = Say {
        conversation: conversation.clone(),
        thread: Some(thread),
        content_type: "text".to_owned(),
        content: words(),
        in_reply_to: None,
        visibility: None,
        meta: None,
    };
    engine.submit(&mid, say).await.expect("a turn"); // 13
    engine
        .submit(&mid, Leave { conversation: conversation.clone(), reason: None })
        .await
        .expect("a participant that left"); // 14
    engine
        .submit(&top, Close { conversation, status: None, reason: None })
        .await
        .expect("a closed conversation"); // 15
    thread
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn test(fits: impl Fn(&Fact) -> bool + std::marker::Send + Sync + 'static) -> Filter {
    Filter::Test(Test(Arc::new(move |event| fits(&event.fact))))
}

/// Each filter and the seqs it selects. The thread id is known only afterwards.
fn cases(thread: ThreadId) -> Vec<(Filter, Vec<Seq>)> {
    let crew = ScopeId::new("crew").unwrap();
    let conversation = || Filter::Conversation(ConversationId::new("chat").unwrap());
    let turns = || Filter::Kinds(words(&["turn.added"]));
    vec![
        (Filter::everything(), (1..=15).collect()),
        (Filter::Any(Vec::new()), Vec::new()),
        (Filter::Not(Box::new(conversation())), (1..=7).collect()),
        (Filter::All(vec![conversation(), turns()]), vec![11, 13]),
        (Filter::Any(vec![turns(), Filter::Kinds(words(&["scope.*"]))]), vec![4, 5, 11, 13]),
        (Filter::Kinds(words(&["agent.*"])), vec![1, 2, 3]),
        (Filter::Kinds(words(&["*"])), (1..=15).collect()),
        (Filter::Kinds(words(&["agent"])), Vec::new()),
        (Filter::Actors(vec![id("low")]), vec![3, 7]),
        (Filter::Concerning(vec![id("low")]), vec![3, 6, 7]),
        (Filter::Concerning(vec![id("mid")]), vec![2, 5, 10, 12, 13, 14]),
        (Filter::Roles(words(&["clerk", "unknown"])), vec![3, 7]),
        (Filter::Scopes(vec![crew.clone()]), vec![2, 4, 5, 7, 12, 13, 14]),
        (Filter::Not(Box::new(Filter::Scopes(vec![crew]))), vec![1, 3, 6, 8, 9, 10, 11, 15]),
        (Filter::Priorities(vec![Priority::URGENT]), vec![6]),
        (Filter::Correlations(words(&["q1"])), vec![7]),
        (conversation(), (8..=15).collect()),
        (Filter::Thread(thread), vec![12, 13]),
        (Filter::OwnedBy(id("low")), vec![3, 7]),
        (Filter::Participant(id("mid")), vec![10, 13, 14]),
        (Filter::Participant(id("top")), vec![8, 9, 11, 15]),
        (Filter::ContentType("data".to_owned()), vec![11]),
        (Filter::Below(id("mid")), vec![3, 6, 7]),
        (Filter::Below(id("top")), vec![2, 3, 5, 6, 7, 10, 12, 13, 14]),
        (Filter::Above(id("mid")), vec![1, 4, 6, 8, 9, 10, 11, 15]),
        (Filter::All(vec![Filter::Below(id("top")), Filter::Kinds(words(&["message.*"]))]), vec![6, 7]),
        (test(|fact| matches!(fact, Fact::ThreadCreated { .. })), vec![12]),
    ]
}

#[tokio::test]
async fn every_filter_selects_the_same_events_live_caught_up_and_replayed() {
    // Filters that query the database see the current state, so the live feeds are read after the last event.
    let realm = Realm::new();
    let office = Caller::office();
    // Without a feed, events are not kept in memory.
    let following = realm.engine.follow(&office, Filter::All(Vec::new()), Start::Now, 100).await.unwrap();
    let thread = create_events(&realm).await;
    let names = cases(thread).len();
    for (n, (filter, expected)) in cases(thread).into_iter().enumerate() {
        let name = format!("case {n} of {names}: {filter:?}");
        // After a restart nothing is in memory; before it everything is.
        let asked = filter.clone();
        let replay =
            realm.engine.read(move |view| view.events(&Caller::office(), 0, &asked, 100)).await.unwrap();
        assert_eq!(replay.events.iter().map(|e| e.seq).collect::<Vec<_>>(), expected, "replayed, {name}");
        assert_eq!((replay.cursor, replay.more), (15, false), "{name}");
        let feed = realm.engine.follow(&office, filter, Start::After(0), 100).await.unwrap();
        assert_eq!(drain(feed).await, expected, "live, {name}");
    }
    let lagged = realm.engine.meter().lagged.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(lagged, 0, "these came from memory");
    drop(following);
    let realm = realm.reopened();
    for (n, (filter, expected)) in cases(thread).into_iter().enumerate() {
        let name = format!("case {n} of {names}: {filter:?}");
        let feed = realm.engine.follow(&office, filter, Start::After(0), 100).await.unwrap();
        assert_eq!(drain(feed).await, expected, "caught up, {name}");
    }
    let lagged = realm.engine.meter().lagged.load(std::sync::atomic::Ordering::Relaxed);
    assert!(lagged > 0, "these came from the db");
}

/// All events of a feed up to the end of the event log.
async fn drain(mut feed: posthaste_engine::Feed) -> Vec<Seq> {
    let mut found = Vec::new();
    loop {
        // Cancelled now and then, to see whether it is at the end of the event log and waits for more.
        match tokio::time::timeout(std::time::Duration::from_millis(5), feed.next()).await {
            Ok(Ok(Step::Event { event, .. })) => found.push(event.seq),
            Ok(other) => panic!("{other:?}"),
            Err(_) if feed.seq() >= 15 => return found,
            Err(_) => {}
        }
    }
}

#[tokio::test]
async fn filter_does_not_show_hidden_events() {
    let realm = Realm::new();
    let thread = create_events(&realm).await;
    for (filter, expected) in cases(thread) {
        let name = format!("{filter:?}");
        let feed = realm.engine.follow(&member("low"), filter, Start::After(0), 100).await.unwrap();
        // Not a participant of the conversation.
        let may: Vec<Seq> = expected.into_iter().filter(|seq| *seq <= 7).collect();
        assert_eq!(drain(feed).await, may, "{name}");
    }
}

#[tokio::test]
async fn owner_filter_includes_events_of_retired_agents() {
    let realm = Realm::new();
    let [owner, _] = realm.agents(["owner", "other"]).await; // 1, 2
    let helper = Register { id: Some(id("helper")), ..Register::default() };
    realm.ask(&owner, helper).await; // 3
    realm.send(&member("helper"), "other", "hello").await; // 4
    realm.send(&member("other"), "helper", "hello").await; // 5
    realm.ask(&owner, Unregister { agent: id("helper"), reason: None, cause: None }).await; // 6
    let events =
        realm.see(|view| view.events(&Caller::office(), 0, &Filter::OwnedBy(id("owner")), 100)).events;
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 3, 4, 6]);
}
