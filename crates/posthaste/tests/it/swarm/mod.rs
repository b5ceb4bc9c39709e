//! The swarm door through the real program: tasks, isolation of instances, streams that resume, errors, and the OpenAPI
//! document.

mod agents;
mod crash;
mod nested;
mod peers;
pub(crate) mod restart;
mod schema;
mod wire;

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::office::Office;

/// A server that hosts a swarm.
pub(crate) struct Swarm {
    pub(crate) dir: TestDir,
    pub(crate) office: Option<Office>,
    pub(crate) http: reqwest::Client,
}

/// The definition of a swarm with the supervisor `boss`.
pub(crate) fn team(name: &str, agents: Value) -> Value {
    json!({
        "name": name, "version": "1.3", "description": "a team", "keywords": ["test"], "public": true,
        "enable_interswarm": true, "entrypoint": "boss", "agents": agents, "actions": [],
    })
}

pub(crate) fn boss(driver: Value, targets: &[&str]) -> Value {
    json!({
        "name": "boss", "driver": driver, "comm_targets": targets, "enable_entrypoint": true,
        "can_complete_tasks": true, "enable_interswarm": true,
    })
}

pub(crate) fn hand(name: &str, driver: Value) -> Value {
    json!({ "name": name, "driver": driver, "comm_targets": ["boss"] })
}

/// The driver of an agent that makes the calls that the message lists.
pub(crate) fn scripted() -> Value {
    json!({ "builtin": "script" })
}

impl Swarm {
    pub(crate) fn open(file: &Value, args: &[&str], env: &[(&str, &str)]) -> Self {
        // Each test is a process of its own, and rustls needs one default provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = TestDir::new();
        dir.write("swarm.json", &file.to_string());
        let mut swarm = Self { dir, office: None, http: reqwest::Client::new() };
        swarm.start(args, env);
        swarm
    }

    pub(crate) fn start(&mut self, args: &[&str], env: &[(&str, &str)]) {
        let file = self.dir.path().join("swarm.json");
        let mut all = vec!["--swarm", file.to_str().unwrap()];
        all.extend(args);
        self.office = Some(Office::open_with(&self.dir.path().join("data"), &all, env));
    }

    pub(crate) fn url(&self) -> &str {
        self.office.as_ref().unwrap().url()
    }

    /// A token, created on the command line.
    pub(crate) fn token(&self, realm: &str, role: &str, name: &str) -> String {
        let data = self.dir.path().join("data");
        let mut posthaste = crate::harness::Posthaste::new();
        posthaste.command.arg("--data").arg(data);
        let made =
            posthaste.args(["token", "create", "--realm", realm, "--role", role, "--name", name]).run().ok();
        made.stdout.trim().to_owned()
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: Value) -> (StatusCode, Value) {
        let request = self.http.post(format!("{}{path}", self.url())).bearer_auth(token).json(&body);
        let response = request.timeout(Duration::from_secs(30)).send().await.expect("an answer");
        let status = response.status();
        (status, response.json().await.unwrap_or_default())
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> (StatusCode, Value) {
        let request = self.http.get(format!("{}{path}", self.url())).bearer_auth(token);
        let response = request.timeout(Duration::from_secs(30)).send().await.expect("an answer");
        let status = response.status();
        (status, response.json().await.unwrap_or_default())
    }

    /// Sends a message and returns the result of its task.
    pub(crate) async fn ask(&self, token: &str, body: Value) -> String {
        let (status, answer) = self.post("/message", token, body).await;
        assert_eq!(status, 200, "{answer}");
        answer["response"].as_str().unwrap().to_owned()
    }
}

/// Waits until a condition is true; panics after a while.
pub(crate) async fn eventually(what: &str, is_true: impl AsyncFn() -> bool) {
    let wait = async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .unwrap_or_else(|_| panic!("never true: {what}"));
}

pub(crate) fn uuid(n: u64) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

pub(crate) fn script(calls: &[(&str, Value)]) -> String {
    let calls: Vec<Value> = calls.iter().map(|(tool, args)| json!({ "tool": tool, "args": args })).collect();
    json!({ "calls": calls }).to_string()
}

fn ask_hand(body: &str) -> String {
    script(&[("send_request", json!({ "target": "hand", "subject": "s", "body": body }))])
}

fn scripted_team() -> Value {
    team("team", json!([boss(scripted(), &["hand"]), hand("hand", scripted())]))
}

/// Requests about a task of one user are refused for all other callers.
#[tokio::test]
async fn instances_are_isolated() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let [ann, bob, boss] = [("user", "ann"), ("user", "bob"), ("admin", "carol")]
        .map(|(role, name)| swarm.token("team", role, name));
    let task = uuid(1);
    let secret = ask_hand("zebra");
    assert_eq!(swarm.ask(&ann, json!({ "body": secret, "task_id": task })).await, "hand:zebra");

