//! Consent: which first messages are accepted, who decides, and what a refusal records.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Address, AgentKind, Caller, Contact, ContactPolicy, ContactState, Privacy, Visibility,
};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::contacts::{Answer, Ask, EndContact};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::{Filter, Refusal, Start};

use crate::harness::{Realm, admin, answer, id, later, member, message};

async fn with_policy(realm: &Realm, name: &str, policy: ContactPolicy) -> Caller {
    realm.register(name, Register { contact_policy: Some(policy), ..Register::default() }).await
}

fn request(name: &str) -> Ask {
    Ask { to: id(name), reason: None, expires_at: None }
}

fn end(name: &str) -> EndContact {
    EndContact { with: id(name) }
}

fn state_of(realm: &Realm, caller: &Caller, from: &str, to: &str) -> Option<ContactState> {
    realm.see(|view| view.contact(caller, &id(from), &id(to))).map(|contact: Contact| contact.state)
}

#[tokio::test]
async fn refused_first_message_records_only_a_request() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let bert = with_policy(&realm, "bert", ContactPolicy::Contacts).await;
    for _ in 0..2 {
        let refused = realm.refused(&anna, message("bert", "hello")).await;
        assert_eq!(refused, Refusal::ConsentPending { agent: id("bert") });
    }
    let realm = realm.reopened();
    let requests = realm.see(|view| view.contact_requests(&bert, &id("bert")));
    assert_eq!(requests.len(), 1, "recorded although refused, and once");
    assert_eq!((requests[0].from.as_str(), requests[0].state), ("anna", ContactState::Pending));
    assert!(realm.mail("bert").is_empty());
    let told: Vec<_> = realm.replayed(&bert).into_iter().filter(|word| *word == "contact.changed").collect();
    assert_eq!(told.len(), 1);
    realm.ask(&bert, answer(&id("anna"), ContactState::Accepted)).await;
    realm.send(&anna, "bert", "now").await;
    realm.send(&bert, "anna", "both ways").await;
    assert_eq!(realm.mail("bert"), ["now"]);
}

#[tokio::test]
async fn sender_of_a_first_message_accepts_the_reply() {
    let realm = Realm::new();
    let [anna, carl] = realm.agents(["anna", "carl"]).await;
    let bert = with_policy(&realm, "bert", ContactPolicy::Contacts).await;
    let dora = with_policy(&realm, "dora", ContactPolicy::Contacts).await;
    realm
        .ask(
            &bert,
            SendMessage { allow_no_recipients: true, ..SendMessage::text(vec![Address::All], "to all") },
        )
        .await;
    let pending = Refusal::ConsentPending { agent: id("bert") };
    assert_eq!(realm.refused(&anna, message("bert", "was that for me?")).await, pending);
    realm.send(&bert, "anna", "that was").await;
    realm.send(&anna, "bert", "then I answer").await;
    assert_eq!(realm.mail("bert"), ["then I answer"]);
    assert_eq!(state_of(&realm, &bert, "anna", "bert"), Some(ContactState::Pending), "it creates no contact");
    assert_eq!(realm.refused(&carl, message("bert", "and I?")).await, pending, "only agents it wrote to");
    // If both agents require consent, withdrawn consent is gone.
    realm.befriend(&bert, &dora).await;
    realm.send(&bert, "dora", "friends").await;
    realm.ask(&bert, end("dora")).await;
    assert_eq!(realm.refused(&dora, message("bert", "still?")).await, pending);
    // A block takes precedence.
    realm.ask(&bert, answer(&id("anna"), ContactState::Blocked)).await;
    let blocked = Refusal::ConsentBlocked { agent: id("bert") };
    assert_eq!(realm.refused(&anna, message("bert", "please")).await, blocked);
}

#[tokio::test]
async fn contact_policy_decides_about_first_messages() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    with_policy(&realm, "open", ContactPolicy::Open).await;
    let closed = with_policy(&realm, "closed", ContactPolicy::Closed).await;
    realm.send(&anna, "open", "hello").await;
    let blocked = Refusal::ConsentBlocked { agent: id("closed") };
    assert_eq!(realm.refused(&anna, message("closed", "hello")).await, blocked);
    assert_eq!(realm.refused(&anna, request("closed")).await, blocked);
    assert_eq!(state_of(&realm, &closed, "anna", "closed"), None, "no request either");
    realm.send(&closed, "anna", "it may send itself").await;
}

