//! Storage quotas per owner and per realm, and the disk space reserved for the operator.

use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{Audience, Caller};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::conversations::Create;
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::{Dispatch, Refusal};

use crate::harness::{Realm, conversation, id, member, message, say};

/// A message with a body of `bytes` bytes.
fn large(to: &str, bytes: usize) -> SendMessage {
    message(to, &"x".repeat(bytes))
}

fn rule(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::QuotaExceeded { rule, .. } => rule,
        other => panic!("another refusal: {other}"),
    }
}

#[tokio::test]
async fn quota_is_shared_by_all_agents_of_an_owner() {
    let realm = Realm::new();
    realm.rules(Rules { mail_bytes_per_sender: 100_000, ..Rules::default() }).await;
    let [owner, bert] = realm.agents(["owner", "bert"]).await;
    for name in ["one", "two"] {
        realm.ask(&owner, Register { id: Some(id(name)), ..Register::default() }).await;
    }
    realm.ask(&owner, large("bert", 30_000)).await;
    realm.ask(&member("one"), large("bert", 30_000)).await;
    realm.conversation(&bert, "chat", &["two"]).await;
    realm.ask(&member("two"), say("chat", &"x".repeat(30_000))).await;
    let realm = realm.reopened();
    for name in ["owner", "one", "two"] {
        let why = realm.refused(&member(name), large("bert", 30_000)).await;
        assert_eq!(rule(&why), "mail_bytes_per_sender", "{why}");
    }
    let meta = Some(posthaste_engine::nouns::Json::from_value(&"x".repeat(30_000).into()));
    let other = Create { meta, ..conversation("other", &[]) };
    assert_eq!(rule(&realm.refused(&member("two"), other).await), "mail_bytes_per_sender");
    // Other senders, small writes and the operator are not affected.
    let sent = realm.ask(&bert, large("owner", 30_000)).await;
    realm.ask(&owner, MarkRead { message: sent.message.id, agent: id("owner"), unread: false }).await;
    realm.ask(&Caller::office(), large("bert", 30_000)).await;
    realm.rules(Rules { mail_bytes_per_sender: 0, ..Rules::default() }).await;
    realm.ask(&owner, large("bert", 200_000)).await;
}

#[tokio::test]
async fn repeated_messages_do_not_count_towards_the_quota() {
    let realm = Realm::new();
    realm.rules(Rules { mail_bytes_per_sender: 20_000, ..Rules::default() }).await;
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    let keyed = SendMessage { key: Some("k".into()), audience: Audience::Parties, ..large("bert", 9_000) };
    for _ in 0..9 {
        realm.ask(&anna, keyed.clone()).await;
    }
    realm.ask(&anna, large("bert", 9_000)).await;
    rule(&realm.refused(&anna, large("bert", 9_000)).await);
}

#[tokio::test]
async fn realm_quota_is_enforced() {
    let realm = Realm::new();
    realm.rules(Rules { mail_bytes_per_realm: 50_000, ..Rules::default() }).await;
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, large("bert", 40_000)).await;
    assert_eq!(rule(&realm.refused(&bert, large("anna", 40_000)).await), "mail_bytes_per_realm");
}

#[tokio::test]
async fn fast_path_has_the_same_quota() {
    let realm = Realm::new();
    realm.rules(Rules { mail_bytes_per_sender: 100_000, ..Rules::default() }).await;
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let _stream = realm.engine.attach(&bert, &id("bert")).await.expect("attached");
    let mut stored = 0;
    for _ in 0..20 {
        let sent = match realm.engine.dispatch(&anna, large("bert", 20_000)).await.expect("taken") {
            Dispatch::Delivered(_) => true,
            Dispatch::Queued(pending) => pending.answer().await.is_ok(),
        };
        stored += usize::from(sent);
        // Messages delivered from memory are written later, so wait until they are.
        realm.engine.flush().await;
    }
    assert!((4..=5).contains(&stored), "{stored} messages");
}

#[cfg(unix)]
#[tokio::test]
async fn last_disk_space_is_reserved_for_the_operator() {
    let realm = Realm::with(Limits { disk_reserve: Some(u64::MAX), ..Limits::default() });
    let [anna, ..] = realm.agents(["anna", "bert"]).await;
    let why = realm.refused(&anna, message("bert", "hello")).await;
    assert!(matches!(why, Refusal::DiskNearlyFull { .. }), "{why}");
    let sent = realm.ask(&Caller::office(), message("bert", "free some space")).await;
    realm.ask(&member("bert"), MarkRead { message: sent.message.id, agent: id("bert"), unread: false }).await;
    assert!(realm.engine.poisoned().is_none());
}
