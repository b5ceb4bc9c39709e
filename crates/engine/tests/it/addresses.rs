//! Addressing: every address form, which agents it resolves to, and which get no delivery.

use posthaste_engine::Refusal;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Address, AgentKind, Caller, ContactPolicy, ContactState, PeerKind, Privacy, RecipientKind,
    ScopeVisibility, SendPolicy, Visibility,
};
use posthaste_engine::verbs::agents::{Register, SetState, Unregister, Update};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::peers::PutPeer;
use posthaste_engine::verbs::scopes::CreateScope;

use crate::harness::{Realm, admin, answer, id, message, names, realm, scope, to};

/// The recipients of a message with this address.
async fn recipients_of(realm: &Realm, from: &Caller, address: Address) -> Vec<String> {
    let message = SendMessage { allow_no_recipients: true, ..SendMessage::text(vec![address], "hello") };
    let sent = realm.ask(from, message).await;
    let mut found: Vec<String> = sent.receipts.iter().map(|receipt| receipt.agent.to_string()).collect();
    found.sort();
    found
}

/// top > (left > (leaf > tip), right), and alone beside them.
async fn family(realm: &Realm) {
    for (name, parent) in [
        ("top", None),
        ("left", Some("top")),
        ("right", Some("top")),
        ("leaf", Some("left")),
        ("tip", Some("leaf")),
    ] {
        realm.register(name, Register { parent: parent.map(id), ..Register::default() }).await;
    }
    realm.agent("alone").await;
}

#[tokio::test]
async fn relative_addresses_resolve_from_the_sender() {
    let realm = Realm::new();
    family(&realm).await;
    let cases: &[(&str, Address, &[&str])] = &[
        ("left", Address::Parent, &["top"]),
        ("top", Address::Parent, &[]),
        ("top", Address::Children { depth: None }, &["left", "right"]),
        ("top", Address::Children { depth: Some(2) }, &["leaf", "left", "right"]),
        ("tip", Address::Children { depth: None }, &[]),
        ("left", Address::Siblings, &["right"]),
        ("top", Address::Siblings, &[]),
        ("tip", Address::Ancestors { depth: None }, &["leaf", "left", "top"]),
        ("tip", Address::Ancestors { depth: Some(2) }, &["leaf", "left"]),
        ("tip", Address::Ancestors { depth: Some(0) }, &[]),
        ("top", Address::Descendants { depth: None }, &["leaf", "left", "right", "tip"]),
        ("top", Address::Descendants { depth: Some(1) }, &["left", "right"]),
        ("alone", Address::Descendants { depth: None }, &[]),
    ];
    for (from, address, expected) in cases {
        let from = crate::harness::member(from);
        assert_eq!(recipients_of(&realm, &from, address.clone()).await, *expected, "{from:?} to {address:?}");
    }
}

#[tokio::test]
async fn depth_zero_resolves_to_no_agent() {
    let realm = Realm::new();
    family(&realm).await;
    let top = crate::harness::member("top");
    assert!(recipients_of(&realm, &top, Address::Descendants { depth: Some(0) }).await.is_empty());
    assert!(recipients_of(&realm, &top, Address::Children { depth: Some(0) }).await.is_empty());
}

#[tokio::test]
async fn role_kind_and_all_exclude_the_sender() {
    let realm = Realm::new();
    let worker = || Register { role: Some("worker".into()), ..Register::default() };
    let anna = realm.register("anna", worker()).await;
    realm.register("bert", worker()).await;
    realm.register("carl", Register { kind: Some(AgentKind::User), ..Register::default() }).await;
    realm.scope(&anna, "team", CreateScope::default(), &["anna", "carl"]).await;
    let role = |within: Option<&str>| Address::Role { role: "worker".into(), within: within.map(scope) };
    assert_eq!(recipients_of(&realm, &anna, role(None)).await, ["bert"]);
    assert!(recipients_of(&realm, &anna, role(Some("team"))).await.is_empty());
    let carl = crate::harness::member("carl");
    assert_eq!(recipients_of(&realm, &carl, role(Some("team"))).await, ["anna"]);
    assert_eq!(recipients_of(&realm, &anna, Address::Scope(scope("team"))).await, ["carl"]);
    assert_eq!(recipients_of(&realm, &anna, Address::Kind(AgentKind::User)).await, ["carl"]);
    assert_eq!(recipients_of(&realm, &anna, Address::All).await, ["bert", "carl"]);
    assert_eq!(
        recipients_of(&realm, &anna, to("anna")).await,
        ["anna"],
        "an agent may write to itself by name"
    );
}

