//! Letters under seal: each is taken once, together with what it does or not at all; keys change at once and for all.

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

use crate::harness::{Realm, admin, id, json, later, letter, member, named, soon, talk};

fn key_of(label: &str) -> SingleUseKey {
    SingleUseKey { label: label.into(), until: None, digest: None }
}

fn sealed(to: &str, text: &str, labels: &[&str]) -> SendSigned {
    SendSigned {
        message: letter(to, text),
        keys: labels.iter().map(|label| key_of(label)).collect(),
        side_effect: None,
    }
}

fn with(to: &str, label: &str, deed: SideEffect) -> SendSigned {
    SendSigned { side_effect: Some(deed), ..sealed(to, "…", &[label]) }
}

fn lease(key: &str, path: &str, expires_at: Millis) -> SideEffect {
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
async fn a_key_is_accepted_once_even_after_a_restart() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, sealed("bob", "one", &["id:1", "nonce:1"])).await;
    let refused = realm.refused(&ann, sealed("bob", "two", &["id:2", "nonce:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "nonce:1".into() });
    realm.ask(&bob, sealed("ann", "another sender may use it", &["id:1"])).await;
    let realm = realm.reopened();
    let refused = realm.refused(&ann, sealed("bob", "one", &["id:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "id:1".into() });
    // What was refused burnt nothing.
    realm.ask(&ann, sealed("bob", "two", &["id:2", "nonce:2"])).await;
    assert_eq!(realm.mail("bob"), ["one", "two"]);
}

/// More keys than wait for the index: the first are in it when the last come.
#[tokio::test]
async fn a_key_is_accepted_once_in_and_outside_of_the_index() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let names: Vec<String> = (0..10_000).map(|n| format!("id:{n}")).collect();
    for some in names.chunks(500) {
        let some: Vec<&str> = some.iter().map(String::as_str).collect();
        realm.ask(&ann, sealed("bob", some[0], &some)).await;
    }
    let check = async |realm: &Realm| {
        for name in ["id:0", "id:1807", "id:1808", "id:8191", "id:8192", "id:9999"] {
            let refused = realm.refused(&ann, sealed("bob", "again", &[name])).await;
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

/// Row numbers are not used again: a key that comes after the latest were deleted is not taken for one in the index.
#[tokio::test]
async fn a_key_is_found_that_came_after_the_latest_were_deleted() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let until = soon();
    let brief =
        (0..4_096).map(|n| SingleUseKey { label: format!("nonce:{n}"), until: Some(until), digest: None });
    realm.ask(&ann, SendSigned { keys: brief.collect(), ..sealed("bob", "many", &[]) }).await;
    realm.passed(until).await;
    while realm.ask(&Caller::office(), Sweep {}).await.more {}
    let realm = realm.reopened();
    realm.ask(&ann, sealed("bob", "one", &["id:1"])).await;
    let realm = realm.reopened();
    let refused = realm.refused(&ann, sealed("bob", "two", &["id:1"])).await;
    assert_eq!(refused, Refusal::KeyReused { key: "id:1".into() });
}

#[tokio::test]
async fn of_many_at_once_one_is_taken() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let tries = (0..32).map(|n| {
        let (engine, ann) = (realm.engine.clone(), ann.clone());
        tokio::spawn(async move { engine.submit(&ann, sealed("bob", &n.to_string(), &["nonce:x"])).await })
    });
    let mut taken = 0;
    for one in tries.collect::<Vec<_>>() {
        taken += usize::from(one.await.unwrap().is_ok());
    }
    assert_eq!((taken, realm.mail("bob").len()), (1, 1));
}

#[tokio::test]
async fn a_letter_that_is_refused_burns_no_mark_and_does_nothing() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let shy = Register { contact_policy: Some(ContactPolicy::Contacts), ..Register::default() };
    let bob = realm.register("bob", shy).await;
    let verb = with("bob", "id:1", lease("r", "src/a", later()));
    assert!(matches!(realm.refused(&ann, verb.clone()).await, Refusal::ConsentPending { .. }));
    let all = ReservationQuery { ended: true, limit: 9, ..ReservationQuery::default() };
    assert!(realm.see(|view| view.reservations(&admin(), &all)).items.is_empty());
    realm
        .ask(&bob, crate::harness::answer(&id("ann"), posthaste_engine::nouns::ContactState::Accepted))
        .await;
    assert!(realm.ask(&ann, verb).await.reserved.is_some(), "the same letter goes once it may");
}

#[tokio::test]
async fn a_mark_with_a_fingerprint_may_come_again_for_the_same_thing() {
    let realm = Realm::new();
    let [ann, ..] = realm.agents(["ann", "bob", "cid"]).await;
    let post = |to: &str, n: u8, digest: u8| SendSigned {
        keys: vec![SingleUseKey { label: "mail:1".into(), until: None, digest: Some(vec![digest]) }],
        ..sealed(to, &n.to_string(), &[])
    };
    realm.ask(&ann, post("bob", 1, 7)).await;
    realm.ask(&ann, post("cid", 2, 7)).await;
    let refused = realm.refused(&ann, post("cid", 3, 8)).await;
    assert_eq!(refused, Refusal::KeyReused { key: "mail:1".into() });
}

#[tokio::test]
async fn expired_keys_are_deleted_by_a_sweep() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let until = soon();
    let brief = SendSigned {
        keys: vec![SingleUseKey { label: "nonce:1".into(), until: Some(until), digest: None }],
        ..sealed("bob", "one", &[])
    };
    realm.ask(&ann, brief.clone()).await;
    realm.refused(&ann, brief.clone()).await;
    realm.passed(until).await;
    assert_eq!(realm.ask(&Caller::office(), Sweep {}).await.keys, 1);
    assert_eq!(realm.ask(&Caller::office(), Sweep {}).await.keys, 0);
    realm.ask(&ann, brief).await;
}

#[tokio::test]
async fn a_reservation_is_seen_by_those_who_were_told() {
    let realm = Realm::new();
    let [ann, bob, cid] = realm.agents(["ann", "bob", "cid"]).await;
    realm.befriend(&ann, &cid).await;
    realm.ask(&ann, with("bob", "id:1", lease("r", "src/a", later()))).await;
    let seen = |who: &Caller| {
        let all = ReservationQuery { limit: 9, ..ReservationQuery::default() };
        realm.see(|view| view.reservations(who, &all)).items.len()
    };
    assert_eq!((seen(&ann), seen(&bob), seen(&cid)), (1, 1, 0), "a contact who was not told sees nothing");
    let overlap = realm.ask(&cid, with("bob", "id:1", lease("c", "src", later()))).await;
    assert!(overlap.reserved.unwrap().conflicts.is_empty());
    let overlap = realm.ask(&bob, with("ann", "id:1", lease("b", "src/**", later()))).await;
    let held = overlap.reserved.unwrap();
    let conflict = held.conflicts.iter().find(|conflict| conflict.key == "r").expect("ann's");
    assert_eq!((conflict.held_path.as_str(), conflict.reason.as_deref()), ("src/a", Some("why")));
    // Telling somebody else shows it to them as well, and takes nothing twice.
    realm.ask(&ann, with("cid", "id:2", lease("r", "src/a", later()))).await;
    assert_eq!(seen(&cid), 2);
    let other = realm.refused(&ann, with("cid", "id:3", lease("r", "src/b", later()))).await;
    assert_eq!(other, Refusal::ReservationExists { key: "r".into() });
}

#[tokio::test]
async fn a_lease_told_of_too_late_is_never_in_force_but_can_be_prolonged() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let past = stamp::now() - 1_000;
    let told = realm.ask(&ann, with("bob", "id:1", lease("r", "src/a", past))).await;
    assert_eq!(told.reserved.unwrap().reservation.status, ReservationStatus::Expired);
    let mine = realm.ask(&bob, with("ann", "id:1", lease("b", "src/a", later()))).await;
    assert!(mine.reserved.unwrap().conflicts.is_empty());
    let renewed = with("bob", "id:2", SideEffect::Renew(Renew { which: key("r"), expires_at: later() }));
    let renewed = realm.ask(&ann, renewed).await.reserved.unwrap();
    assert_eq!(renewed.reservation.status, ReservationStatus::Active);
    assert_eq!(renewed.conflicts.len(), 1);
}

#[tokio::test]
async fn a_lease_is_its_owners_to_prolong_and_to_give_back() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, with("bob", "id:1", lease("r", "src/a", later()))).await;
    for deed in [
        SideEffect::Renew(Renew { which: key("r"), expires_at: later() }),
        SideEffect::Release(key("r")),
        SideEffect::Lapse(key("r")),
    ] {
        assert_eq!(realm.refused(&bob, with("ann", "id:9", deed)).await, Refusal::NoSuchReservation);
    }
    assert!(realm.mail("ann").is_empty(), "nothing of it was delivered");
    assert_eq!(realm.see(|view| view.reservations_called(&bob, "r")).len(), 1, "bob knows whose it is");
    let over = realm.ask(&ann, with("bob", "id:2", SideEffect::Lapse(key("r")))).await.reserved.unwrap();
    assert_eq!(over.reservation.status, ReservationStatus::Expired);
    realm
        .ask(&ann, with("bob", "id:3", SideEffect::Renew(Renew { which: key("r"), expires_at: later() })))
        .await;
    let back = realm.ask(&ann, with("bob", "id:4", SideEffect::Release(key("r")))).await.reserved.unwrap();
    assert_eq!(back.reservation.status, ReservationStatus::Released);
    let again = with("bob", "id:5", SideEffect::Renew(Renew { which: key("r"), expires_at: later() }));
    assert_eq!(realm.refused(&ann, again).await, Refusal::NoSuchReservation, "released is for good");
}

