//! Signed messages: each is accepted once, atomically with its side effect; key changes take effect at once.

use posthaste_engine::Refusal;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Address, Agent, Audience, Caller, ContactPolicy, ConversationStatus, DeliveryState, Millis, Privacy,
    ReservationStatus, TokenRole,
};
use posthaste_engine::stamp;
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::deliveries::Discard;
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::office::Sweep;
use posthaste_engine::verbs::reservations::{Renew, Reserve, Which};
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_engine::verbs::tokens::CreateToken;
use posthaste_engine::views::{ReservationQuery, TurnQuery};

use crate::harness::{Realm, admin, conversation_id, id, json, later, member, message, named, soon};

fn single_use_key(label: &str) -> SingleUseKey {
    SingleUseKey { label: label.into(), until: None, digest: None }
}

fn signed(to: &str, text: &str, keys: &[&str]) -> SendSigned {
    SendSigned {
        message: message(to, text),
        keys: keys.iter().map(|label| single_use_key(label)).collect(),
        side_effect: None,
    }
}

fn with(to: &str, key: &str, side_effect: SideEffect) -> SendSigned {
    SendSigned { side_effect: Some(side_effect), ..signed(to, "…", &[key]) }
}

fn reserve(key: &str, path: &str, expires_at: Millis) -> SideEffect {
    SideEffect::Reserve(Reserve {
        key: Some(key.into()),
        scope: "repo:x".into(),
        paths: vec![path.into()],
        exclusive: true,
        reason: Some("why".into()),
        issued_at: None,
        expires_at,
        audience: Audience::Parties,
        meta: None,
    })
}

fn key(name: &str) -> Which {
    Which::Key(name.into())
}