#[tokio::test]
async fn recipient_named_twice_gets_one_delivery_of_the_first_kind() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    let message = SendMessage {
        cc: vec![to("bert"), to("carl")],
        bcc: vec![to("carl"), Address::All],
        ..SendMessage::text(vec![to("bert"), Address::All, to("bert")], "hello")
    };
    let sent = realm.ask(&anna, message).await;
    let deliveries: Vec<_> = sent.receipts.iter().map(|r| (r.agent.as_str(), r.copy)).collect();
    assert_eq!(deliveries, [("bert", RecipientKind::To), ("carl", RecipientKind::To)]);
    assert_eq!(realm.mail("bert").len(), 1);
}

#[tokio::test]
async fn bcc_is_known_only_to_sender_and_bcc_recipient() {
    let realm = Realm::new();
    let [anna, bert, carl, dora] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    let message = SendMessage {
        cc: vec![to("carl")],
        bcc: vec![to("dora")],
        ..SendMessage::text(vec![to("bert")], "hello")
    };
    let sent = realm.ask(&anna, message).await;
    assert_eq!(sent.message.to, [to("bert"), to("carl")], "the message does not name bcc recipients");
    let deliveries = |who: &Caller| -> Vec<String> {
        let tracked = realm.see(|view| view.message(who, sent.message.id));
        tracked.deliveries.iter().map(|delivery| delivery.agent.to_string()).collect()
    };
    assert_eq!(deliveries(&anna), ["bert", "carl", "dora"]);
    assert_eq!(deliveries(&bert), ["bert", "carl"]);
    assert_eq!(deliveries(&carl), ["bert", "carl"]);
    assert_eq!(deliveries(&dora), ["bert", "carl", "dora"]);
}

#[tokio::test]
async fn unknown_hidden_and_retired_recipients_get_the_same_refusal() {
    let realm = Realm::new();
    let [anna, gone] = realm.agents(["anna", "gone"]).await;
    let hide = Register { visibility: Some(Visibility::System), ..Register::default() };
    realm.register("shy", hide).await;
    realm.ask(&gone, Unregister { agent: id("gone"), reason: None, cause: None }).await;
    for name in ["missing", "shy", "gone"] {
        let refused = realm.refused(&anna, message(name, "hello")).await;
        assert_eq!(refused, Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() });
    }
    assert_eq!(
        recipients_of(&realm, &anna, Address::All).await,
        Vec::<String>::new(),
        "group addresses skip them"
    );
}

#[tokio::test]
async fn empty_group_is_refused_unless_allowed() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let message = SendMessage::text(vec![Address::Siblings], "hello");
    assert_eq!(realm.refused(&anna, message.clone()).await, Refusal::NoRecipients);
    assert_eq!(realm.refused(&anna, SendMessage::text(vec![], "hello")).await, Refusal::NoRecipients);
    let sent = realm.ask(&anna, SendMessage { allow_no_recipients: true, ..message }).await;
    assert!(sent.receipts.is_empty());
}

