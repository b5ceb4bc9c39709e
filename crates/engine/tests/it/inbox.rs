//! The inbox: order, filters, and pages without gaps or duplicates.

use posthaste_engine::nouns::{ConversationId, Millis, Priority, Seq};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::views::{InboxOrder, InboxQuery};

use crate::harness::{Realm, conversation_id, id, member, message};

/// All messages of bob that match, read page by page, and the number of pages.
fn paged(realm: &Realm, query: &InboxQuery) -> (Vec<String>, usize) {
    let mut query = query.clone();
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = realm.see(|view| view.inbox(&member("bob"), &id("bob"), &query));
        assert!(page.items.len() <= query.limit, "a page is not larger than its limit");
        found.extend(page.items.iter().map(|item| item.message.body.as_str().to_owned()));
        pages += 1;
        let Some(next) = page.next else { return (found, pages) };
        match query.order {
            InboxOrder::Newest => query.before = Some(next),
            InboxOrder::Oldest | InboxOrder::Priority => query.after = Some(next),
        }
    }
}

/// 60 messages: kinds `report`, `text` and none in turn, all priorities in turn, every fourth is read.
async fn full_inbox() -> Realm {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    for n in 0..60 {
        let given = SendMessage {
            priority: Priority::TIERS[n % 5],
            kind: ["report", "text", ""][n % 3].to_owned(),
            ..message("bob", &format!("{n:02}"))
        };
        let sent = realm.ask(&alice, given).await.message.id;
        if n % 4 == 0 {
            realm.ask(&bob, MarkRead { agent: id("bob"), message: sent, unread: false }).await;
        }
    }
    realm
}

fn numbers(fit: impl Fn(usize) -> bool) -> Vec<String> {
    (0..60).filter(|n| fit(*n)).map(|n| format!("{n:02}")).collect()
}

#[tokio::test]
async fn every_filter_and_order_pages_without_gaps_or_duplicates() {
    let realm = full_inbox().await;
    let plain = InboxQuery::default();
    type Fits = fn(usize) -> bool;
    let cases: Vec<(&str, InboxQuery, Fits)> = vec![
        ("all", plain.clone(), |_| true),
        ("unread", InboxQuery { unread: true, ..plain.clone() }, |n| n % 4 != 0),
        ("reports", InboxQuery { kinds: vec!["report".into()], ..plain.clone() }, |n| n % 3 == 0),
        ("plain mail", InboxQuery { kinds: vec![String::new()], ..plain.clone() }, |n| n % 3 == 2),
        ("text", InboxQuery { kinds: vec!["text".into()], ..plain.clone() }, |n| n % 3 == 1),
        (
            "either kind, named twice",
            InboxQuery { kinds: vec!["report".into(), String::new(), "report".into()], ..plain.clone() },
            |n| n % 3 != 1,
        ),
        ("high", InboxQuery { at_least: Some(Priority::HIGH), ..plain.clone() }, |n| n % 5 < 2),
        ("not bulk", InboxQuery { at_least: Some(Priority::LOW), ..plain.clone() }, |n| n % 5 < 4),
        (
            "unread and high",
            InboxQuery { unread: true, at_least: Some(Priority::HIGH), ..plain.clone() },
            |n| n % 4 != 0 && n % 5 < 2,
        ),
        (
            "unread reports that are urgent",
            InboxQuery {
                unread: true,
                kinds: vec!["report".into()],
                at_least: Some(Priority::URGENT),
                ..plain.clone()
            },
            |n| n % 4 != 0 && n % 3 == 0 && n % 5 == 0,
        ),
    ];
    for (what, query, fits) in cases {
        let expected = numbers(fits);
        for limit in [1, 7, 60] {
            let oldest = InboxQuery { order: InboxOrder::Oldest, limit, ..query.clone() };
            let (found, pages) = paged(&realm, &oldest);
            assert_eq!(found, expected, "{what}, oldest first, {limit} on a page");
            assert_eq!(pages, expected.len().div_ceil(limit).max(1), "{what}: no page is short");
            let newest = InboxQuery { order: InboxOrder::Newest, limit, ..query.clone() };
            let backwards: Vec<String> = expected.iter().rev().cloned().collect();
            assert_eq!(paged(&realm, &newest).0, backwards, "{what}, newest first, {limit} on a page");
        }
    }
}

