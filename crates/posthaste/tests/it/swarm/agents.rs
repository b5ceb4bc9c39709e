//! Agents of every kind: programs, web hooks, models, the server's own, and clients of other doors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};

use crate::harness::{Listening, TestDir, listen};
use crate::office::Trouble;
use crate::swarm::{Swarm, boss, hand, script, scripted, team, uuid};

/// The requests to a scripted endpoint, in order.
type Asked = Arc<Mutex<Vec<Value>>>;

async fn serve(path: &str, answer: fn(usize, &Value) -> Response) -> (Listening, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let handler = async move |State(()): State<()>, Json(body): Json<Value>| {
        let n = {
            let mut seen = seen.lock().unwrap();
            seen.push(body.clone());
            seen.len()
        };
        answer(n, &body)
    };
    let app = Router::new().route(path, post(handler)).with_state(());
    (listen(app, ListenOptions::default()).await, asked)
}

fn said(pieces: &[Value]) -> Response {
    let mut text = String::new();
    for piece in pieces {
        text.push_str(&format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": piece }] })));
    }
    text.push_str("data: [DONE]\n\n");
    ([("content-type", "text/event-stream")], text).into_response()
}

/// First asks the hand, with arguments in several pieces; then completes with the answer.
fn supervising(n: usize, body: &Value) -> Response {
    if n == 1 {
        let name = json!({ "name": "send_request", "arguments": "" });
        return said(&[
            json!({ "role": "assistant", "content": null }),
            json!({ "tool_calls": [{ "index": 0, "id": "call_a", "type": "function", "function": name }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"target\":\"hand\",\"subj" } }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "ect\":\"s\",\"body\":\"please\"}" } }] }),
        ]);
    }
    let last = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    let finish =
        json!({ "finish_message": format!("model says {}", last.lines().last().unwrap()) }).to_string();
    let function = json!({ "name": "task_complete", "arguments": finish });
    said(&[
        json!({ "tool_calls": [{ "index": 0, "id": "call_b", "type": "function", "function": function }] }),
    ])
}

