//! Between swarms: a token speaks for one swarm, the operator's secrets go where the operator says, and one caller does
//! not start all of the operator's programs at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{Listening, listen};
use crate::swarm::{Swarm, boss, script, scripted, team, uuid};
use crate::web::Visitor;

/// A swarm `far` that keeps the credentials it is shown.
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
async fn secrets_of_the_environment_go_where_the_operator_says() {
    let (ours, theirs) = (far().await, far().await);
    let file = team("team", json!([boss(scripted(), &["boss@far"])]));
    let env = [("SWARM_AUTH_TOKEN_FAR", "operators-secret")];
    let mut swarm = Swarm::open(&file, &[], &env);
    let (admin, ann) = (swarm.token("team", "admin", "adm"), swarm.token("team", "user", "ann"));
    let key = swarm.office.as_ref().unwrap().token().to_owned();
    let entry = |at: &Listening| json!({ "name": "far", "base_url": format!("http://{}", at.address), "volatile": false });
    // Writes to the swarm `far`, wherever it is said to be.
    let ask = async |swarm: &Swarm| {
        let to = json!({ "target": "boss@far", "subject": "s", "body": "x" });
        let body = json!({ "body": script(&[("send_request", to)]), "kwargs": { "timeout": 1 } });
        assert_eq!(swarm.post("/message", &ann, body).await.0, 200);
    };
    let last = |far: &(Listening, Arc<Mutex<Vec<Option<String>>>>)| {
        far.1.lock().unwrap().drain(..).next_back().expect("it was written to")
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
    // At another address, by registration and on the page, it is not shown; nor after a restart.
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
    let shown = async || {
        for _ in 0..200 {
            let (_, known) = swarm.get("/swarms", "").await;
            let all = known["swarms"].as_array().unwrap();
            if all.iter().any(|one| one["base_url"] == address.as_str()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the page's address is not known");
    };
    shown().await;
    ask(&swarm).await;
    assert_eq!(last(&theirs), None);
    // What the operator registered is the operator's after a restart as well.
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

    // Swarms at one host may share a token; not if one has its own, and not with one at another host.
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

/// An agent of the operator's that answers when it is let: how many turns it has at once, and how many were let go on.
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

async fn settle(busy: &AtomicUsize, wanted: usize) {
    for _ in 0..1_000 {
        if busy.load(Ordering::SeqCst) == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(busy.load(Ordering::SeqCst), wanted);
}

#[tokio::test]
async fn one_sender_has_so_many_turns_at_once_and_the_rest_wait() {
    let (program, busy, gate) = slow_program().await;
    let driver = json!({ "http": format!("http://{}/turn", program.address) });
    let swarm = Swarm::open(&team("team", json!([boss(driver, &["boss"])])), &[], &[]);
    let office = swarm.office.as_ref().unwrap();
    let mallory = office.as_bearer(&swarm.token("team", "agent", "mallory"));
    mallory.call("register", json!({ "id": "mallory" })).await.unwrap();
    for n in 0..40 {
        let letter = json!({ "to": ["boss"], "subject": format!("n{n}"), "body": "work" });
        mallory.call("send", letter).await.unwrap();
    }
    settle(&busy, 32).await;
    // Another sender is not held up by it.
    let ann = office.as_bearer(&swarm.token("team", "agent", "ann"));
    ann.call("register", json!({ "id": "ann" })).await.unwrap();
    ann.call("send", json!({ "to": ["boss"], "subject": "hello", "body": "work" })).await.unwrap();
    settle(&busy, 33).await;
    gate.add_permits(41);
    let answered = async || {
        for _ in 0..1_000 {
            let inbox = mallory.call("inbox", json!({ "limit": 100 })).await.unwrap();
            if inbox["messages"].as_array().unwrap().len() == 40 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("not all were answered");
    };
    answered().await;
}
