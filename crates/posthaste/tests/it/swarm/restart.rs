//! Two swarms, one of which is killed while an agent is at work: the question is answered once, and both swarms learn of the
//! end. And the registry after a restart.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::harness::{Listening, listen};
use crate::office::Office;
use crate::swarm::{Swarm, boss, eventually, script, scripted, team, uuid};

/// A proxy with a fixed address in front of a server that moves; without a server it closes connections.
pub(crate) struct Address {
    pub(crate) url: String,
    office: Arc<Mutex<Option<String>>>,
    refused: watch::Sender<usize>,
}

impl Address {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let office: Arc<Mutex<Option<String>>> = Arc::default();
        let refused = watch::Sender::new(0);
        let (behind, closed) = (office.clone(), refused.clone());
        tokio::spawn(async move {
            while let Ok((mut caller, _)) = listener.accept().await {
                let Some(to) = behind.lock().unwrap().clone() else {
                    closed.send_modify(|count| *count += 1);
                    continue;
                };
                tokio::spawn(async move {
                    let Ok(mut office) = TcpStream::connect(to).await else { return };
                    drop(tokio::io::copy_bidirectional(&mut caller, &mut office).await);
                });
            }
        });
        Self { url, office, refused }
    }

    pub(crate) fn leads_to(&self, swarm: &Swarm) {
        *self.office.lock().unwrap() = swarm.url().strip_prefix("http://").map(str::to_owned);
    }

    pub(crate) fn leads_nowhere(&self) {
        *self.office.lock().unwrap() = None;
    }

    /// Waits until some connections were closed because there was no server.
    pub(crate) async fn has_refused(&self, connections: usize) {
        let mut refused = self.refused.subscribe();
        let wait = refused.wait_for(|count| *count >= connections);
        tokio::time::timeout(Duration::from_secs(30), wait).await.expect("connections are tried").unwrap();
    }
}

/// A web hook that holds its answers back until they are released.
struct Hook {
    listening: Listening,
    asked: Arc<AtomicUsize>,
    may_answer: watch::Sender<bool>,
}

impl Hook {
    /// Answers with these calls.
    async fn new(calls: Value) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let (may_answer, waiting) = watch::channel(false);
        let seen = asked.clone();
        let handler = async move |State(()): State<()>, Json(_): Json<Value>| {
            seen.fetch_add(1, Ordering::SeqCst);
            let mut waiting = waiting.clone();
            drop(waiting.wait_for(|may| *may).await);
            Json(json!({ "calls": calls }))
        };
        let app = Router::new().route("/turn", post(handler)).with_state(());
        Self { listening: listen(app, ListenOptions::default()).await, asked, may_answer }
    }

    fn driver(&self) -> Value {
        json!({ "http": format!("http://{}/turn", self.listening.address) })
    }

    async fn has_been_asked(&self, times: usize) {
        let asked = async {
            while self.asked.load(Ordering::SeqCst) < times {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), asked).await.expect("the agent is asked");
    }
}

/// Two servers that are registered with each other by fixed addresses: `north` asks the clerk of `south`.
struct Two {
    north: Swarm,
    south: Swarm,
    to_north: Address,
    to_south: Address,
    clerk: Hook,
    ann: String,
}

const TASK: u64 = 7;
/// Delivery is tried after 0, 0.2, 0.6 and 1.4 seconds, which is longer than a question is retried.
const TRIES_LONGER_THAN_A_QUESTION: usize = 4;

impl Two {
    /// With the clerk's answer.
    async fn open(calls: Value, supervises: bool) -> Self {
        let clerk = Hook::new(calls).await;
        let mut north = team("north", json!([boss(scripted(), &["clerk@south"])]));
        let answering = json!({
            "name": "clerk", "driver": clerk.driver(), "comm_targets": ["boss@north"], "enable_interswarm": true,
            "can_complete_tasks": supervises, "enable_entrypoint": true,
        });
        let mut south = team("south", json!([boss(scripted(), &["clerk"]), answering]));
        // A question to a swarm that is away is retried for this time.
        for file in [&mut north, &mut south] {
            file["interswarm_patience"] = json!(0.5);
        }
        let (north, south) = (Swarm::open(&north, &[], &[]), Swarm::open(&south, &[], &[]));
        let (to_north, to_south) = (Address::new().await, Address::new().await);
        to_north.leads_to(&north);
        to_south.leads_to(&south);
        for (here, name, there, peer, url) in [
            (&north, "north", &south, "south", &to_south.url),
            (&south, "south", &north, "north", &to_north.url),
        ] {
            let (admin, token) = (here.token(name, "admin", "adm"), there.token(peer, "agent", name));
            let entry = json!({ "name": peer, "base_url": url, "auth_token": token, "volatile": false });
            let (status, answer) = here.post("/swarms", &admin, entry).await;
            assert_eq!(status, 200, "{answer}");
        }
        let ann = north.token("north", "user", "ann");
        Self { north, south, to_north, to_south, clerk, ann }
    }