#[tokio::test]
async fn more_leases_than_allowed_are_refused_with_their_letters() {
    let realm = Realm::new();
    realm.rules(Rules { reservations_per_scope: 1, ..Rules::default() }).await;
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, with("bob", "id:1", lease("a", "a", later()))).await;
    let refused = realm.refused(&ann, with("bob", "id:2", lease("b", "b", later()))).await;
    assert!(matches!(refused, Refusal::TooMany { .. }), "{refused:?}");
    assert_eq!(realm.mail("bob").len(), 1);
}

#[tokio::test]
async fn only_a_recipient_acknowledges() {
    let realm = Realm::new();
    let [ann, bob, cid] = realm.agents(["ann", "bob", "cid"]).await;
    let mail = SendSigned {
        message: SendMessage { ack_required: true, ..letter("bob", "please confirm") },
        keys: vec![key_of("mail:m1")],
        side_effect: None,
    };
    let sent = realm.ask(&ann, mail).await.sent.message.id;
    let ack =
        || SideEffect::Acknowledge { label: "mail:m1".into(), message: None, response: Some("seen".into()) };
    assert_eq!(realm.refused(&cid, with("ann", "id:1", ack())).await, Refusal::NoSuchMessage);
    let acked = realm.ask(&bob, with("ann", "id:1", ack())).await.acked.expect("a copy");
    assert_eq!((acked.state, acked.note.as_deref()), (DeliveryState::Acked, Some("seen")));
    let copy = realm.see(|view| view.message(&ann, sent)).deliveries.remove(0);
    assert_eq!(copy.state, DeliveryState::Acked);
}

