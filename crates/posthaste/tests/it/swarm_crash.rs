//! A task survives the process: killed in the middle of fifty, all fifty are finished after the restart, and nothing in
//! them happens twice.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::swarm::{Swarm, boss, hand, team, uuid};

const TASKS: u64 = 50;

/// A program that takes its time over each turn and then answers the supervisor.
fn slow() -> Value {
    let text = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -E 's/^\{"id":([0-9]+).*/\1/')
        { sleep 1.5; printf '{"id":%s,"calls":[{"tool":"send_response","args":{"target":"boss","subject":"re","body":"done"}}]}\n' "$id"; } &
    done"#;
    json!({ "command": ["bash", "-c", text] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_the_process_in_the_middle_of_fifty_tasks_loses_none() {
    let relay = json!({ "builtin": "relay", "to": "hand" });
    let agents = json!([boss(relay, &["hand"]), hand("hand", slow())]);
    let mut swarm = Swarm::open(&team("team", agents), &[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let mut asking = Vec::new();
    for n in 0..TASKS {
        let body = json!({ "body": format!("task {n}"), "task_id": uuid(n) });
        let request = swarm.http.post(format!("{}/message", swarm.url())).bearer_auth(&ann).json(&body);
        asking.push(tokio::spawn(request.send()));
    }
    // Every task has been taken, and the program has every one of them in hand.
    loop {
        let (_, tasks) = swarm.get("/tasks", &ann).await;
        let with_hand = |task: &Value| {
            task["events"].as_array().unwrap().iter().filter(|e| e["event"] == "new_message").count() >= 2
        };
        if tasks.as_object().unwrap().values().filter(|task| with_hand(task)).count() == TASKS as usize {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    swarm.office.take().unwrap().kill();
    for one in asking {
        let answered = one.await.unwrap();
        assert!(
            answered.is_err() || !answered.unwrap().status().is_success(),
            "it was killed before any ended"
        );
    }

    swarm.start(&[], &[]);
    let mut left = TASKS;
    for _ in 0..600 {
        let (_, tasks) = swarm.get("/tasks", &ann).await;
        let done = |task: &&Value| task["completed"] == true;
        left = TASKS - tasks.as_object().unwrap().values().filter(done).count() as u64;
        if left == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(left, 0, "tasks that did not end after the restart");
    let (_, tasks) = swarm.get("/tasks", &ann).await;
    let mut ids = HashSet::new();
    for n in 0..TASKS {
        let events = tasks[uuid(n)]["events"].as_array().unwrap();
        let messages: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "new_message")
            .map(|event| &event["data"]["extra_data"]["full_message"])
            .collect();
        let kinds: Vec<&str> = messages.iter().filter_map(|message| message["msg_type"].as_str()).collect();
        assert_eq!(kinds, ["request", "request", "response", "broadcast_complete"], "task {n}");
        assert_eq!(messages[0]["message"]["body"], format!("task {n}"));
        for message in messages {
            assert!(ids.insert(message["id"].as_str().unwrap().to_owned()), "a message is there twice");
        }
    }
}
