//! Peers that are gone without a word: a socket that stays open, says nothing, and does not answer pings.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::handles;
use crate::harness::{LONG, TestDir};
use crate::map::client::Client;
use crate::office::Office;

async fn join(office: &Office, name: &str, behaviour: &str) -> Client {
    join_as(office, name, json!({ "agentBehavior": behaviour, "notifySubscribers": true })).await
}

async fn join_as(office: &Office, name: &str, policy: Value) -> Client {
    let mut client = Client::open_at(office.url(), office.token()).await;
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "disconnectPolicy": policy });
    client.call("map/connect", hello).await.unwrap();
    client.call("map/agents/register", json!({ "agentId": name, "name": name })).await.unwrap();
    client
}

/// The state of an agent as the address book has it; nothing if it is not there.
async fn state(office: &Office, name: &str) -> Option<Value> {
    let agents = office.call("agents", json!({})).await.unwrap();
    agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .find(|agent| agent["id"] == name)
        .map(|one| one["state"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_answers_no_pings_is_let_go_and_its_agents_fare_as_they_should() {
    let dir = TestDir::new();
    let office = Office::open_with(dir.path(), &[], &[("POSTHASTE_PING_EVERY", "400ms")]);
    let mut here = join(&office, "here", "unregister").await;
    // Whoever reads answers pings, and stays.
    let staying = tokio::spawn(async move {
        loop {
            here.call("map/agents/get", json!({ "agentId": "here" })).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let before = handles(office.pid());
    // Nobody reads these from now on, so their pongs are never sent.
    let gone = join(&office, "gone", "unregister").await;
    let orphan = join(&office, "orphan", "orphan").await;
    // One more, whose letters fill every buffer on the way.
    let deaf = join(&office, "deaf", "orphan").await;
    let body = "x".repeat(200_000);
    for n in 0..60 {
        // The sender is not held up by it.
        let started = Instant::now();
        office.send("here", "deaf", &body, &n.to_string()).await.unwrap();
        assert!(started.elapsed() < LONG);
    }
    let started = Instant::now();
    loop {
        let states =
            (state(&office, "gone").await, state(&office, "orphan").await, state(&office, "deaf").await);
        if states == (None, Some(json!("orphaned")), Some(json!("orphaned"))) {
            break;
        }
        assert!(started.elapsed() < LONG, "still there: {states:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!staying.is_finished() && state(&office, "here").await.is_some(), "who answers stays");
    // Nothing for the deaf one is lost, and what they held is given back, though their ends are still open.
    assert_eq!(office.inbox("deaf", 0).await.len(), 60);
    if let Some(before) = before {
        // Readers of the books are opened when they are needed.
        let slack = 8;
        while handles(office.pid()).unwrap() > before + slack {
            assert!(started.elapsed() < LONG, "{:?} handles, {before} before", handles(office.pid()));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    staying.abort();
    assert!(staying.await.unwrap_err().is_cancelled(), "who answers stays");
    drop((gone, orphan, deaf));
}

/// Whoever hands letters over may notice later than others that the connection is gone. Its agent goes all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_goes_with_its_connection_though_nobody_is_told() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let policy = json!({ "agentBehavior": "unregister", "notifySubscribers": false });
    for n in 0..20 {
        drop(join_as(&office, &format!("brief-{n}"), policy.clone()).await);
    }
    let started = Instant::now();
    for n in 0..20 {
        let name = format!("brief-{n}");
        while let Some(state) = state(&office, &name).await {
            assert!(started.elapsed() < LONG, "{name} is still {state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
