//! Messages: how they are accepted, and the states of their deliveries.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Address, Audience, Caller, DeliveryState, MessageId};
use posthaste_engine::verbs::agents::{Register, SetState, Unregister};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkDelivered, MarkFailed, MarkRead};
use posthaste_engine::verbs::mail::{SendMessage, SendReceipt};
use posthaste_engine::views::InboxQuery;
use posthaste_engine::{Refusal, Start};

use crate::harness::{Realm, admin, id, member, message, observer, soon, to};

fn read(name: &str, message: MessageId) -> MarkRead {
    MarkRead { agent: id(name), message, unread: false }
}

fn ack(name: &str, message: MessageId, response: Option<&str>) -> Acknowledge {
    Acknowledge { agent: id(name), message, response: response.map(Into::into) }
}

#[tokio::test]
async fn message_is_stored_read_and_acknowledged() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let sent = realm.send(&alice, "bob", "good morning").await;
    assert_eq!(sent.receipts.len(), 1);
    assert_eq!(sent.receipts[0].state, DeliveryState::Queued);

    let realm = realm.reopened();
    let unread = InboxQuery { unread: true, limit: 10, ..InboxQuery::default() };
    let inbox = realm.see(|view| view.inbox(&bob, &id("bob"), &unread));
    assert_eq!(inbox.items.len(), 1);
    assert_eq!(inbox.items[0].message.body.as_str(), "good morning");

    let message = sent.message.id;
    let seen = realm.ask(&bob, read("bob", message)).await;
    assert_eq!(seen.state, DeliveryState::Read);
    let acked = realm.ask(&bob, ack("bob", message, Some("thanks"))).await;
    assert_eq!((acked.state, acked.read_at), (DeliveryState::Acked, seen.read_at));
    assert!(realm.see(|view| view.inbox(&bob, &id("bob"), &unread)).items.is_empty());
}

#[tokio::test]
async fn unknown_recipient_is_refused_with_suggestions() {
    let realm = Realm::new();
    let [alice, _] = realm.agents(["alice", "worker-1"]).await;
    let refused = realm.refused(&alice, message("worker-2", "hello")).await;
    assert_eq!(refused, Refusal::NoSuchAgent { agent: "worker-2".into(), near: vec![id("worker-1")] });
}

#[tokio::test]
async fn message_with_the_same_idempotency_key_is_sent_once() {
    let realm = Realm::new();
    let [alice, bob, _] = realm.agents(["alice", "bob", "carl"]).await;
    let keyed =
        SendMessage { key: Some("k".into()), ..SendMessage::text(vec![to("bob"), to("carl")], "once") };
    let first: SendReceipt = realm.ask(&alice, keyed.clone()).await;
    realm.ask(&bob, read("bob", first.message.id)).await;
    let again: SendReceipt = realm.ask(&alice, keyed.clone()).await;
    assert!(!first.repeated && again.repeated);
    assert_eq!(again.message, first.message);
    let states: Vec<_> = again.receipts.iter().map(|r| (r.agent.as_str(), r.state)).collect();
    assert_eq!(states, [("bob", DeliveryState::Read), ("carl", DeliveryState::Queued)]);
    assert_eq!(realm.mail("bob"), ["once"]);

    let other = SendMessage { body: posthaste_engine::nouns::Body::Text("twice".into()), ..keyed.clone() };
    assert_eq!(realm.refused(&alice, other).await, Refusal::KeyReused { key: "k".into() });
    let elsewhere = SendMessage { to: vec![to("bob")], ..keyed.clone() };
    assert_eq!(realm.refused(&alice, elsewhere).await, Refusal::KeyReused { key: "k".into() });
    assert!(!realm.ask(&bob, keyed).await.repeated, "keys are per sender");
    let found = realm.see(|view| view.message_by_key(&alice, &id("alice"), "k"));
    assert_eq!(found.message, first.message);
}

