//! Expensive requests: each is bounded, those of one token do not delay others, and the process can be stopped meanwhile.

use std::time::{Duration, Instant};

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::{Client, Office as MapOffice};
use crate::office::{Bearer, Office, Trouble};

async fn agent(office: &Office, name: &str) -> Bearer {
    office.register(name).await;
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    office.apart(made["token"].as_str().unwrap())
}

/// The most expensive search that is accepted: sixteen words, all matching every word of every text.
fn costly_search() -> Value {
    json!({ "query": vec!["a"; 16].join(" OR "), "limit": 1000 })
}

async fn fill(office: &Office, mallory: &Bearer) {
    office.register("box").await;
    for n in 0..60 {
        let body = "a ".repeat(if n % 2 == 0 { 8_000 } else { 30_000 });
        mallory.call("send", json!({ "to": ["mallory"], "body": body })).await.unwrap();
    }
}

/// Regression: five such searches of one token, abandoned after half a second, stopped all reads for hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expensive_searches_of_one_token_do_not_delay_others() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (mallory, ann) = (agent(&office, "mallory").await, agent(&office, "ann").await);
    fill(&office, &mallory).await;
    let started = Instant::now();
    mallory.call("search", costly_search()).await.expect("an answer");
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    let long = vec!["a"; 200].join(" OR ");
    let refused = mallory.call("search", json!({ "query": long })).await;
    assert_eq!(refused, Err(Trouble::Refused("bad_query".to_owned())));

    let mallory = std::sync::Arc::new(mallory);
    let flood: Vec<_> = (0..100)
        .map(|n| {
            let mallory = mallory.clone();
            tokio::spawn(async move {
                let search = mallory.call("search", costly_search());
                // Every other one hangs up.
                let patience = if n % 2 == 0 { LONG * 3 } else { Duration::from_millis(300) };
                tokio::time::timeout(patience, search).await.ok()
            })
        })
        .collect();
    // The subject is latency in real time while the searches run; the bound is generous.
    let mut slowest = Duration::ZERO;
    for _ in 0..40 {
        let asked = Instant::now();
        ann.call("inbox", json!({})).await.expect("a page");
        ann.call("send", json!({ "to": ["ann"], "body": "still here" })).await.expect("a receipt");
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    for one in flood {
        match one.await.unwrap() {
            None | Some(Ok(_)) => {}
            Some(Err(Trouble::Refused(word))) => assert!(["busy", "too_costly"].contains(&&*word), "{word}"),
            Some(Err(Trouble::Silence)) => panic!("no answer"),
        }
    }
    assert_eq!(office.get("/health").await.0, 200);
}

/// Regression: SIGTERM waited for reads without a limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_a_busy_server() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let mallory = agent(&office, "mallory").await;
    fill(&office, &mallory).await;
    let mallory = std::sync::Arc::new(mallory);
    // The writer waits too: the database is locked from outside.
    let outside = posthaste_engine::store::open_writer(&data.path().join("realms/main.db")).unwrap();
    outside.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..20 {
        let mallory = mallory.clone();
        tokio::spawn(async move {
            match n % 2 {
                0 => mallory.call("search", costly_search()).await,
                _ => mallory.call("send", json!({ "to": ["mallory"], "body": "x" })).await,
            }
        });
    }
    eventually(LONG, "commands wait for the writer", async || {
        office.get("/x-posthaste/status").await.1["queue"].as_u64() > Some(0)
    })
    .await;
    // The server limits its own shutdown to 10 s of real time.
    let asked = Instant::now();
    let ended = tokio::task::spawn_blocking(move || office.close()).await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(11), "{:?}, code {ended:?}", asked.elapsed());
    outside.execute_batch("ROLLBACK").unwrap();
    drop(outside);
    let office = Office::open(data.path());
    assert_eq!(
        office.inbox("mallory", 0).await.len(),
        60,
        "what was acknowledged is there, and nothing else"
    );
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn sighup_does_not_end_a_server_without_tls() {
    let data = TestDir::new();
    let log = data.path().join("log");
    let office = Office::open_logging(data.path(), [], &log);
    let pid = rustix::process::Pid::from_raw(i32::try_from(office.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    eventually(LONG, "the signal was handled", async || {
        std::fs::read_to_string(&log).unwrap().contains("SIGHUP")
    })
    .await;
    for _ in 0..5 {
        assert_eq!(office.get("/health").await.0, 200);
    }
    assert_eq!(office.close(), Some(0));
}

/// Regression: one request for 1,000 messages of 1 MB took gigabytes, and a batch a multiple of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_responses_are_bounded_at_every_door() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let mallory = agent(&office, "mallory").await;
    let body = "x".repeat(900_000);
    for _ in 0..25 {
        mallory.call("send", json!({ "to": ["mallory"], "body": body })).await.unwrap();
    }
    let page = mallory.call("inbox", json!({ "limit": 1000 })).await.unwrap();
    let shown = page["messages"].as_array().unwrap().len();
    assert!((1..=5).contains(&shown) && page["next"].is_number(), "{shown}");

    let http = reqwest::Client::new();
    let token = office.call("token.create", json!({ "role": "agent", "name": "mallory" })).await.unwrap();
    let token = token["token"].as_str().unwrap();
    let post = async |path: &str, call: &dyn Fn(usize) -> Value, count: usize| {
        let batch: Vec<Value> = (0..count).map(call).collect();
        let request = http.post(format!("{}{path}", office.url())).bearer_auth(token);
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = request.header("content-type", "application/json").body(json!(batch).to_string());
        let text = answer.send().await.unwrap().text().await.unwrap();
        (text.len(), serde_json::from_str::<Value>(&text).unwrap())
    };
    let inbox = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "x-posthaste/inbox", "params": { "limit": 1000 } });
    let (bytes, answers) = post("/x-posthaste/rpc", &inbox, 100).await;
    assert!(bytes < 30 << 20, "{bytes}");
    assert_eq!(answers.as_array().unwrap().len(), 100, "each call is answered");
    assert_eq!(answers[99]["error"]["data"]["refusal"], "too_costly", "{}", answers[99]);
    let replay =
        |id| json!({ "jsonrpc": "2.0", "id": id, "method": "map/replay", "params": { "limit": 1000 } });
    let (bytes, answers) = post("/map/rpc", &replay, 100).await;
    assert!(bytes < 100 << 20, "{bytes}");
    assert_eq!(answers.as_array().unwrap().len(), 100, "each call is answered");
    assert_eq!(answers[99]["error"]["data"]["details"]["name"], "too_costly", "{}", answers[99]["error"]);
}