#[tokio::test]
async fn group_address_skips_agents_that_require_consent() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let carl = with_policy(&realm, "carl", ContactPolicy::Contacts).await;
    let sent = realm.ask(&anna, SendMessage::text(vec![Address::All], "hello")).await;
    assert_eq!(sent.receipts.len(), 1);
    assert_eq!(state_of(&realm, &carl, "anna", "carl"), None, "and records no request");
}

#[tokio::test]
async fn system_kind_does_not_replace_consent() {
    let realm = Realm::new();
    let system = Register { kind: Some(AgentKind::System), ..Register::default() };
    // Only an administrator registers such an agent; the kind gives it no additional rights.
    realm.ask(&admin(), Register { id: Some(id("fake")), ..system }).await;
    let fake = member("fake");
    with_policy(&realm, "bert", ContactPolicy::Contacts).await;
    let refused = realm.refused(&fake, message("bert", "trust me")).await;
    assert_eq!(refused, Refusal::ConsentPending { agent: id("bert") });
    realm.ask(&Caller::office(), message("bert", "from the server")).await;
}

#[tokio::test]
async fn only_a_pending_request_can_be_accepted() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    with_policy(&realm, "carl", ContactPolicy::Contacts).await;
    let none = |from: &str| Refusal::NoSuchContact { from: id(from), to: id("anna") };
    let accept = |name: &str| answer(&id(name), ContactState::Accepted);
    assert_eq!(realm.refused(&anna, accept("carl")).await, none("carl"));
    assert_eq!(realm.refused(&anna, accept("missing")).await, none("missing"));
    // Blocking needs no request, so it must not be a way around one.
    realm.ask(&anna, answer(&id("carl"), ContactState::Blocked)).await;
    assert_eq!(realm.refused(&anna, accept("carl")).await, none("carl"));
    let refused = realm.refused(&anna, message("carl", "forged consent")).await;
    assert_eq!(refused, Refusal::ConsentPending { agent: id("carl") });
    // An expired request does not count either.
    realm.ask(&bert, Ask { expires_at: Some(1), ..request("anna") }).await;
    assert_eq!(realm.refused(&anna, accept("bert")).await, none("bert"));
    let pending = answer(&id("bert"), ContactState::Pending);
    assert!(matches!(realm.refused(&anna, pending).await, Refusal::BadValue { field: "state", .. }));
}

#[tokio::test]
async fn hidden_and_missing_agents_are_indistinguishable() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let hide = Register { visibility: Some(Visibility::System), ..Register::default() };
    realm.register("shy", hide).await;
    for name in ["shy", "missing"] {
        let none = Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() };
        assert_eq!(realm.refused(&anna, request(name)).await, none);
        let none = Refusal::NoSuchContact { from: id(name), to: id("anna") };
        assert_eq!(realm.refused(&anna, answer(&id(name), ContactState::Accepted)).await, none);
        assert_eq!(realm.refused(&anna, end(name)).await, none);
    }
}

#[tokio::test]
async fn block_stops_messages_and_requests_until_lifted() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.befriend(&anna, &bert).await;
    realm.ask(&bert, answer(&id("anna"), ContactState::Blocked)).await;
    let blocked = Refusal::ConsentBlocked { agent: id("bert") };
    assert_eq!(realm.refused(&anna, message("bert", "hello")).await, blocked);
    assert_eq!(realm.refused(&anna, request("bert")).await, blocked);
    assert_eq!(
        state_of(&realm, &bert, "bert", "anna"),
        None,
        "a block ends the acceptance in both directions"
    );
    let none = Refusal::NoSuchContact { from: id("bert"), to: id("anna") };
    assert_eq!(realm.refused(&anna, end("bert")).await, none, "the blocked agent cannot lift the block");
    realm.ask(&bert, end("anna")).await;
    realm.send(&anna, "bert", "hello again").await;
    assert_eq!(state_of(&realm, &bert, "anna", "bert"), None, "lifted, not accepted");
}

