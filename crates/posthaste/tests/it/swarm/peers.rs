//! Messages between swarms: over verified TLS, retried while a swarm is away, and reported to the sender if it stays away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};

use crate::harness::{Listening, TestDir, listen};
use crate::swarm::{Swarm, boss, script, scripted, team};
use crate::web::Visitor;

fn with_peer(name: &str, peer: &str) -> Value {
    let target = format!("boss@{peer}");
    team(name, json!([boss(scripted(), &[&target])]))
}

fn ask_peer(peer: &str, body: &str) -> String {
    script(&[("send_request", json!({ "target": format!("boss@{peer}"), "subject": "s", "body": body }))])
}

/// Two servers with self-signed certificates that each other trusts.
#[tokio::test]
async fn two_servers_work_on_a_task_over_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = TestDir::new();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let cert = dir.write("cert.pem", &cert.pem());
    let key = dir.write("key.pem", &signing_key.serialize_pem());
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let tls = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", cert];
    let trust = std::fs::read(cert).unwrap();
    let client = reqwest::Client::builder()
        .add_root_certificate(reqwest::Certificate::from_pem(&trust).unwrap())
        .build()
        .unwrap();
    let mut north = Swarm::open(&with_peer("north", "south"), &tls, &[]);
    let mut south = Swarm::open(&with_peer("south", "north"), &tls, &[]);
    (north.http, south.http) = (client.clone(), client.clone());
    let (admin_n, admin_s) = (north.token("north", "admin", "adm"), south.token("south", "admin", "adm"));
    let (of_n, of_s) = (south.token("south", "agent", "north"), north.token("north", "agent", "south"));
    let entry = |name: &str, url: &str, token: &str| json!({ "name": name, "base_url": url, "auth_token": token, "volatile": false });
    let (status, answer) = north.post("/swarms", &admin_n, entry("south", south.url(), &of_n)).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(south.post("/swarms", &admin_s, entry("north", north.url(), &of_s)).await.0, 200);
    let ann = north.token("north", "user", "ann");
    let said = north.ask(&ann, json!({ "body": ask_peer("south", "over the wire") })).await;
    assert_eq!(said, "over the wire", "the other supervisor completes, and what it says comes back");

    // Without the certificate authority the same address is refused.
    let doubting = Swarm::open(&with_peer("east", "south"), &[], &[]);
    let admin = doubting.token("east", "admin", "adm");
    let (status, answer) = doubting.post("/swarms", &admin, entry("south", south.url(), &of_n)).await;
    assert_eq!(status, 502, "{answer}");
    // The token is stored in a file of its own, and not in the database.
    let realm = north.dir.path().join("data/realms");
    for file in ["north.db", "north.db-wal"] {
        let database = std::fs::read(realm.join(file)).unwrap();
        assert!(!database.windows(of_n.len()).any(|part| part == of_n.as_bytes()), "{file} holds the token");
    }
}

/// A swarm that refuses the first messages.
async fn reluctant(refusals: usize, status: StatusCode) -> (Listening, Arc<AtomicUsize>) {
    let tried = Arc::new(AtomicUsize::new(0));
    let seen = tried.clone();
    let forward = async move |Json(body): Json<Value>| {
        if seen.fetch_add(1, Ordering::SeqCst) < refusals {
            return (status, Json(json!({ "detail": "not now" }))).into_response();
        }
        let task = body["message"]["payload"]["task_id"].clone();
        let answer =
            json!({ "swarm": "far", "task_id": task, "status": "success", "local_runner": "swarm:team@far" });
        Json(answer).into_response()
    };
    let root = json!({ "name": "mail", "version": "1.3", "swarm": { "name": "far", "public": true }, "status": "running", "uptime": 1 });
    let app = Router::new()
        .route("/", get(async move || Json(root.clone())))
        .route("/interswarm/forward", post(forward));
    (listen(app, ListenOptions::default()).await, tried)
}

async fn team_with_far(far: &Listening) -> (Swarm, String) {
    let swarm = Swarm::open(&with_peer("team", "far"), &[], &[]);
    let admin = swarm.token("team", "admin", "adm");
    let entry = json!({ "name": "far", "base_url": format!("http://{}", far.address), "auth_token": "t" });
    assert_eq!(swarm.post("/swarms", &admin, entry).await.0, 200);
    let ann = swarm.token("team", "user", "ann");
    (swarm, ann)
}

