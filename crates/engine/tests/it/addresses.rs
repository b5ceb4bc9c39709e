//! How mail is aimed: every form of address, who is meant by it, and who gets no copy.

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

/// Those who get a letter that is aimed like this.
async fn reached(realm: &Realm, from: &Caller, address: Address) -> Vec<String> {
    let letter = SendMessage { to_nobody: true, ..SendMessage::text(vec![address], "hello") };
    let sent = realm.ask(from, letter).await;
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
async fn relatives_are_reached_from_where_the_sender_stands() {
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
        assert_eq!(reached(&realm, &from, address.clone()).await, *expected, "{from:?} to {address:?}");
    }
}

#[tokio::test]
async fn a_depth_of_no_levels_reaches_nobody() {
    let realm = Realm::new();
    family(&realm).await;
    let top = crate::harness::member("top");
    assert!(reached(&realm, &top, Address::Descendants { depth: Some(0) }).await.is_empty());
    assert!(reached(&realm, &top, Address::Children { depth: Some(0) }).await.is_empty());
}

#[tokio::test]
async fn roles_kinds_and_everybody_leave_the_sender_out() {
    let realm = Realm::new();
    let worker = || Register { role: Some("worker".into()), ..Register::default() };
    let anna = realm.register("anna", worker()).await;
    realm.register("bert", worker()).await;
    realm.register("carl", Register { kind: Some(AgentKind::User), ..Register::default() }).await;
    realm.scope(&anna, "team", CreateScope::default(), &["anna", "carl"]).await;
    let role = |within: Option<&str>| Address::Role { role: "worker".into(), within: within.map(scope) };
    assert_eq!(reached(&realm, &anna, role(None)).await, ["bert"]);
    assert!(reached(&realm, &anna, role(Some("team"))).await.is_empty());
    let carl = crate::harness::member("carl");
    assert_eq!(reached(&realm, &carl, role(Some("team"))).await, ["anna"]);
    assert_eq!(reached(&realm, &anna, Address::Scope(scope("team"))).await, ["carl"]);
    assert_eq!(reached(&realm, &anna, Address::Kind(AgentKind::User)).await, ["carl"]);
    assert_eq!(reached(&realm, &anna, Address::All).await, ["bert", "carl"]);
    assert_eq!(reached(&realm, &anna, to("anna")).await, ["anna"], "one may write to oneself by name");
}

#[tokio::test]
async fn each_recipient_gets_one_copy_in_the_first_way_it_was_named() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl"]).await;
    let letter = SendMessage {
        cc: vec![to("bert"), to("carl")],
        bcc: vec![to("carl"), Address::All],
        ..SendMessage::text(vec![to("bert"), Address::All, to("bert")], "hello")
    };
    let sent = realm.ask(&anna, letter).await;
    let copies: Vec<_> = sent.receipts.iter().map(|r| (r.agent.as_str(), r.copy)).collect();
    assert_eq!(copies, [("bert", RecipientKind::To), ("carl", RecipientKind::To)]);
    assert_eq!(realm.mail("bert").len(), 1);
}

#[tokio::test]
async fn a_blind_copy_is_known_to_the_sender_and_its_recipient_alone() {
    let realm = Realm::new();
    let [anna, bert, carl, dora] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    let letter = SendMessage {
        cc: vec![to("carl")],
        bcc: vec![to("dora")],
        ..SendMessage::text(vec![to("bert")], "hello")
    };
    let sent = realm.ask(&anna, letter).await;
    assert_eq!(sent.message.to, [to("bert"), to("carl")], "the letter itself does not name blind copies");
    let copies = |who: &Caller| -> Vec<String> {
        let tracked = realm.see(|view| view.message(who, sent.message.id));
        tracked.deliveries.iter().map(|copy| copy.agent.to_string()).collect()
    };
    assert_eq!(copies(&anna), ["bert", "carl", "dora"]);
    assert_eq!(copies(&bert), ["bert", "carl"]);
    assert_eq!(copies(&carl), ["bert", "carl"]);
    assert_eq!(copies(&dora), ["bert", "carl", "dora"]);
}

