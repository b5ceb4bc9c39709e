//! One token that floods: everybody else keeps its pace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::p99;
use crate::harness::TestDir;
use crate::map::client::Client;
use crate::office::{Bearer, Office};

/// How long each part lasts; longer parts give steadier figures.
fn part() -> Duration {
    let asked = std::env::var("POSTHASTE_FAULTS_FLOOD").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(2))
}
/// How long the others wait between two letters.
const PAUSE: Duration = Duration::from_millis(40);
/// Connections of the flood.
const SOCKETS: usize = 4;
const REQUESTS: usize = 8;
/// What two runs without a flood differ by on a busy machine. A build for tests takes ten times as long as another for each
/// of the flood's letters that stand before somebody's, and starves on a machine that does other things as well: there only
/// a gross delay counts, and how many letters may stand before somebody's is tested in the engine (`caller_quota.rs`).
fn floor() -> Duration {
    let slow = cfg!(debug_assertions) && std::env::var_os("POSTHASTE_TEST_PROGRAM").is_none();
    Duration::from_millis(if slow { 1_000 } else { 10 })
}

async fn token(office: &Office, name: &str) -> String {
    office.register(name).await;
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// Letters at an easy pace by MAP; how long each took.
async fn by_map(mut client: Client) -> Vec<Duration> {
    let mut times = Vec::new();
    let end = Instant::now() + part();
    while Instant::now() < end {
        let started = Instant::now();
        let letter =
            json!({ "to": { "agent": "box" }, "payload": "x", "meta": { "delivery": "guaranteed" } });
        client.call("map/send", letter).await.unwrap();
        times.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}

/// The same by HTTP.
async fn by_http(bearer: Bearer) -> Vec<Duration> {
    let mut times = Vec::new();
    let end = Instant::now() + part();
    while Instant::now() < end {
        let started = Instant::now();
        bearer.call("send", json!({ "to": ["box"], "body": "x" })).await.unwrap();
        times.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    times
}

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

/// As many letters as a connection takes, as fast as it takes them.
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
    let letter = json!({ "to": { "agent": "box" }, "payload": "x", "meta": { "delivery": "guaranteed" } });
    let letter = call(3, "map/send", letter);
    let sending = async move {
        while !stop.load(Ordering::Relaxed) {
            if sink.send(letter.clone()).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(counting, sending);
}

/// What a flood comes from: a thread of its own that gives way to everybody else, because whoever floods takes the time of
/// a machine of its own and not of those who measure on this one.
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
            // On Linux this is the thread, not the process.
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

    /// Ends it; how many letters it was.
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
async fn one_token_that_floods_does_not_hold_up_the_others() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("box").await;
    let mut tokens = Vec::new();
    for n in 0..6 {
        tokens.push(token(&office, &format!("other-{n}")).await);
    }
    let bad = token(&office, "flood").await;
    let mut seen = Vec::new();
    // Other programs of the machine may get in the way once, but not three times.
    for _ in 0..3 {
        let calm = others(&office, &tokens).await;
        let flood = Flood::begin(&office, &bad);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let flooded = others(&office, &tokens).await;
        let letters = tokio::task::spawn_blocking(|| flood.end()).await.unwrap();
        println!("p99 of the others: calm {calm:?}, flooded {flooded:?}; the flood was {letters} letters");
        assert!(letters > 1_000, "only {letters} letters are no flood");
        seen.push((calm, flooded));
        if flooded <= (calm * 2).max(calm + floor()) {
            return;
        }
    }
    panic!("calm and flooded: {seen:?}");
}