#[tokio::test]
async fn send_policy_decides_who_may_write_to_a_scope() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let members = CreateScope { send_policy: Some(SendPolicy::Members), ..CreateScope::default() };
    realm.scope(&anna, "inner", members, &["anna"]).await;
    let hidden = CreateScope { visibility: Some(ScopeVisibility::Members), ..CreateScope::default() };
    realm.scope(&anna, "secret", hidden, &["anna"]).await;
    let write = |name: &str| SendMessage::text(vec![Address::Scope(scope(name))], "hello");
    let need = "to be a member of the scope";
    assert_eq!(realm.refused(&bert, write("inner")).await, Refusal::NotAllowed { need });
    for name in ["secret", "none"] {
        assert_eq!(realm.refused(&bert, write(name)).await, Refusal::NoSuchScope { scope: scope(name) });
    }
    let sent = realm.ask(&admin_agent(&realm).await, write("inner")).await;
    assert_eq!(names(sent.receipts.iter().map(|r| &r.agent)), ["anna"]);
}

async fn admin_agent(realm: &Realm) -> Caller {
    realm.agent("boss").await;
    admin()
}

#[tokio::test]
async fn contacts_address_resolves_to_mutual_contacts() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.befriend(&anna, &bert).await;
    realm
        .ask(&carl, posthaste_engine::verbs::contacts::Ask { to: id("anna"), reason: None, expires_at: None })
        .await;
    assert_eq!(recipients_of(&realm, &anna, Address::Contacts).await, ["bert"]);
    assert_eq!(recipients_of(&realm, &bert, Address::Contacts).await, ["anna"]);
    assert!(recipients_of(&realm, &carl, Address::Contacts).await.is_empty());
}

#[tokio::test]
async fn expired_contact_is_no_recipient() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.befriend(&anna, &bert).await;
    let expired = posthaste_engine::verbs::contacts::Answer {
        from: id("anna"),
        state: ContactState::Accepted,
        expires_at: Some(1),
    };
    realm.ask(&bert, expired).await;
    assert!(recipients_of(&realm, &anna, Address::Contacts).await.is_empty());
}

#[tokio::test]
async fn privacy_of_the_sender_limits_broad_addresses() {
    let realm = Realm::new();
    realm.agent("other").await;
    let tiers =
        [(Privacy::Public, true, true), (Privacy::Contacts, true, false), (Privacy::Invisible, false, false)];
    for (privacy, contacts, public) in tiers {
        let name = privacy.as_str();
        let given = Register { privacy: Some(privacy), ..Register::default() };
        let sender = realm.register(name, given).await;
        for (address, allowed) in [(Address::Contacts, contacts), (Address::Public, public)] {
            let message = SendMessage {
                allow_no_recipients: true,
                ..SendMessage::text(vec![address.clone()], "hello")
            };
            if allowed {
                realm.ask(&sender, message).await;
            } else {
                assert_eq!(
                    realm.refused(&sender, message).await,
                    Refusal::PrivacyMismatch,
                    "{name} {address:?}"
                );
            }
        }
        realm.send(&sender, "other", "a name always works").await;
    }
}

#[tokio::test]
async fn public_address_needs_no_consent_but_respects_blocks_of_both_sides() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let closed = Register { contact_policy: Some(ContactPolicy::Closed), ..Register::default() };
    realm.register("dora", closed).await;
    realm.ask(&bert, answer(&id("anna"), ContactState::Blocked)).await;
    realm.ask(&anna, answer(&id("carl"), ContactState::Blocked)).await;
    assert_eq!(recipients_of(&realm, &anna, Address::Public).await, ["dora"]);
    assert_eq!(recipients_of(&realm, &carl, Address::Public).await, ["bert", "dora"]);
    assert_eq!(recipients_of(&realm, &anna, Address::All).await, ["carl"], "a group address needs consent");
}