#[tokio::test]
async fn who_is_named_but_unknown_hidden_or_gone_refuses_the_letter_alike() {
    let realm = Realm::new();
    let [anna, gone] = realm.agents(["anna", "gone"]).await;
    let hide = Register { visibility: Some(Visibility::System), ..Register::default() };
    realm.register("shy", hide).await;
    realm.ask(&gone, Unregister { agent: id("gone"), reason: None, cause: None }).await;
    for name in ["nobody", "shy", "gone"] {
        let refused = realm.refused(&anna, message(name, "hello")).await;
        assert_eq!(refused, Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() });
    }
    assert_eq!(reached(&realm, &anna, Address::All).await, Vec::<String>::new(), "groups pass them over");
}

#[tokio::test]
async fn a_group_with_nobody_in_it_is_a_mistake_unless_that_is_fine() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let letter = SendMessage::text(vec![Address::Siblings], "hello");
    assert_eq!(realm.refused(&anna, letter.clone()).await, Refusal::NoRecipients);
    assert_eq!(realm.refused(&anna, SendMessage::text(vec![], "hello")).await, Refusal::NoRecipients);
    let sent = realm.ask(&anna, SendMessage { to_nobody: true, ..letter }).await;
    assert!(sent.receipts.is_empty());
}

#[tokio::test]
async fn a_scope_is_written_to_by_those_it_lets() {
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
async fn contacts_are_those_who_accepted_each_other() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.befriend(&anna, &bert).await;
    realm
        .ask(&carl, posthaste_engine::verbs::contacts::Ask { to: id("anna"), reason: None, expires_at: None })
        .await;
    assert_eq!(reached(&realm, &anna, Address::Contacts).await, ["bert"]);
    assert_eq!(reached(&realm, &bert, Address::Contacts).await, ["anna"]);
    assert!(reached(&realm, &carl, Address::Contacts).await.is_empty());
}

#[tokio::test]
async fn a_contact_that_has_lapsed_is_no_contact() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.befriend(&anna, &bert).await;
    let lapsed = posthaste_engine::verbs::contacts::Answer {
        from: id("anna"),
        state: ContactState::Accepted,
        expires_at: Some(1),
    };
    realm.ask(&bert, lapsed).await;
    assert!(reached(&realm, &anna, Address::Contacts).await.is_empty());
}

#[tokio::test]
async fn nobody_reaches_more_people_than_it_shows_itself_to() {
    let realm = Realm::new();
    realm.agent("other").await;
    let tiers =
        [(Privacy::Public, true, true), (Privacy::Contacts, true, false), (Privacy::Invisible, false, false)];
    for (privacy, contacts, public) in tiers {
        let name = privacy.as_str();
        let given = Register { privacy: Some(privacy), ..Register::default() };
        let sender = realm.register(name, given).await;
        for (address, allowed) in [(Address::Contacts, contacts), (Address::Public, public)] {
            let letter = SendMessage { to_nobody: true, ..SendMessage::text(vec![address.clone()], "hello") };
            if allowed {
                realm.ask(&sender, letter).await;
            } else {
                assert_eq!(
                    realm.refused(&sender, letter).await,
                    Refusal::PrivacyMismatch,
                    "{name} {address:?}"
                );
            }
        }
        realm.send(&sender, "other", "by name it always works").await;
    }
}

#[tokio::test]
async fn the_public_needs_no_consent_but_a_block_on_either_side_counts() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let closed = Register { contact_policy: Some(ContactPolicy::Closed), ..Register::default() };
    realm.register("dora", closed).await;
    realm.ask(&bert, answer(&id("anna"), ContactState::Blocked)).await;
    realm.ask(&anna, answer(&id("carl"), ContactState::Blocked)).await;
    assert_eq!(reached(&realm, &anna, Address::Public).await, ["dora"]);
    assert_eq!(reached(&realm, &carl, Address::Public).await, ["bert", "dora"]);
    assert_eq!(reached(&realm, &anna, Address::All).await, ["carl"], "a group asks for consent");
}