#[tokio::test]
async fn single_use_key_is_accepted_once_even_after_a_restart() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, signed("bob", "one", &["id:1", "nonce:1"])).await;
    let refused = realm.refused(&ann, signed("bob", "two", &["id:2", "nonce:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "nonce:1".into() });
    realm.ask(&bob, signed("ann", "another sender may use it", &["id:1"])).await;
    let realm = realm.reopened();
    let refused = realm.refused(&ann, signed("bob", "one", &["id:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "id:1".into() });
    // A refused message uses up no key.
    realm.ask(&ann, signed("bob", "two", &["id:2", "nonce:2"])).await;
    assert_eq!(realm.mail("bob"), ["one", "two"]);
}

/// More keys than the in-memory index holds, so that the oldest are found in the hash table and the newest in memory.
#[tokio::test]
async fn single_use_key_is_accepted_once_wherever_it_is_stored() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let names: Vec<String> = (0..10_000).map(|n| format!("id:{n}")).collect();
    for some in names.chunks(500) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        realm.ask(&ann, signed("bob", some[0], &some)).await;
    }
    let check = async |realm: &Realm| {
        for name in ["id:0", "id:1807", "id:1808", "id:8191", "id:8192", "id:9999"] {
            let refused = realm.refused(&ann, signed("bob", "again", &[name])).await;
            assert_eq!(refused, Refusal::KeyReused { key: name.into() });
            let found = realm.see(|view| view.messages_with_label(&bob, &id("bob"), name));
            assert_eq!(found.len(), 1, "{name}");
        }
    };
    check(&realm).await;
    let realm = realm.reopened();
    check(&realm).await;
    realm.ask(&Caller::office(), Sweep {}).await;
    check(&realm).await;
    assert_eq!(realm.mail("bob").len(), 20);
}

/// Row numbers are not reused: a key stored after the latest ones expired is not mistaken for one that is
/// already in the hash table.
#[tokio::test]
async fn single_use_key_is_found_after_the_latest_ones_expired() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let until = soon();
    let brief =
        (0..4_096).map(|n| SingleUseKey { label: format!("nonce:{n}"), until: Some(until), digest: None });
    realm.ask(&ann, SendSigned { keys: brief.collect(), ..signed("bob", "many", &[]) }).await;
    realm.passed(until).await;
    while realm.ask(&Caller::office(), Sweep {}).await.more {}
    let realm = realm.reopened();
    realm.ask(&ann, signed("bob", "one", &["id:1"])).await;
    let realm = realm.reopened();
    let refused = realm.refused(&ann, signed("bob", "two", &["id:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "id:1".into() });
}

#[tokio::test]
async fn one_of_many_concurrent_uses_is_accepted() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let tries = (0..32).map(|n| {
        let (engine, ann) = (realm.engine.clone(), ann.clone());
        tokio::spawn(async move { engine.submit(&ann, signed("bob", &n.to_string(), &["nonce:x"])).await })
    });
    let mut taken = 0;
    for one in tries.collect::<Vec<_>>() {
        taken += usize::from(one.await.unwrap().is_ok());
    }
    assert_eq!((taken, realm.mail("bob").len()), (1, 1));
}

#[tokio::test]
async fn refused_signed_message_uses_no_key_and_has_no_side_effect() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let shy = Register { contact_policy: Some(ContactPolicy::Contacts), ..Register::default() };
    let bob = realm.register("bob", shy).await;
    let verb = with("bob", "id:1", reserve("r", "src/a", later()));
    assert!(matches!(realm.refused(&ann, verb.clone()).await, Refusal::ConsentPending { .. }));
    let all = ReservationQuery { ended: true, limit: 9, ..ReservationQuery::default() };
    assert!(realm.see(|view| view.reservations(&admin(), &all)).items.is_empty());
    realm
        .ask(&bob, crate::harness::answer(&id("ann"), posthaste_engine::nouns::ContactState::Accepted))
        .await;
    assert!(realm.ask(&ann, verb).await.reserved.is_some(), "the same message is accepted after consent");
}

#[tokio::test]
async fn key_with_a_digest_may_be_repeated_for_the_same_content() {
    let realm = Realm::new();
    let [ann, ..] = realm.agents(["ann", "bob", "cid"]).await;
    let post = |to: &str, n: u8, digest: u8| SendSigned {
        keys: vec![SingleUseKey { label: "mail:1".into(), until: None, digest: Some(vec![digest]) }],
        ..signed(to, &n.to_string(), &[])
    };
    realm.ask(&ann, post("bob", 1, 7)).await;
    realm.ask(&ann, post("cid", 2, 7)).await;
    let refused = realm.refused(&ann, post("cid", 3, 8)).await;
    assert_eq!(refused, Refusal::KeyReused { key: "mail:1".into() });
}

#[tokio::test]
async fn expired_keys_are_removed() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let until = soon();
    let brief = SendSigned {
        keys: vec![SingleUseKey { label: "nonce:1".into(), until: Some(until), digest: None }],
        ..signed("bob", "one", &[])
    };
    realm.ask(&ann, brief.clone()).await;
    realm.refused(&ann, brief.clone()).await;
    realm.passed(until).await;
    assert_eq!(realm.ask(&Caller::office(), Sweep {}).await.keys, 1);
    assert_eq!(realm.ask(&Caller::office(), Sweep {}).await.keys, 0);
    realm.ask(&ann, brief).await;
}

#[tokio::test]
async fn reservation_is_visible_to_recipients_of_its_message() {
    let realm = Realm::new();
    let [ann, bob, cid] = realm.agents(["ann", "bob", "cid"]).await;
    realm.befriend(&ann, &cid).await;
    realm.ask(&ann, with("bob", "id:1", reserve("r", "src/a", later()))).await;
    let seen = |who: &Caller| {
        let all = ReservationQuery { limit: 9, ..ReservationQuery::default() };
        realm.see(|view| view.reservations(who, &all)).items.len()
    };
    assert_eq!(
        (seen(&ann), seen(&bob), seen(&cid)),
        (1, 1, 0),
        "a contact that is not a recipient sees nothing"
    );
    let overlap = realm.ask(&cid, with("bob", "id:1", reserve("c", "src", later()))).await;
    assert!(overlap.reserved.unwrap().conflicts.is_empty());
    let overlap = realm.ask(&bob, with("ann", "id:1", reserve("b", "src/**", later()))).await;
    let held = overlap.reserved.unwrap();
    let conflict = held.conflicts.iter().find(|conflict| conflict.key == "r").expect("ann's");
    assert_eq!((conflict.held_path.as_str(), conflict.reason.as_deref()), ("src/a", Some("why")));
    // Another recipient sees it as well, and the reservation is made only once.
    realm.ask(&ann, with("cid", "id:2", reserve("r", "src/a", later()))).await;
    assert_eq!(seen(&cid), 2);
    let other = realm.refused(&ann, with("cid", "id:3", reserve("r", "src/b", later()))).await;
    assert_eq!(other, Refusal::ReservationExists { key: "r".into() });
}

#[tokio::test]
async fn reservation_announced_too_late_is_never_active_but_can_be_renewed() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let past = stamp::now() - 1_000;
    let told = realm.ask(&ann, with("bob", "id:1", reserve("r", "src/a", past))).await;
    assert_eq!(told.reserved.unwrap().reservation.status, ReservationStatus::Expired);
    let mine = realm.ask(&bob, with("ann", "id:1", reserve("b", "src/a", later()))).await;
    assert!(mine.reserved.unwrap().conflicts.is_empty());
    let renewed = with("bob", "id:2", SideEffect::Renew(Renew { which: key("r"), expires_at: later() }));
    let renewed = realm.ask(&ann, renewed).await.reserved.unwrap();
    assert_eq!(renewed.reservation.status, ReservationStatus::Active);
    assert_eq!(renewed.conflicts.len(), 1);
}

#[tokio::test]
async fn only_the_owner_may_renew_and_release_a_reservation() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, with("bob", "id:1", reserve("r", "src/a", later()))).await;
    for side_effect in [
        SideEffect::Renew(Renew { which: key("r"), expires_at: later() }),
        SideEffect::Release(key("r")),
        SideEffect::Lapse(key("r")),
    ] {
        assert_eq!(realm.refused(&bob, with("ann", "id:9", side_effect)).await, Refusal::NoSuchReservation);
    }
    assert!(realm.mail("ann").is_empty(), "no message was delivered");
    assert_eq!(realm.see(|view| view.reservations_called(&bob, "r")).len(), 1, "bob knows whose it is");
    let over = realm.ask(&ann, with("bob", "id:2", SideEffect::Lapse(key("r")))).await.reserved.unwrap();
    assert_eq!(over.reservation.status, ReservationStatus::Expired);
    realm
        .ask(&ann, with("bob", "id:3", SideEffect::Renew(Renew { which: key("r"), expires_at: later() })))
        .await;
    let back = realm.ask(&ann, with("bob", "id:4", SideEffect::Release(key("r")))).await.reserved.unwrap();
    assert_eq!(back.reservation.status, ReservationStatus::Released);
    let again = with("bob", "id:5", SideEffect::Renew(Renew { which: key("r"), expires_at: later() }));
    assert_eq!(realm.refused(&ann, again).await, Refusal::NoSuchReservation, "a release is final");
}

