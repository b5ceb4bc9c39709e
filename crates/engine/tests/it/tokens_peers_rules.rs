//! Administration: tokens, peers, rules and announcements.

use posthaste_engine::Refusal;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{PeerKind, Token, TokenRole};
use posthaste_engine::verbs::office::{Announce, SetRules, Sweep};
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken, RevokeToken};

use crate::harness::{Realm, admin, id, json, later, realm, soon};

const ADMINS: Refusal = Refusal::NotAllowed { need: "to run the office" };

fn token(fill: u8) -> CreateToken {
    CreateToken {
        hash: vec![fill; 32],
        role: TokenRole::Agent,
        name: "anna".into(),
        door: None,
        observe: false,
        expires_at: None,
    }
}

fn peer(name: &str) -> PutPeer {
    PutPeer {
        name: realm(name),
        kind: PeerKind::Office,
        url: Some("https://north".into()),
        token_ref: Some("NORTH_TOKEN".into()),
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: Some(5),
    }
}

#[tokio::test]
async fn token_is_valid_until_revoked_or_expired() {
    let realm = Realm::new();
    let made = realm.ask(&admin(), token(1)).await;
    let found = |fill: u8| realm.see(|view| view.token_by_hash(&[fill; 32]));
    assert_eq!(found(1), Some(made.clone()));
    assert_eq!(found(2), None);
    let revoked = realm.ask(&admin(), RevokeToken { id: made.id.clone() }).await;
    assert_eq!(found(1), None);
    assert_eq!(
        realm.ask(&admin(), RevokeToken { id: made.id }).await,
        revoked,
        "a second revocation has no effect"
    );
    let end = soon();
    realm.ask(&admin(), CreateToken { expires_at: Some(end), ..token(3) }).await;
    assert!(found(3).is_some());
    realm.passed(end).await;
    assert_eq!(found(3), None);
    assert_eq!(realm.see(|view| view.tokens(&admin())).len(), 2);
    realm.ask(&admin(), CreateToken { expires_at: Some(later()), ..token(4) }).await;
}

#[tokio::test]
async fn renewed_token_keeps_role_door_right_and_end() {
    let realm = Realm::new();
    let (end, far) = (later(), later() + 1_000_000);
    let renew =
        |old: u8, new: u8| RenewToken { old: vec![old; 32], hash: vec![new; 32], expires_at: Some(far) };
    let found = |fill: u8| realm.see(|view| view.token_by_hash(&[fill; 32]));
    let user = CreateToken { role: TokenRole::User, observe: true, expires_at: Some(end), ..token(1) };
    let old = realm.ask(&admin(), user).await;
    let new = realm.ask(&admin(), renew(1, 2)).await;
    assert_eq!(new, Token { id: new.id.clone(), created_at: new.created_at, ..old }, "no right is added");
    assert_eq!((found(1), found(2)), (None, Some(new)), "the old one is revoked");
    assert_eq!(realm.refused(&admin(), renew(1, 3)).await, Refusal::NoSuchToken, "exchanged once");

    // Issued by the calling door, which decides the expiry.
    let door = admin().via;
    realm.ask(&admin(), CreateToken { door: Some(door), expires_at: Some(end), ..token(4) }).await;
    assert_eq!(realm.ask(&admin(), renew(4, 5)).await.expires_at, Some(far));
    realm
        .ask(&admin(), CreateToken { door: Some("elsewhere".into()), expires_at: Some(end), ..token(6) })
        .await;
    let kept = realm.ask(&admin(), renew(6, 7)).await;
    assert_eq!((kept.expires_at, kept.door.as_deref()), (Some(end), Some("elsewhere")));

    let end = soon();
    realm.ask(&admin(), CreateToken { expires_at: Some(end), ..token(8) }).await;
    realm.passed(end).await;
    assert_eq!(
        realm.refused(&admin(), renew(8, 9)).await,
        Refusal::NoSuchToken,
        "an expired token cannot be renewed"
    );
    realm.ask(&admin(), CreateToken { role: TokenRole::Admin, ..token(10) }).await;
    assert!(matches!(realm.refused(&admin(), renew(10, 11)).await, Refusal::BadValue { field: "token", .. }));
}