#[tokio::test]
async fn refused_message_does_not_use_up_its_key() {
    let realm = Realm::new();
    let alice = realm.agent("alice").await;
    let keyed = SendMessage { key: Some("k".into()), ..message("bob", "hello") };
    realm.refused(&alice, keyed.clone()).await;
    realm.agent("bob").await;
    assert!(!realm.ask(&alice, keyed).await.repeated);
}

#[tokio::test]
async fn reply_needs_a_message_visible_to_the_sender() {
    let realm = Realm::new();
    let [alice, bob, carl] = realm.agents(["alice", "bob", "carl"]).await;
    let first = realm.send(&alice, "bob", "between us").await.message.id;
    let reply = |name: &str| SendMessage { in_reply_to: Some(first), ..message(name, "re") };
    realm.ask(&bob, reply("alice")).await;
    assert_eq!(realm.refused(&carl, reply("alice")).await, Refusal::NoSuchMessage);
    let nowhere = SendMessage { in_reply_to: Some(MessageId(Default::default())), ..message("bob", "re") };
    assert_eq!(realm.refused(&alice, nowhere).await, Refusal::NoSuchMessage);
}

#[tokio::test]
async fn expired_message_is_neither_accepted_nor_shown() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let late = SendMessage { expires_at: Some(1), ..message("bob", "late") };
    assert_eq!(realm.refused(&alice, late).await, Refusal::AlreadyExpired { at: 1 });
    let end = soon();
    let brief = SendMessage { expires_at: Some(end), ..message("bob", "brief") };
    let kept = realm.ask(&alice, SendMessage { key: Some("kept".into()), ..brief.clone() }).await.message.id;
    realm.ask(&alice, brief).await;
    assert_eq!(realm.mail("bob").len(), 2);
    realm.ask(&bob, read("bob", kept)).await;
    realm.passed(end).await;
    assert_eq!(realm.inbox("bob").len(), 1, "a message read in time stays");
    let counts = realm.see(|view| view.mail_counts(&bob, &id("bob")));
    assert_eq!((counts.unread, counts.queued), (0, 0));
    assert!(realm.see(|view| view.waiting(&bob, &id("bob"), 0, 10)).items.is_empty());
}

#[tokio::test]
async fn suspended_unknown_and_stranger_callers_cannot_send() {
    let realm = Realm::new();
    let [alice, _] = realm.agents(["alice", "bob"]).await;
    realm.ask(&admin(), SetState::suspend(id("alice"))).await;
    let state = "suspended".to_owned();
    let refused = realm.refused(&alice, message("bob", "hello")).await;
    assert_eq!(refused, Refusal::WrongState { agent: id("alice"), state });
    let refused = realm.refused(&member("ghost"), message("bob", "hello")).await;
    assert_eq!(refused, Refusal::NoSuchAgent { agent: "ghost".into(), near: Vec::new() });
    let stranger = posthaste_engine::nouns::Caller::stranger(id("alice"), "test");
    let refused = realm.refused(&stranger, message("bob", "hello")).await;
    assert_eq!(refused, Refusal::NotAllowed { need: "to be a member of the realm" });
}

#[tokio::test]
async fn oversized_message_is_refused_before_it_is_written() {
    let limits = Limits { message_bytes: 1_000, text_bytes: 50, addresses: 2, ..Limits::default() };
    let realm = Realm::with(limits);
    let [alice, _] = realm.agents(["alice", "bob"]).await;
    let big = realm.refused(&alice, message("bob", &"x".repeat(1_001))).await;
    assert_eq!(big, Refusal::TooLarge { what: "the message", limit: 1_000, got: 1_001 });
    realm.send(&alice, "bob", &"x".repeat(1_000)).await;
    let subject = SendMessage { subject: Some("x".repeat(51)), ..message("bob", "") };
    assert!(matches!(realm.refused(&alice, subject).await, Refusal::TooLarge { got: 51, .. }));
    let role = Address::Role { role: "x".repeat(51), within: None };
    let refused = realm.refused(&alice, SendMessage::text(vec![role], "")).await;
    assert!(matches!(refused, Refusal::TooLarge { got: 51, .. }), "addresses count, too: {refused:?}");
    let many = SendMessage { bcc: vec![to("bob")], ..SendMessage::text(vec![to("bob"), to("bob")], "") };
    assert_eq!(realm.refused(&alice, many).await, Refusal::TooMany { what: "addresses", limit: 2 });
    assert_eq!(realm.mail("bob").len(), 1);
}

