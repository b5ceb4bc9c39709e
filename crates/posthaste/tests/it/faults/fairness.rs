//! A flood by one token does not delay callers with other tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::p99;
use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::Client;
use crate::office::{Bearer, Office};

/// How long each measurement takes; longer ones give steadier figures.
fn measuring_time() -> Duration {
    let asked = std::env::var("POSTHASTE_FAULTS_FLOOD").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(2))
}
/// How long the other callers wait between two messages. The subject of this test is latency in real time.
const PAUSE: Duration = Duration::from_millis(40);
/// WebSockets of the flood.
const SOCKETS: usize = 4;
/// Concurrent HTTP requests of the flood.
const REQUESTS: usize = 8;
/// Difference between two runs without a flood. A debug build takes ten times as long for each of the flood's messages
/// that precede another caller's, so there only a gross delay counts; how many may precede it is tested in the engine
/// (`caller_quota.rs`).
fn noise() -> Duration {
    let slow = cfg!(debug_assertions) && std::env::var_os("POSTHASTE_TEST_PROGRAM").is_none();
    Duration::from_millis(if slow { 1_000 } else { 10 })
}

async fn token(office: &Office, name: &str) -> String {
    office.register(name).await;
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// Sends a message every `PAUSE` by MAP; returns how long each took.
async fn by_map(mut client: Client) -> Vec<Duration> {
    let mut times = Vec::new();
    let end = Instant::now() + measuring_time();
    while Instant::now() < end {
        let started = Instant::now();
        let message =
            json!({ "to": { "agent": "box" }, "payload": "x", "meta": { "delivery": "guaranteed" } });
        client.call("map/send", message).await.unwrap();
        times.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}

/// As [`by_map`], by HTTP.
async fn by_http(bearer: Bearer) -> Vec<Duration> {
    let mut times = Vec::new();
    let end = Instant::now() + measuring_time();
    while Instant::now() < end {
        let started = Instant::now();
        bearer.call("send", json!({ "to": ["box"], "body": "x" })).await.unwrap();
        times.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}

/// The p99 latency of the other callers.
async fn others(office: &Office, tokens: &[String]) -> Duration {
    let mut working = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        working.push(match n % 2 {
            0 => {
                let client = Client::agent_at(office.url(), token, &format!("other-{n}-by-map")).await;
                tokio::spawn(by_map(client))
            }
            _ => tokio::spawn(by_http(office.as_bearer(token))),
        });
    }
    let mut times = Vec::new();
    for one in working {
        times.extend(one.await.unwrap());
    }
    p99(times)
}

/// Sends messages on one WebSocket, as fast as it takes them.
async fn flood(url: String, token: String, number: usize, stop: Arc<AtomicBool>, answered: Arc<AtomicU64>) {
    let address = url.strip_prefix("http://").unwrap().to_owned();
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let url = format!("ws://{address}/map?token={token}");
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let (mut sink, mut answers) = socket.split();
    let call = |id: i64, method: &str, params: Value| {
        Message::text(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
    };
    sink.send(call(1, "map/connect", json!({ "protocolVersion": 1, "participantType": "agent" })))
        .await
        .unwrap();
    sink.send(call(2, "map/agents/register", json!({ "agentId": format!("flood-{number}") }))).await.unwrap();
    let counting = {
        let (stop, answered) = (stop.clone(), answered.clone());
        async move {
            while let Some(Ok(_)) = answers.next().await {
                answered.fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    };
    let message = json!({ "to": { "agent": "box" }, "payload": "x", "meta": { "delivery": "guaranteed" } });
    let message = call(3, "map/send", message);
    let sending = async move {
        while !stop.load(Ordering::Relaxed) {
            if sink.send(message.clone()).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(counting, sending);
}

/// A flood, on a thread with the lowest priority: a real one would come from another machine and not take CPU time from
/// the callers that are measured here.
struct Flood {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Flood {
    fn begin(office: &Office, token: &str) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (url, token) = (office.url().to_owned(), token.to_owned());
        let bearers: Vec<Bearer> = (0..REQUESTS).map(|_| office.apart(&token)).collect();
        let (ended, counted) = (stop.clone(), answered.clone());
        let thread = std::thread::spawn(move || {
            // On Linux this applies to the thread, not to the process.
            rustix::process::setpriority_process(None, 19).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sockets = (0..SOCKETS).map(|number| {
                    tokio::spawn(flood(url.clone(), token.clone(), number, ended.clone(), counted.clone()))
                });
                let requests = bearers
                    .into_iter()
                    .map(|bearer| tokio::spawn(flood_http(bearer, ended.clone(), counted.clone())));
                for one in sockets.chain(requests).collect::<Vec<_>>() {
                    one.await.unwrap();
                }
            });
        });
        Self { stop, answered, thread }
    }

    /// Ends the flood; returns how many messages were answered.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.answered.load(Ordering::Relaxed)
    }
}

async fn flood_http(bearer: Bearer, stop: Arc<AtomicBool>, answered: Arc<AtomicU64>) {
    while !stop.load(Ordering::Relaxed) {
        bearer.call("send", json!({ "to": ["box"], "body": "x" })).await.unwrap();
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_by_one_token_does_not_delay_others() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("box").await;
    let mut tokens = Vec::new();
    for n in 0..6 {
        tokens.push(token(&office, &format!("other-{n}")).await);
    }
    let flooding = token(&office, "flood").await;
    let mut seen = Vec::new();
    // Load of other programs may spoil one measurement, but not three.
    for _ in 0..3 {
        let calm = others(&office, &tokens).await;
        let flood = Flood::begin(&office, &flooding);
        eventually(LONG, "the flood is going on", async || flood.answered.load(Ordering::Relaxed) > 100)
            .await;
        let flooded = others(&office, &tokens).await;
        let messages = tokio::task::spawn_blocking(|| flood.end()).await.unwrap();
        println!("p99 of the others: calm {calm:?}, flooded {flooded:?}; the flood was {messages} messages");
        assert!(messages > 1_000, "only {messages} messages");
        seen.push((calm, flooded));
        if flooded <= (calm * 2).max(calm + noise()) {
            return;
        }
    }
    panic!("calm and flooded: {seen:?}");
}