    /// Begins the task and waits until the clerk handles the question.
    async fn ask(&self) -> tokio::task::JoinHandle<reqwest::Result<reqwest::Response>> {
        let body = script(&[(
            "send_request",
            json!({ "target": "clerk@south", "subject": "s", "body": "how many?" }),
        )]);
        let body = json!({ "body": body, "task_id": uuid(TASK) });
        let request = self.north.http.post(format!("{}/message", self.north.url()));
        let asking = tokio::spawn(request.bearer_auth(&self.ann).json(&body).send());
        self.clerk.has_been_asked(1).await;
        asking
    }

    fn kill_north(&mut self) {
        self.to_north.leads_nowhere();
        self.north.office.take().unwrap().kill();
    }

    fn start_north(&mut self) {
        self.north.start(&[], &[]);
        self.to_north.leads_to(&self.north);
    }

    fn kill_south(&mut self) {
        self.to_south.leads_nowhere();
        self.south.office.take().unwrap().kill();
    }

    fn start_south(&mut self) {
        self.south.start(&[], &[]);
        self.to_south.leads_to(&self.south);
    }

    /// Waits for the end on both sides, and checks that everything was said once.
    async fn ends_with(&self, answer: &str, said_south: &[(&str, &str)]) {
        let path = format!("/task?task_id={}", uuid(TASK));
        let mut task = Value::Null;
        for _ in 0..400 {
            task = self.north.get(&path, &self.ann).await.1;
            if task["completed"] == true {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(task["completed"], true, "the task ends after the restart: {task}");
        let events = task["events"].as_array().unwrap();
        let messages: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "new_message" || event["event"] == "interswarm_message_sent")
            .map(|event| &event["data"]["extra_data"]["full_message"])
            .collect();
        let said: Vec<[&str; 2]> = messages
            .iter()
            .map(|mail| {
                [&mail["msg_type"], &mail["message"]["sender"]["address"]].map(|x| x.as_str().unwrap())
            })
            .collect();
        let expected = [
            ["request", "ann"],
            ["request", "boss"],
            ["response", "clerk@south"],
            ["broadcast_complete", "boss"],
            // The notice of the end for the contributing swarm.
            ["response", "boss"],
        ];
        assert_eq!(said, expected, "{task}");
        assert_eq!(messages[3]["message"]["body"], answer);
        let ids: HashSet<&str> = messages.iter().filter_map(|mail| mail["id"].as_str()).collect();
        assert_eq!(ids.len(), messages.len(), "no message is there twice");
        let contributors = task["task_contributors"].to_string();
        assert!(contributors.contains("swarm:north@south"), "{contributors}");

        let office = self.south.office.as_ref().unwrap();
        eventually("south has all messages", async || said_at(office).await.len() >= said_south.len()).await;
        // For a while nothing is added.
        for _ in 0..15 {
            let found = said_at(office).await;
            let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            assert_eq!(found, said_south);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What was said in the task at the other swarm: subject and body.
async fn said_at(office: &Office) -> Vec<(String, String)> {
    let Ok(thread) = office.call("thread", json!({ "id": uuid(TASK) })).await else { return Vec::new() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = thread["said"].as_array().unwrap();
    said.iter().map(|one| (text(&one["subject"]), text(&one["body"]))).collect()
}

fn answer(body: &str) -> Value {
    json!([{ "tool": "send_response", "args": { "target": "boss@north", "subject": "re", "body": body } }])
}

const AS_IT_IS: [(&str, &str); 3] = [("s", "how many?"), ("re", "seven"), ("::task_complete::", "seven")];

/// The asking server is killed and restarted before the answer is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_reaches_a_restarted_swarm() {
    let mut two = Two::open(answer("seven"), false).await;
    let asking = two.ask().await;
    two.kill_north();
    drop(asking.await);
    two.start_north();
    two.clerk.may_answer.send_replace(true);
    two.ends_with("seven", &AS_IT_IS).await;
    assert_eq!(two.clerk.asked.load(Ordering::SeqCst), 1);
}

/// The answer is sent while the asking server is away, for longer than a question is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_is_retried_until_the_asking_swarm_is_back() {
    let mut two = Two::open(answer("seven"), false).await;
    let asking = two.ask().await;
    two.kill_north();
    drop(asking.await);
    two.clerk.may_answer.send_replace(true);
    two.to_north.has_refused(TRIES_LONGER_THAN_A_QUESTION).await;
    two.start_north();
    two.ends_with("seven", &AS_IT_IS).await;
    assert_eq!(two.clerk.asked.load(Ordering::SeqCst), 1, "the clerk is not told of a failed delivery");
}

/// The same where the other swarm's supervisor completes instead of answering.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completion_is_retried_until_the_asking_swarm_is_back() {
    let complete = json!([{ "tool": "task_complete", "args": { "finish_message": "seven" } }]);
    let mut two = Two::open(complete, true).await;
    let asking = two.ask().await;
    two.kill_north();
    drop(asking.await);
    two.clerk.may_answer.send_replace(true);
    two.to_north.has_refused(TRIES_LONGER_THAN_A_QUESTION).await;
    two.start_north();
    let said = [
        ("s", "how many?"),
        ("::task_complete::", "seven"),
        ("::task_complete::", "seven"),
        ("::task_complete::", "seven"),
    ];
    two.ends_with("seven", &said).await;
}

/// The answering server is killed while its agent is at work: the agent is asked again and answers once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_swarm_answers_after_its_restart() {
    let mut two = Two::open(answer("seven"), false).await;
    let asking = two.ask().await;
    two.kill_south();
    two.start_south();
    two.clerk.has_been_asked(2).await;
    two.clerk.may_answer.send_replace(true);
    let answered = asking.await.unwrap().unwrap();
    let answered: Value = answered.json().await.unwrap();
    assert_eq!(answered["response"], "seven");
    two.ends_with("seven", &AS_IT_IS).await;
}

/// Both are killed and restarted in the opposite order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_killed_swarms_finish_their_task() {
    let mut two = Two::open(answer("seven"), false).await;
    let asking = two.ask().await;
    two.kill_south();
    two.kill_north();
    drop(asking.await);
    two.start_south();
    two.clerk.has_been_asked(2).await;
    two.clerk.may_answer.send_replace(true);
    two.to_north.has_refused(1).await;
    two.start_north();
    two.ends_with("seven", &AS_IT_IS).await;
}

