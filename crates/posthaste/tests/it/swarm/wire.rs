//! The answers of the swarm door against the schemas of the specification and of the served document: closed objects have no
//! other members, ids are distinct, and results are in the order of the calls.

use std::collections::HashSet;

use reqwest::header;
use serde_json::{Value, json};

use super::schema::Document;
use crate::swarm::{Swarm, boss, hand, pointed, script, scripted, team, uuid};

fn specification() -> Document {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let mut document = read(include_str!("../../data/mail-1.3/openapi.json"));
    let core = read(include_str!("../../data/mail-1.3/MAIL-core.schema.json"));
    let mut between = pointed(&read(include_str!("../../data/mail-1.3/MAIL-interswarm.schema.json")));
    between.as_object_mut().unwrap().retain(|key, _| !key.starts_with('$'));
    let schemas = &mut document["components"]["schemas"];
    for (name, schema) in core["$defs"].as_object().unwrap() {
        schemas[name] = pointed(schema);
    }
    schemas["MAILInterswarmMessage"] = between;
    Document(document)
}

fn two() -> Value {
    team("team", json!([boss(scripted(), &["hand"]), hand("hand", scripted())]))
}

/// Every answer at MAIL's paths has exactly the members that the schemas name.
#[tokio::test]
async fn answers_keep_to_closed_objects() {
    let swarm = Swarm::open(&two(), &[], &[]);
    let (ann, admin) = (swarm.token("team", "user", "ann"), swarm.token("team", "admin", "adm"));
    let far = Swarm::open(&team("far", json!([boss(scripted(), &[])])), &[], &[]);
    let (_, ours) = swarm.get("/openapi.json", "").await;
    let documents = [("specification", specification()), ("served", Document(ours))];
    let check = |method: &str, path: &str, (status, answer): (reqwest::StatusCode, Value)| {
        for (name, document) in &documents {
            let schema = document.answer(method, path, status.as_u16());
            document.check(&answer, schema, &format!("{name}: {method} {path} {status}"));
        }
    };
    let entry = json!({ "name": "far", "base_url": far.url(), "auth_token": "t" });
    check("post", "/swarms/register", swarm.post("/swarms/register", &admin, entry).await);
    let unreachable = json!({ "name": "bare", "base_url": far.url(), "metadata": { "a": 1 } });
    check("post", "/swarms/register", swarm.post("/swarms/register", &admin, unreachable).await);
    let (status, listed) = swarm.get("/swarms", "").await;
    assert_eq!(listed["swarms"].as_array().unwrap().len(), 3, "{listed}");
    check("get", "/swarms", (status, listed));
    for path in ["/status", "/whoami"] {
        check("get", path, swarm.get(path, &ann).await);
        check("get", path, swarm.get(path, &admin).await);
    }
    check("get", "/", swarm.get("/?protocol=mail", "").await);
    check("get", "/health", swarm.get("/health?protocol=mail", "").await);
    let (status, answer) = swarm.post("/message", &ann, json!({ "message": "hello" })).await;
    assert_eq!(answer, json!({ "response": "hello" }), "events are left out unless they are asked for");
    check("post", "/message", (status, answer));
    let shown = json!({ "body": "hello", "show_events": true });
    check("post", "/message", swarm.post("/message", &ann, shown).await);
    for (kind, targets) in [("request", json!(["hand"])), ("broadcast", json!(["hand", "boss"]))] {
        let direct = json!({ "user_token": ann, "body": "x", "targets": targets, "msg_type": kind, "stream": kind == "request" });
        check("post", "/interswarm/message", swarm.post("/interswarm/message", &ann, direct).await);
    }
    let served = &documents[1].1;
    for (method, path, asked) in [("get", "/", "/"), ("get", "/health", "/health")] {
        let (_, answer) = swarm.get(asked, "").await;
        served.check(&answer, served.answer(method, path, 200), path);
    }
    let (_, answer) = swarm.post("/health", office_key(&swarm), json!({ "status": "healthy" })).await;
    served.check(&answer, served.answer("post", "/health", 200), "POST /health");
    // Another swarm opens a task and continues it.
    let peer = swarm.token("team", "agent", "far");
    for (n, path) in [(1, "/interswarm/forward"), (2, "/interswarm/back")] {
        let address = |name: &str| json!({ "address_type": "agent", "address": name });
        let message = json!({
            "message_id": uuid(100 + n), "source_swarm": "far", "target_swarm": "team", "timestamp": "2026-01-01T00:00:00Z",
            "msg_type": "request", "task_owner": "user:bob@far",
            "task_contributors": ["user:bob@far", "swarm:far@team"],
            "payload": {
                "task_id": uuid(99), "request_id": uuid(200 + n), "sender": address("boss@far"),
                "recipient": address("boss@team"), "subject": "s", "body": "x", "sender_swarm": "far",
            },
        });
        let schema = json!({ "$ref": "#/components/schemas/MAILInterswarmMessage" });
        documents[0].1.check(&message, &schema, "the test's own message");
        check("post", path, swarm.post(path, &peer, json!({ "message": message })).await);
    }
    let task = json!({ "body": "hello", "task_id": uuid(7) });
    assert_eq!(swarm.ask(&ann, task).await, "hello");
    for (path, asked, token) in [
        ("/tasks", "/tasks".to_owned(), &ann),
        ("/task", format!("/task?task_id={}", uuid(7)), &ann),
        ("/swarms/dump", "/swarms/dump".to_owned(), &admin),
    ] {
        let (status, answer) = swarm.get(&asked, token).await;
        served.check(&answer, served.answer("get", path, status.as_u16()), path);
    }
    for (path, token, body) in [
        ("/task/cancel", &ann, json!({ "task_id": uuid(7) })),
        ("/swarms", &admin, json!({ "name": "far", "base_url": far.url() })),
        ("/swarms/load", &admin, json!({ "json": two().to_string() })),
    ] {
        let (status, answer) = swarm.post(path, token, body).await;
        served.check(&answer, served.answer("post", path, status.as_u16()), path);
    }
    // The served document lists the refusals.
    for (method, path, token, body, status) in [
        ("get", "/status", "bad", Value::Null, 401),
        ("post", "/message", "bad", json!({}), 401),
        ("post", "/message", ann.as_str(), json!({}), 400),
        ("post", "/swarms", ann.as_str(), json!({}), 403),
        ("post", "/swarms/register", ann.as_str(), json!({}), 403),
        ("post", "/health", ann.as_str(), json!({ "status": "x" }), 403),
        ("post", "/interswarm/forward", ann.as_str(), json!({}), 403),
    ] {
        let got = match method {
            "get" => swarm.get(path, token).await,
            _ => swarm.post(path, token, body).await,
        };
        assert_eq!(got.0, status, "{method} {path}");
        served.check(&got.1, served.answer(method, path, status), path);
    }
}

