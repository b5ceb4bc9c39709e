//! Thousands of idle connections, and two agents that exchange messages meanwhile.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{handles, p99};
use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::Client;
use crate::office::Office;

/// Idle connections, unless POSTHASTE_FAULTS_CROWD says otherwise.
const IDLE_CONNECTIONS: usize = 2_000;
/// Connections opened at a time.
const OPENING: usize = 50;
const MESSAGES: usize = 200;
/// Difference between two runs without load.
const NOISE: Duration = Duration::from_millis(10);

/// Raises the limit on open files of this process and its children, as far as the hard limit allows.
fn raise_file_limit(files: u64) {
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
    for n in 0..MESSAGES {
        let started = Instant::now();
        let message = json!({ "to": { "agent": "bob" }, "payload": n, "meta": { "delivery": "guaranteed" } });
        from.call("map/send", message).await.unwrap();
        assert_eq!(to.message().await["payload"], n);
        times.push(started.elapsed());
    }
    times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_delay_others() {
    let count = std::env::var("POSTHASTE_FAULTS_CROWD")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(IDLE_CONNECTIONS);
    raise_file_limit(count as u64 + 1_000);
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mut ann = Client::agent_at(office.url(), office.token(), "ann").await;
    let mut bob = Client::agent_at(office.url(), office.token(), "bob").await;
    exchange(&mut ann, &mut bob).await;
    let alone = p99(exchange(&mut ann, &mut bob).await);
    let before = handles(office.pid());
    let mut waiting = Vec::new();
    while waiting.len() < count {
        let opened = (0..OPENING).map(|_| async {
            let mut client = Client::open_at(office.url(), office.token()).await;
            let hello = json!({ "protocolVersion": 1, "participantType": "client" });
            client.call("map/connect", hello).await.unwrap();
            client
        });
        waiting.extend(futures_util::future::join_all(opened).await);
    }
    // The subject is real time. Load of other programs may spoil one measurement, but not three.
    let mut among = Vec::new();
    for _ in 0..3 {
        among.push(p99(exchange(&mut ann, &mut bob).await));
        if among.iter().any(|among| *among < alone * 2 + NOISE) {
            break;
        }
    }
    println!("p99 from sending to delivery: alone {alone:?}, among {} {among:?}", waiting.len());
    assert!(among.iter().any(|among| *among < alone * 2 + NOISE), "alone {alone:?}, among {count} {among:?}");
    // All are still served; when they close, their handles are freed.
    let last = waiting.len() - 1;
    for index in [0, last / 2, last] {
        waiting[index].call("map/agents/get", json!({ "agentId": "bob" })).await.unwrap();
    }
    drop(waiting);
    if let Some(before) = before {
        let what = format!("no more than 8 handles above the {before} before");
        eventually(LONG * 2, &what, async || handles(office.pid()).unwrap() <= before + 8).await;
    }
    exchange(&mut ann, &mut bob).await;
}