    for other in [&bob, &boss] {
        let (status, _) = swarm.get(&format!("/task?task_id={task}"), other).await;
        assert_eq!(status, 404);
        let (_, tasks) = swarm.get("/tasks", other).await;
        assert_eq!(tasks, json!({}));
        let events = swarm.http.get(format!("{}/tasks/{task}/events", swarm.url())).bearer_auth(other).send();
        let events = events.await.unwrap();
        assert_eq!(events.status(), 404);
        assert!(!events.text().await.unwrap().contains("zebra"));
        let (status, _) = swarm.post("/task/cancel", other, json!({ "task_id": task })).await;
        assert_eq!(status, 404);
        let resume = json!({ "body": "x", "task_id": task, "resume_from": "user_response" });
        assert_eq!(swarm.post("/message", other, resume).await.0, 404);
        // The same name is a task of its own, and its agents remember nothing of the other.
        let mine = json!({ "body": "mine", "task_id": task, "show_events": true });
        let (_, answer) = swarm.post("/message", other, mine).await;
        assert_eq!(answer["response"], "mine");
        assert!(!answer.to_string().contains("zebra"), "{answer}");
    }
    // Through other doors, too, only participants find it.
    let search = json!({ "query": "zebra" });
    for (token, seen) in [(&ann, true), (&bob, false)] {
        let found = swarm.office.as_ref().unwrap().as_bearer(token).call("search", search.clone()).await;
        let found = found.expect("a search");
        assert_eq!(!found["hits"].as_array().unwrap().is_empty(), seen, "{found}");
    }
    let (_, one) = swarm.get(&format!("/task?task_id={task}"), &ann).await;
    assert_eq!(one["task_owner"], "user:ann@team");
}

#[tokio::test]
async fn long_messages_are_echoed() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let long = "x".repeat(300_000);
    assert_eq!(swarm.ask(&ann, json!({ "body": long, "task_id": uuid(1) })).await, long);
    let (_, task) = swarm.get(&format!("/task?task_id={}", uuid(1)), &ann).await;
    assert_eq!(task["completed"], true);
}

#[tokio::test]
async fn broken_stream_resumes_after_the_last_event() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let task = uuid(2);
    let body = json!({ "body": ask_hand("x"), "task_id": task, "stream": true });
    let post = |last: Option<String>| {
        let request = swarm.http.post(format!("{}/message", swarm.url())).bearer_auth(&ann).json(&body);
        let request = match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        async { request.send().await.unwrap().text().await.unwrap() }
    };
    let whole = post(None).await;
    let ids: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert!(ids.len() > 5, "{whole}");
    for at in [0, 3, ids.len() - 2] {
        let rest = post(Some(ids[at].to_owned())).await;
        let (_, expected) = whole.split_once(&format!("id: {}\r\n\r\n", ids[at])).unwrap();
        assert_eq!(rest, expected);
    }
    let (_, one) = swarm.get(&format!("/task?task_id={task}"), &ann).await;
    let again =
        one["events"].as_array().unwrap().iter().filter(|event| event["event"] == "task_complete").count();
    assert_eq!(again, 1, "asking for the rest sends nothing");
}

#[tokio::test]
async fn errors_name_the_field() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let far = swarm.token("team", "agent", "far");
    let cases = [
        ("/message", json!({}), "body"),
        ("/message", json!({ "body": 5 }), "body"),
        ("/message", json!({ "body": "x", "subject": 5 }), "subject"),
        ("/message", json!({ "body": "x", "task_id": "no-uuid" }), "task_id"),
        ("/message", json!({ "body": "x", "entrypoint": "hand" }), "entrypoint"),
        ("/message", json!({ "body": "x", "entrypoint": "missing" }), "entrypoint"),
        ("/message", json!({ "body": "x", "stream": "yes" }), "stream"),
        ("/message", json!({ "body": "x", "kwargs": { "max_steps": "many" } }), "kwargs.max_steps"),
        ("/message", json!({ "body": "x", "kwargs": { "timeout": -1 } }), "kwargs.timeout"),
        ("/message", json!({ "body": "x", "resume_from": "user_response" }), "task_id"),
        ("/interswarm/message", json!({ "user_token": "t", "body": "x", "targets": [5] }), "targets[0]"),
        (
            "/interswarm/message",
            json!({ "user_token": "t", "body": "x", "targets": ["a@b", "c@d"] }),
            "targets",
        ),
        ("/interswarm/forward", json!({ "message": { "msg_type": "request" } }), "message."),
    ];
    for (path, body, field) in cases {
        let token = if path == "/interswarm/forward" { &far } else { &ann };
        let (status, answer) = swarm.post(path, token, body.clone()).await;
        assert_eq!(status, 400, "{path} {body}: {answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{field}")), "{path} {body}: {detail}");
    }
}