/// Regression: a filter of thousands of patterns was compared with every event, on the threads that serve all callers.
#[tokio::test]
async fn filters_of_many_patterns_are_refused() {
    let office = MapOffice::open(&["--no-auth"]).await;
    let mut client = Client::agent(&office, "mallory").await;
    let globs = |n: usize| -> Vec<String> { (0..n).map(|n| format!("{}b{n}", "*a".repeat(100))).collect() };
    for filter in [
        json!({ "agents": globs(990) }),
        json!({ "$or": [{ "agents": globs(60) }, { "$and": [{ "agents": globs(60) }] }] }),
        json!({ "agents": ["*a".repeat(200)] }),
    ] {
        for method in ["map/subscribe", "map/replay"] {
            let refused = client.call(method, json!({ "filter": filter })).await.unwrap_err();
            assert_eq!(refused["code"], -32602, "{refused}");
        }
    }
    for _ in 0..20 {
        client.call("map/subscribe", json!({ "filter": { "agents": globs(90) } })).await.unwrap();
    }
    let started = Instant::now();
    for n in 0..20 {
        let message = json!({ "to": { "agent": "mallory" }, "payload": n });
        client.call("map/send", message).await.unwrap();
    }
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
}

/// Regression: pings were answered without a limit, at 60 % of a core.
#[tokio::test]
async fn a_flood_of_pings_is_cut_off() {
    let office = MapOffice::open(&[]).await;
    let mut request = office.url().into_client_request().unwrap();
    let bearer = format!("Bearer {}", office.admin_token());
    request.headers_mut().insert("authorization", bearer.parse().unwrap());
    let stream = tokio::net::TcpStream::connect(office.address()).await.unwrap();
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let flood = async {
        // Ends when the server closes the connection.
        for _ in 0..200_000 {
            if socket.feed(Message::Ping(vec![0; 8].into())).await.is_err() || socket.flush().await.is_err() {
                return true;
            }
            if let Some(Some(Ok(Message::Close(Some(frame))))) =
                futures_util::FutureExt::now_or_never(futures_util::StreamExt::next(&mut socket))
            {
                assert_eq!(u16::from(frame.code), 1008);
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(LONG, flood).await.expect("an end in time"), "all pings were accepted");
}

/// Regression: requests with a made-up token each were not counted.
#[tokio::test]
async fn made_up_tokens_count_for_their_address() {
    let data = TestDir::new();
    let office = Office::open_with(data.path(), &[], &[("POSTHASTE_RATE_REQUESTS", "20/h")]);
    let http = reqwest::Client::new();
    let mut last = 0;
    for n in 0..25 {
        let request = http.get(format!("{}/messages", office.url())).bearer_auth(format!("made-up-{n}"));
        last = request.send().await.unwrap().status().as_u16();
    }
    assert_eq!(last, 429);
}