#[tokio::test]
async fn invalid_tokens_are_refused() {
    let realm = Realm::new();
    realm.ask(&admin(), token(1)).await;
    for bad in [CreateToken { hash: vec![1; 31], ..token(1) }, token(1)] {
        assert!(matches!(realm.refused(&admin(), bad).await, Refusal::BadValue { field: "hash", .. }));
    }
    let nameless = CreateToken { name: String::new(), ..token(2) };
    assert!(matches!(realm.refused(&admin(), nameless).await, Refusal::BadId(_)));
    let past = CreateToken { expires_at: Some(1), ..token(2) };
    assert_eq!(realm.refused(&admin(), past).await, Refusal::AlreadyExpired { at: 1 });
    assert_eq!(realm.refused(&admin(), RevokeToken { id: "none".into() }).await, Refusal::NoSuchToken);
}

#[tokio::test]
async fn administration_needs_admin_rights() {
    let realm_ = Realm::new();
    let anna = realm_.agent("anna").await;
    assert_eq!(realm_.refused(&anna, token(1)).await, ADMINS);
    assert_eq!(realm_.refused(&anna, RevokeToken { id: "x".into() }).await, ADMINS);
    let renew = RenewToken { old: vec![1; 32], hash: vec![2; 32], expires_at: None };
    assert_eq!(realm_.refused(&anna, renew).await, ADMINS);
    assert_eq!(realm_.refused(&anna, peer("north")).await, ADMINS);
    assert_eq!(realm_.refused(&anna, RemovePeer { name: realm("north") }).await, ADMINS);
    assert_eq!(realm_.refused(&anna, SetRules { rules: Rules::default() }).await, ADMINS);
    assert_eq!(realm_.refused(&anna, Sweep {}).await, ADMINS);
    assert_eq!(realm_.hidden(|view| view.tokens(&anna)), ADMINS);
}

#[tokio::test]
async fn peers_are_stored_updated_and_removed() {
    let realm_ = Realm::new();
    let anna = realm_.agent("anna").await;
    let made = realm_.ask(&admin(), peer("north")).await;
    assert_eq!(made.token_ref.as_deref(), Some("NORTH_TOKEN"));
    let changed = PutPeer { reachable: false, seen_at: None, ..peer("north") };
    let changed = realm_.ask(&admin(), changed).await;
    assert_eq!((changed.reachable, changed.seen_at, changed.created_at), (false, Some(5), made.created_at));
    let seen = realm_.see(|view| view.peer(&anna, &realm("north"))).expect("a peer");
    assert_eq!((seen.token_ref, seen.url), (None, made.url), "the token reference is hidden from members");
    assert!(realm_.see(|view| view.peers(&anna)).iter().all(|peer| peer.token_ref.is_none()));
    assert_eq!(realm_.see(|view| view.peers(&admin())), [changed]);
    let own = realm_.refused(&admin(), peer("main")).await;
    assert!(matches!(own, Refusal::BadValue { field: "name", .. }));
    realm_.ask(&admin(), RemovePeer { name: realm("north") }).await;
    let gone = Refusal::NoSuchPeer { peer: "north".into() };
    assert_eq!(realm_.refused(&admin(), RemovePeer { name: realm("north") }).await, gone);
}

#[tokio::test]
async fn rules_are_stored_and_effective_at_once() {
    let realm = Realm::new();
    let rules = Rules { thread_depth: 3, ..Rules::default() };
    realm.rules(rules.clone()).await;
    let realm = realm.reopened();
    assert_eq!(realm.see(|view| view.rules()), rules);
}

#[tokio::test]
async fn announcement_reaches_only_its_addressees() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let tell = |to| Announce { word: "connected".into(), data: json("{}"), to };
    realm.ask(&anna, tell(None)).await;
    realm.ask(&anna, tell(Some(vec![id("anna")]))).await;
    let heard = |who| realm.replayed(who).into_iter().filter(|word| *word == "announced").count();
    assert_eq!((heard(&anna), heard(&bert)), (2, 1));
    let mute = Announce { word: String::new(), ..tell(None) };
    assert!(matches!(realm.refused(&anna, mute).await, Refusal::BadValue { field: "word", .. }));
}