#[tokio::test]
async fn block_is_not_visible_to_the_blocked_agent() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mut live = realm.engine.follow(&anna, Filter::everything(), Start::Now, 64).await.expect("a feed");
    realm.ask(&bert, answer(&id("anna"), ContactState::Blocked)).await;
    assert_eq!(state_of(&realm, &anna, "anna", "bert"), None);
    assert!(realm.see(|view| view.contacts(&anna, &id("anna"))).is_empty());
    assert!(realm.drain(&mut live, &anna).await.is_empty(), "not live");
    assert!(!realm.replayed(&anna).contains(&"contact.changed"), "and not from the db");
    assert!(realm.replayed(&bert).contains(&"contact.changed"));
    assert_eq!(state_of(&realm, &bert, "anna", "bert"), Some(ContactState::Blocked));
}

#[tokio::test]
async fn expired_acceptance_needs_a_new_request() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let bert = with_policy(&realm, "bert", ContactPolicy::Contacts).await;
    realm.ask(&anna, request("bert")).await;
    let accept = |end| Answer { from: id("anna"), state: ContactState::Accepted, expires_at: end };
    realm.ask(&bert, accept(Some(later()))).await;
    realm.send(&anna, "bert", "in time").await;
    realm.ask(&bert, accept(Some(1))).await;
    let refused = realm.refused(&anna, message("bert", "too late")).await;
    assert_eq!(refused, Refusal::ConsentPending { agent: id("bert") });
    let requests = realm.see(|view| view.contact_requests(&bert, &id("bert")));
    assert_eq!(requests.len(), 1, "the refusal reports a pending request, so one must exist");
}

#[tokio::test]
async fn request_can_be_declined_withdrawn_and_repeated() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, request("bert")).await;
    realm.ask(&bert, end("anna")).await;
    assert!(realm.see(|view| view.contact_requests(&bert, &id("bert"))).is_empty());
    realm.ask(&anna, Ask { reason: Some("please".into()), ..request("bert") }).await;
    let again = realm.ask(&anna, request("bert")).await;
    assert_eq!(again.reason.as_deref(), Some("please"), "asking twice changes nothing");
    realm.ask(&anna, end("bert")).await;
    assert!(realm.see(|view| view.contact_requests(&bert, &id("bert"))).is_empty());
}

#[tokio::test]
async fn pending_requests_are_limited_and_expired_ones_do_not_count() {
    let realm = Realm::new();
    let [anna, bert, carl, _] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.rules(Rules { pending_contacts: 1, ..Rules::default() }).await;
    realm.ask(&anna, Ask { expires_at: Some(1), ..request("dora") }).await;
    realm.ask(&bert, request("dora")).await;
    let refused = realm.refused(&carl, request("dora")).await;
    assert_eq!(refused, Refusal::TooManyRequests { agent: id("dora") });
    let requests = realm.see(|view| view.contact_requests(&member("dora"), &id("dora")));
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn reused_name_inherits_no_consent() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let bert = with_policy(&realm, "bert", ContactPolicy::Contacts).await;
    realm.befriend(&anna, &bert).await;
    let leave = posthaste_engine::verbs::agents::Unregister { agent: id("anna"), reason: None, cause: None };
    realm.ask(&anna, leave).await;
    realm.agent("anna").await;
    let refused = realm.refused(&anna, message("bert", "remember me?")).await;
    assert_eq!(refused, Refusal::ConsentPending { agent: id("bert") });
}

#[tokio::test]
async fn presence_follows_the_privacy_tier() {
    let realm = Realm::new();
    let friend = realm.agent("friend").await;
    let other = realm.agent("other").await;
    for privacy in [Privacy::Public, Privacy::Contacts, Privacy::Invisible] {
        let name = privacy.as_str();
        let given = Register { privacy: Some(privacy), ..Register::default() };
        let me = realm.register(name, given).await;
        realm.befriend(&friend, &me).await;
        realm.engine.presences().beat(id(name), "busy", None, 60_000);
        let seen = |who: &Caller| {
            realm.see(|view| {
                let agent = view.agent(&me, &id(name))?;
                realm.engine.presences().of(view, who, &agent)
            })
        };
        assert!(seen(&me).is_some());
        assert_eq!(seen(&friend).is_some(), privacy != Privacy::Invisible, "{name}");
        assert_eq!(seen(&other).is_some(), privacy == Privacy::Public, "{name}");
        let expired = Answer { from: id("friend"), state: ContactState::Accepted, expires_at: Some(1) };
        realm.ask(&me, expired).await;
        assert_eq!(seen(&friend).is_some(), privacy == Privacy::Public, "{name}, after expiry");
        realm.engine.presences().leave(&id(name));
        assert!(seen(&me).is_none());
    }
}
