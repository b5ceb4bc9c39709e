//! One reservation per path, conversation names without joining, and claims of realm aliases.

use posthaste_engine::nouns::{Audience, ReservationStatus};
use posthaste_engine::verbs::claims::{Claim, MoveClaim, ReleaseClaim};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::reservations::{Release, Which};
use posthaste_engine::verbs::reservations::{ReserveEach, ReservedEach, plain};
use posthaste_engine::views::ReservationQuery;
use posthaste_engine::{EngineError, Refusal};

use crate::harness::{Realm, admin, conversation_id, id, later, member, message, realm as named};

fn each(paths: &[&str]) -> ReserveEach {
    ReserveEach {
        scope: "repo".into(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        exclusive: true,
        reason: None,
        expires_at: later(),
        audience: Audience::Observers,
        only_if_free: false,
        meta: None,
    }
}

fn numbers(taken: &ReservedEach) -> Vec<i64> {
    taken.reservations.iter().map(|held| held.reservation.seq).collect()
}

#[tokio::test]
async fn each_path_has_its_own_reservation_which_a_repeated_request_extends() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    let first = realm.ask(&ann, each(&["src/**", "README.md"])).await;
    let until = later() + 60_000;
    let again = realm.ask(&ann, ReserveEach { expires_at: until, ..each(&["README.md", "docs/x.md"]) }).await;
    assert_eq!(numbers(&again)[0], numbers(&first)[1]);
    assert_eq!(again.reservations[0].reservation.expires_at, until);
    assert!(again.reservations.iter().all(|held| held.conflicts.is_empty()));
    // Released individually, and available again under another number.
    let which = vec![Which::Number(numbers(&first)[1])];
    assert_eq!(realm.ask(&ann, Release { which, owner: None }).await[0].status, ReservationStatus::Released);
    let again = realm.ask(&ann, each(&["README.md"])).await;
    assert_ne!(numbers(&again)[0], numbers(&first)[1]);
    // Shared and exclusive reservations of a path are different.
    let shared = realm.ask(&ann, ReserveEach { exclusive: false, ..each(&["src/**"]) }).await;
    assert_ne!(numbers(&shared)[0], numbers(&first)[0]);
}

#[tokio::test]
async fn overlaps_are_reported_or_refuse_the_whole_request() {
    let realm = Realm::new();
    let (ann, bob) = (realm.agent("ann").await, realm.agent("bob").await);
    realm.ask(&ann, each(&["src/app.rs"])).await;
    let taken = realm.ask(&bob, each(&["docs/**", "src/**"])).await;
    let told: Vec<usize> = taken.reservations.iter().map(|held| held.conflicts.len()).collect();
    assert_eq!(told, [0, 1]);
    realm.ask(&bob, Release { which: Vec::new(), owner: None }).await;
    let refused = realm.ask(&bob, ReserveEach { only_if_free: true, ..each(&["docs/**", "src/**"]) }).await;
    assert_eq!((refused.reservations.len(), refused.in_the_way.len()), (0, 1));
    let query = ReservationQuery { owner: Some(bob.agent.clone()), limit: 9, ..ReservationQuery::default() };
    let held = realm.engine.read_blocking(|view| view.reservations(&bob, &query)).unwrap();
    assert!(held.items.is_empty(), "the request is atomic");
}

#[tokio::test]
async fn number_of_held_paths_is_limited() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    // Ten requests of a hundred paths each.
    for page in 0..10 {
        let paths: Vec<String> = (0..100).map(|n| format!("p{page}/f{n}")).collect();
        realm.ask(&ann, each(&paths.iter().map(String::as_str).collect::<Vec<_>>())).await;
    }
    let one_more = realm.engine.submit(&ann, each(&["more"])).await;
    assert!(
        matches!(one_more, Err(EngineError::Refused(Refusal::TooMany { limit: 1_000, .. }))),
        "{one_more:?}"
    );
    for (paths, what) in [(vec![], "none"), (vec!["/abs"], "absolute"), (vec!["ok", "../up"], "climbing")] {
        assert!(realm.engine.submit(&ann, each(&paths)).await.is_err(), "{what}");
    }
}

#[test]
fn paths_are_normalised_before_comparison() {
    for (written, meant) in [
        ("./src//a.py", "src/a.py"),
        ("src/", "src"),
        ("/etc/x", "/etc/x"),
        ("../x", "../x"),
        ("tool://a//b", "tool://a//b"),
    ] {
        assert_eq!(plain(written), meant, "{written}");
    }
}

fn under_name(to: &str, text: &str) -> SendMessage {
    let join = JoinMode::NameOnly { kind: "thread".into() };
    let within = ConversationRef {
        conversation: conversation_id("t"),
        thread: None,
        reply_to: None,
        visibility: None,
        join,
    };
    SendMessage { within: Some(within), ..message(to, text) }
}