/// A swarm that answers health checks and records the tokens of messages.
async fn peer(name: &str) -> (Listening, Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>) {
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let checked = Arc::new(AtomicUsize::new(0));
    let root = json!({
        "name": "mail", "version": "1.3", "protocol_version": "1.3", "status": "running", "uptime": 1,
        "swarm": { "name": name, "public": true, "description": "nearby", "keywords": ["near"] },
    });
    let (seen, counted) = (shown.clone(), checked.clone());
    let forward = async move |headers: axum::http::HeaderMap, Json(body): Json<Value>| {
        let token = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        // Only the question is recorded; a notice of the end may follow.
        if body["message"]["msg_type"] == "request" {
            seen.lock().unwrap().push(token.to_owned());
        }
        let task = body["message"]["payload"]["task_id"].clone();
        Json(json!({ "swarm": "x", "task_id": task, "status": "success", "local_runner": "swarm:team@x" }))
    };
    let health = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Json(json!({ "status": "healthy" }))
    };
    let app = Router::new()
        .route("/", get(async move || Json(root.clone())))
        .route("/health", get(health))
        .route("/interswarm/forward", post(forward));
    (listen(app, ListenOptions::default()).await, shown, checked)
}

fn named<'a>(listed: &'a Value, name: &str) -> Option<&'a Value> {
    listed["swarms"].as_array().unwrap().iter().find(|one| one["swarm_name"] == name)
}

