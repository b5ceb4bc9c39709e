//! Between swarms: a token speaks for one swarm, the operator's secrets go to the operator's addresses only, and the turns of
//! one sender are limited.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{LONG, Listening, eventually, listen};
use crate::swarm::{Swarm, boss, script, scripted, team, uuid};
use crate::web::Visitor;

/// A swarm `far` that records the credentials it receives.
async fn far() -> (Listening, Arc<Mutex<Vec<Option<String>>>>) {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = shown.clone();
    let forward = async move |headers: HeaderMap, Json(body): Json<Value>| {
        let bearer = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
        let said = body["message"]["auth_token"].as_str().filter(|token| !token.is_empty());
        assert_eq!(said.map(|token| format!("Bearer {token}")), bearer);
        seen.lock().unwrap().push(bearer);
        let task = body["message"]["payload"]["task_id"].clone();
        Json(
            json!({ "swarm": "far", "task_id": task, "status": "success", "local_runner": "swarm:team@far" }),
        )
    };
    let root = json!({ "name": "mail", "version": "1.3", "swarm": { "name": "far", "public": true } });
    let app = Router::new()
        .route("/", get(async move || Json(root.clone())))
        .route("/health", get(async || "well"))
        .route("/interswarm/forward", post(forward));
    (listen(app, ListenOptions::default()).await, shown)
}

#[tokio::test]
async fn environment_secrets_go_to_the_operators_addresses_only() {
    let (ours, theirs) = (far().await, far().await);
    let file = team("team", json!([boss(scripted(), &["boss@far"])]));
    let env = [("SWARM_AUTH_TOKEN_FAR", "operators-secret")];
    let mut swarm = Swarm::open(&file, &[], &env);
    let (admin, ann) = (swarm.token("team", "admin", "adm"), swarm.token("team", "user", "ann"));
    let key = swarm.office.as_ref().unwrap().token().to_owned();
    let entry = |at: &Listening| json!({ "name": "far", "base_url": format!("http://{}", at.address), "volatile": false });
    // Sends a message to the swarm `far`, at its registered address.
    let ask = async |swarm: &Swarm| {
        let to = json!({ "target": "boss@far", "subject": "s", "body": "x" });
        let body = json!({ "body": script(&[("send_request", to)]), "kwargs": { "timeout": 1 } });
        assert_eq!(swarm.post("/message", &ann, body).await.0, 200);
    };
    let last = |far: &(Listening, Arc<Mutex<Vec<Option<String>>>>)| {
        far.1.lock().unwrap().drain(..).next_back().expect("it received a message")
    };
    let secret = Some("Bearer operators-secret".to_owned());

    assert_eq!(swarm.post("/swarms/register", &admin, entry(&theirs.0)).await.0, 200);
    ask(&swarm).await;
    assert_eq!(last(&theirs), None, "an admin of the realm is not the operator");
    assert_eq!(swarm.post("/swarms/register", &key, entry(&ours.0)).await.0, 200);
    ask(&swarm).await;
    assert_eq!(last(&ours), secret);
    assert_eq!(swarm.post("/swarms", &admin, entry(&ours.0)).await.0, 200);
    ask(&swarm).await;
    assert_eq!(last(&ours), secret, "the same address is still the operator's");
    // The secret is not sent to another address, registered by an admin or on the page; nor after a restart.
    assert_eq!(swarm.post("/swarms", &admin, entry(&theirs.0)).await.0, 200);
    ask(&swarm).await;
    assert_eq!(last(&theirs), None);
    swarm.office.take().unwrap().close();
    swarm.start(&[], &env);
    ask(&swarm).await;
    assert_eq!(last(&theirs), None);
    assert_eq!(swarm.post("/swarms", &key, entry(&ours.0)).await.0, 200);
    let office = swarm.office.as_ref().unwrap();
    let mut visitor = Visitor::signed_in(office, &admin).await;
    let word = visitor.get("/ui/settings").await.word();
    let address = format!("http://{}", theirs.0.address);
    let fields = [("word", word.as_str()), ("name", "far"), ("kind", "server"), ("url", &address)];
    assert_eq!(visitor.post("/ui/do/peer", &fields).await.status, 303);
    eventually(LONG, "the address from the page is known", async || {
        let (_, known) = swarm.get("/swarms", "").await;
        known["swarms"].as_array().unwrap().iter().any(|one| one["base_url"] == address.as_str())
    })
    .await;
    ask(&swarm).await;
    assert_eq!(last(&theirs), None);
    // The operator's registration keeps its rights after a restart.
    assert_eq!(swarm.post("/swarms", &key, entry(&ours.0)).await.0, 200);
    swarm.office.take().unwrap().close();
    swarm.start(&[], &env);
    ask(&swarm).await;
    assert_eq!(last(&ours), secret);
}