#[tokio::test]
async fn tasks_end_by_timeout_step_limit_and_cancellation() {
    // Never answers, and ends with the server.
    let endless = json!({ "command": ["sh", "-c", "cat > /dev/null"] });
    let agents =
        json!([boss(scripted(), &["hand", "wall"]), hand("hand", scripted()), hand("wall", endless)]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let wall =
        |body: &str| script(&[("send_request", json!({ "target": "wall", "subject": "s", "body": body }))]);
    let late = json!({ "body": wall("x"), "kwargs": { "timeout": 0.3 }, "show_events": true });
    let (_, answer) = swarm.post("/message", &ann, late).await;
    assert!(answer.to_string().contains("::task_timeout::"), "{answer}");

    let task = uuid(3);
    let long = swarm.post("/message", &ann, json!({ "body": wall("x"), "task_id": task }));
    let stop = async {
        loop {
            let (status, _) = swarm.post("/task/cancel", &ann, json!({ "task_id": task })).await;
            if status == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ((_, answer), ()) = tokio::join!(long, stop);
    assert_eq!(answer["response"], "the task was cancelled");
    assert_eq!(swarm.post("/task/cancel", &ann, json!({ "task_id": task })).await.0, 409);
    // A cancelled task can be continued.
    assert_eq!(swarm.ask(&ann, json!({ "body": "again", "task_id": task })).await, "again");

    let few = json!({ "body": ask_hand("x"), "kwargs": { "max_steps": 1 } });
    assert!(swarm.ask(&ann, few).await.contains("maximum of steps"));
}

#[tokio::test]
async fn idle_agents_do_not_hang_a_task() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    // All agents are idle after this. The supervisor is told so and completes the task with what it was told.
    let broadcast = script(&[("send_broadcast", json!({ "subject": "s", "body": "all hands" }))]);
    assert!(swarm.ask(&ann, json!({ "body": broadcast })).await.contains("no agent has anything left to do"));
    assert!(swarm.ask(&ann, json!({ "body": script(&[]) })).await.contains("no tool was called"));
}

#[tokio::test]
async fn json_web_tokens_identify_the_caller() {
    let dir = TestDir::new();
    let key = "0123456789abcdef0123456789abcdef";
    let path = dir.write("jwt.key", key);
    let swarm = Swarm::open(&scripted_team(), &["--jwt-key", path.to_str().unwrap()], &[]);
    // HS256 over {"sub":"ann","role":"user","exp":4000000000,"realm":"team"}, made elsewhere.
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJyb2xlIjoidXNlciIsImV4cCI6NDAwMDAwMDAwMCwicmVhbG0iOiJ0ZWFtIn0.LE-436-FlvNpE09vJr0vvhNC1DKI3Z8ZF8CMgCg3as4";
    let (status, who) = swarm.get("/whoami", token).await;
    assert_eq!((status.as_u16(), who["id"].as_str(), who["role"].as_str()), (200, Some("ann"), Some("user")));
    assert_eq!(swarm.ask(token, json!({ "body": "hi" })).await, "hi");
    assert_eq!(swarm.get("/whoami", &token.replace(".eyJz", ".eyJa")).await.0, 401);
    assert_eq!(swarm.get("/swarms/dump", token).await.0, 403);
}

#[tokio::test]
async fn revoked_token_is_refused() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    assert_eq!(swarm.get("/whoami", &ann).await.0, 200);
    let data = swarm.dir.path().join("data");
    let run = |args: &[&str]| {
        let mut posthaste = crate::harness::Posthaste::new();
        posthaste.command.arg("--data").arg(&data);
        posthaste.args(args.iter().copied()).run().ok()
    };
    let listed = run(&["token", "list", "--realm", "team", "--json"]).json();
    let id = listed.to_string();
    let id = listed.pointer("/0/id").or(listed.pointer("/tokens/0/id")).unwrap_or_else(|| panic!("{id}"));
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    run(&["token", "revoke", &id, "--realm", "team"]);
    assert_eq!(swarm.get("/whoami", &ann).await.0, 401);
}

/// The server's own document has every path, body and schema of the specification.
#[tokio::test]
async fn openapi_document_covers_the_specification() {
    let swarm = Swarm::open(&scripted_team(), &[], &[]);
    let (_, ours) = swarm.get("/openapi.json", "").await;
    let spec: Value = serde_json::from_str(include_str!("../../data/mail-1.3/openapi.json")).unwrap();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        for (method, wanted) in methods.as_object().unwrap() {
            let got = &ours["paths"][path][method];
            assert_eq!(got["operationId"], wanted["operationId"], "{method} {path}");
            // Operations that need no token there say so here.
            let security = wanted.get("security").cloned().unwrap_or_else(|| json!([]));
            assert_eq!(got["security"], security, "{method} {path}");
            let mut body = modern(&wanted["requestBody"]);
            if path == "/message" {
                // The specification's text calls it `body`; the server accepts both.
                let schema = &mut body["content"]["application/json"]["schema"];
                assert_eq!(schema.as_object_mut().unwrap().remove("required"), Some(json!(["message"])));
            }
            covers(&got["requestBody"], &body, &format!("{method} {path}"));
            for (status, answer) in wanted["responses"].as_object().unwrap() {
                let (wanted, got) = (&answer["content"], &got["responses"][status]["content"]);
                for (form, content) in wanted.as_object().into_iter().flatten() {
                    for (name, field) in content["schema"]["properties"].as_object().into_iter().flatten() {
                        let ours = &got[form]["schema"]["properties"][name];
                        assert!(ours.is_object(), "{method} {path} {status} {name} is missing");
                        // Where the specification says `nullable` or one type, ours may also be null, or an object.
                        if field["type"] == ours["type"] && ours.get("anyOf").is_none() {
                            assert_eq!(ours["properties"].is_object(), field["properties"].is_object());
                        }
                    }
                }
            }
        }
    }
    let file = |name: &str| -> Value {
        let text =
            std::fs::read_to_string(format!("{}/tests/data/mail-1.3/{name}", env!("CARGO_MANIFEST_DIR")));
        serde_json::from_str(&text.unwrap()).unwrap()
    };
    let schemas = &ours["components"]["schemas"];
    let core = file("MAIL-core.schema.json");
    for (name, wanted) in core["$defs"].as_object().unwrap() {
        assert_eq!(schemas[name], pointed(wanted), "{name}");
    }
    let mut between = pointed(&file("MAIL-interswarm.schema.json"));
    between.as_object_mut().unwrap().retain(|key, _| !key.starts_with('$'));
    assert_eq!(schemas["MAILInterswarmMessage"], between);
}