#[tokio::test]
async fn only_recipient_owner_and_admin_may_change_a_delivery() {
    let realm = Realm::new();
    let [alice, bob, carl] = realm.agents(["alice", "bob", "carl"]).await;
    let helper = Register { id: Some(id("helper")), ..Register::default() };
    realm.ask(&bob, helper).await;
    let sent = realm.ask(&alice, SendMessage::text(vec![to("bob"), to("helper")], "hello")).await.message.id;
    for caller in [&alice, &carl] {
        assert_eq!(realm.refused(caller, read("bob", sent)).await, Refusal::NoSuchMessage);
        assert_eq!(realm.refused(caller, ack("bob", sent, None)).await, Refusal::NoSuchMessage);
        let mark = MarkDelivered { agent: id("bob"), messages: vec![sent] };
        assert_eq!(realm.refused(caller, mark).await, Refusal::NoSuchMessage);
    }
    assert_eq!(realm.refused(&carl, read("carl", sent)).await, Refusal::NoSuchMessage, "it has no delivery");
    assert_eq!(realm.ask(&bob, read("helper", sent)).await.state, DeliveryState::Read, "an owner may");
    assert_eq!(realm.ask(&admin(), read("bob", sent)).await.state, DeliveryState::Read);
}

#[tokio::test]
async fn repeated_marks_have_no_effect_and_unread_resets() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let sent = realm.send(&alice, "bob", "hello").await.message.id;
    let mark = MarkDelivered { agent: id("bob"), messages: vec![sent, sent, MessageId(Default::default())] };
    assert_eq!(realm.ask(&bob, mark.clone()).await, 1);
    assert_eq!(realm.ask(&bob, mark).await, 0);
    let first = realm.ask(&bob, read("bob", sent)).await;
    assert_eq!(realm.ask(&bob, read("bob", sent)).await, first);
    let back = realm.ask(&bob, MarkRead { unread: true, ..read("bob", sent) }).await;
    assert_eq!((back.state, back.read_at), (DeliveryState::Delivered, None));
    assert_eq!(realm.see(|view| view.mail_counts(&bob, &id("bob"))).unread, 1);
    realm.ask(&bob, ack("bob", sent, Some("first"))).await;
    assert_eq!(realm.ask(&bob, ack("bob", sent, Some("second"))).await.note.as_deref(), Some("first"));
    let told: Vec<_> =
        realm.replayed(&alice).into_iter().filter(|word| word.starts_with("message.")).collect();
    assert_eq!(told, ["message.sent", "message.delivered", "message.read", "message.acked"]);
}

#[tokio::test]
async fn only_admin_may_fail_a_delivery_and_only_an_unread_one() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let lost = realm.send(&alice, "bob", "lost").await.message.id;
    let failed = |message| MarkFailed { agent: id("bob"), message, reason: "unreachable".into() };
    assert_eq!(realm.refused(&bob, failed(lost)).await, Refusal::NotAllowed { need: "to run the office" });
    let delivery = realm.ask(&admin(), failed(lost)).await;
    assert_eq!((delivery.state, delivery.note.as_deref()), (DeliveryState::Failed, Some("unreachable")));
    assert!(realm.mail("bob").is_empty());
    let seen = realm.send(&alice, "bob", "seen").await.message.id;
    realm.ask(&bob, read("bob", seen)).await;
    assert_eq!(realm.ask(&admin(), failed(seen)).await.state, DeliveryState::Read);
}

