//! Peers that vanish in the middle of an exchange, and come back.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::Client;
use crate::office::Office;
use crate::swarm::{Swarm, boss, script, scripted, team};

/// What another system does with a message that is routed to it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    /// Accepts it and responds.
    Answers,
    /// Closes the connection without a response.
    HangsUp,
    /// Closes the connection in the middle of its response.
    BreaksOff,
    /// Neither responds nor reads, and keeps the connection open.
    FallsSilent,
}

/// A MAP system that others connect to, and the payloads that were routed to it.
#[derive(Clone, Default)]
struct RemoteSystem {
    routed: Arc<Mutex<Vec<Value>>>,
}

impl RemoteSystem {
    /// Accepts one connection and serves it with the given behaviour.
    async fn open(&self, behaviour: Behaviour) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("ws://{}/map", listener.local_addr().unwrap());
        let routed = self.routed.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(frame)) = socket.next().await {
                let Message::Text(text) = frame else { continue };
                let call: Value = serde_json::from_str(&text).unwrap();
                let answer = |result: Value| {
                    json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }).to_string()
                };
                if call["method"] == "map/connect" {
                    let hello = json!({ "sessionId": "s", "systemInfo": { "systemId": "far" } });
                    socket.send(Message::text(answer(hello))).await.unwrap();
                    continue;
                }
                routed.lock().unwrap().push(call["params"]["envelope"]["payload"]["payload"].clone());
                let taken = answer(json!({ "routed": true, "messageId": "m", "delivered": ["zoe"] }));
                match behaviour {
                    Behaviour::Answers => socket.send(Message::text(taken)).await.unwrap(),
                    Behaviour::HangsUp => return,
                    Behaviour::BreaksOff => {
                        // The head of a frame and half of its payload.
                        let mut bytes = vec![0x81, 126, 0, u8::try_from(taken.len()).unwrap()];
                        bytes.extend(&taken.as_bytes()[..taken.len() / 2]);
                        socket.get_mut().write_all(&bytes).await.unwrap();
                        return;
                    }
                    Behaviour::FallsSilent => std::future::pending().await,
                }
            }
        });
        endpoint
    }
}

async fn send(ann: &mut Client, payload: &str) -> Result<Value, Value> {
    ann.call("map/send", json!({ "to": { "system": "far", "agent": "zoe" }, "payload": payload })).await
}

/// The sender learns within a bounded time of every message that is not known to have arrived; the server sends nothing
/// twice by itself; once the system is back, messages arrive again.
#[tokio::test]
async fn a_system_that_vanishes_during_an_exchange_is_told_to_the_sender() {
    let dir = TestDir::new();
    let office = Office::open_with(dir.path(), &["--no-auth"], &[("POSTHASTE_PING_EVERY", "200ms")]);
    let mut ann = Client::agent_at(office.url(), office.token(), "ann").await;
    let far = RemoteSystem::default();
    for behaviour in [Behaviour::HangsUp, Behaviour::BreaksOff, Behaviour::FallsSilent, Behaviour::Answers] {
        let link = json!({ "systemId": "far", "endpoint": far.open(behaviour).await });
        assert_eq!(
            ann.call("map/federation/connect", link).await.unwrap()["connected"],
            true,
            "{behaviour:?}"
        );
        let payload = format!("{behaviour:?}");
        // The bound on the response is in real time: a link is closed after three unanswered pings.
        let started = Instant::now();
        let sent = send(&mut ann, &payload).await.unwrap();
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{behaviour:?}: told after {:?}",
            started.elapsed()
        );
        let receipt = &sent["receipts"].as_array().unwrap().last().unwrap().clone();
        if behaviour == Behaviour::Answers {
            assert_eq!(receipt["status"], "delivered", "{sent}");
            continue;
        }
        assert_eq!(receipt["status"], "failed", "{behaviour:?}: {sent}");
        assert!(receipt["error"].as_str().is_some_and(|why| !why.is_empty()), "{sent}");
        // The link ends with the system, so further messages are refused at once.
        let what = format!("{behaviour:?}: the link is closed");
        eventually(Duration::from_secs(5), &what, async || send(&mut ann, "further").await.is_err()).await;
    }
    let routed: Vec<Value> =
        far.routed.lock().unwrap().iter().filter(|payload| **payload != "further").cloned().collect();
    assert_eq!(routed, ["HangsUp", "BreaksOff", "FallsSilent", "Answers"], "each once");
}

/// Reads one HTTP request: its head and body.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let length: usize = length.trim().parse().unwrap();
            while bytes.len() < end + 4 + length {
                match stream.read(&mut chunk).await.ok()? {
                    0 => return None,
                    count => bytes.extend_from_slice(&chunk[..count]),
                }
            }
            return Some((head, bytes[end + 4..].to_vec()));
        }
        match stream.read(&mut chunk).await.ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Another swarm that closes the connection while the first message is being sent, breaks off its response to the second,