#[tokio::test]
async fn a_model_is_offered_the_tools_and_its_calls_are_carried_out() {
    let (endpoint, asked) = serve("/v1/chat/completions", supervising).await;
    let url = format!("http://{}/v1", endpoint.address);
    let model = json!({ "model": { "url": "${MODEL_URL}", "name": "tiny", "key_env": "MODEL_KEY", "system": "Lead." } });
    let agents = json!([boss(model, &["hand"]), hand("hand", scripted())]);
    let swarm = Swarm::open(&team("team", agents), &[], &[("MODEL_URL", &url), ("MODEL_KEY", "k")]);
    let ann = swarm.token("team", "user", "ann");
    assert_eq!(swarm.ask(&ann, json!({ "body": "do it" })).await, "model says hand:please");

    let asked = asked.lock().unwrap();
    let first = &asked[0];
    assert_eq!((first["model"].as_str(), first["stream"].as_bool()), (Some("tiny"), Some(true)));
    let tools: Vec<&str> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    for tool in [
        "send_request",
        "send_response",
        "send_interrupt",
        "send_broadcast",
        "task_complete",
        "acknowledge_broadcast",
        "ignore_broadcast",
        "await_message",
    ] {
        assert!(tools.contains(&tool), "{tools:?}");
    }
    assert!(first["messages"][0]["content"].as_str().unwrap().starts_with("Lead."));
    // The second request shows its calls and their results.
    let roles: Vec<&str> = asked[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(asked[1]["messages"][2]["tool_calls"][0]["function"]["name"], "send_request");
}

/// A model that does not call tools, behind an endpoint that is busy at first.
fn plain(n: usize, _: &Value) -> Response {
    match n {
        1 => axum::http::StatusCode::TOO_MANY_REQUESTS.into_response(),
        _ => Json(json!({ "choices": [{ "message": { "content": "just words" } }] })).into_response(),
    }
}

#[tokio::test]
async fn plain_text_of_a_model_answers_the_sender() {
    let (endpoint, asked) = serve("/v1/chat/completions", plain).await;
    let url = format!("http://{}/v1", endpoint.address);
    let model = json!({ "model": { "url": url, "name": "tiny", "stream": false } });
    let agents = json!([boss(model.clone(), &["hand"]), hand("hand", model)]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    assert_eq!(swarm.ask(&ann, json!({ "body": "hm?" })).await, "just words");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_web_hook_answers_for_an_agent() {
    fn hook(_: usize, body: &Value) -> Response {
        let said = &body["inbox"].as_array().unwrap().last().unwrap()["message"]["body"];
        let args =
            json!({ "target": "boss", "subject": "re", "body": format!("hook:{}", said.as_str().unwrap()) });
        Json(json!({ "calls": [{ "tool": "send_response", "args": args }] })).into_response()
    }
    let (endpoint, _) = serve("/turn", hook).await;
    let driver = json!({ "http": format!("http://{}/turn", endpoint.address) });
    let agents = json!([boss(scripted(), &["hand"]), hand("hand", driver)]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let body = script(&[("send_request", json!({ "target": "hand", "subject": "s", "body": "x" }))]);
    assert_eq!(swarm.ask(&ann, json!({ "body": body })).await, "hook:x");
}

#[tokio::test]
async fn failing_hook_is_reported_to_the_sender() {
    let (endpoint, _) = serve("/turn", |_, _| axum::http::StatusCode::IM_A_TEAPOT.into_response()).await;
    let driver = json!({ "http": format!("http://{}/turn", endpoint.address) });
    let agents = json!([boss(scripted(), &["hand"]), hand("hand", driver.clone())]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let body = script(&[("send_request", json!({ "target": "hand", "subject": "s", "body": "x" }))]);
    assert!(swarm.ask(&ann, json!({ "body": body })).await.contains("418"));
    // If the sender is a user, the task ends.
    let alone = Swarm::open(&team("team", json!([boss(driver, &[])])), &[], &[]);
    let ann = alone.token("team", "user", "ann");
    let (_, answer) = alone.post("/message", &ann, json!({ "body": "x", "show_events": true })).await;
    assert!(answer.to_string().contains("::agent_error::"), "{answer}");
}

/// The program ends once in the middle of a turn; restarted, it answers.
#[tokio::test]
async fn program_is_restarted_with_its_unfinished_turn() {
    let dir = TestDir::new();
    let started = dir.path().join("started");
    let text = format!(
        "while read -r line; do
           if [ ! -e '{started}' ]; then touch '{started}'; exit 3; fi
           id=$(printf '%s' \"$line\" | sed -E 's/^\\{{\"id\":([0-9]+).*/\\1/')
           printf '{{\"id\":%s,\"calls\":[{{\"tool\":\"task_complete\",\"args\":{{\"finish_message\":\"second try\"}}}}]}}\\n' \"$id\"
         done",
        started = started.display()
    );
    let driver = json!({ "command": ["bash", "-c", text] });
    let swarm = Swarm::open(&team("team", json!([boss(driver, &[])])), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    assert_eq!(swarm.ask(&ann, json!({ "body": "x" })).await, "second try");
    assert!(started.exists());
}

#[tokio::test]
async fn builtin_relay_passes_requests_and_answers_on() {
    let relay = json!({ "builtin": "relay", "to": "hand" });
    let agents = json!([boss(relay, &["hand"]), hand("hand", json!({ "builtin": "echo" }))]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    assert_eq!(swarm.ask(&ann, json!({ "body": "there and back" })).await, "there and back");
}

/// An agent of another door reads its message there and answers into the conversation, and the task continues.
#[tokio::test]
async fn an_agent_of_another_door_takes_part() {
    let relay = json!({ "builtin": "relay", "to": "hand" });
    let agents = json!([
        boss(relay, &["hand"]),
        json!({ "name": "hand", "driver": "connected", "comm_targets": ["boss"] })
    ]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let office = swarm.office.as_ref().unwrap();
    office.register("hand").await;
    let task = uuid(5);
    let asking = swarm.ask(&ann, json!({ "body": "who is there?", "task_id": task }));
    let answering = async {
        for _ in 0..400 {
            if let Some(message) = office.inbox("hand", 0).await.first() {
                assert_eq!(message["body"], "who is there?");
                let reply =
                    json!({ "from": "hand", "to": ["boss"], "body": "it is me", "conversation": task });
                office.call("send", reply).await.unwrap();
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no message came");
    };
    // The hand's message is a request to the relay, which asks once more; the second answer would be the same.
    let (answer, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), asking), answering);
    assert_eq!(answer.expect("the task ends"), "it is me");
}

/// Within a task an agent of another door may write only to its comm_targets; other messages are not restricted.
#[tokio::test]
async fn an_agent_of_another_door_keeps_to_its_comm_targets() {
    let relay = json!({ "builtin": "relay", "to": "hand" });
    let agents = json!([
        boss(relay, &["hand"]),
        json!({ "name": "hand", "driver": "connected", "comm_targets": ["boss"] }),
        json!({ "name": "other", "driver": "connected", "comm_targets": ["boss"] }),
        json!({ "name": "echo", "driver": { "builtin": "echo" }, "comm_targets": ["boss"] }),
    ]);
    let swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let office = swarm.office.as_ref().unwrap();
    office.register("hand").await;
    office.register("other").await;
    let task = uuid(6);
    let asking = swarm.ask(&ann, json!({ "body": "who is there?", "task_id": task }));
    let answering = async {
        while office.inbox("hand", 0).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for stranger in ["other", "echo"] {
            let astray = json!({ "from": "hand", "to": [stranger], "body": "psst", "conversation": task });
            let refused = office.call("send", astray).await.expect_err("it is not among its comm_targets");
            assert!(matches!(&refused, Trouble::Refused(code) if code == "not_allowed"), "{refused:?}");
        }
        let plain = json!({ "from": "hand", "to": ["other"], "body": "ordinary mail" });
        office.call("send", plain).await.unwrap();
        let improper = json!({ "from": "hand", "to": ["ann"], "body": "me", "conversation": task });
        office.call("send", improper).await.unwrap();
        let told = async {
            loop {
                let mail = office.inbox("hand", 0).await;
                if mail.iter().any(|message| message["subject"] == "::improper_response_to_user::") {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), told).await.expect("it is told");
        let reply = json!({ "from": "hand", "to": ["boss"], "body": "it is me", "conversation": task });
        office.call("send", reply).await.unwrap();
        assert_eq!(office.inbox("other", 0).await.len(), 1, "only its ordinary mail");
    };
    let (answer, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(30), asking), answering);
    assert_eq!(answer.expect("the task ends"), "it is me");
}

/// The example's answer shows that three agents worked on the question.
#[tokio::test]
async fn the_examples_answer_names_its_agents() {
    let file =
        std::fs::read_to_string(format!("{}/../../examples/swarm/builtin.json", env!("CARGO_MANIFEST_DIR")));
    let swarm = Swarm::open(&serde_json::from_str(&file.unwrap()).unwrap(), &[], &[]);
    let ann = swarm.token("newsroom", "user", "ann");
    let said = swarm.ask(&ann, json!({ "body": "What is new?" })).await;
    let expected = "The editor asked the reporter; the reporter asked the archive; the archive has nothing about \"What is new?\" yet.";
    assert_eq!(said, expected);
    // A placeholder in a message is not replaced.
    assert!(swarm.ask(&ann, json!({ "body": "{self}" })).await.contains("nothing about \"{self}\""));
}
