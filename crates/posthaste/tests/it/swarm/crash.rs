//! Tasks survive a kill of the process: all are finished after the restart, no message is stored twice, and actions that were
//! running are reported as uncertain and not begun again.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::swarm::{Swarm, boss, hand, team, uuid};

const TASKS: u64 = 50;

/// A program that answers the supervisor after a delay.
fn slow() -> Value {
    let text = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -E 's/^\{"id":([0-9]+).*/\1/')
        { sleep 1.5; printf '{"id":%s,"calls":[{"tool":"send_response","args":{"target":"boss","subject":"re","body":"done"}}]}\n' "$id"; } &
    done"#;
    json!({ "command": ["bash", "-c", text] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_server_loses_no_task() {
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
    // The program is handling a turn of every task.
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

/// An action that logs its beginning and its end; the second call takes a while.
const ACTION: &str = r#"read -r args; case $args in *first*) n=1;; *second*) n=2;; *) n=3;; esac
    echo "begun $n" >> "$0"; if [ $n = 2 ]; then sleep 3; fi; echo "ended $n" >> "$0"; echo "result $n""#;

/// The process is killed during the second of three actions: the first is not repeated, the second is reported as uncertain,
/// the third is carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actions_begin_once_despite_a_kill() {
    let text = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -E 's/^\{"id":([0-9]+).*/\1/')
        case $line in
        *"result 3"*) printf '{"id":%s,"calls":[{"tool":"task_complete","args":{"finish_message":"done"}}]}\n' "$id";;
        *) printf '{"id":%s,"calls":[{"call_id":"a","tool":"act","args":{"n":"first"}},{"call_id":"b","tool":"act","args":{"n":"second"}},{"call_id":"c","tool":"act","args":{"n":"third"}}]}\n' "$id";;
        esac
    done"#;
    let mut file = team("team", json!([boss(json!({ "command": ["bash", "-c", text] }), &[])]));
    let mut swarm = Swarm::open(&file, &[], &[]);
    drop(swarm.office.take());
    let log = swarm.dir.path().join("log");
    file["agents"][0]["actions"] = json!(["act"]);
    file["actions"] = json!([{
        "name": "act", "description": "acts", "parameters": { "type": "object" },
        "driver": { "command": ["bash", "-c", ACTION, log.to_str().unwrap()] },
    }]);
    swarm.dir.write("swarm.json", &file.to_string());
    swarm.start(&[], &[]);
    let ann = swarm.token("team", "user", "ann");
    let body = json!({ "body": "act", "task_id": uuid(1) });
    let asking = tokio::spawn(
        swarm.http.post(format!("{}/message", swarm.url())).bearer_auth(&ann).json(&body).send(),
    );
    let noted = || std::fs::read_to_string(&log).unwrap_or_default();
    let begun = async {
        while !noted().contains("begun 2") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), begun).await.expect("the second action begins");
    swarm.office.take().unwrap().kill();
    drop(asking.await);

    swarm.start(&[], &[]);
    let mut task = Value::Null;
    for _ in 0..400 {
        task = swarm.get(&format!("/task?task_id={}", uuid(1)), &ann).await.1;
        if task["completed"] == true {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(task["completed"], true, "{task}");
    let count = |what: &str| noted().lines().filter(|line| *line == what).count();
    assert_eq!([count("begun 1"), count("begun 2"), count("begun 3")], [1, 1, 1], "{}", noted());
    let events = task["events"].as_array().unwrap();
    let results: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "action_complete")
        .filter_map(|event| event["data"]["extra_data"]["result"].as_str())
        .collect();
    assert_eq!(results.len(), 3, "{results:?}");
    assert!(results[0].contains("result 1") && results[2].contains("result 3"), "{results:?}");
    assert!(results[1].starts_with("ERROR: ") && results[1].contains("not known"), "{results:?}");
    let calls = events.iter().filter(|event| event["event"] == "action_call").count();
    assert_eq!(calls, 3, "what it answered counts once, and it was not asked for it again");
}
