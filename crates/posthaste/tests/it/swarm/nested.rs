//! Questions between swarms within one task: an agent that was asked asks back before it answers, with either server killed
//! meanwhile, and along a chain of three swarms.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::{Listening, listen};
use crate::swarm::restart::Address;
use crate::swarm::{Swarm, boss, script, scripted, team, uuid};

const TASK: u64 = 31;

/// A swarm at an address that survives restarts.
struct Member {
    name: &'static str,
    swarm: Swarm,
    address: Address,
}

impl Member {
    async fn open(name: &'static str, agents: Value) -> Self {
        let mut file = team(name, agents);
        file["interswarm_patience"] = json!(20);
        let (swarm, address) = (Swarm::open(&file, &[], &[]), Address::new().await);
        address.leads_to(&swarm);
        Self { name, swarm, address }
    }

    fn kill(&mut self) {
        self.address.leads_nowhere();
        self.swarm.office.take().unwrap().kill();
    }

    fn start(&mut self) {
        self.swarm.start(&[], &[]);
        self.address.leads_to(&self.swarm);
    }

    /// Sends a message as the user ann, in the background.
    fn ask(&self, body: String) -> tokio::task::JoinHandle<reqwest::Result<reqwest::Response>> {
        let ann = self.swarm.token(self.name, "user", "ann");
        let body = json!({ "body": body, "task_id": uuid(TASK), "kwargs": { "timeout": 25 } });
        let request = self.swarm.http.post(format!("{}/message", self.swarm.url()));
        tokio::spawn(request.bearer_auth(ann).json(&body).send())
    }

