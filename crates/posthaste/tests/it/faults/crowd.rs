//! Thousands of connections that only wait, and two agents that work among them.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{handles, p99};
use crate::harness::{LONG, TestDir};
use crate::map::client::Client;
use crate::office::Office;

/// In the suite; POSTHASTE_FAULTS_CROWD says otherwise.
const CROWD: usize = 2_000;
/// Connections opened at a time.
const OPENING: usize = 50;
const LETTERS: usize = 200;
/// What two runs differ by anyway.
const FLOOR: Duration = Duration::from_millis(10);

/// Raises the number of files this process and its children may open, as far as it may.
fn make_room(files: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < files) {
        let raised =
            Rlimit { current: limit.maximum.map_or(Some(files), |most| Some(most.min(files))), ..limit };
        setrlimit(Resource::Nofile, raised).unwrap();
    }
}

async fn exchange(from: &mut Client, to: &mut Client) -> Vec<Duration> {
    let mut times = Vec::new();
    for n in 0..LETTERS {
        let started = Instant::now();
        let letter = json!({ "to": { "agent": "bob" }, "payload": n, "meta": { "delivery": "guaranteed" } });
        from.call("map/send", letter).await.unwrap();
        assert_eq!(to.message().await["payload"], n);
        times.push(started.elapsed());
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_waits_holds_nobody_up() {
    let crowd =
        std::env::var("POSTHASTE_FAULTS_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(CROWD);
    make_room(crowd as u64 + 1_000);
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mut ann = Client::agent_at(office.url(), office.token(), "ann").await;
    let mut bob = Client::agent_at(office.url(), office.token(), "bob").await;
    exchange(&mut ann, &mut bob).await;
    let alone = p99(exchange(&mut ann, &mut bob).await);
    let before = handles(office.pid());
    let mut waiting = Vec::new();
    while waiting.len() < crowd {
        let opened = (0..OPENING).map(|_| async {
            let mut client = Client::open_at(office.url(), office.token()).await;
            let hello = json!({ "protocolVersion": 1, "participantType": "client" });
            client.call("map/connect", hello).await.unwrap();
            client
        });
        waiting.extend(futures_util::future::join_all(opened).await);
    }
    // Other programs of the machine may get in the way once, but not three times.
    let mut among = Vec::new();
    for _ in 0..3 {
        among.push(p99(exchange(&mut ann, &mut bob).await));
        if among.iter().any(|among| *among < alone * 2 + FLOOR) {
            break;
        }
    }
    println!("p99 of a letter and its arrival: alone {alone:?}, among {} {among:?}", waiting.len());
    assert!(among.iter().any(|among| *among < alone * 2 + FLOOR), "alone {alone:?}, among {crowd} {among:?}");
    // All of them are still served, and when they go, so does all that they held.
    let last = waiting.len() - 1;
    for index in [0, last / 2, last] {
        waiting[index].call("map/agents/get", json!({ "agentId": "bob" })).await.unwrap();
    }
    drop(waiting);
    if let Some(before) = before {
        let started = Instant::now();
        while handles(office.pid()).unwrap() > before + 8 {
            assert!(started.elapsed() < LONG * 2, "{:?} handles, {before} before", handles(office.pid()));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    exchange(&mut ann, &mut bob).await;
}