fn office_key(swarm: &Swarm) -> &str {
    swarm.office.as_ref().unwrap().token()
}

/// The caller chooses the protocol of `/health`, which MAIL and AIRC share.
#[tokio::test]
async fn the_caller_chooses_the_protocol_of_health() {
    let swarm = Swarm::open(&two(), &[], &[]);
    let members = |answer: &Value| -> Vec<String> { answer.as_object().unwrap().keys().cloned().collect() };
    let mail = ["status", "swarm_name", "timestamp"];
    assert_eq!(members(&swarm.get("/health?protocol=mail", "").await.1), mail);
    let airc = swarm.get("/health?protocol=airc", "").await.1;
    assert!(airc.get("swarm_name").is_none() && airc["protocol"] == "AIRC", "{airc}");
    assert_eq!(swarm.get("/health?protocol=none", "").await.0, 400);
    let both = swarm.get("/health", "").await.1;
    assert!(both.get("swarm_name").is_some() && both["protocol"] == "AIRC", "{both}");
    let asked = swarm.http.get(format!("{}/health", swarm.url())).header(header::ACCEPT, "application/json");
    assert_eq!(members(&asked.send().await.unwrap().json().await.unwrap()), mail);
}

/// The server's own figures have a path of their own, for users and not for agents.
#[tokio::test]
async fn the_servers_figures_are_at_a_path_of_its_own() {
    let swarm = Swarm::open(&two(), &[], &[]);
    let (ann, peer) = (swarm.token("team", "user", "ann"), swarm.token("team", "agent", "far"));
    let (status, figures) = swarm.get("/x-posthaste/status", &ann).await;
    assert_eq!(status, 200, "{figures}");
    assert!(figures["limits"]["message_bytes"].as_u64() > Some(0) && figures["realm"] == "team", "{figures}");
    assert_eq!(swarm.get("/x-posthaste/status", &peer).await.0, 403);
    assert_eq!(swarm.get("/x-posthaste/status", "bad").await.0, 401);
}

