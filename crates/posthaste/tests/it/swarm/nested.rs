//! Questions between swarms inside one task: an agent that was asked asks back before it answers, with either server
//! killed in the middle, and along a chain of three swarms.

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

    /// Asks as the user ann, in the background.
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

/// Issue line 13: the agent that was asked asks another agent of the asking swarm before it answers.
#[tokio::test]
async fn an_agent_that_was_asked_asks_back_inside_the_task() {
    let (north, south) = pair().await;
    for (here, peer) in [(&north, "south"), (&south, "north")] {
        // The other supervisor asks our helper, and completes with what it hears.
        let back = script(&[request(&format!("helper@{}", here.name), "x")]);
        let said = answer(here.ask(script(&[request(&format!("boss@{peer}"), &back)]))).await;
        assert_eq!(said, "helper:x", "{}", here.name);
    }
}

/// The one that asks back is no supervisor: it hands what it heard to its own, which completes.
#[tokio::test]
async fn an_agent_that_asked_back_reports_to_its_own_supervisor() {
    let (north, _south) = pair().await;
    let back = script(&[request("helper@north", "x")]);
    let said = answer(north.ask(script(&[request("helper@south", &back)]))).await;
    assert_eq!(said, "helper<helper:x");
}

/// An agent that is asked back and says nothing does not leave both swarms waiting for each other.
#[tokio::test]
async fn a_question_back_that_is_not_answered_is_told_of() {
    let (north, _south) = pair().await;
    let silent = script(&[("await_message", json!({}))]);
    let back = script(&[request("helper@north", &silent)]);
    let said = answer(north.ask(script(&[request("boss@south", &back)]))).await;
    assert!(said.contains("without an answer"), "{said}");
}

/// Agents behind a web hook, which answer by what they are handed, and may be held up.
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

/// Either server, or both, die while the question back is in an agent's hands; the answers find their way all the same.
#[tokio::test]
async fn a_question_back_survives_a_restart_of_either_swarm() {
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
            tokio::time::sleep(Duration::from_millis(300)).await;
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

/// South dies while it works on the answer that it asked for.
#[tokio::test]
async fn the_answer_to_a_question_back_survives_a_restart() {
    let at_north = Hook::new(true, says_back).await;
    let at_south = Hook::holding_after(1, false, asks_back).await;
    let (north, mut south) = hooked(&at_north, &at_south).await;
    let asking = north.ask(script(&[request("helper@south", "how many")]));
    // The second call is the one with the answer.
    at_south.has_been_asked_times(2).await;
    south.kill();
    at_south.open.send_replace(true);
    south.start();
    assert_eq!(answer(asking).await, TOLD);
}

/// Questions within questions: each answer goes to the one that asked, the newest first.
#[tokio::test]
async fn questions_within_questions_are_answered_from_the_inside() {
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
async fn two_questions_at_once_are_both_answered() {
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

/// North asks south, south asks west, west asks south back; every answer finds its way.
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

/// A question that was open when its task ended is not open when the task goes on.
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
    for _ in 0..200 {
        if said().await.contains(&"::task_complete::".to_owned()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(answer(north.ask(script(&[request("boss@south", "again")]))).await, "again");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!said().await.contains(&"::task_error::".to_owned()), "{:?}", said().await);
}
