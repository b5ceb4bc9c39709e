//! Reservations: overlaps are reported but never refused; only the holder may renew or release a reservation.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{Audience, Caller, Reservation, ReservationStatus};
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::reservations::ReserveEach;
use posthaste_engine::verbs::reservations::{Release, Renew, Reserve, Which};
use posthaste_engine::views::ReservationQuery;
use posthaste_engine::{Filter, Refusal, Start};

use crate::harness::{Realm, admin, id, later, soon};

fn reserve(path: &str) -> Reserve {
    Reserve {
        key: None,
        scope: "repo".into(),
        paths: vec![path.into()],
        exclusive: true,
        reason: None,
        issued_at: None,
        expires_at: later(),
        audience: Audience::Observers,
        meta: None,
    }
}

fn keyed(key: &str, path: &str) -> Reserve {
    Reserve { key: Some(key.into()), ..reserve(path) }
}

fn release(key: &str) -> Release {
    Release { which: vec![Which::Key(key.into())], owner: None }
}

fn renew(key: &str) -> Renew {
    Renew { which: Which::Key(key.into()), expires_at: later() }
}

fn listed(realm: &Realm, caller: &Caller, ended: bool) -> Vec<Reservation> {
    let query = ReservationQuery { ended, limit: 99, ..ReservationQuery::default() };
    realm.see(|view| view.reservations(caller, &query)).items
}

#[tokio::test]
async fn overlaps_are_symmetric() {
    let table = [
        ("src/**", "src/app.py", true),
        ("src", "src/app.py", true),
        ("src/*.py", "src/a*", true),
        ("./src/a.py", "src/a.py", true),
        ("src/a.py", "src/b.py", false),
        ("src", "srcs/a", false),
        ("SRC/App.py", "src/app.py", false),
        ("**/test.rs", "deep/down/test.rs", true),
        ("{docs,src}/x", "src/x", true),
        ("tool://x", "tool://x", true),
        ("tool://x", "tool://y", false),
        ("**", "anything", true),
    ];
    for (one, other, expected) in table {
        for (held, asked) in [(one, other), (other, one)] {
            let realm = Realm::new();
            let [anna, bert] = realm.agents(["anna", "bert"]).await;
            realm.ask(&anna, reserve(held)).await;
            let would = realm.see(|view| view.would_conflict(&bert, "repo", &[asked.into()], true));
            assert_eq!(!would.is_empty(), expected, "{held} held, {asked} asked");
            let got = realm.ask(&bert, reserve(asked)).await;
            assert_eq!(got.conflicts, would, "the prediction matches the report");
        }
    }
}

#[tokio::test]
async fn only_exclusive_reservations_conflict() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let shared = || Reserve { exclusive: false, ..reserve("a") };
    realm.ask(&anna, shared()).await;
    assert!(realm.ask(&bert, shared()).await.conflicts.is_empty());
    let got = realm.ask(&carl, reserve("a")).await;
    assert_eq!(got.conflicts.len(), 2);
    assert_eq!(got.reservation.status, ReservationStatus::Active, "advisory: granted anyway");
    assert_eq!(realm.ask(&bert, shared()).await.conflicts.len(), 1);
    assert_eq!(realm.ask(&carl, reserve("a/b")).await.conflicts.len(), 3, "own reservations do not conflict");
    let elsewhere = Reserve { scope: "other".into(), ..reserve("a") };
    assert!(realm.ask(&anna, elsewhere).await.conflicts.is_empty());
}

#[tokio::test]
async fn invalid_reservations_are_refused() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    for path in ["/etc", "../up", "a/../../b", "", "C:\\x", "~/x", "file:///x"] {
        let refused = realm.refused(&anna, reserve(path)).await;
        assert!(matches!(refused, Refusal::BadPath { .. }), "{path}: {refused:?}");
    }
    let none = Reserve { paths: Vec::new(), ..reserve("a") };
    assert!(matches!(realm.refused(&anna, none).await, Refusal::BadValue { field: "paths", .. }));
    let nowhere = Reserve { scope: String::new(), ..reserve("a") };
    assert!(matches!(realm.refused(&anna, nowhere).await, Refusal::BadValue { field: "scope", .. }));
    let past = Reserve { expires_at: 1, ..reserve("a") };
    assert_eq!(realm.refused(&anna, past).await, Refusal::AlreadyExpired { at: 1 });
    realm.rules(Rules { paths_per_reservation: 1, ..Rules::default() }).await;
    let many = Reserve { paths: vec!["a".into(), "b".into()], ..reserve("a") };
    assert_eq!(realm.refused(&anna, many).await, Refusal::TooMany { what: "paths", limit: 1 });
}

