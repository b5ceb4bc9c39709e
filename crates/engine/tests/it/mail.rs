//! Letters: where they go, and what becomes of them.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Address, DeliveryState};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkRead};
use posthaste_engine::verbs::mail::Send;
use posthaste_engine::views::InboxQuery;

use crate::harness::{Realm, id};

#[tokio::test]
async fn a_letter_is_kept_read_and_acknowledged() {
    let realm = Realm::new();
    let alice = realm.agent("alice").await;
    let bob = realm.agent("bob").await;
    let sent = realm.send(&alice, "bob", "good morning").await;
    assert_eq!(sent.receipts.len(), 1);
    assert_eq!(sent.receipts[0].state, DeliveryState::Queued);

    let realm = realm.reopened();
    let unread = InboxQuery { unread: true, limit: 10, ..InboxQuery::default() };
    let (caller, query) = (bob.clone(), unread.clone());
    let inbox =
        realm.engine.read(move |view| view.inbox(&caller, &id("bob"), &query)).await.expect("an inbox");
    assert_eq!(inbox.items.len(), 1);
    assert_eq!(inbox.items[0].message.body.as_str(), "good morning");

    let message = sent.message.id;
    let read =
        realm.engine.submit(&bob, MarkRead { agent: id("bob"), message, unread: false }).await.expect("mine");
    assert_eq!(read.state, DeliveryState::Read);
    let ack = Acknowledge { agent: id("bob"), message, response: Some("thanks".into()) };
    let acked = realm.engine.submit(&bob, ack).await.expect("mine");
    assert_eq!((acked.state, acked.read_at), (DeliveryState::Acked, read.read_at));
    let inbox = realm.engine.read(move |view| view.inbox(&bob, &id("bob"), &unread)).await.expect("an inbox");
    assert!(inbox.items.is_empty());
}

#[tokio::test]
async fn an_unknown_recipient_is_refused_with_near_names() {
    let realm = Realm::new();
    let alice = realm.agent("alice").await;
    realm.agent("worker-1").await;
    let letter = Send::text(vec![Address::Agent(id("worker-2"))], "hello");
    let refused = realm.engine.submit(&alice, letter).await.expect_err("nobody of that name");
    let near = vec![id("worker-1")];
    assert_eq!(refused.refusal(), Some(&Refusal::NoSuchAgent { agent: "worker-2".into(), near }));
}