    /// The body of the message that ended the task.
    async fn ends_with(&self) -> String {
        let ann = self.swarm.token(self.name, "user", "ann");
        let path = format!("/task?task_id={}", uuid(TASK));
        for _ in 0..500 {
            let task = self.swarm.get(&path, &ann).await.1;
            if task["completed"] == true {
                let events = task["events"].as_array().unwrap();
                let messages = events.iter().map(|event| &event["data"]["extra_data"]["full_message"]);
                let last = messages.rev().find(|mail| mail["msg_type"] == "broadcast_complete").unwrap();
                return last["message"]["body"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the task at {} does not end", self.name)
    }
}

/// Registers swarms with each other, both ways.
async fn acquaint(one: &Member, other: &Member) {
    for (here, there) in [(one, other), (other, one)] {
        let admin = here.swarm.token(here.name, "admin", "adm");
        let token = there.swarm.token(there.name, "agent", here.name);
        let entry = json!({ "name": there.name, "base_url": there.address.url, "auth_token": token, "volatile": false });
        let (status, answer) = here.swarm.post("/swarms", &admin, entry).await;
        assert_eq!(status, 200, "{answer}");
    }
}

fn helper(name: &str, driver: Value, targets: &[&str]) -> Value {
    json!({ "name": name, "driver": driver, "comm_targets": targets, "enable_interswarm": true })
}

fn request(target: &str, body: &str) -> (&'static str, Value) {
    ("send_request", json!({ "target": target, "subject": "q", "body": body }))
}

/// North and south: a supervisor and a scripted helper each, which may write to all of the other swarm.
async fn pair() -> (Member, Member) {
    let agents = |peer: &str| {
        let away = [format!("boss@{peer}"), format!("helper@{peer}")];
        let targets: Vec<&str> =
            ["boss", "helper"].into_iter().chain(away.iter().map(String::as_str)).collect();
        json!([boss(scripted(), &targets), helper("helper", scripted(), &targets)])
    };
    let (north, south) =
        (Member::open("north", agents("south")).await, Member::open("south", agents("north")).await);
    acquaint(&north, &south).await;
    (north, south)
}

async fn answer(asking: tokio::task::JoinHandle<reqwest::Result<reqwest::Response>>) -> String {
    let answer: Value = asking.await.unwrap().unwrap().json().await.unwrap();
    answer["response"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The agent that was asked asks another agent of the asking swarm before it answers.
#[tokio::test]
async fn asked_agent_asks_back_within_the_task() {
    let (north, south) = pair().await;
    for (here, peer) in [(&north, "south"), (&south, "north")] {
        // The other supervisor asks our helper, and completes with what it hears.
        let back = script(&[request(&format!("helper@{}", here.name), "x")]);
        let said = answer(here.ask(script(&[request(&format!("boss@{peer}"), &back)]))).await;
        assert_eq!(said, "helper:x", "{}", here.name);
    }
}

/// The agent that asks back is no supervisor: it passes the answer to its supervisor, which completes.
#[tokio::test]
async fn agent_that_asked_back_reports_to_its_supervisor() {
    let (north, _south) = pair().await;
    let back = script(&[request("helper@north", "x")]);
    let said = answer(north.ask(script(&[request("helper@south", &back)]))).await;
    assert_eq!(said, "helper<helper:x");
}

/// An agent that does not answer a question back does not leave both swarms waiting for each other.
#[tokio::test]
async fn unanswered_question_back_is_reported() {
    let (north, _south) = pair().await;
    let silent = script(&[("await_message", json!({}))]);
    let back = script(&[request("helper@north", &silent)]);
    let said = answer(north.ask(script(&[request("boss@south", &back)]))).await;
    assert!(said.contains("without an answer"), "{said}");
}

/// A web hook whose answers depend on the turn and can be delayed.
struct Hook {
    listening: Listening,
    asked: Arc<AtomicUsize>,
    open: watch::Sender<bool>,
}

impl Hook {
    async fn new(open: bool, decide: fn(&Value) -> Value) -> Self {
        Self::holding_after(0, open, decide).await
    }

    /// The first calls are answered at once, the later ones when it is open.
    async fn holding_after(free: usize, open: bool, decide: fn(&Value) -> Value) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let (open, waiting) = watch::channel(open);
        let seen = asked.clone();
        let handler = async move |Json(turn): Json<Value>| {
            let before = seen.fetch_add(1, Ordering::SeqCst);
            if before >= free {
                let mut waiting = waiting.clone();
                drop(waiting.wait_for(|open| *open).await);
            }
            Json(json!({ "calls": decide(&turn) }))
        };
        let app = Router::new().route("/turn", post(handler));
        Self { listening: listen(app, ListenOptions::default()).await, asked, open }
    }

    fn driver(&self) -> Value {
        json!({ "http": format!("http://{}/turn", self.listening.address) })
    }

    async fn has_been_asked(&self) {
        self.has_been_asked_times(1).await;
    }

    async fn has_been_asked_times(&self, times: usize) {
        for _ in 0..1_000 {
            if self.asked.load(Ordering::SeqCst) >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the agent was never called");
    }
}

/// The newest message in a turn: sender, kind, body.
fn newest(turn: &Value) -> (String, String, String) {
    let mail = turn["inbox"].as_array().and_then(|inbox| inbox.last()).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let payload = &mail["message"];
    (text(&payload["sender"]["address"]), text(&mail["msg_type"]), text(&payload["body"]))
}

fn call(tool: &str, target: &str, body: &str) -> Value {
    json!([{ "tool": tool, "args": { "target": target, "subject": "s", "body": body } }])
}

/// South's helper asks north's helper back and answers north's supervisor with what it hears.
fn asks_back(turn: &Value) -> Value {
    match newest(turn) {
        (from, kind, body) if kind == "request" && from == "boss@north" => {
            call("send_request", "helper@north", &format!("{body}?"))
        }
        (_, _, body) => call("send_response", "boss@north", &format!("south heard {body}")),
    }
}

fn says_back(turn: &Value) -> Value {
    let (from, _, body) = newest(turn);
    call("send_response", &from, &format!("north says {body}"))
}

async fn hooked(north: &Hook, south: &Hook) -> (Member, Member) {
    let agents = |hook: &Hook, peer: &str| {
        let away = [format!("boss@{peer}"), format!("helper@{peer}")];
        let targets: Vec<&str> =
            ["boss", "helper"].into_iter().chain(away.iter().map(String::as_str)).collect();
        json!([boss(scripted(), &targets), helper("helper", hook.driver(), &targets)])
    };
    let north = Member::open("north", agents(north, "south")).await;
    let south = Member::open("south", agents(south, "north")).await;
    acquaint(&north, &south).await;
    (north, south)
}

const TOLD: &str = "south heard north says how many?";

/// Either server, or both, are killed while an agent handles the question back; the answers arrive nevertheless.
#[tokio::test]
async fn question_back_survives_a_restart_of_either_swarm() {
    for (kill_north, kill_south) in [(true, false), (false, true), (true, true)] {
        let (at_north, at_south) = (Hook::new(false, says_back).await, Hook::new(true, asks_back).await);
        let (mut north, mut south) = hooked(&at_north, &at_south).await;
        let asking = north.ask(script(&[request("helper@south", "how many")]));
        at_north.has_been_asked().await;
        for (kill, member) in [(kill_north, &mut north), (kill_south, &mut south)] {
            if kill {
                member.kill();
            }
        }
        if !kill_north {
            at_north.open.send_replace(true);
            // North's answer finds south away.
            south.address.has_refused(1).await;
        }
        for (kill, member) in [(kill_north, &mut north), (kill_south, &mut south)] {
            if kill {
                member.start();
            }
        }
        at_north.open.send_replace(true);
        assert_eq!(north.ends_with().await, TOLD, "north killed: {kill_north}, south killed: {kill_south}");
        drop(asking);
    }
}

/// South is killed while it handles the answer that it asked for.
#[tokio::test]
async fn answer_to_a_question_back_survives_a_restart() {
    let at_north = Hook::new(true, says_back).await;
    let at_south = Hook::holding_after(1, false, asks_back).await;
    let (north, mut south) = hooked(&at_north, &at_south).await;
    let asking = north.ask(script(&[request("helper@south", "how many")]));
    // The second call has the answer.
    at_south.has_been_asked_times(2).await;
    south.kill();
    at_south.open.send_replace(true);
    south.start();
    assert_eq!(answer(asking).await, TOLD);
}

/// Nested questions: each answer goes to the agent that asked, the newest question first.
#[tokio::test]
async fn nested_questions_are_answered_from_the_inside() {
    // North's helper asks south's supervisor once more before it answers it.
    fn between(turn: &Value) -> Value {
        match newest(turn) {
            (_, kind, body) if kind == "request" => {
                call("send_request", "boss@south", &format!("about {body}"))
            }
            (_, _, body) => call("send_response", "boss@south", &format!("north heard {body}")),
        }
    }
    let (at_north, at_south) = (Hook::new(true, between).await, Hook::new(true, says_back).await);
    let (north, _south) = hooked(&at_north, &at_south).await;
    // South's supervisor completes with whatever it is told: first the inner question, then the outer one.
    let back = script(&[request("helper@north", "it")]);
    let said = answer(north.ask(script(&[request("boss@south", &back)]))).await;
    assert_eq!(said, "north heard about it");
}

/// Two questions of one agent at the same time have two answers.
#[tokio::test]
async fn two_concurrent_questions_are_both_answered() {
    // North's supervisor asks twice, and completes when it has heard two answers.
    fn both(turn: &Value) -> Value {
        let inbox = turn["inbox"].as_array().unwrap();
        let answers: Vec<&str> =
            inbox[1..].iter().filter_map(|mail| mail["message"]["body"].as_str()).collect();
        let ask = |body: &str| json!({ "tool": "send_request", "args": request("boss@south", body).1 });
        match answers.len() {
            0 => json!([ask("one"), ask("two")]),
            1 => json!([{ "tool": "await_message", "args": {} }]),
            _ => json!([{ "tool": "task_complete", "args": { "finish_message": answers.join(" ") } }]),
        }
    }
    let at_north = Hook::new(true, both).await;
    let north = Member::open("north", json!([boss(at_north.driver(), &["boss@south"])])).await;
    let south = Member::open("south", json!([boss(scripted(), &["boss@north"])])).await;
    acquaint(&north, &south).await;
    assert_eq!(answer(north.ask("go".to_owned())).await, "one two");
}

/// North asks south, south asks west, west asks south back; every answer arrives.
#[tokio::test]
async fn a_chain_of_three_swarms_asks_back() {
    let north = Member::open("north", json!([boss(scripted(), &["boss@south"])])).await;
    let to = ["helper", "boss@north", "boss@west"];
    let south = json!([boss(scripted(), &to), helper("helper", scripted(), &["boss", "boss@west"])]);
    let south = Member::open("south", south).await;
    let west = Member::open("west", json!([boss(scripted(), &["boss@south", "helper@south"])])).await;
    acquaint(&north, &south).await;
    acquaint(&south, &west).await;
    let plain =
        answer(north.ask(script(&[request("boss@south", &script(&[request("boss@west", "far")]))]))).await;
    assert_eq!(plain, "far");
    let (ann, task) = (north.swarm.token("north", "user", "ann"), uuid(TASK + 1));
    let back = script(&[request("boss@west", &script(&[request("helper@south", "far")]))]);
    let body = json!({ "body": script(&[request("boss@south", &back)]), "task_id": task, "kwargs": { "timeout": 25 } });
    assert_eq!(north.swarm.ask(&ann, body).await, "helper:far");
}

/// A question that was open when its task ended is not open when the task continues.
#[tokio::test]
async fn a_question_ends_with_its_task() {
    let (at_north, at_south) = (Hook::new(true, says_back).await, Hook::new(false, says_back).await);
    let (north, south) = hooked(&at_north, &at_south).await;
    let early = ("task_complete", json!({ "finish_message": "early" }));
    assert_eq!(answer(north.ask(script(&[request("helper@south", "slow"), early]))).await, "early");
    at_south.has_been_asked().await;
    let said = async || {
        let thread =
            south.swarm.office.as_ref().unwrap().call("thread", json!({ "id": uuid(TASK) })).await.unwrap();
        let said = thread["said"].as_array().unwrap().clone();
        said.iter().map(|one| one["subject"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(answer(north.ask(script(&[request("boss@south", "again")]))).await, "again");
    // South takes the messages of a task in order, so after this answer it has taken all that came before.
    assert_eq!(answer(north.ask(script(&[request("boss@south", "and again")]))).await, "and again");
    assert!(!said().await.contains(&"::task_error::".to_owned()), "{:?}", said().await);
}
