//! Somebody who gives tasks to the swarm. A task whose answer was lost goes on by itself, once.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use super::chance::Chance;
use super::field::{Field, tick};
use super::phone::{Cut, Phone};

/// How long a task may take to end after the office is back.
const TASK: Duration = Duration::from_secs(60);
/// What the messages of an undisturbed task are, which those of every other must be as well.
static COURSE: OnceLock<Vec<String>> = OnceLock::new();

pub(super) async fn live(field: Arc<Field>, me: u32) {
    let mut phone = Phone::new(&field, &field.tokens[me as usize]);
    let mut chance = field.chance(me);
    while field.rest(chance.about(field.pause)).await {
        if task(&field, &mut phone, &mut chance).await.is_err() {
            break;
        }
    }
}

async fn task(field: &Field, phone: &mut Phone<'_>, chance: &mut Chance) -> Result<(), Cut> {
    let id = chance.uuid();
    let text = format!("Is {id} ready?");
    let body = json!({ "body": text, "task_id": id }).to_string();
    let mut disturbed = false;
    if chance.one_in(20) {
        tick(&field.deeds.crashes);
        let _ = phone.abandon("POST", "/message", &body, true).await;
        disturbed = true;
    }
    loop {
        if disturbed {
            // The question may still be on its way in.
            if !field.linger(Duration::from_millis(1_000)).await {
                return Err(Cut);
            }
            let (status, _) = phone.insist("GET", &format!("/task?task_id={id}"), "").await?;
            if status == 200 {
                return look(field, phone, &id, &text, true).await;
            }
        }
        match phone.ask("POST", "/message", &body).await {
            Ok((200, answer)) => {
                tick(&field.deeds.tasks);
                if answer["response"] != text.as_str() {
                    field.ledger.find("task: wrong answer", format!("{id}: {answer}"));
                }
                let undisturbed = COURSE.get().is_none() || chance.one_in(4);
                return if undisturbed { look(field, phone, &id, &text, disturbed).await } else { Ok(()) };
            }
            Ok((503, _)) | Err(Cut) => disturbed = true,
            Ok((status, answer)) => {
                field.refused(&format!("{status} {answer}"), &format!("task {id}"));
                return Ok(());
            }
        }
        if field.closing.is_cancelled() {
            return Err(Cut);
        }
    }
}

/// Waits for the end of a task and looks whether everything in it happened once.
async fn look(
    field: &Field,
    phone: &mut Phone<'_>,
    id: &str,
    text: &str,
    disturbed: bool,
) -> Result<(), Cut> {
    let end = tokio::time::Instant::now() + TASK;
    let task = loop {
        let (status, task) = phone.insist("GET", &format!("/task?task_id={id}"), "").await?;
        if status != 200 {
            field.ledger.find("task: missing", format!("{id}: {status} {task}"));
            return Ok(());
        }
        if task["completed"] == true {
            break task;
        }
        if tokio::time::Instant::now() > end {
            field.ledger.find("task: does not end", format!("{id}: {task}"));
            return Ok(());
        }
        if !field.linger(Duration::from_millis(200)).await {
            return Err(Cut);
        }
    };
    tick(&field.deeds.tasks_looked_at);
    if disturbed {
        tick(&field.deeds.tasks);
    }
    let (mut ids, mut course) = (HashSet::new(), Vec::new());
    for event in
        task["events"].as_array().into_iter().flatten().filter(|event| event["event"] == "new_message")
    {
        let message = &event["data"]["extra_data"]["full_message"];
        if !ids.insert(message["id"].to_string()) {
            field.ledger.find("task: doubled", format!("{id}: message {}", message["id"]));
        }
        course.push(message["msg_type"].as_str().unwrap_or_default().to_owned());
        if course.len() == 1 && message["message"]["body"] != *text {
            field.ledger.find("task: wrong question", format!("{id}: {}", message["message"]["body"]));
        }
    }
    let usual = if disturbed { COURSE.get() } else { Some(COURSE.get_or_init(|| course.clone())) };
    if let Some(usual) = usual.filter(|usual| **usual != course) {
        field
            .ledger
            .find("task: another course", format!("{id}: {} instead of {}", json!(course), json!(usual)));
    }
    Ok(())
}

/// How many tasks the office thinks are open.
pub(super) fn open_tasks(status: &Value) -> u64 {
    status["open_tasks"].as_u64().unwrap_or(u64::MAX)
}
