//! A clock that was far ahead and has been put right: the history goes on, and so does everything with an end.

use std::time::Duration;

use serde_json::json;

use crate::harness::TestDir;
use crate::office::{Office, Trouble};

const YEAR: i64 = 366 * 24 * 3_600_000;

fn now() -> i64 {
    posthaste_engine::stamp::now()
}

/// Ten years ahead, by the last line of the history.
fn put_ahead(dir: &TestDir) -> i64 {
    let books = rusqlite::Connection::open(dir.path().join("realms/main.db")).unwrap();
    let ahead = now() + 10 * YEAR;
    let changed = books
        .execute("UPDATE events SET at = ?1 WHERE seq = (SELECT max(seq) FROM events)", [ahead])
        .unwrap();
    assert_eq!(changed, 1);
    ahead
}

#[tokio::test]
async fn an_office_whose_history_is_ahead_of_the_clock_goes_on() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    office.register("bob").await;
    office.send("ann", "bob", "before", "k1").await.unwrap();
    assert_eq!(office.close(), Some(0));
    let ahead = put_ahead(&dir);

    let office = Office::open(dir.path());
    let second = office.send("ann", "bob", "after", "k2").await.unwrap();
    let third = office.send("ann", "bob", "and again", "k3").await.unwrap();
    // The history's time does not run backwards, and ids lie beyond those given out before.
    let at =
        |sent: &serde_json::Value| posthaste_wire::time::parse_rfc3339(sent["at"].as_str().unwrap()).unwrap();
    assert!(at(&second) >= ahead && at(&third) >= at(&second), "{second} {third}");
    let id = |sent: &serde_json::Value| uuid::Uuid::parse_str(sent["id"].as_str().unwrap()).unwrap();
    assert!(i64::try_from(id(&second).as_u128() >> 80).unwrap() > ahead, "{second}");
    assert!(id(&third) > id(&second));
    // A letter known by its key is still known.
    assert_eq!(office.send("ann", "bob", "before", "k1").await.unwrap()["repeated"], true);

    // A lease is granted by the clock, keeps others away, and ends by the clock.
    let lease = |agent: &str, lasts: i64| json!({ "agent": agent, "scope": "s", "paths": ["src/*"], "expires_at": now() + lasts });
    let held = office.call("reserve", lease("ann", 1_500)).await.unwrap();
    let in_the_way = office.call("reserve", lease("bob", 60_000)).await;
    let in_the_way = in_the_way.map(|answer| answer["conflicts"].as_array().map_or(0, Vec::len));
    assert!(
        matches!(in_the_way, Err(Trouble::Refused(_)) | Ok(1..)),
        "nobody was told of {held}: {in_the_way:?}"
    );
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    let free = office.call("reserve", lease("bob", 60_000)).await.unwrap();
    assert!(free["conflicts"].as_array().is_none_or(Vec::is_empty), "{free}");
    let late = office.call("reserve", lease("ann", -1_000)).await;
    assert!(matches!(late, Err(Trouble::Refused(_))), "what has ended is not granted: {late:?}");

    // A token lasts as long as it says, a letter as long as it is told to.
    let token = json!({ "role": "agent", "name": "ann", "expires_at": now() + 1_500 });
    let token = office.call("token.create", token).await.unwrap()["token"].as_str().unwrap().to_owned();
    let ann = office.as_bearer(&token);
    ann.call("whoami", json!({})).await.unwrap();
    let brief = json!({ "to": ["bob"], "body": "brief", "expires_at": now() + 60_000 });
    ann.call("send", brief).await.unwrap();
    assert!(office.inbox("bob", 0).await.iter().any(|letter| letter["body"] == "brief"));
    tokio::time::sleep(Duration::from_millis(1_600)).await;
    assert!(ann.call("whoami", json!({})).await.is_err(), "the token has ended");
    assert_eq!(office.close(), Some(0));
}
