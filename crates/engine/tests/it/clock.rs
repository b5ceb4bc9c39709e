//! Clock jumps in both directions: event times never decrease, and expiry follows the clock.

use posthaste_engine::nouns::Caller;
use posthaste_engine::stamp::{self, Stamp};
use posthaste_engine::testing::submit_record;
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::Sweep;
use posthaste_engine::{EngineError, Filter, RECORD_VERSION, Record, Refusal};

use crate::harness::{Realm, admin, member, message};

const HOUR: i64 = 3_600_000;

/// Submits a command with another clock time.
async fn at<V: Verb>(realm: &Realm, now: i64, caller: &Caller, verb: V) -> Result<V::Outcome, EngineError> {
    let stamp = Stamp { now, ..Stamp::new() };
    let record = Record { v: RECORD_VERSION, stamp, caller: caller.clone(), command: verb.into_command() };
    let outcome = submit_record(&realm.engine, record).await?;
    Ok(V::from_outcome(outcome).expect("an answer to this verb"))
}

fn times(realm: &Realm) -> Vec<i64> {
    let replay = realm.see(|view| view.events(&Caller::office(), 0, &Filter::everything(), 1_000));
    replay.events.iter().map(|event| event.at).collect()
}

#[tokio::test]
async fn event_times_never_decrease() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let now = stamp::now();
    for jump in [0, 100 * HOUR, -HOUR, 50 * HOUR, 101 * HOUR, 0] {
        at(&realm, now + jump, &ann, message("bob", "x")).await.expect("a message");
    }
    let realm = realm.reopened();
    at(&realm, now, &ann, message("bob", "x")).await.expect("a message");
    let times = times(&realm);
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(
        times.last(),
        Some(&(now + 101 * HOUR)),
        "event time stands still until the clock has caught up"
    );
    let mut ids: Vec<_> = realm.inbox("bob").iter().map(|item| item.message.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[tokio::test]
async fn ids_increase_when_the_event_log_is_ahead_of_the_clock() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let ahead = stamp::now() + 1_000 * HOUR;
    at(&realm, ahead, &ann, message("bob", "x")).await.expect("a message");
    let realm = realm.reopened();
    let sent = realm.send(&ann, "bob", "y").await;
    let time = i64::try_from(sent.message.id.0.as_u128() >> 80).expect("a time");
    assert!(time > ahead, "{time} {ahead}");
}

#[tokio::test]
async fn expiry_follows_the_clock_and_not_the_event_log() {
    let realm = Realm::new();
    let [ann, _] = realm.agents(["ann", "bob"]).await;
    let now = stamp::now();
    at(&realm, now + 100 * HOUR, &ann, message("bob", "from the future")).await.expect("a message");
    // The clock is right again, and a message expires an hour from now.
    let brief = SendMessage { expires_at: Some(now + HOUR), ..message("bob", "brief") };
    at(&realm, now, &ann, brief.clone()).await.expect("an hour is left");
    at(&realm, now + 1, &admin(), Sweep {}).await.expect("a sweep");
    assert_eq!(realm.mail("bob"), ["from the future", "brief"]);
    let late = at(&realm, now + 2 * HOUR, &ann, brief).await;
    assert!(matches!(late, Err(EngineError::Refused(Refusal::AlreadyExpired { .. }))), "{late:?}");
    let other =
        at(&realm, now, &member("ann"), SendMessage { expires_at: Some(now - 1), ..message("bob", "z") })
            .await;
    assert!(matches!(other, Err(EngineError::Refused(Refusal::AlreadyExpired { .. }))), "{other:?}");
}