#[tokio::test]
async fn peer_agent_is_addressed_by_its_realm() {
    let realm_ = Realm::new();
    let [anna, _] = realm_.agents(["anna", "bert"]).await;
    let remote = |name: &str| Address::Remote { agent: "bert".into(), realm: realm(name) };
    let unknown = SendMessage::text(vec![remote("north")], "hello");
    assert_eq!(realm_.refused(&anna, unknown).await, Refusal::NoSuchPeer { peer: "north".into() });
    let north = PutPeer {
        name: realm("north"),
        kind: PeerKind::Office,
        url: None,
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    realm_.ask(&admin(), north).await;
    assert_eq!(recipients_of(&realm_, &anna, remote("north")).await, ["bert@north"]);
    assert_eq!(
        recipients_of(&realm_, &anna, remote("main")).await,
        ["bert"],
        "the own realm resolves locally"
    );
    let taken = Register { id: Some(id("bert@north")), ..Register::default() };
    let thief = crate::harness::member("bert@north");
    let refused = realm_.refused(&thief, taken).await;
    assert!(
        matches!(refused, Refusal::BadName { .. }),
        "the id of a peer's agent cannot be registered: {refused:?}"
    );
}

#[tokio::test]
async fn too_many_recipients_are_refused() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.rules(Rules { recipients: 2, ..Rules::default() }).await;
    let refused = realm.refused(&anna, SendMessage::text(vec![Address::All], "hello")).await;
    assert!(matches!(refused, Refusal::TooMany { limit: 2, .. }), "{refused}");
    assert!(realm.mail("bert").is_empty());
}

#[tokio::test]
async fn suspended_agent_still_receives() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.ask(&admin(), SetState::suspend(id("bert"))).await;
    assert_eq!(recipients_of(&realm, &anna, Address::All).await, ["bert"]);
}

#[tokio::test]
async fn role_address_follows_agent_updates() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let judges = Address::Role { role: "judge".into(), within: None };
    assert!(recipients_of(&realm, &anna, judges.clone()).await.is_empty());
    realm.ask(&bert, Update { role: Some("judge".into()), ..Update::of(id("bert")) }).await;
    assert_eq!(recipients_of(&realm, &anna, judges).await, ["bert"]);
}

#[tokio::test]
async fn pass_over_skips_unwilling_recipients_if_one_accepts() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let closed = Register { contact_policy: Some(ContactPolicy::Closed), ..Register::default() };
    let shut = realm.register("shut", closed).await;
    let blocked = Refusal::ConsentBlocked { agent: id("shut") };
    let to = |names: &[&str]| names.iter().map(|name| to(name)).collect::<Vec<_>>();
    assert_eq!(realm.refused(&anna, SendMessage::text(to(&["shut", "bert"]), "all or none")).await, blocked);
    let lenient =
        |names: &[&str]| SendMessage { pass_over: true, ..SendMessage::text(to(names), "any willing") };
    let sent = realm.ask(&anna, lenient(&["shut", "bert", "shut"])).await;
    assert_eq!(names(sent.receipts.iter().map(|receipt| &receipt.agent)), ["bert"]);
    assert_eq!(names(&sent.refused), ["shut"]);
    let told = |who: &Caller| realm.replayed(who).iter().filter(|word| **word == "message.failed").count();
    assert_eq!((told(&anna), told(&shut)), (1, 0), "the sender is notified, the skipped recipient is not");
    assert_eq!(realm.refused(&anna, lenient(&["shut"])).await, blocked);
    let refused = realm.refused(&anna, lenient(&["bert", "missing"])).await;
    assert!(matches!(refused, Refusal::NoSuchAgent { .. }), "{refused:?}");
    assert_eq!(realm.mail("bert"), ["any willing"]);
    assert!(realm.mail("shut").is_empty());
    let not_receiving =
        SendMessage { not_receiving: vec![id("shut")], ..SendMessage::text(to(&["bert"]), "any receiving") };
    assert_eq!(names(&realm.ask(&anna, not_receiving).await.refused), ["shut"]);
    assert_eq!((told(&anna), told(&shut)), (2, 0));
    let unknown = SendMessage {
        not_receiving: vec![id("missing")],
        ..SendMessage::text(to(&["bert"]), "any receiving")
    };
    assert!(matches!(realm.refused(&anna, unknown).await, Refusal::NoSuchAgent { .. }));
}