/// and accepts the third. Returns its URL and the ids of messages that came whole.
async fn shaky_swarm() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ids = Arc::new(Mutex::new(Vec::new()));
    let (seen, mut posts) = (ids.clone(), 0);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 4];
            // Waits for the request without consuming it.
            if stream.peek(&mut first).await.is_err() {
                continue;
            }
            if first.starts_with(b"POST") {
                posts += 1;
                if posts == 1 {
                    let mut half = [0; 100];
                    let _ = stream.read(&mut half).await;
                    continue;
                }
            }
            let Some((head, body)) = request(&mut stream).await else { continue };
            let root = json!({ "name": "mail", "version": "1.3", "status": "running", "uptime": 1,
                "swarm": { "name": "far", "public": true } });
            let mut answer = root.to_string();
            if head.starts_with("post") {
                let wrapper: Value = serde_json::from_slice(&body).unwrap();
                seen.lock().unwrap().push(wrapper["message"]["message_id"].as_str().unwrap().to_owned());
                let task = &wrapper["message"]["payload"]["task_id"];
                answer = json!({ "swarm": "far", "task_id": task, "status": "success",
                    "local_runner": "swarm:team@far" })
                .to_string();
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let whole = format!("{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            let told = if posts == 2 { &whole[..whole.len() - answer.len() / 2] } else { &whole };
            let _ = stream.write_all(told.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, ids)
}

/// Messages that wait for another swarm, in a realm's database.
fn outbound(data: &Path) -> i64 {
    let db = rusqlite::Connection::open(data).unwrap();
    db.query_row("SELECT count(*) FROM outbound", [], |row| row.get(0)).unwrap()
}

/// A message whose response was lost is sent again under the same id, by which the other side recognises it; its sender is
/// not told that it failed.
#[tokio::test]
async fn a_swarm_that_vanishes_gets_the_message_again_under_its_id() {
    let (url, ids) = shaky_swarm().await;
    let swarm = Swarm::open(&team("team", json!([boss(scripted(), &["boss@far"])])), &[], &[]);
    let admin = swarm.token("team", "admin", "adm");
    let entry = json!({ "name": "far", "base_url": url, "auth_token": "t" });
    assert_eq!(swarm.post("/swarms", &admin, entry).await.0, 200);
    let ann = swarm.token("team", "user", "ann");
    let ask = script(&[("send_request", json!({ "target": "boss@far", "subject": "s", "body": "x" }))]);
    // The other swarm never answers the request itself, so the task ends by its timeout.
    let said = swarm.ask(&ann, json!({ "body": ask, "kwargs": { "timeout": 4 } })).await;
    assert!(!said.contains("did not reach"), "{said}");
    // What is not in `outbound` any more is not sent again.
    let data = swarm.dir.path().join("data/realms/team.db");
    eventually(LONG, "every message to the other swarm is delivered", async || outbound(&data) == 0).await;
    let ids = ids.lock().unwrap().clone();
    // The notice that the task has ended is another message.
    let (again, others): (Vec<_>, Vec<_>) = ids.iter().partition(|id| **id == ids[0]);
    assert_eq!(again.len(), 2, "sent under one id until a response came whole, and not again: {ids:?}");
    assert!(others.len() <= 1, "{ids:?}");
}

/// The receiving side: a message that comes twice because the first response was lost is processed once.
#[tokio::test]
async fn a_repeated_message_of_another_swarm_counts_once() {
    let swarm = Swarm::open(&team("team", json!([boss(json!({ "builtin": "echo" }), &["boss"])])), &[], &[]);
    let far = swarm.token("team", "agent", "far");
    let task = crate::swarm::uuid(7);
    let agent = |address: &str| json!({ "address_type": "agent", "address": address });
    let wrapper = json!({ "message": {
        "message_id": crate::swarm::uuid(8), "source_swarm": "far", "target_swarm": "team",
        "timestamp": "2026-01-01T00:00:00Z", "msg_type": "request",
        "task_owner": "user:zoe@far", "task_contributors": ["user:zoe@far"],
        "payload": { "task_id": task, "request_id": crate::swarm::uuid(9), "sender": agent("boss@far"),
            "recipient": agent("boss@team"), "subject": "s", "body": "only once" },
    } });
    for _ in 0..3 {
        // The caller gives up before the response.
        let request = swarm.http.post(format!("{}/interswarm/forward", swarm.url())).bearer_auth(&far);
        let _ = tokio::time::timeout(Duration::from_millis(3), request.json(&wrapper).send()).await;
    }
    let (status, answer) = swarm.post("/interswarm/forward", &far, wrapper).await;
    assert_eq!(status, 200, "{answer}");
    let office = swarm.office.as_ref().unwrap();
    let messages = office.inbox("boss", 0).await;
    let found = messages.iter().filter(|message| message.to_string().contains("only once")).count();
    assert_eq!(found, 1, "{messages:?}");
}
