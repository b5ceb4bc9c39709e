//! Peers that vanish in the middle of an exchange, and come back.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::TestDir;
use crate::map::client::Client;
use crate::office::Office;
use crate::swarm::{Swarm, boss, script, scripted, team};

/// What another system does with a letter that is routed to it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Takes it and says so.
    Answers,
    /// Takes it and is gone before it can say so.
    HangsUp,
    /// Is cut off in the middle of its answer.
    BreaksOff,
    /// Says nothing more and reads nothing more, and keeps the line open.
    FallsSilent,
}

/// A system that other systems connect to; what was routed to it, by its payload.
#[derive(Clone, Default)]
struct Elsewhere {
    routed: Arc<Mutex<Vec<Value>>>,
}

impl Elsewhere {
    /// Takes one connection and serves it in its manner.
    async fn open(&self, manner: Manner) -> String {
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
                match manner {
                    Manner::Answers => socket.send(Message::text(taken)).await.unwrap(),
                    Manner::HangsUp => return,
                    Manner::BreaksOff => {
                        // The head of a frame and half of what it promises.
                        let mut bytes = vec![0x81, 126, 0, u8::try_from(taken.len()).unwrap()];
                        bytes.extend(&taken.as_bytes()[..taken.len() / 2]);
                        socket.get_mut().write_all(&bytes).await.unwrap();
                        return;
                    }
                    Manner::FallsSilent => std::future::pending().await,
                }
            }
        });
        endpoint
    }
}

async fn send(ann: &mut Client, payload: &str) -> Result<Value, Value> {
    ann.call("map/send", json!({ "to": { "system": "far", "agent": "zoe" }, "payload": payload })).await
}

/// The sender hears of every letter that is not known to have arrived, within a bounded time; nothing is sent twice by the
/// office itself; once the system is back, letters arrive again.
#[tokio::test]
async fn a_system_that_vanishes_during_an_exchange_is_told_to_the_sender() {
    let dir = TestDir::new();
    let office = Office::open_with(dir.path(), &["--no-auth"], &[("POSTHASTE_PING_EVERY", "200ms")]);
    let mut ann = Client::agent_at(office.url(), office.token(), "ann").await;
    let far = Elsewhere::default();
    for manner in [Manner::HangsUp, Manner::BreaksOff, Manner::FallsSilent, Manner::Answers] {
        let link = json!({ "systemId": "far", "endpoint": far.open(manner).await });
        assert_eq!(ann.call("map/federation/connect", link).await.unwrap()["connected"], true, "{manner:?}");
        let payload = format!("{manner:?}");
        let started = Instant::now();
        let sent = send(&mut ann, &payload).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(5), "{manner:?}: told after {:?}", started.elapsed());
        let receipt = &sent["receipts"].as_array().unwrap().last().unwrap().clone();
        if manner == Manner::Answers {
            assert_eq!(receipt["status"], "delivered", "{sent}");
            continue;
        }
        assert_eq!(receipt["status"], "failed", "{manner:?}: {sent}");
        assert!(receipt["error"].as_str().is_some_and(|why| !why.is_empty()), "{sent}");
        // The link is gone with its system, so further letters are refused at once.
        let started = Instant::now();
        while send(&mut ann, "further").await.is_ok() {
            assert!(started.elapsed() < Duration::from_secs(5), "{manner:?}: the link stays");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let routed: Vec<Value> =
        far.routed.lock().unwrap().iter().filter(|payload| **payload != "further").cloned().collect();
    assert_eq!(routed, ["HangsUp", "BreaksOff", "FallsSilent", "Answers"], "each once");
}

/// One HTTP request, read whole.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let length: usize = length.trim().parse().unwrap();
            while bytes.len() < end + 4 + length {
                match stream.read(&mut piece).await.ok()? {
                    0 => return None,
                    count => bytes.extend_from_slice(&piece[..count]),
                }
            }
            return Some((head, bytes[end + 4..].to_vec()));
        }
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Another swarm that hangs up on the first letter while it is still reading, breaks off its answer to the second, and
/// takes the third. Gives the ids under which letters came whole.
async fn shaky_swarm() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ids = Arc::new(Mutex::new(Vec::new()));
    let (seen, mut posts) = (ids.clone(), 0);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut first = [0; 4];
            // Waits until the request is there without taking anything of it.
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

/// A letter whose answer was lost is carried again under the same id, by which the other side knows it; its sender is not
/// told that it failed.
#[tokio::test]
async fn a_swarm_that_vanishes_during_an_exchange_gets_the_letter_again_under_its_id() {
    let (url, ids) = shaky_swarm().await;
    let swarm = Swarm::open(&team("team", json!([boss(scripted(), &["boss@far"])])), &[], &[]);
    let admin = swarm.token("team", "admin", "adm");
    let entry = json!({ "name": "far", "base_url": url, "auth_token": "t" });
    assert_eq!(swarm.post("/swarms", &admin, entry).await.0, 200);
    let ann = swarm.token("team", "user", "ann");
    let ask = script(&[("send_request", json!({ "target": "boss@far", "subject": "s", "body": "x" }))]);
    // The other swarm never answers the question itself, so the task ends by its time.
    let said = swarm.ask(&ann, json!({ "body": ask, "kwargs": { "timeout": 4 } })).await;
    assert!(!said.contains("did not reach"), "{said}");
    // On a busy machine the task may end before the letter has arrived.
    let started = Instant::now();
    while ids.lock().unwrap().len() < 2 && started.elapsed() < crate::harness::LONG {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let ids = ids.lock().unwrap().clone();
    // The news that the task has ended is another letter.
    let (again, others): (Vec<_>, Vec<_>) = ids.iter().partition(|id| **id == ids[0]);
    assert_eq!(
        again.len(),
        2,
        "carried under one id until its answer came whole, and not once more: {ids:?}"
    );
    assert!(others.len() <= 1, "{ids:?}");
}

/// The other end of the same: a letter that comes twice because the first answer was lost does its work once.
#[tokio::test]
async fn a_letter_of_another_swarm_that_comes_twice_counts_once() {
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
        // The first answer is not waited for.
        let request = swarm.http.post(format!("{}/interswarm/forward", swarm.url())).bearer_auth(&far);
        let _ = tokio::time::timeout(Duration::from_millis(3), request.json(&wrapper).send()).await;
    }
    let (status, answer) = swarm.post("/interswarm/forward", &far, wrapper).await;
    assert_eq!(status, 200, "{answer}");
    let office = swarm.office.as_ref().unwrap();
    let letters = office.inbox("boss", 0).await;
    let found = letters.iter().filter(|letter| letter.to_string().contains("only once")).count();
    assert_eq!(found, 1, "{letters:?}");
}
