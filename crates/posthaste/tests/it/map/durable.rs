//! What the answer to a MAP send promises when the server is killed, and when it is stopped.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::map::client::Client;
use crate::office::Office;

/// Sends until the server is gone, which gets `signal` after a while. Returns the numbers of the answered sends.
async fn send_until(office: &Office, signal: Signal, after: Duration, meta: &Value) -> Vec<i64> {
    let url = office.url().to_owned();
    let mut to = Client::agent_at(&url, &token(office, "to").await, "to").await;
    let mut from = Client::agent_at(&url, &token(office, "from").await, "from").await;
    let pid = Pid::from_raw(office.pid().cast_signed()).unwrap();
    let receiving = tokio::spawn(async move { to.drain().await });
    let ending = tokio::spawn(async move {
        tokio::time::sleep(after).await;
        kill_process(pid, signal).unwrap();
    });
    let send =
        |n: i64| json!({ "to": { "agent": "to" }, "payload": { "subject": format!("n{n}") }, "meta": meta });
    let answered = from.flood("map/send", 256, send).await;
    ending.await.unwrap();
    receiving.await.unwrap();
    answered
}

async fn token(office: &Office, name: &str) -> String {
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// The numbers of the messages in the database.
async fn in_database(office: &Office) -> HashSet<i64> {
    let messages = office.inbox("to", 0).await;
    messages
        .iter()
        .filter_map(|message| message["subject"].as_str()?.strip_prefix('n')?.parse().ok())
        .collect()
}

// The published SDK's `agent.send(…)` without options.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_has_every_plain_send_that_it_answered() {
    let mut total = 0;
    for round in 0..6 {
        let dir = TestDir::new();
        let office = Office::open(dir.path());
        let after = Duration::from_millis(150 + 70 * round);
        let answered = send_until(&office, Signal::KILL, after, &Value::Null).await;
        office.kill();
        let office = Office::open(dir.path());
        let kept = in_database(&office).await;
        let lost: Vec<&i64> = answered.iter().filter(|n| !kept.contains(n)).collect();
        assert!(lost.is_empty(), "{} of {} answered are gone", lost.len(), answered.len());
        total += answered.len();
        assert_eq!(office.close(), Some(0));
    }
    assert!(total > 100, "only {total} sends were answered: the test has tested nothing");
}

// Fire-and-forget messages survive at least a graceful stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_server_has_every_fire_and_forget_send_that_it_answered() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let meta = json!({ "delivery": "fire-and-forget" });
    let answered = send_until(&office, Signal::TERM, Duration::from_millis(400), &meta).await;
    assert!(answered.len() > 100, "only {} sends were answered: the test has tested nothing", answered.len());
    assert_eq!(office.ended(), Some(0));
    let office = Office::open(dir.path());
    let kept = in_database(&office).await;
    let lost: Vec<&i64> = answered.iter().filter(|n| !kept.contains(n)).collect();
    assert!(lost.is_empty(), "{} of {} answered are gone", lost.len(), answered.len());
    assert_eq!(office.close(), Some(0));
}