#[tokio::test]
async fn reservation_with_the_same_key_is_made_once() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let first = realm.ask(&anna, keyed("k", "a")).await.reservation;
    assert_eq!(realm.ask(&anna, keyed("k", "a")).await.reservation, first);
    let exists = Refusal::ReservationExists { key: "k".into() };
    assert_eq!(realm.refused(&anna, keyed("k", "b")).await, exists);
    assert_ne!(realm.ask(&bert, keyed("k", "b")).await.reservation.seq, first.seq, "keys are per holder");
    realm.ask(&anna, release("k")).await;
    assert_eq!(realm.refused(&anna, keyed("k", "b")).await, exists, "also after release");
}

#[tokio::test]
async fn only_holder_or_admin_may_release_a_reservation() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let held = realm.ask(&anna, keyed("k", "a")).await.reservation;
    let by_number = Release { which: vec![Which::Number(held.seq)], owner: None };
    assert_eq!(realm.refused(&bert, by_number.clone()).await, Refusal::NoSuchReservation);
    assert_eq!(realm.refused(&bert, release("k")).await, Refusal::NoSuchReservation);
    assert_eq!(realm.refused(&bert, renew("k")).await, Refusal::NoSuchReservation);
    let of_anna = Release { owner: Some(id("anna")), ..by_number };
    assert_eq!(
        realm.refused(&bert, of_anna.clone()).await,
        Refusal::NotAllowed { need: "to run the office" }
    );
    let freed = realm.ask(&admin(), of_anna).await;
    assert_eq!(freed[0].status, ReservationStatus::Released);
    assert_eq!(
        realm.refused(&anna, renew("k")).await,
        Refusal::NoSuchReservation,
        "a released reservation cannot be renewed"
    );
    assert!(realm.ask(&bert, reserve("a")).await.conflicts.is_empty());
}

#[tokio::test]
async fn reservation_named_twice_is_released_once_and_no_names_mean_all() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let held = realm.ask(&anna, keyed("k", "a")).await.reservation;
    let twice = Release { which: vec![Which::Key("k".into()), Which::Number(held.seq)], owner: None };
    assert_eq!(realm.ask(&anna, twice).await.len(), 1);
    let told = realm.replayed(&bert).into_iter().filter(|word| *word == "reservation.released").count();
    assert_eq!(told, 1);
    realm.ask(&anna, reserve("b")).await;
    realm.ask(&anna, reserve("c")).await;
    realm.ask(&bert, reserve("d")).await;
    let all = Release { which: Vec::new(), owner: None };
    assert_eq!(realm.ask(&anna, all.clone()).await.len(), 2);
    assert!(realm.ask(&anna, all).await.is_empty());
    assert_eq!(listed(&realm, &anna, false).len(), 1);
}

#[tokio::test]
async fn expired_reservation_is_not_active_and_can_be_renewed() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let end = soon();
    realm.ask(&anna, Reserve { expires_at: end, ..keyed("k", "a") }).await;
    realm.passed(end).await;
    assert!(listed(&realm, &bert, false).is_empty());
    assert_eq!(listed(&realm, &bert, true)[0].status, ReservationStatus::Expired);
    assert!(realm.ask(&bert, reserve("a")).await.conflicts.is_empty());
    let past = Renew { expires_at: 1, ..renew("k") };
    assert_eq!(realm.refused(&anna, past).await, Refusal::AlreadyExpired { at: 1 });
    let renewed = realm.ask(&anna, renew("k")).await;
    assert_eq!((renewed.reservation.status, renewed.conflicts.len()), (ReservationStatus::Active, 1));
    assert_eq!(realm.see(|view| view.would_conflict(&bert, "repo", &["a".into()], true)).len(), 1);
}