#[tokio::test]
async fn unread_messages_of_highest_priority_come_first_on_every_page() {
    let realm = full_inbox().await;
    let by_tier = |fit: fn(usize) -> bool| -> Vec<String> {
        (0..5).flat_map(|tier| numbers(|n| n % 5 == tier && n % 4 != 0 && fit(n))).collect()
    };
    for limit in [1, 7, 60] {
        let query = InboxQuery { order: InboxOrder::Priority, limit, ..InboxQuery::default() };
        assert_eq!(paged(&realm, &query).0, by_tier(|_| true), "{limit} on a page");
        let reports = InboxQuery { kinds: vec!["report".into()], ..query.clone() };
        assert_eq!(paged(&realm, &reports).0, by_tier(|n| n % 3 == 0), "reports, {limit} on a page");
        let high = InboxQuery { at_least: Some(Priority::HIGH), ..query };
        assert_eq!(paged(&realm, &high).0, by_tier(|n| n % 5 < 2), "high, {limit} on a page");
    }
}

#[tokio::test]
async fn marking_read_between_pages_skips_no_message() {
    let realm = full_inbox().await;
    let bob = member("bob");
    let mut query = InboxQuery { order: InboxOrder::Priority, limit: 5, ..InboxQuery::default() };
    let mut found = 0;
    loop {
        let page = realm.see(|view| view.inbox(&bob, &id("bob"), &query));
        for item in &page.items {
            realm.ask(&bob, MarkRead { agent: id("bob"), message: item.message.id, unread: false }).await;
        }
        found += page.items.len();
        let Some(next) = page.next else { break };
        query.after = Some(next);
    }
    assert_eq!(found, 45);
}

#[tokio::test]
async fn since_means_accepted_after_that_time() {
    let realm = Realm::new();
    let [alice, _] = realm.agents(["alice", "bob"]).await;
    let first = realm.send(&alice, "bob", "first").await.message;
    realm.passed(first.at).await;
    realm.send(&alice, "bob", "second").await;
    let since = |time: Millis| {
        let query = InboxQuery { since: Some(time), limit: 10, ..InboxQuery::default() };
        paged(&realm, &query).0
    };
    assert_eq!(since(first.at), ["second"]);
    assert_eq!(since(first.at - 1).len(), 2);
    assert!(since(Millis::MAX).is_empty());
    assert_eq!(since(Millis::MIN).len(), 2);
}

#[tokio::test]
async fn inbox_can_be_limited_to_a_conversation() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let within = |name: &str| {
        Some(ConversationRef {
            conversation: conversation_id(name),
            thread: None,
            reply_to: None,
            visibility: None,
            join: JoinMode::Open { kind: "thread".into() },
        })
    };
    for n in 0..9 {
        let name = ["one", "two"][n % 2];
        realm
            .ask(&alice, SendMessage { within: within(name), ..message("bob", &format!("{name} {n}")) })
            .await;
    }
    let of = |conversation: ConversationId| {
        let query = InboxQuery {
            conversation: Some(conversation),
            order: InboxOrder::Oldest,
            limit: 2,
            ..InboxQuery::default()
        };
        paged(&realm, &query).0
    };
    assert_eq!(of(conversation_id("two")), ["two 1", "two 3", "two 5", "two 7"]);
    assert_eq!(of(conversation_id("one")).len(), 5);
    assert!(of(conversation_id("three")).is_empty());
    let page = realm.see(|view| view.correspondence(&bob, &conversation_id("two"), 0, 3));
    assert_eq!((page.items.len(), page.next.is_some()), (3, true));
    let rest = realm
        .see(|view| view.correspondence(&bob, &conversation_id("two"), page.next.unwrap_or(Seq::MAX), 3));
    assert_eq!((rest.items.len(), rest.next), (1, None));
}

#[tokio::test]
async fn counts_agree_with_lists() {
    let realm = full_inbox().await;
    let bob = member("bob");
    let counts = realm.see(|view| view.mail_counts(&bob, &id("bob")));
    assert_eq!((counts.unread, counts.urgent, counts.queued), (45, 18, 45));
    let waiting = realm.see(|view| view.waiting(&bob, &id("bob"), 0, 100)).items;
    let bodies: Vec<&str> = waiting.iter().map(|item| item.message.body.as_str()).collect();
    assert_eq!(bodies, numbers(|n| n % 4 != 0), "in the order they were sent");
    let after = waiting[9].message.seq;
    assert_eq!(realm.see(|view| view.waiting(&bob, &id("bob"), after, 5)).items[0], waiting[10]);
}