#[tokio::test]
async fn delivery_state_is_visible_only_to_recipient_and_sender() {
    let realm = Realm::new();
    let [alice, bob, carl] = realm.agents(["alice", "bob", "carl"]).await;
    let sent = realm.ask(&alice, SendMessage::text(vec![to("bob"), to("carl")], "hello")).await.message.id;
    realm.ask(&bob, ack("bob", sent, Some("do not tell carl"))).await;
    let note = |who| {
        let tracked = realm.see(|view| view.message(who, sent));
        let found = tracked.deliveries.into_iter().find(|delivery| delivery.agent == id("bob"));
        let delivery = found.expect("bob's delivery");
        (delivery.state, delivery.note)
    };
    assert_eq!(note(&alice), (DeliveryState::Acked, Some("do not tell carl".into())));
    assert_eq!(note(&bob), (DeliveryState::Acked, Some("do not tell carl".into())));
    assert_eq!(note(&carl), (DeliveryState::Queued, None), "carl only knows that bob is a recipient");
    assert!(!realm.replayed(&carl).contains(&"message.acked"));
}

#[tokio::test]
async fn open_message_shows_observers_everything_except_bcc() {
    let realm = Realm::new();
    let [alice, bob, dora] = realm.agents(["alice", "bob", "dora"]).await;
    realm.agent("eye").await;
    let eye = observer("eye");
    let open = SendMessage { audience: Audience::Observers, bcc: vec![to("dora")], ..message("bob", "open") };
    let mut feed = realm
        .engine
        .follow(&eye, posthaste_engine::Filter::everything(), Start::Now, 64)
        .await
        .expect("a feed");
    let sent = realm.ask(&alice, open).await.message.id;
    realm.ask(&bob, read("bob", sent)).await;
    realm.ask(&dora, read("dora", sent)).await;
    let live: Vec<_> = realm.drain(&mut feed, &eye).await;
    let about = |event: &posthaste_engine::nouns::Event| event.fact.about().map(ToString::to_string);
    assert_eq!(live.iter().filter_map(|event| about(event)).collect::<Vec<_>>(), ["bob"]);
    let replay = realm
        .see(|view| view.events(&eye, 0, &posthaste_engine::Filter::Kinds(vec!["message.*".into()]), 99));
    assert_eq!(replay.events.iter().filter_map(|event| about(event)).collect::<Vec<_>>(), ["bob"]);
    let tracked = realm.see(|view| view.message(&eye, sent));
    assert_eq!(tracked.deliveries.len(), 1);
    assert_eq!(tracked.deliveries[0].state, DeliveryState::Read);
    assert_eq!(realm.hidden(|view| view.message(&member("eye"), sent)), Refusal::NoSuchMessage);
}

#[tokio::test]
async fn reused_name_gets_no_messages_of_the_former_holder() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    let old =
        realm.ask(&alice, SendMessage { key: Some("k".into()), ..message("bob", "old") }).await.message.id;
    let received = realm.send(&bob, "alice", "for the old alice").await.message.id;
    realm.ask(&alice, Unregister { agent: id("alice"), reason: None, cause: None }).await;
    realm.agent("alice").await;
    assert!(realm.mail("alice").is_empty());
    assert!(realm.see(|view| view.sent(&alice, &id("alice"), None, 10)).items.is_empty());
    for message in [old, received] {
        assert_eq!(realm.hidden(|view| view.message(&alice, message)), Refusal::NoSuchMessage);
    }
    assert_eq!(realm.refused(&alice, read("alice", received)).await, Refusal::NoSuchMessage);
    let fresh = realm.ask(&alice, SendMessage { key: Some("k".into()), ..message("bob", "new") }).await;
    assert!(!fresh.repeated, "the former holder's keys do not conflict");
    assert!(!realm.replayed(&alice).contains(&"message.acked"));
    assert_eq!(realm.mail("bob"), ["old", "new"]);
}

