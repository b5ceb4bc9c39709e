//! Messages between realms of one server.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{
    Address, AgentSet, Bounds, Caller, ContactPolicy, ContactState, DeliveryState, RealmName, Visibility,
};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::contacts::Answer;
use posthaste_engine::verbs::mail::{SendMessage, SendReceipt};
use posthaste_engine::views::{InboxMessage, InboxQuery};
use posthaste_engine::{Engine, Office, OfficeGuard, Refusal};
use tempfile::TempDir;

use crate::harness::{id, member, named};

struct TwoRealms {
    office: Office,
    shop: Engine,
    mill: Engine,
    guard: OfficeGuard,
    _directory: TempDir,
}

fn realm(name: &str) -> RealmName {
    RealmName::new(name).expect("a realm name")
}

impl TwoRealms {
    async fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let (office, guard) = Office::open(directory.path(), Limits::default()).expect("an office");
        let shop = office.realm(&realm("shop")).await.expect("a realm");
        let mill = office.realm(&realm("mill")).await.expect("a realm");
        shop.submit(&member("ann"), named("ann")).await.expect("a free name");
        mill.submit(&member("bob"), named("bob")).await.expect("a free name");
        Self { office, shop, mill, guard, _directory: directory }
    }
}

fn remote(agent: &str, at: &str) -> Vec<Address> {
    vec![Address::Remote { agent: agent.into(), realm: realm(at) }]
}

fn inbox(engine: &Engine, agent: &str) -> Vec<InboxMessage> {
    let query = InboxQuery { limit: 10, ..InboxQuery::default() };
    engine.read_blocking(|view| view.inbox(&member(agent), &id(agent), &query)).expect("an inbox").items
}

fn state(engine: &Engine, sent: &SendReceipt) -> (DeliveryState, Option<String>) {
    let tracked =
        engine.read_blocking(|view| view.message(&member("ann"), sent.message.id)).expect("a message");
    (tracked.deliveries[0].state, tracked.deliveries[0].note.clone())
}

#[tokio::test]
async fn message_reaches_another_realm_once_and_can_be_answered() {
    let realms = TwoRealms::new().await;
    let message = SendMessage {
        subject: Some("flour".into()),
        ..SendMessage::text(remote("bob", "mill"), "two sacks")
    };
    let sent = realms.shop.submit(&member("ann"), message).await.expect("a message");
    assert_eq!(state(&realms.shop, &sent).0, DeliveryState::Queued);
    realms.office.carry().await;
    realms.office.carry().await;
    assert_eq!(state(&realms.shop, &sent).0, DeliveryState::Delivered);
    let received = inbox(&realms.mill, "bob");
    assert_eq!(received.len(), 1);
    assert_eq!(
        (received[0].message.from.as_str(), received[0].message.body.as_str()),
        ("ann@shop", "two sacks")
    );
    assert!(
        realms.shop.read_blocking(|view| view.outbound(&Caller::office(), 9)).expect("a list").is_empty()
    );

    realms
        .mill
        .submit(&member("bob"), SendMessage::text(remote("ann", "shop"), "on Monday"))
        .await
        .expect("an answer");
    realms.office.carry().await;
    assert_eq!(inbox(&realms.shop, "ann")[0].message.from.as_str(), "bob@mill");
    realms.guard.close().await;
}

#[tokio::test]
async fn refusal_of_the_other_realm_fails_the_delivery() {
    let realms = TwoRealms::new().await;
    let closed = Register {
        id: Some(id("hermit")),
        contact_policy: Some(ContactPolicy::Closed),
        ..Register::default()
    };
    realms.mill.submit(&member("hermit"), closed).await.expect("a free name");
    for name in ["missing", "hermit"] {
        let message = SendMessage::text(remote(name, "mill"), "hello");
        let sent = realms.shop.submit(&member("ann"), message).await.expect("a message");
        realms.office.carry().await;
        let (state, why) = state(&realms.shop, &sent);
        assert_eq!(state, DeliveryState::Failed);
        assert!(why.expect("a reason").contains(name));
    }
    realms.guard.close().await;
}

#[tokio::test]
async fn only_the_operator_can_send_as_a_peer_agent() {
    let realms = TwoRealms::new().await;
    realms
        .shop
        .submit(&member("ann"), SendMessage::text(remote("bob", "mill"), "first contact"))
        .await
        .expect("a message");
    realms.office.carry().await;
    let forged = realms
        .mill
        .submit(&member("ann@shop"), SendMessage::text(vec![Address::Agent(id("bob"))], "forged"))
        .await;
    let refused = forged.expect_err("no agent of that name here");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    let unknown = realms.shop.submit(&member("ann"), SendMessage::text(remote("x", "elsewhere"), "?")).await;
    let refused = unknown.expect_err("no such peer");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchPeer { .. })), "{refused:?}");
    realms.guard.close().await;
}