/// A schema of OpenAPI 3.0's in the words of 3.1, which has no `nullable`.
fn modern(schema: &Value) -> Value {
    let mut modern = match schema {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, one)| (key.clone(), modern(one))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(modern).collect()),
        other => other.clone(),
    };
    if modern.as_object_mut().and_then(|map| map.remove("nullable")) == Some(Value::Bool(true)) {
        modern["type"] = json!([modern["type"], "null"]);
    }
    modern
}

/// Whether a schema has all that another has; it may say more.
fn covers(ours: &Value, wanted: &Value, at: &str) {
    match wanted {
        Value::Object(map) => {
            map.iter().for_each(|(key, one)| covers(&ours[key], one, &format!("{at} {key}")));
        }
        Value::Array(list) => {
            let ours = ours.as_array().unwrap_or_else(|| panic!("{at}: {ours}"));
            list.iter().for_each(|one| assert!(ours.contains(one), "{at}: {one} is missing"));
        }
        other => assert_eq!(ours, other, "{at}"),
    }
}

/// A schema whose references point into an OpenAPI document.
pub(crate) fn pointed(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let field = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value.as_str().and_then(|text| text.split_once("#/$defs/")))
                {
                    ("$ref", Some((_, name))) => Value::from(format!("#/components/schemas/{name}")),
                    _ => pointed(value),
                };
                (key.clone(), value)
            };
            Value::Object(map.iter().map(field).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(pointed).collect()),
        other => other.clone(),
    }
}