#[tokio::test]
async fn message_is_refused_with_a_reservation_over_the_limit() {
    let realm = Realm::new();
    realm.rules(Rules { reservations_per_scope: 1, ..Rules::default() }).await;
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, with("bob", "id:1", reserve("a", "a", later()))).await;
    let refused = realm.refused(&ann, with("bob", "id:2", reserve("b", "b", later()))).await;
    assert!(matches!(refused, Refusal::TooManyReservations { .. }), "{refused:?}");
    assert_eq!(realm.mail("bob").len(), 1);
}

#[tokio::test]
async fn only_a_recipient_may_acknowledge() {
    let realm = Realm::new();
    let [ann, bob, cid] = realm.agents(["ann", "bob", "cid"]).await;
    let mail = SendSigned {
        message: SendMessage { ack_required: true, ..message("bob", "please confirm") },
        keys: vec![single_use_key("mail:m1")],
        side_effect: None,
    };
    let sent = realm.ask(&ann, mail).await.sent.message.id;
    let ack =
        || SideEffect::Acknowledge { label: "mail:m1".into(), message: None, response: Some("seen".into()) };
    assert_eq!(realm.refused(&cid, with("ann", "id:1", ack())).await, Refusal::NoSuchMessage);
    let acked = realm.ask(&bob, with("ann", "id:1", ack())).await.acked.expect("a delivery");
    assert_eq!((acked.state, acked.note.as_deref()), (DeliveryState::Acked, Some("seen")));
    let delivery = realm.see(|view| view.message(&ann, sent)).deliveries.remove(0);
    assert_eq!(delivery.state, DeliveryState::Acked);
}