#[tokio::test]
async fn delivery_to_a_busy_swarm_is_retried() {
    let (far, tried) = reluctant(2, StatusCode::SERVICE_UNAVAILABLE).await;
    let (swarm, ann) = team_with_far(&far).await;
    // The other swarm never answers the question, so the task times out; the test is about the delivery.
    let body = json!({ "body": ask_peer("far", "x"), "kwargs": { "timeout": 3 } });
    swarm.ask(&ann, body).await;
    assert_eq!(tried.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn failed_delivery_is_reported_to_the_sender() {
    let (far, tried) = reluctant(usize::MAX, StatusCode::INTERNAL_SERVER_ERROR).await;
    let (swarm, ann) = team_with_far(&far).await;
    let said = swarm.ask(&ann, json!({ "body": ask_peer("far", "x") })).await;
    assert!(said.contains("did not reach the swarm far") && said.contains("not now"), "{said}");
    assert_eq!(tried.load(Ordering::SeqCst), 1, "a refusal is not argued with");
    far.close().await;
    let said = swarm.ask(&ann, json!({ "body": ask_peer("far", "x") })).await;
    assert!(said.contains("cannot be reached"), "{said}");
    // A swarm that was never registered.
    let unknown = team("team", json!([boss(scripted(), &["boss@nowhere"])]));
    let alone = Swarm::open(&unknown, &[], &[]);
    let ann = alone.token("team", "user", "ann");
    assert!(alone.ask(&ann, json!({ "body": ask_peer("nowhere", "x") })).await.contains("not known here"));
}

/// A message for another swarm that was stored before the process was killed is delivered after the restart.
#[tokio::test]
async fn outbox_survives_a_kill() {
    let (far, tried) = reluctant(1, StatusCode::SERVICE_UNAVAILABLE).await;
    let mut file = with_peer("team", "far");
    file["interswarm_patience"] = json!(600);
    let mut swarm = Swarm::open(&file, &[], &[]);
    let admin = swarm.token("team", "admin", "adm");
    let entry = json!({ "name": "far", "base_url": format!("http://{}", far.address), "auth_token": "t", "volatile": false });
    assert_eq!(swarm.post("/swarms", &admin, entry).await.0, 200);
    let ann = swarm.token("team", "user", "ann");
    let body = json!({ "body": ask_peer("far", "x"), "task_id": crate::swarm::uuid(9) });
    let request = swarm.http.post(format!("{}/message", swarm.url())).bearer_auth(&ann).json(&body);
    let asking = tokio::spawn(request.send());
    while tried.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    swarm.office.take().unwrap().kill();
    let _ = asking.await;
    let before = tried.load(Ordering::SeqCst);
    swarm.start(&[], &[]);
    for _ in 0..400 {
        if tried.load(Ordering::SeqCst) > before || before > 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(tried.load(Ordering::SeqCst) >= 2, "the message was not delivered after the restart");
}

/// An answer that is retried with growing pauses does not delay a later question.
#[tokio::test]
async fn question_is_not_delayed_by_an_answer() {
    let (far, tried) = reluctant(usize::MAX, StatusCode::SERVICE_UNAVAILABLE).await;
    let mut file = with_peer("team", "far");
    file["interswarm_patience"] = json!(0.5);
    let swarm = Swarm::open(&file, &[], &[]);
    let admin = swarm.token("team", "admin", "adm");
    let entry = json!({ "name": "far", "base_url": format!("http://{}", far.address), "auth_token": "t" });
    assert_eq!(swarm.post("/swarms", &admin, entry).await.0, 200);
    let ann = swarm.token("team", "user", "ann");
    let answer = json!({ "target": "boss@far", "subject": "s", "body": "late" });
    swarm.ask(&ann, json!({ "body": script(&[("send_response", answer)]) })).await;
    // After 0.2, 0.6, 1.4, 3.0 and 6.2 seconds; the next try would be 6.4 seconds later.
    let tries = async {
        while tried.load(Ordering::SeqCst) < 6 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), tries).await.expect("the answer is tried on");
    let started = std::time::Instant::now();
    let said = swarm.ask(&ann, json!({ "body": ask_peer("far", "x") })).await;
    assert!(said.contains("did not reach the swarm far"), "{said}");
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_secs(4), "it took {took:?}");
}

/// Swarms that are added or removed on the page are registered or removed at once.
#[tokio::test]
async fn swarms_are_added_and_removed_on_the_page() {
    let (far, tried) = reluctant(0, StatusCode::OK).await;
    let swarm = Swarm::open(&with_peer("team", "far"), &[], &[]);
    let office = swarm.office.as_ref().unwrap();
    let mut visitor = Visitor::signed_in(office, office.token()).await;
    let word = visitor.get("/ui/settings").await.word();
    let address = format!("http://{}", far.address);
    let fields = [("word", word.as_str()), ("name", "far"), ("kind", "server"), ("url", &address)];
    assert_eq!(visitor.post("/ui/do/peer", &fields).await.status, 303);
    let listed = async |wanted: bool| {
        for _ in 0..200 {
            let (_, known) = swarm.get("/swarms", "").await;
            let there = known["swarms"].as_array().unwrap().iter().any(|one| one["swarm_name"] == "far");
            if there == wanted {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("far is{} listed", if wanted { " not" } else { "" });
    };
    listed(true).await;
    let ann = swarm.token("team", "user", "ann");
    swarm.ask(&ann, json!({ "body": ask_peer("far", "x"), "kwargs": { "timeout": 1 } })).await;
    assert!(tried.load(Ordering::SeqCst) >= 1, "the message was not delivered");
    let fields = [("word", word.as_str()), ("peer", "far")];
    assert_eq!(visitor.post("/ui/do/forget", &fields).await.status, 303);
    listed(false).await;
    assert!(swarm.ask(&ann, json!({ "body": ask_peer("far", "x") })).await.contains("not known here"));
}