/// Persistent entries are there after a restart, without tokens in the database or in the list; volatile ones are not. Health
/// is checked at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registry_survives_a_kill() {
    let (kept, kept_shown, kept_checked) = peer("kept").await;
    let (from_env, env_shown, _) = peer("far-away").await;
    let (gone, _, _) = peer("gone").await;
    let (passing, _, _) = peer("passing").await;
    let targets = ["boss@kept", "boss@far-away", "boss@passing"];
    let file = team("team", json!([boss(scripted(), &targets)]));
    let mut swarm = Swarm::open(&file, &[], &[]);
    // Tokens of the environment are sent to swarms that the operator registers.
    let admin = swarm.office.as_ref().unwrap().token().to_owned();
    let entry = |name: &str, of: &Listening, token: &str, volatile: bool| {
        json!({
            "name": name, "base_url": format!("http://{}", of.address), "auth_token": token, "volatile": volatile,
            "metadata": { "room": name },
        })
    };
    for body in [
        entry("kept", &kept, "secret-of-kept", false),
        entry("far-away", &from_env, "secret-before", false),
        entry("gone", &gone, "secret-of-gone", false),
        entry("passing", &passing, "secret-of-passing", true),
    ] {
        assert_eq!(swarm.post("/swarms", &admin, body).await.0, 200);
    }
    let (_, before) = swarm.get("/swarms", "").await;
    assert_eq!(before["swarms"].as_array().unwrap().len(), 5);
    let checks = kept_checked.load(Ordering::SeqCst);
    swarm.office.take().unwrap().kill();
    gone.close().await;

    swarm.start(&[], &[("SWARM_AUTH_TOKEN_FAR_AWAY", "secret-of-the-environment")]);
    let mut listed = Value::Null;
    for _ in 0..200 {
        listed = swarm.get("/swarms", "").await.1;
        if named(&listed, "gone").is_some_and(|one| one["is_active"] == false)
            && kept_checked.load(Ordering::SeqCst) > checks
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(named(&listed, "passing"), None, "it was volatile");
    for name in ["kept", "far-away", "gone"] {
        let one = named(&listed, name).unwrap_or_else(|| panic!("{name} is missing: {listed}"));
        let was = named(&before, name).unwrap();
        for field in ["base_url", "version", "swarm_description", "keywords", "metadata"] {
            assert_eq!(one[field], was[field], "{name} {field}");
        }
        assert_eq!(one["is_active"], name != "gone", "{one}");
        assert!(one["last_seen"].is_string(), "{one}");
        let fields: HashSet<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
        for hidden in ["auth_token", "auth_token_ref", "volatile", "public", "latency"] {
            assert!(!fields.contains(hidden), "{one}");
        }
    }
    assert!(kept_checked.load(Ordering::SeqCst) > checks, "its health was not checked");
    let seen = |list: &Value| named(list, "kept").unwrap()["last_seen"].as_str().unwrap().to_owned();
    assert!(seen(&listed) > seen(&before), "{} {}", seen(&listed), seen(&before));
    assert!(!listed.to_string().contains("secret"), "{listed}");
    // The database has a reference; the tokens are in a file of their own.
    let data = swarm.dir.path().join("data");
    for file in ["realms/team.db", "realms/team.db-wal"] {
        let database = std::fs::read(data.join(file)).unwrap_or_default();
        assert!(!database.windows(7).any(|part| part == b"secret-"), "{file} holds a token");
    }

    // The stored token is sent, and the environment's takes precedence over the one that was given.
    let ann = swarm.token("team", "user", "ann");
    for (peer, shown, token) in [
        ("kept", &kept_shown, "Bearer secret-of-kept"),
        ("far-away", &env_shown, "Bearer secret-of-the-environment"),
    ] {
        let ask = script(&[(
            "send_request",
            json!({ "target": format!("boss@{peer}"), "subject": "s", "body": "x" }),
        )]);
        swarm.ask(&ann, json!({ "body": ask, "kwargs": { "timeout": 1 } })).await;
        assert_eq!(*shown.lock().unwrap(), [token]);
    }
    let ask = script(&[("send_request", json!({ "target": "boss@passing", "subject": "s", "body": "x" }))]);
    assert!(swarm.ask(&ann, json!({ "body": ask })).await.contains("not known here"));
}