#[tokio::test]
async fn what_two_say_in_a_thread_is_not_read_by_a_third() {
    let realm = Realm::new();
    let [ann, _, cid] = realm.agents(["ann", "bob", "cid"]).await;
    let among = |to: &[&str], text: &str, n: &str| SendSigned {
        message: SendMessage {
            within: Some(ConversationRef {
                conversation: talk("auth-fix"),
                thread: None,
                reply_to: None,
                visibility: None,
                join: JoinMode::PartiesOnly { kind: "thread".into() },
            }),
            ..SendMessage::text(to.iter().map(|name| Address::Agent(id(name))).collect(), text)
        },
        ..sealed("bob", "", &[n])
    };
    realm.ask(&ann, among(&["bob", "cid"], "for both", "id:1")).await;
    realm.ask(&ann, among(&["bob"], "for bob", "id:2")).await;
    let turns = TurnQuery { limit: 9, ..TurnQuery::default() };
    let read = |who: &Caller| realm.see(|view| view.turns(who, &talk("auth-fix"), &turns)).items.len();
    assert_eq!((read(&ann), read(&cid)), (2, 1));
    // Strangers who happen to use the same name still get their letters; their words are recorded nowhere else.
    let [eve, _] = realm.agents(["eve", "fay"]).await;
    let sent = realm.ask(&eve, among(&["fay"], "elsewhere", "id:1")).await.sent;
    assert!(sent.turn.is_none() && matches!(sent.unrecorded, Some(Refusal::NotAParticipant { .. })));
    assert_eq!(realm.mail("fay"), ["elsewhere"]);

    let end = SideEffect::Entitle {
        conversation: talk("auth-fix"),
        subject: "Fix auth".into(),
        ended: Some(ConversationStatus::Completed),
    };
    realm.ask(&eve, with("fay", "id:2", end.clone())).await;
    let found = realm.see(|view| view.conversation(&ann, &talk("auth-fix")));
    assert_eq!((found.status, found.subject), (ConversationStatus::Active, None), "not eve's to end");
    realm.ask(&ann, with("bob", "id:3", end)).await;
    let found = realm.see(|view| view.conversation(&ann, &talk("auth-fix")));
    assert_eq!((found.status, found.subject.as_deref()), (ConversationStatus::Completed, Some("Fix auth")));
}

