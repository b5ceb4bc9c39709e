//! Mail between realms of one office.

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

struct Town {
    office: Office,
    shop: Engine,
    mill: Engine,
    guard: OfficeGuard,
    _directory: TempDir,
}

fn realm(name: &str) -> RealmName {
    RealmName::new(name).expect("a realm name")
}

impl Town {
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
        engine.read_blocking(|view| view.message(&member("ann"), sent.message.id)).expect("a letter");
    (tracked.deliveries[0].state, tracked.deliveries[0].note.clone())
}

#[tokio::test]
async fn a_letter_goes_to_another_realm_once_and_can_be_answered() {
    let town = Town::new().await;
    let letter = SendMessage {
        subject: Some("flour".into()),
        ..SendMessage::text(remote("bob", "mill"), "two sacks")
    };
    let sent = town.shop.submit(&member("ann"), letter).await.expect("a letter");
    assert_eq!(state(&town.shop, &sent).0, DeliveryState::Queued);
    town.office.carry().await;
    town.office.carry().await;
    assert_eq!(state(&town.shop, &sent).0, DeliveryState::Delivered);
    let come = inbox(&town.mill, "bob");
    assert_eq!(come.len(), 1);
    assert_eq!((come[0].message.from.as_str(), come[0].message.body.as_str()), ("ann@shop", "two sacks"));
    assert!(town.shop.read_blocking(|view| view.outbound(&Caller::office(), 9)).expect("a list").is_empty());

    town.mill
        .submit(&member("bob"), SendMessage::text(remote("ann", "shop"), "on Monday"))
        .await
        .expect("an answer");
    town.office.carry().await;
    assert_eq!(inbox(&town.shop, "ann")[0].message.from.as_str(), "bob@mill");
    town.guard.close().await;
}

#[tokio::test]
async fn what_the_other_realm_refuses_comes_back_as_a_failure() {
    let town = Town::new().await;
    let closed = Register {
        id: Some(id("hermit")),
        contact_policy: Some(ContactPolicy::Closed),
        ..Register::default()
    };
    town.mill.submit(&member("hermit"), closed).await.expect("a free name");
    for nobody in ["nobody", "hermit"] {
        let letter = SendMessage::text(remote(nobody, "mill"), "hello");
        let sent = town.shop.submit(&member("ann"), letter).await.expect("a letter");
        town.office.carry().await;
        let (state, why) = state(&town.shop, &sent);
        assert_eq!(state, DeliveryState::Failed);
        assert!(why.expect("a reason").contains(nobody));
    }
    town.guard.close().await;
}

#[tokio::test]
async fn one_who_does_not_run_the_office_cannot_speak_for_a_neighbour() {
    let town = Town::new().await;
    town.shop
        .submit(&member("ann"), SendMessage::text(remote("bob", "mill"), "we are neighbours now"))
        .await
        .expect("a letter");
    town.office.carry().await;
    let forged = town
        .mill
        .submit(&member("ann@shop"), SendMessage::text(vec![Address::Agent(id("bob"))], "forged"))
        .await;
    let refused = forged.expect_err("nobody of that name here");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchAgent { .. })), "{refused:?}");
    let unknown = town.shop.submit(&member("ann"), SendMessage::text(remote("x", "elsewhere"), "?")).await;
    let refused = unknown.expect_err("no such neighbour");
    assert!(matches!(refused.refusal(), Some(Refusal::NoSuchPeer { .. })), "{refused:?}");
    town.guard.close().await;
}

/// How a letter of Ann's to the mill fared.
async fn fared(town: &Town, letter: SendMessage) -> (DeliveryState, Option<String>) {
    let sent = town.shop.submit(&member("ann"), letter).await.expect("a letter");
    town.office.carry().await;
    state(&town.shop, &sent)
}

#[tokio::test]
async fn hidden_agents_of_another_realm_are_neither_found_nor_written_to() {
    let town = Town::new().await;
    for (name, visibility) in [("hidden", Visibility::System), ("scoped", Visibility::Scope)] {
        let entry = Register { id: Some(id(name)), visibility: Some(visibility), ..Register::default() };
        town.mill.submit(&member(name), entry).await.expect("a free name");
    }
    let unknown = fared(&town, SendMessage::text(remote("nobody-here", "mill"), "hello")).await;
    assert_eq!(unknown.0, DeliveryState::Failed);
    let why = unknown.1.expect("a reason");
    for name in ["hidden", "scoped", "hiden", "bib"] {
        let fared = fared(&town, SendMessage::text(remote(name, "mill"), "hello")).await;
        let same = Some(why.replace("nobody-here", name));
        assert_eq!(
            fared,
            (DeliveryState::Failed, same),
            "{name} is answered like a name that does not exist"
        );
    }
    assert!(inbox(&town.mill, "hidden").is_empty());
    // One that has written by itself can be answered.
    town.mill
        .submit(&member("hidden"), SendMessage::text(remote("ann", "shop"), "psst"))
        .await
        .expect("a letter");
    town.office.carry().await;
    let fared = fared(&town, SendMessage::text(remote("hidden", "mill"), "yes?")).await;
    assert_eq!(fared.0, DeliveryState::Delivered, "{fared:?}");
    town.guard.close().await;
}

#[tokio::test]
async fn consent_is_asked_for_senders_of_another_realm() {
    let town = Town::new().await;
    let entry = |name: &str| Register { id: Some(id(name)), ..Register::default() };
    let shy = Register { contact_policy: Some(ContactPolicy::Contacts), ..entry("shy") };
    town.mill.submit(&member("shy"), shy).await.expect("a free name");
    let bounds = Bounds { takes_from_agents: Some(AgentSet::Empty), ..Bounds::default() };
    let bounded = Register { bounds: Some(bounds), ..entry("bounded") };
    town.mill.submit(&member("bounded"), bounded).await.expect("a free name");
    assert_eq!(
        fared(&town, SendMessage::text(remote("bounded", "mill"), "hello")).await.0,
        DeliveryState::Failed
    );
    assert_eq!(
        fared(&town, SendMessage::text(remote("shy", "mill"), "hello")).await.0,
        DeliveryState::Failed
    );
    assert!(inbox(&town.mill, "shy").is_empty() && inbox(&town.mill, "bounded").is_empty());
    // The first letter left a request, which can be accepted.
    let accept = Answer { from: id("ann@shop"), state: ContactState::Accepted, expires_at: None };
    town.mill.submit(&member("shy"), accept).await.expect("a request");
    assert_eq!(
        fared(&town, SendMessage::text(remote("shy", "mill"), "again")).await.0,
        DeliveryState::Delivered
    );
    assert_eq!(inbox(&town.mill, "shy")[0].message.from.as_str(), "ann@shop");
    town.guard.close().await;
}

#[tokio::test]
async fn an_answer_from_another_realm_needs_no_consent_of_its_own() {
    let town = Town::new().await;
    let shy = Register {
        id: Some(id("shy")),
        contact_policy: Some(ContactPolicy::Contacts),
        ..Register::default()
    };
    town.mill.submit(&member("shy"), shy).await.expect("a free name");
    town.mill
        .submit(&member("shy"), SendMessage::text(remote("ann", "shop"), "flour?"))
        .await
        .expect("a letter");
    town.office.carry().await;
    assert_eq!(
        fared(&town, SendMessage::text(remote("shy", "mill"), "two sacks")).await.0,
        DeliveryState::Delivered
    );
    town.guard.close().await;
}