#[tokio::test]
async fn sent_messages_are_listed_newest_first() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    for n in 0..5 {
        realm.send(&alice, "bob", &n.to_string()).await;
    }
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = realm.see(|view| view.sent(&alice, &id("alice"), before, 2));
        found.extend(page.items.iter().map(|sent| sent.message.body.as_str().to_owned()));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, ["4", "3", "2", "1", "0"]);
    let refused = realm.hidden(|view| view.sent(&bob, &id("alice"), None, 2));
    assert_eq!(refused, Refusal::NoSuchAgent { agent: "alice".into(), near: Vec::new() });
}

#[tokio::test]
async fn connected_recipient_gets_waiting_messages_then_new_ones() {
    let realm = Realm::new();
    let [alice, bob] = realm.agents(["alice", "bob"]).await;
    realm.send(&alice, "bob", "before").await;
    let mut stream = realm.engine.attach(&bob, &id("bob")).await.expect("a mailbox stream");
    assert_eq!(stream.next().await.expect("a message").message.body.as_str(), "before");
    let sent = realm.send(&alice, "bob", "after").await;
    assert_eq!(sent.receipts[0].state, DeliveryState::Delivered);
    assert_eq!(stream.next().await.expect("a message").message.body.as_str(), "after");
    assert!(realm.engine.attach(&alice, &id("bob")).await.is_err(), "it is not alice's mailbox");
}

#[tokio::test]
async fn mailbox_stream_ends_when_a_name_is_reused() {
    let realm = Realm::new();
    let [alice, owner] = realm.agents(["alice", "owner"]).await;
    let helper = Register { id: Some(id("helper")), ..Register::default() };
    realm.ask(&owner, helper.clone()).await;
    let mut stream = realm.engine.attach(&owner, &id("helper")).await.expect("a mailbox stream");
    realm.ask(&owner, Unregister { agent: id("helper"), reason: None, cause: None }).await;
    realm.ask(&member("helper"), helper).await;
    let sent = realm.send(&alice, "helper", "for the new one").await;
    assert_eq!(sent.receipts[0].state, DeliveryState::Queued, "no stream queued it");
    let refused = stream.next().await.expect_err("not the owner's any more");
    let gone = Refusal::NoSuchAgent { agent: "helper".into(), near: Vec::new() };
    assert_eq!(refused.refusal(), Some(&gone));
    drop(stream);
    let mut stream = realm.engine.attach(&member("helper"), &id("helper")).await.expect("a mailbox stream");
    assert_eq!(stream.next().await.expect("a message").message.body.as_str(), "for the new one");
}

// F8: a message that is refused registers no agent, and one that is sent does, in one step.
#[tokio::test]
async fn new_sender_is_registered_only_by_an_accepted_message() {
    let realm = Realm::new();
    realm.agent("bob").await;
    let me = Caller { agent: id("newcomer"), ..admin() };
    let refused = realm.refused(&me, message("missing", "hello")).await;
    assert!(matches!(&refused, Refusal::NoSuchAgent { agent, .. } if agent == "missing"), "{refused:?}");
    let is_known = || realm.engine.read(|view| view.agent(&admin(), &id("newcomer")));
    assert!(is_known().await.is_err(), "the refused message left no agent behind");
    let sent = realm.ask(&me, message("bob", "hello")).await;
    assert_eq!(sent.message.from, id("newcomer"));
    assert!(is_known().await.is_ok());
}

// F8: reading the inbox of a missing agent suggests similar names and registers none.
#[tokio::test]
async fn inbox_of_a_missing_agent_is_not_created() {
    let realm = Realm::new();
    realm.agent("walter").await;
    let look = |name: &'static str| {
        let asking = admin();
        realm.engine.read(move |view| view.inbox(&asking, &id(name), &InboxQuery::default()))
    };
    let error = look("waltre").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no agent waltre; did you mean walter?");
    assert!(look("waltre").await.is_err());
}