#[tokio::test]
async fn a_broadcast_goes_as_far_as_its_sender_shows_itself() {
    let realm = Realm::new();
    let hidden = Register { privacy: Some(Privacy::Contacts), ..Register::default() };
    let ann = realm.register("ann", hidden).await;
    realm.agent("bob").await;
    let shout = |n: &str| SendSigned {
        message: SendMessage { to_nobody: true, ..SendMessage::text(vec![Address::Public], "all") },
        ..sealed("bob", "", &[n])
    };
    assert_eq!(realm.refused(&ann, shout("id:1")).await, Refusal::PrivacyMismatch);
    assert!(realm.mail("bob").is_empty());
}

fn change(before: &Agent, keys: &str, labels: &[&str]) -> ChangeKeys {
    ChangeKeys {
        agent: before.id.clone(),
        before: before.keys.clone(),
        keys: json(keys),
        proof_keys: labels.iter().map(|label| key_of(label)).collect(),
        token: Some(vec![7; 32]),
        token_door: None,
        token_ends: None,
        revoke: false,
    }
}

#[tokio::test]
async fn new_keys_end_every_token_and_a_proof_counts_once() {
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
        "somebody was quicker"
    );
    let now = realm.see(|view| view.agent(&admin(), &id("ann")));
    let replay = ChangeKeys { token: None, ..change(&now, r#"{"k":3}"#, &["proof:1"]) };
    assert_eq!(realm.refused(&admin(), replay).await, Refusal::KeyReused { key: "proof:1".into() });
}

#[tokio::test]
async fn whoever_is_revoked_is_gone_and_nobody_takes_the_name() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    realm.ask(&ann, sealed("bob", "before", &["id:1"])).await;
    let before = realm.see(|view| view.agent(&admin(), &id("ann")));
    let verb = ChangeKeys { token: None, revoke: true, ..change(&before, "{}", &[]) };
    assert_eq!(realm.ask(&admin(), verb).await.state, Agent::REVOKED);
    assert!(matches!(
        realm.refused(&ann, sealed("bob", "after", &["id:2"])).await,
        Refusal::NoSuchAgent { .. }
    ));
    assert!(matches!(realm.refused(&bob, letter("ann", "hello?")).await, Refusal::NoSuchAgent { .. }));
    assert_eq!(realm.mail("bob"), ["before"]);
    assert!(matches!(realm.refused(&ann, named("ann")).await, Refusal::AgentExists { .. }));
    assert!(matches!(realm.refused(&member("ANN"), named("ANN")).await, Refusal::LooksTaken { .. }));
    assert_eq!(realm.see(|view| view.entry(&bob, &id("ann"))).state, Agent::REVOKED);
}

#[tokio::test]
async fn what_is_thrown_away_is_gone_from_the_inbox_alone() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let sent = realm.send(&ann, "bob", "away with it").await.message.id;
    let discard = Discard { agent: id("bob"), message: sent };
    realm.refused(&ann, discard.clone()).await;
    realm.ask(&bob, discard).await;
    assert!(realm.mail("bob").is_empty());
    assert_eq!(realm.see(|view| view.message(&ann, sent)).message.body.as_str(), "away with it");
}

#[tokio::test]
async fn an_exchange_is_both_ways_and_between_two() {
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