#[tokio::test]
async fn thread_messages_of_two_agents_are_hidden_from_a_third() {
    let realm = Realm::new();
    let [ann, _, cid] = realm.agents(["ann", "bob", "cid"]).await;
    let among = |to: &[&str], text: &str, n: &str| SendSigned {
        message: SendMessage {
            within: Some(ConversationRef {
                conversation: conversation_id("auth-fix"),
                thread: None,
                reply_to: None,
                visibility: None,
                join: JoinMode::PartiesOnly { kind: "thread".into() },
            }),
            ..SendMessage::text(to.iter().map(|name| Address::Agent(id(name))).collect(), text)
        },
        ..signed("bob", "", &[n])
    };
    realm.ask(&ann, among(&["bob", "cid"], "for both", "id:1")).await;
    realm.ask(&ann, among(&["bob"], "for bob", "id:2")).await;
    let turns = TurnQuery { limit: 9, ..TurnQuery::default() };
    let read =
        |who: &Caller| realm.see(|view| view.turns(who, &conversation_id("auth-fix"), &turns)).items.len();
    assert_eq!((read(&ann), read(&cid)), (2, 1));
    // Other agents that use the same name still get their messages, which are not recorded in the conversation.
    let [eve, _] = realm.agents(["eve", "fay"]).await;
    let sent = realm.ask(&eve, among(&["fay"], "elsewhere", "id:1")).await.sent;
    assert!(sent.turn.is_none() && matches!(sent.unrecorded, Some(Refusal::NotAParticipant { .. })));
    assert_eq!(realm.mail("fay"), ["elsewhere"]);

    let end = SideEffect::Entitle {
        conversation: conversation_id("auth-fix"),
        subject: "Fix auth".into(),
        ended: Some(ConversationStatus::Completed),
    };
    realm.ask(&eve, with("fay", "id:2", end.clone())).await;
    let found = realm.see(|view| view.conversation(&ann, &conversation_id("auth-fix")));
    assert_eq!((found.status, found.subject), (ConversationStatus::Active, None), "eve may not end it");
    realm.ask(&ann, with("bob", "id:3", end)).await;
    let found = realm.see(|view| view.conversation(&ann, &conversation_id("auth-fix")));
    assert_eq!((found.status, found.subject.as_deref()), (ConversationStatus::Completed, Some("Fix auth")));
}

#[tokio::test]
async fn broadcast_is_limited_by_the_privacy_of_its_sender() {
    let realm = Realm::new();
    let hidden = Register { privacy: Some(Privacy::Contacts), ..Register::default() };
    let ann = realm.register("ann", hidden).await;
    realm.agent("bob").await;
    let broadcast = |n: &str| SendSigned {
        message: SendMessage { allow_no_recipients: true, ..SendMessage::text(vec![Address::Public], "all") },
        ..signed("bob", "", &[n])
    };
    assert_eq!(realm.refused(&ann, broadcast("id:1")).await, Refusal::PrivacyMismatch);
    assert!(realm.mail("bob").is_empty());
}

fn change(before: &Agent, keys: &str, single_use: &[&str]) -> ChangeKeys {
    ChangeKeys {
        agent: before.id.clone(),
        before: before.keys.clone(),
        keys: json(keys),
        proof_keys: single_use.iter().map(|label| single_use_key(label)).collect(),
        token: Some(vec![7; 32]),
        token_door: None,
        token_ends: None,
        revoke: false,
    }
}