/// The delivery state of a message that ann sends to the mill.
async fn delivery_state(realms: &TwoRealms, message: SendMessage) -> (DeliveryState, Option<String>) {
    let sent = realms.shop.submit(&member("ann"), message).await.expect("a message");
    realms.office.carry().await;
    state(&realms.shop, &sent)
}

#[tokio::test]
async fn hidden_agents_of_another_realm_cannot_be_found_or_addressed() {
    let realms = TwoRealms::new().await;
    for (name, visibility) in [("hidden", Visibility::System), ("scoped", Visibility::Scope)] {
        let entry = Register { id: Some(id(name)), visibility: Some(visibility), ..Register::default() };
        realms.mill.submit(&member(name), entry).await.expect("a free name");
    }
    let unknown = delivery_state(&realms, SendMessage::text(remote("missing-here", "mill"), "hello")).await;
    assert_eq!(unknown.0, DeliveryState::Failed);
    let why = unknown.1.expect("a reason");
    for name in ["hidden", "scoped", "hiden", "bib"] {
        let answer = delivery_state(&realms, SendMessage::text(remote(name, "mill"), "hello")).await;
        let same = Some(why.replace("missing-here", name));
        assert_eq!(
            answer,
            (DeliveryState::Failed, same),
            "{name} gets the same answer as a name that does not exist"
        );
    }
    assert!(inbox(&realms.mill, "hidden").is_empty());
    // A hidden agent that has sent a message can be answered.
    realms
        .mill
        .submit(&member("hidden"), SendMessage::text(remote("ann", "shop"), "psst"))
        .await
        .expect("a message");
    realms.office.carry().await;
    let answer = delivery_state(&realms, SendMessage::text(remote("hidden", "mill"), "yes?")).await;
    assert_eq!(answer.0, DeliveryState::Delivered, "{answer:?}");
    realms.guard.close().await;
}

#[tokio::test]
async fn senders_of_another_realm_need_consent() {
    let realms = TwoRealms::new().await;
    let entry = |name: &str| Register { id: Some(id(name)), ..Register::default() };
    let shy = Register { contact_policy: Some(ContactPolicy::Contacts), ..entry("shy") };
    realms.mill.submit(&member("shy"), shy).await.expect("a free name");
    let bounds = Bounds { takes_from_agents: Some(AgentSet::Empty), ..Bounds::default() };
    let bounded = Register { bounds: Some(bounds), ..entry("bounded") };
    realms.mill.submit(&member("bounded"), bounded).await.expect("a free name");
    assert_eq!(
        delivery_state(&realms, SendMessage::text(remote("bounded", "mill"), "hello")).await.0,
        DeliveryState::Failed
    );
    assert_eq!(
        delivery_state(&realms, SendMessage::text(remote("shy", "mill"), "hello")).await.0,
        DeliveryState::Failed
    );
    assert!(inbox(&realms.mill, "shy").is_empty() && inbox(&realms.mill, "bounded").is_empty());
    // The first message recorded a request, which can be accepted.
    let accept = Answer { from: id("ann@shop"), state: ContactState::Accepted, expires_at: None };
    realms.mill.submit(&member("shy"), accept).await.expect("a request");
    assert_eq!(
        delivery_state(&realms, SendMessage::text(remote("shy", "mill"), "again")).await.0,
        DeliveryState::Delivered
    );
    assert_eq!(inbox(&realms.mill, "shy")[0].message.from.as_str(), "ann@shop");
    realms.guard.close().await;
}

#[tokio::test]
async fn reply_from_another_realm_needs_no_consent() {
    let realms = TwoRealms::new().await;
    let shy = Register {
        id: Some(id("shy")),
        contact_policy: Some(ContactPolicy::Contacts),
        ..Register::default()
    };
    realms.mill.submit(&member("shy"), shy).await.expect("a free name");
    realms
        .mill
        .submit(&member("shy"), SendMessage::text(remote("ann", "shop"), "flour?"))
        .await
        .expect("a message");
    realms.office.carry().await;
    assert_eq!(
        delivery_state(&realms, SendMessage::text(remote("shy", "mill"), "two sacks")).await.0,
        DeliveryState::Delivered
    );
    realms.guard.close().await;
}
