//! A user that gives tasks to the swarm. A task whose answer was lost still ends, once.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;

use super::http::{HttpClient, NoAnswer};
use super::rng::Rng;
use super::shared::{Shared, tick};

/// How long a task may take after the server runs again.
const TASK_TIMEOUT: Duration = Duration::from_secs(60);
/// The messages of an undisturbed task. Every other task must have the same.
static USUAL_MESSAGES: OnceLock<Vec<String>> = OnceLock::new();

pub(super) async fn live(shared: Arc<Shared>, me: u32) {
    let mut http = HttpClient::new(&shared, &shared.tokens[me as usize]);
    let mut rng = shared.rng(me);
    while shared.rest(rng.about(shared.pause)).await {
        if task(&shared, &mut http, &mut rng).await.is_err() {
            break;
        }
    }
}

async fn task(shared: &Shared, http: &mut HttpClient<'_>, rng: &mut Rng) -> Result<(), NoAnswer> {
    let id = rng.uuid();
    let text = format!("Is {id} ready?");
    let body = json!({ "body": text, "task_id": id }).to_string();
    let mut disturbed = false;
    if rng.one_in(20) {
        tick(&shared.actions.crashes);
        let _ = http.abandon("POST", "/message", &body, true).await;
        disturbed = true;
    }
    loop {
        if disturbed {
            // The request may still be in flight.
            if !shared.linger(Duration::from_millis(1_000)).await {
                return Err(NoAnswer);
            }
            let (status, _) = http.ask_until_answered("GET", &format!("/task?task_id={id}"), "").await?;
            if status == 200 {
                return look(shared, http, &id, &text, true).await;
            }
        }
        match http.ask("POST", "/message", &body).await {
            Ok((200, answer)) => {
                tick(&shared.actions.tasks);
                if answer["response"] != text.as_str() {
                    shared.ledger.find("task: wrong answer", format!("{id}: {answer}"));
                }
                let undisturbed = USUAL_MESSAGES.get().is_none() || rng.one_in(4);
                return if undisturbed { look(shared, http, &id, &text, disturbed).await } else { Ok(()) };
            }
            Ok((503, _)) | Err(NoAnswer) => disturbed = true,
            Ok((status, answer)) => {
                shared.refused(&format!("{status} {answer}"), &format!("task {id}"));
                return Ok(());
            }
        }
        if shared.closing.is_cancelled() {
            return Err(NoAnswer);
        }
    }
}

/// Waits for the end of a task and checks that each of its messages happened once.
async fn look(
    shared: &Shared,
    http: &mut HttpClient<'_>,
    id: &str,
    text: &str,
    disturbed: bool,
) -> Result<(), NoAnswer> {
    let end = tokio::time::Instant::now() + TASK_TIMEOUT;
    let task = loop {
        let (status, task) = http.ask_until_answered("GET", &format!("/task?task_id={id}"), "").await?;
        if status != 200 {
            shared.ledger.find("task: missing", format!("{id}: {status} {task}"));
            return Ok(());
        }
        if task["completed"] == true {
            break task;
        }
        if tokio::time::Instant::now() > end {
            shared.ledger.find("task: does not end", format!("{id}: {task}"));
            return Ok(());
        }
        if !shared.linger(Duration::from_millis(200)).await {
            return Err(NoAnswer);
        }
    };
    tick(&shared.actions.tasks_looked_at);
    if disturbed {
        tick(&shared.actions.tasks);
    }
    let (mut ids, mut course) = (HashSet::new(), Vec::new());
    for event in
        task["events"].as_array().into_iter().flatten().filter(|event| event["event"] == "new_message")
    {
        let message = &event["data"]["extra_data"]["full_message"];
        if !ids.insert(message["id"].to_string()) {
            shared.ledger.find("task: doubled", format!("{id}: message {}", message["id"]));
        }
        course.push(message["msg_type"].as_str().unwrap_or_default().to_owned());
        if course.len() == 1 && message["message"]["body"] != *text {
            shared.ledger.find("task: wrong question", format!("{id}: {}", message["message"]["body"]));
        }
    }
    let usual =
        if disturbed { USUAL_MESSAGES.get() } else { Some(USUAL_MESSAGES.get_or_init(|| course.clone())) };
    if let Some(usual) = usual.filter(|usual| **usual != course) {
        shared
            .ledger
            .find("task: another course", format!("{id}: {} instead of {}", json!(course), json!(usual)));
    }
    Ok(())
}