#[tokio::test]
async fn name_only_message_does_not_join_the_conversation() {
    let realm = Realm::new();
    let (ann, bob, cid) = (realm.agent("ann").await, realm.agent("bob").await, realm.agent("cid").await);
    let first = realm.ask(&ann, under_name("bob", "between us")).await;
    assert!(first.turn.is_some());
    let third = realm.ask(&cid, under_name("ann", "me too")).await;
    assert_eq!(third.message.conversation, Some(conversation_id("t")));
    assert!(third.turn.is_none());
    assert!(matches!(third.unrecorded, Some(Refusal::NotAParticipant { .. })));
    let seen = |who: &posthaste_engine::nouns::Caller| {
        let found =
            realm.engine.read_blocking(|view| view.correspondence(who, &conversation_id("t"), 0, 9)).unwrap();
        found.items.len()
    };
    assert_eq!((seen(&ann), seen(&bob), seen(&cid)), (2, 1, 1));
    assert!(realm.engine.read_blocking(|view| view.conversation(&cid, &conversation_id("t"))).is_err());
    // A message of a sender that may not invite adds no recipient.
    realm.ask(&bob, under_name("cid", "welcome")).await;
    assert!(realm.ask(&cid, under_name("bob", "thanks")).await.turn.is_none());
    // A message of a sender that may invite adds cid.
    realm.ask(&ann, under_name("cid", "welcome")).await;
    assert!(realm.ask(&cid, under_name("bob", "thanks")).await.turn.is_some());
}

#[tokio::test]
async fn first_claim_of_an_alias_wins() {
    let realm = Realm::new();
    let claim = |alias: &str, name: &str| Claim {
        alias: alias.into(),
        realm: named(name),
        by: None,
        instead_of: None,
        project: None,
        covers: false,
    };
    let first = realm.ask(&admin(), claim("/srv/app", "main")).await;
    assert_eq!(realm.ask(&admin(), claim("/srv/app", "east")).await, first);
    realm.ask(&admin(), claim("example.org/app", "east")).await;
    let claims = realm.engine.read_blocking(|view| view.claims(&admin())).unwrap();
    let names: Vec<_> = claims.iter().map(|claim| (claim.alias.as_str(), claim.realm.as_str())).collect();
    assert_eq!(names, [("/srv/app", "main"), ("example.org/app", "east")]);
    realm.agent("ann").await;
    assert!(realm.engine.submit(&member("ann"), claim("/x", "main")).await.is_err());
    for bad in ["", "a\nb"] {
        assert!(realm.engine.submit(&admin(), claim(bad, "main")).await.is_err(), "{bad:?}");
    }
}

// F2: a claim can be moved and released; its former realms are kept.
#[tokio::test]
async fn claims_can_be_moved_and_released() {
    let realm = Realm::new();
    let moved = |alias: &str, name: &str| MoveClaim {
        alias: alias.into(),
        realm: named(name),
        by: Some(id("admin")),
        project: None,
    };
    let claim = |name: &str| Claim {
        alias: "/srv/app".into(),
        realm: named(name),
        by: None,
        instead_of: None,
        project: None,
        covers: false,
    };
    let first = realm.ask(&admin(), claim("srv-app")).await;
    let after = realm.ask(&admin(), moved("/srv/app", "main")).await;
    assert_eq!(after.before.as_ref(), Some(&first));
    assert_eq!((after.claim.realm.as_str(), after.claim.covers, after.claim.moved), ("main", true, true));
    assert_eq!(after.claim.former, [named("srv-app")]);
    // The same again changes nothing, and a later claim does not undo it.
    assert_eq!(realm.ask(&admin(), moved("/srv/app", "main")).await.claim, after.claim);
    assert_eq!(realm.ask(&admin(), claim("srv-app")).await, after.claim);
    // An alias that was not claimed can be moved too.
    assert_eq!(realm.ask(&admin(), moved("/srv/site", "east")).await.before, None);
    // Moved back: the realm it left is the former one.
    let back = realm.ask(&admin(), moved("/srv/app", "srv-app")).await;
    assert_eq!(back.claim.former, [named("main")]);
    // After release it maps to no realm, and the next claim wins.
    let released = realm.ask(&admin(), ReleaseClaim { alias: "/srv/app".into() }).await;
    assert_eq!(released, Some(back.claim));
    assert_eq!(realm.ask(&admin(), ReleaseClaim { alias: "/srv/app".into() }).await, None);
    assert_eq!(realm.ask(&admin(), ReleaseClaim { alias: "/never".into() }).await, None);
    let claims = realm.engine.read_blocking(|view| view.claims(&admin())).unwrap();
    let app = claims.iter().find(|claim| claim.alias == "/srv/app").unwrap();
    assert!(app.released);
    assert_eq!(app.former, [named("main"), named("srv-app")]);
    let again = realm.ask(&admin(), claim("west")).await;
    assert_eq!((again.realm.as_str(), again.released, again.former.len()), ("west", false, 2));
    // Only administrators, and only printable names.
    realm.agent("ann").await;
    assert!(realm.engine.submit(&member("ann"), moved("/x", "main")).await.is_err());
    assert!(realm.engine.submit(&member("ann"), ReleaseClaim { alias: "/srv/app".into() }).await.is_err());
    for bad in ["", "a\nb"] {
        assert!(realm.engine.submit(&admin(), moved(bad, "main")).await.is_err(), "{bad:?}");
    }
    // The list of former realms is bounded.
    for number in 0..40 {
        realm.ask(&admin(), moved("/srv/app", &format!("r{number}"))).await;
    }
    let claims = realm.engine.read_blocking(|view| view.claims(&admin())).unwrap();
    let app = claims.iter().find(|claim| claim.alias == "/srv/app").unwrap();
    assert_eq!((app.former.len(), app.former.last()), (16, Some(&named("r38"))));
}