fn wrapper(source: &str, sender: &str, task: u64) -> Value {
    json!({ "message": {
        "message_id": uuid(task + 500), "source_swarm": source, "target_swarm": "team",
        "timestamp": "2026-11-18T10:00:00Z", "msg_type": "request", "task_owner": format!("user:bob@{source}"),
        "task_contributors": [format!("user:bob@{source}")], "auth_token": "none", "metadata": {},
        "payload": {
            "task_id": uuid(task), "request_id": uuid(task + 600), "subject": "s", "body": "Please wire it all.",
            "sender": { "address_type": "agent", "address": sender }, "sender_swarm": source,
            "recipient": { "address_type": "agent", "address": "boss@team" }, "recipient_swarm": "team",
            "routing_info": {},
        },
    } })
}

#[tokio::test]
async fn a_token_speaks_for_the_swarm_of_its_name() {
    let file = team("team", json!([boss(json!({ "builtin": "echo" }), &["boss"])]));
    let swarm = Swarm::open(&file, &[], &[]);
    let (peer, bank) = (swarm.token("team", "agent", "peer"), swarm.token("team", "agent", "bank"));
    for path in ["/interswarm/forward", "/interswarm/back"] {
        let (status, answer) = swarm.post(path, &peer, wrapper("bank", "ceo@bank", 1)).await;
        assert_eq!(status, 403, "{path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("speaks for the swarm \"peer\""), "{answer}");
    }
    let (status, answer) = swarm.post("/interswarm/forward", &peer, wrapper("peer", "ceo@bank", 2)).await;
    assert_eq!(status, 400, "an address of another swarm: {answer}");
    assert_eq!(swarm.post("/interswarm/forward", &peer, wrapper("peer", "boss@peer", 3)).await.0, 200);
    assert_eq!(swarm.post("/interswarm/forward", &bank, wrapper("bank", "ceo@bank", 4)).await.0, 200);

    // Swarms at one host may share a token, unless one has its own; swarms at different hosts may not.
    let (far, away) = (far().await.0, far().await.0);
    let key = swarm.office.as_ref().unwrap().token();
    let entry = |name: &str, url: String| json!({ "name": name, "base_url": url });
    let here = |at: &Listening| format!("http://{}", at.address);
    for (name, url) in [
        ("peer", here(&far)),
        ("twin", here(&away)),
        ("bank", here(&away)),
        ("elsewhere", format!("http://localhost:{}", away.address.port())),
    ] {
        assert_eq!(swarm.post("/swarms", key, entry(name, url)).await.0, 200, "{name}");
    }
    for (source, wanted) in [("twin", 200), ("bank", 403), ("elsewhere", 403), ("unknown", 403)] {
        let said = wrapper(source, &format!("boss@{source}"), 5);
        assert_eq!(swarm.post("/interswarm/forward", &peer, said).await.0, wanted, "{source}");
    }
}

/// An agent's program that answers when the test lets it: its address, the number of its turns, and the gate.
async fn slow_program() -> (Listening, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (busy, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (at, let_go) = (busy.clone(), gate.clone());
    let turn = async move |Json(_): Json<Value>| {
        at.fetch_add(1, Ordering::SeqCst);
        let_go.acquire().await.unwrap().forget();
        at.fetch_sub(1, Ordering::SeqCst);
        Json(json!({ "calls": [{ "tool": "task_complete", "args": { "finish_message": "done" } }] }))
    };
    let app = Router::new().route("/turn", post(turn));
    (listen(app, ListenOptions::default()).await, busy, gate)
}

async fn turns(busy: &AtomicUsize, wanted: usize) {
    eventually(LONG, &format!("{wanted} turns"), async || busy.load(Ordering::SeqCst) == wanted).await;
}

#[tokio::test]
async fn concurrent_turns_per_sender_are_limited() {
    let (program, busy, gate) = slow_program().await;
    let driver = json!({ "http": format!("http://{}/turn", program.address) });
    let swarm = Swarm::open(&team("team", json!([boss(driver, &["boss"])])), &[], &[]);
    let office = swarm.office.as_ref().unwrap();
    let mallory = office.as_bearer(&swarm.token("team", "agent", "mallory"));
    mallory.call("register", json!({ "id": "mallory" })).await.unwrap();
    for n in 0..40 {
        let message = json!({ "to": ["boss"], "subject": format!("n{n}"), "body": "work" });
        mallory.call("send", message).await.unwrap();
    }
    turns(&busy, 32).await;
    // Another sender does not wait for them.
    let ann = office.as_bearer(&swarm.token("team", "agent", "ann"));
    ann.call("register", json!({ "id": "ann" })).await.unwrap();
    ann.call("send", json!({ "to": ["boss"], "subject": "hello", "body": "work" })).await.unwrap();
    turns(&busy, 33).await;
    gate.add_permits(41);
    eventually(LONG * 2, "all are answered", async || {
        let inbox = mallory.call("inbox", json!({ "limit": 100 })).await.unwrap();
        inbox["messages"].as_array().unwrap().len() == 40
    })
    .await;
}