#[tokio::test]
async fn key_change_revokes_all_tokens_and_a_proof_is_accepted_once() {
    let realm = Realm::new();
    let given = Register { keys: Some(json(r#"{"k":1}"#)), ..Register::default() };
    realm.register("ann", given).await;
    let token = |byte| CreateToken {
        hash: vec![byte; 32],
        role: TokenRole::Agent,
        name: "ann".into(),
        door: None,
        observe: false,
        expires_at: None,
    };
    realm.ask(&admin(), token(1)).await;
    let before = realm.see(|view| view.agent(&admin(), &id("ann")));
    let verb = change(&before, r#"{"k":2}"#, &["proof:1"]);
    assert!(matches!(
        realm.refused(&crate::harness::member("ann"), verb.clone()).await,
        Refusal::NotAllowed { .. }
    ));
    realm.ask(&admin(), verb.clone()).await;
    let opens = |byte: u8| realm.see(|view| view.token_by_hash(&[byte; 32])).is_some();
    assert_eq!((opens(1), opens(7)), (false, true));
    assert!(
        matches!(realm.refused(&admin(), verb).await, Refusal::WrongState { .. }),
        "the keys have changed since"
    );
    let now = realm.see(|view| view.agent(&admin(), &id("ann")));
    let replay = ChangeKeys { token: None, ..change(&now, r#"{"k":3}"#, &["proof:1"]) };
    assert_eq!(realm.refused(&admin(), replay).await, Refusal::KeyReused { key: "proof:1".into() });
}

#[tokio::test]
async fn revoked_agent_is_gone_and_its_name_stays_taken() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, signed("bob", "before", &["id:1"])).await;
    let before = realm.see(|view| view.agent(&admin(), &id("ann")));
    let verb = ChangeKeys { token: None, revoke: true, ..change(&before, "{}", &[]) };
    assert_eq!(realm.ask(&admin(), verb).await.state, Agent::REVOKED);
    assert!(matches!(
        realm.refused(&ann, signed("bob", "after", &["id:2"])).await,
        Refusal::NoSuchAgent { .. }
    ));
    assert!(matches!(realm.refused(&bob, message("ann", "hello?")).await, Refusal::NoSuchAgent { .. }));
    assert_eq!(realm.mail("bob"), ["before"]);
    assert!(matches!(realm.refused(&ann, named("ann")).await, Refusal::AgentExists { .. }));
    assert!(matches!(realm.refused(&member("ANN"), named("ANN")).await, Refusal::LooksTaken { .. }));
    assert_eq!(realm.see(|view| view.entry(&bob, &id("ann"))).state, Agent::REVOKED);
}

#[tokio::test]
async fn discarded_message_is_removed_only_from_the_inbox() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let sent = realm.send(&ann, "bob", "discard me").await.message.id;
    let discard = Discard { agent: id("bob"), message: sent };
    realm.refused(&ann, discard.clone()).await;
    realm.ask(&bob, discard).await;
    assert!(realm.mail("bob").is_empty());
    assert_eq!(realm.see(|view| view.message(&ann, sent)).message.body.as_str(), "discard me");
}

#[tokio::test]
async fn exchange_lists_both_directions_between_two_agents() {
    let realm = Realm::new();
    let [ann, bob, cid] = realm.agents(["ann", "bob", "cid"]).await;
    realm.send(&ann, "bob", "one").await;
    realm.send(&bob, "ann", "two").await;
    realm.send(&cid, "ann", "other").await;
    realm.send(&ann, "bob", "three").await;
    let read = |who: &Caller, other: &str, after, limit| {
        let page = realm.see(|view| view.exchange(who, &who.agent, &id(other), after, limit));
        let said: Vec<String> = page.items.iter().map(|l| l.message.body.as_str().to_owned()).collect();
        (said, page.next)
    };
    let (first, next) = read(&ann, "bob", 0, 2);
    assert_eq!(first, ["one", "two"]);
    assert_eq!(read(&ann, "bob", next.unwrap(), 2), (vec!["three".to_owned()], None));
    assert!(read(&cid, "bob", 0, 9).0.is_empty());
}
