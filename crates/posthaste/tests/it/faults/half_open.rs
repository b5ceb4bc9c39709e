//! Peers that vanish without closing: the socket stays open, is not read, and answers no pings.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::handles;
use crate::harness::{LONG, TestDir, eventually};
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

/// The state of an agent in the directory, if it is registered.
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
async fn a_peer_that_answers_no_pings_is_disconnected_and_its_policy_applied() {
    let dir = TestDir::new();
    let office = Office::open_with(dir.path(), &[], &[("POSTHASTE_PING_EVERY", "400ms")]);
    let mut here = join(&office, "here", "unregister").await;
    // A client that reads answers pings, and stays connected.
    let staying = tokio::spawn(async move {
        loop {
            here.call("map/agents/get", json!({ "agentId": "here" })).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let before = handles(office.pid());
    // These are not read from now on, so they send no pongs.
    let gone = join(&office, "gone", "unregister").await;
    let orphan = join(&office, "orphan", "orphan").await;
    // One more, whose messages fill every buffer on the way to it.
    let full = join(&office, "full", "orphan").await;
    let body = "x".repeat(200_000);
    for n in 0..60 {
        // The sender does not wait for it; the bound is generous because the time is real.
        let started = Instant::now();
        office.send("here", "full", &body, &n.to_string()).await.unwrap();
        assert!(started.elapsed() < LONG);
    }
    eventually(LONG, "the agents are unregistered or orphaned", async || {
        let states =
            (state(&office, "gone").await, state(&office, "orphan").await, state(&office, "full").await);
        states == (None, Some(json!("orphaned")), Some(json!("orphaned")))
    })
    .await;
    assert!(
        !staying.is_finished() && state(&office, "here").await.is_some(),
        "a client that answers stays connected"
    );
    // No message is lost, and the handles are freed although the other ends are still open.
    assert_eq!(office.inbox("full", 0).await.len(), 60);
    if let Some(before) = before {
        // Database readers are opened when they are needed.
        let slack = 8;
        let what = format!("no more than {slack} handles above the {before} before");
        eventually(LONG, &what, async || handles(office.pid()).unwrap() <= before + slack).await;
    }
    staying.abort();
    assert!(staying.await.unwrap_err().is_cancelled(), "a client that answers stays connected");
    drop((gone, orphan, full));
}

/// The task that delivers messages may notice the end of a connection last. The agent is unregistered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_ends_with_its_connection_without_notification() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let policy = json!({ "agentBehavior": "unregister", "notifySubscribers": false });
    for n in 0..20 {
        drop(join_as(&office, &format!("brief-{n}"), policy.clone()).await);
    }
    for n in 0..20 {
        let name = format!("brief-{n}");
        let what = format!("{name} is unregistered");
        eventually(LONG, &what, async || state(&office, &name).await.is_none()).await;
    }
}