#[tokio::test]
async fn reservation_limit_also_applies_to_renewals() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.rules(Rules { reservations_per_scope: 1, ..Rules::default() }).await;
    let end = soon();
    realm.ask(&anna, Reserve { expires_at: end, ..keyed("old", "a") }).await;
    let too_many = Refusal::TooManyReservations { what: "reservations in this scope", limit: 1 };
    assert_eq!(realm.refused(&anna, reserve("b")).await, too_many);
    realm.ask(&anna, Reserve { scope: "other".into(), ..reserve("b") }).await;
    realm.passed(end).await;
    realm.ask(&anna, keyed("new", "b")).await;
    assert_eq!(realm.refused(&anna, renew("old")).await, too_many);
    realm.ask(&anna, renew("new")).await;
}

#[tokio::test]
async fn reservation_for_contacts_is_visible_only_to_contacts() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.befriend(&anna, &bert).await;
    let mut live = realm.engine.follow(&carl, Filter::everything(), Start::Now, 64).await.expect("a feed");
    realm.ask(&anna, Reserve { audience: Audience::Parties, ..reserve("a") }).await;
    assert_eq!(listed(&realm, &bert, false).len(), 1);
    assert!(listed(&realm, &carl, false).is_empty());
    assert_eq!(realm.see(|view| view.would_conflict(&bert, "repo", &["a".into()], true)).len(), 1);
    assert!(realm.see(|view| view.would_conflict(&carl, "repo", &["a".into()], true)).is_empty());
    assert!(realm.ask(&carl, reserve("a")).await.conflicts.is_empty());
    let words: Vec<_> = realm.drain(&mut live, &carl).await.iter().map(|event| event.fact.kind()).collect();
    assert_eq!(words, ["reservation.made"], "its own");
    assert!(realm.replayed(&bert).contains(&"reservation.made"));
}

#[tokio::test]
async fn holder_is_notified_only_of_visible_conflicts() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, reserve("a")).await;
    let mut live = realm.engine.follow(&anna, Filter::everything(), Start::Now, 64).await.expect("a feed");
    let hidden = realm.ask(&bert, Reserve { audience: Audience::Parties, ..reserve("a/b") }).await;
    assert_eq!(hidden.conflicts.len(), 1);
    assert!(realm.drain(&mut live, &anna).await.is_empty(), "not live");
    assert!(!realm.replayed(&anna).contains(&"reservation.conflict"), "and not from the db");
    assert!(realm.replayed(&bert).contains(&"reservation.conflict"));
    realm.ask(&bert, reserve("a/c")).await;
    assert!(realm.replayed(&anna).contains(&"reservation.conflict"));
}

// F55: `--ttl 9999d` held until 2054.
#[tokio::test]
async fn reservation_is_limited_to_thirty_days_unless_renewed() {
    const DAY: i64 = 24 * 3_600_000;
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let until = |days: i64| later() + (days * DAY);
    let refused = Refusal::TooMany { what: "days for a reservation (renew it before it ends)", limit: 30 };
    let far = Reserve { expires_at: until(31), ..reserve("a") };
    assert_eq!(realm.engine.submit(&anna, far).await.unwrap_err().refusal(), Some(&refused));
    let each = ReserveEach {
        scope: "repo".into(),
        paths: vec!["a".into()],
        exclusive: true,
        reason: None,
        expires_at: i64::MAX,
        audience: Audience::Observers,
        only_if_free: false,
        meta: None,
    };
    assert_eq!(realm.engine.submit(&anna, each).await.unwrap_err().refusal(), Some(&refused));
    realm.ask(&anna, Reserve { expires_at: until(29), ..keyed("long", "b") }).await;
    let renew = |days| Renew { which: Which::Key("long".into()), expires_at: until(days) };
    assert_eq!(realm.engine.submit(&anna, renew(40)).await.unwrap_err().refusal(), Some(&refused));
    realm.ask(&anna, renew(29)).await;
    // The operator can change the rule.
    realm.ask(&admin(), SetRules { rules: Rules { reservation_days: 60, ..Rules::default() } }).await;
    realm.ask(&anna, renew(40)).await;
}
