//! A clock that was far ahead and was corrected: the event log continues, and expiry follows the clock.

use serde_json::json;

use crate::harness::{LONG, TestDir, eventually};
use crate::office::{Office, Trouble};

const YEAR: i64 = 366 * 24 * 3_600_000;

fn now() -> i64 {
    posthaste_engine::stamp::now()
}

/// Sets the time of the last event ten years ahead; returns that time.
fn set_log_ahead(dir: &TestDir) -> i64 {
    let db = rusqlite::Connection::open(dir.path().join("realms/main.db")).unwrap();
    let ahead = now() + 10 * YEAR;
    let changed =
        db.execute("UPDATE events SET at = ?1 WHERE seq = (SELECT max(seq) FROM events)", [ahead]).unwrap();
    assert_eq!(changed, 1);
    ahead
}

#[tokio::test]
async fn server_continues_when_its_event_log_is_ahead_of_the_clock() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.register("bob").await;
    office.send("ann", "bob", "before", "k1").await.unwrap();
    assert_eq!(office.close(), Some(0));
    let ahead = set_log_ahead(&dir);

    let office = Office::open(dir.path());
    let second = office.send("ann", "bob", "after", "k2").await.unwrap();
    let third = office.send("ann", "bob", "and again", "k3").await.unwrap();
    // The event log's time never decreases, and ids increase.
    let at =
        |sent: &serde_json::Value| posthaste_wire::time::parse_rfc3339(sent["at"].as_str().unwrap()).unwrap();
    assert!(at(&second) >= ahead && at(&third) >= at(&second), "{second} {third}");
    let id = |sent: &serde_json::Value| uuid::Uuid::parse_str(sent["id"].as_str().unwrap()).unwrap();
    assert!(i64::try_from(id(&second).as_u128() >> 80).unwrap() > ahead, "{second}");
    assert!(id(&third) > id(&second));
    // Idempotency keys are kept.
    assert_eq!(office.send("ann", "bob", "before", "k1").await.unwrap()["repeated"], true);

    // A reservation is granted, conflicts and expires by the clock.
    let reservation = |agent: &str, lasts: i64| json!({ "agent": agent, "scope": "s", "paths": ["src/*"], "expires_at": now() + lasts });
    let held = office.call("reserve", reservation("ann", 1_500)).await.unwrap();
    let ends = now() + 1_500;
    let conflicting = office.call("reserve", reservation("bob", 60_000)).await;
    let conflicts = conflicting.map(|answer| answer["conflicts"].as_array().map_or(0, Vec::len));
    assert!(
        matches!(conflicts, Err(Trouble::Refused(_)) | Ok(1..)),
        "no conflict with {held}: {conflicts:?}"
    );
    // By the same clock as the server's.
    eventually(LONG, "the end of the reservation", async || now() > ends).await;
    let free = office.call("reserve", reservation("bob", 60_000)).await.unwrap();
    assert!(free["conflicts"].as_array().is_none_or(Vec::is_empty), "{free}");
    let late = office.call("reserve", reservation("ann", -1_000)).await;
    assert!(matches!(late, Err(Trouble::Refused(_))), "an expired reservation is not granted: {late:?}");

    // Tokens and messages expire by the clock.
    let token = json!({ "role": "agent", "name": "ann", "expires_at": now() + 1_500 });
    let token = office.call("token.create", token).await.unwrap()["token"].as_str().unwrap().to_owned();
    let ann = office.as_bearer(&token);
    ann.call("whoami", json!({})).await.unwrap();
    let brief = json!({ "to": ["bob"], "body": "brief", "expires_at": now() + 60_000 });
    ann.call("send", brief).await.unwrap();
    assert!(office.inbox("bob", 0).await.iter().any(|message| message["body"] == "brief"));
    eventually(LONG, "the token expires", async || ann.call("whoami", json!({})).await.is_err()).await;
    assert_eq!(office.close(), Some(0));
}