#[tokio::test]
async fn a_neighbour_is_addressed_by_its_realm() {
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
    assert_eq!(reached(&realm_, &anna, remote("north")).await, ["bert@north"]);
    assert_eq!(reached(&realm_, &anna, remote("main")).await, ["bert"], "one's own realm is no detour");
    let taken = Register { id: Some(id("bert@north")), ..Register::default() };
    let thief = crate::harness::member("bert@north");
    let refused = realm_.refused(&thief, taken).await;
    assert!(
        matches!(refused, Refusal::BadName { .. }),
        "a neighbour's mail is not for the taking: {refused:?}"
    );
}

#[tokio::test]
async fn more_recipients_than_the_rules_allow_are_refused() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora"]).await;
    realm.rules(Rules { recipients: 2, ..Rules::default() }).await;
    let refused = realm.refused(&anna, SendMessage::text(vec![Address::All], "hello")).await;
    assert!(matches!(refused, Refusal::TooMany { limit: 2, .. }), "{refused}");
    assert!(realm.mail("bert").is_empty());
}

#[tokio::test]
async fn a_suspended_agent_receives_and_is_a_recipient_like_others() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.ask(&admin(), SetState::suspend(id("bert"))).await;
    assert_eq!(reached(&realm, &anna, Address::All).await, ["bert"]);
}

#[tokio::test]
async fn roles_follow_the_address_book() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let judges = Address::Role { role: "judge".into(), within: None };
    assert!(reached(&realm, &anna, judges.clone()).await.is_empty());
    realm.ask(&bert, Update { role: Some("judge".into()), ..Update::of(id("bert")) }).await;
    assert_eq!(reached(&realm, &anna, judges).await, ["bert"]);
}

#[tokio::test]
async fn who_is_named_and_unwilling_is_passed_over_if_asked_and_somebody_is_reached() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let closed = Register { contact_policy: Some(ContactPolicy::Closed), ..Register::default() };
    let shut = realm.register("shut", closed).await;
    let blocked = Refusal::ConsentBlocked { agent: id("shut") };
    let to = |names: &[&str]| names.iter().map(|name| to(name)).collect::<Vec<_>>();
    assert_eq!(
        realm.refused(&anna, SendMessage::text(to(&["shut", "bert"]), "all or nobody")).await,
        blocked
    );
    let lenient =
        |names: &[&str]| SendMessage { pass_over: true, ..SendMessage::text(to(names), "whoever will") };
    let sent = realm.ask(&anna, lenient(&["shut", "bert", "shut"])).await;
    assert_eq!(names(sent.receipts.iter().map(|receipt| &receipt.agent)), ["bert"]);
    assert_eq!(names(&sent.refused), ["shut"]);
    let told = |who: &Caller| realm.replayed(who).iter().filter(|word| **word == "message.failed").count();
    assert_eq!(
        (told(&anna), told(&shut)),
        (1, 0),
        "the sender is told, and who was spared the letter is not"
    );
    assert_eq!(realm.refused(&anna, lenient(&["shut"])).await, blocked);
    let nobody = realm.refused(&anna, lenient(&["bert", "nobody"])).await;
    assert!(matches!(nobody, Refusal::NoSuchAgent { .. }), "{nobody:?}");
    assert_eq!(realm.mail("bert"), ["whoever will"]);
    assert!(realm.mail("shut").is_empty());
    let deaf =
        SendMessage { not_receiving: vec![id("shut")], ..SendMessage::text(to(&["bert"]), "whoever hears") };
    assert_eq!(names(&realm.ask(&anna, deaf).await.refused), ["shut"]);
    assert_eq!((told(&anna), told(&shut)), (2, 0));
    let unknown = SendMessage {
        not_receiving: vec![id("nobody")],
        ..SendMessage::text(to(&["bert"]), "whoever hears")
    };
    assert!(matches!(realm.refused(&anna, unknown).await, Refusal::NoSuchAgent { .. }));
}