/// The id of a request, broadcast or interrupt differs from that of the message around it.
#[tokio::test]
async fn ids_inside_messages_are_their_own() {
    let swarm = Swarm::open(&two(), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let send = |tool: &'static str, args: Value| (tool, args);
    let body = script(&[
        send("send_broadcast", json!({ "subject": "s", "body": "b", "targets": ["hand"] })),
        send("send_interrupt", json!({ "target": "hand", "subject": "s", "body": "i" })),
        send("send_request", json!({ "target": "hand", "subject": "s", "body": "r" })),
    ]);
    let (_, answer) = swarm.post("/message", &ann, json!({ "body": body, "show_events": true })).await;
    let document = specification();
    let (mut kinds, mut ids, mut own_ids) = (HashSet::new(), HashSet::new(), HashSet::new());
    for event in answer["events"].as_array().unwrap().iter().filter(|event| event["event"] == "new_message") {
        let mail = &event["data"]["extra_data"]["full_message"];
        document.check(mail, &json!({ "$ref": "#/components/schemas/MAILMessage" }), "a message");
        let kind = mail["msg_type"].as_str().unwrap();
        let named = match kind {
            "request" | "response" => "request_id",
            "interrupt" => "interrupt_id",
            _ => "broadcast_id",
        };
        let (id, own) = (&mail["id"], &mail["message"][named]);
        assert_ne!(id, own, "{kind}");
        kinds.insert(kind);
        ids.insert(id.as_str().unwrap());
        own_ids.insert(own.as_str().unwrap());
    }
    assert_eq!(kinds.len(), 5, "every kind was seen: {kinds:?}");
    assert!(ids.is_disjoint(&own_ids));
}

/// The agent gets the results of several breakpoint calls in the order of its calls.
#[tokio::test]
async fn breakpoint_results_come_in_the_order_of_the_calls() {
    use axum::routing::post;
    let hook = async |axum::Json(turn): axum::Json<Value>| {
        let results = turn["tool_results"].as_array().unwrap();
        let text: Vec<&str> = results.iter().filter_map(|one| one["content"].as_str()).collect();
        let ask = |n: u32| json!({ "call_id": format!("c{n}"), "tool": "ask_human", "args": { "n": n } });
        axum::Json(match turn["resumed"] == true {
            true => {
                json!({ "calls": [{ "tool": "task_complete", "args": { "finish_message": text.join(",") } }] })
            }
            false => json!({ "calls": [ask(1), ask(2), ask(3)] }),
        })
    };
    let listening = crate::harness::listen(
        axum::Router::new().route("/turn", post(hook)),
        posthaste_host::http::listen::ListenOptions::default(),
    )
    .await;
    let driver = json!({ "http": format!("http://{}/turn", listening.address) });
    let mut file = team("team", json!([boss(driver, &[])]));
    file["breakpoint_tools"] = json!(["ask_human"]);
    file["actions"] = json!([{ "name": "ask_human", "description": "asks", "parameters": {}, "driver": { "command": ["true"] } }]);
    let mut swarm = Swarm::open(&file, &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    for (n, order, restart) in [(1, [2, 3, 1], false), (2, [3, 2, 1], true)] {
        swarm.ask(&ann, json!({ "body": "go", "task_id": uuid(n) })).await;
        if restart {
            swarm.office.take().unwrap().kill();
            swarm.start(&[], &[]);
        }
        let results: Vec<Value> =
            order.iter().map(|n| json!({ "call_id": format!("c{n}"), "content": format!("r{n}") })).collect();
        let resume = json!({
            "body": "", "task_id": uuid(n), "resume_from": "breakpoint_tool_call",
            "kwargs": { "breakpoint_tool_call_result": results },
        });
        assert_eq!(swarm.ask(&ann, resume).await, "r1,r2,r3");
    }
}

/// The served document is OpenAPI 3.1, says which operations are public, and names every path and method.
#[tokio::test]
async fn the_served_document_is_openapi_3_1() {
    let swarm = Swarm::open(&two(), &[], &[]);
    let (_, document) = swarm.get("/openapi.json", "").await;
    assert!(!document.to_string().contains("nullable"), "a word of OpenAPI 3.0");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let url = format!("{}{}", swarm.url(), path.replace("{task_id}", &uuid(1)));
            let method_name = reqwest::Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let got = swarm.http.request(method_name, url).send().await.unwrap().status().as_u16();
            let public = operation["security"] == json!([]);
            assert_eq!(got != 401, public, "{method} {path} without a token is {got}");
            assert!(
                operation["responses"].get(got.to_string()).is_some(),
                "{method} {path}: {got} is not listed"
            );
        }
    }
    let post = |path: &str| {
        document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"].clone()
    };
    assert_eq!(post("/swarms")["properties"]["name"]["minLength"], 1);
    let direct = post("/interswarm/message");
    assert_eq!(direct["properties"]["user_token"]["minLength"], 1);
    assert_eq!(direct["properties"]["task_id"]["format"], "uuid");
    assert!(document["paths"]["/health"]["post"].is_object());
}
