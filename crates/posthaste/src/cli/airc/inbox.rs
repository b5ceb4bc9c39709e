//! `posthaste airc inbox`: what came in, whether its signature is good, and acknowledgements.

use posthaste_engine::stamp;
use posthaste_wire::time::to_rfc3339;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::super::exit::Failure;
use super::super::output::{Output, Style, printable, printable_text};
use super::args::InboxArgs;
use super::escaped;
use super::registry::Registry;

pub(super) async fn run(registry: &mut Registry, given: &InboxArgs, output: &Output) -> Result<(), Failure> {
    let mut path = format!("/messages/inbox?limit={}", given.limit.clamp(1, 200));
    for (name, value) in [("payload_type", &given.kind), ("since", &given.since), ("cursor", &given.next)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", escaped(value)));
        }
    }
    let answer = registry.call(Method::GET, &path, None).await?.done()?;
    let messages = answer["messages"].as_array().cloned().unwrap_or_default();
    let mut shown = Vec::new();
    for message in messages {
        let authentic = registry.is_authentic(&message).await?;
        let acked = match (&given.ack, wants_ack(&message)) {
            (Some(words), true) => Some(acknowledge(registry, &message, words).await?),
            _ => None,
        };
        shown.push((message, authentic, acked));
    }
    if output.is_json() {
        let list: Vec<Value> = shown
            .iter()
            .map(|(message, authentic, acked)| json!({ "message": message, "verified": authentic, "acked": acked }))
            .collect();
        return output.json(&json!({ "messages": list, "next": answer["nextCursor"] }));
    }
    for (message, authentic, acked) in &shown {
        show(message, *authentic, acked.is_some(), output)?;
    }
    Ok(())
}

/// A message in full: a line that says from whom and what it is, its heading, its text.
fn show(message: &Value, authentic: bool, acked: bool, output: &Output) -> Result<(), Failure> {
    let payload = &message["payload"];
    let field = |names: &[&str]| {
        let found = names.iter().find_map(|name| payload[*name].as_str().or(payload["data"][*name].as_str()));
        found.unwrap_or_default().to_owned()
    };
    let mut notes =
        vec![payload["type"].as_str().unwrap_or("-"), if authentic { "signed" } else { "not signed" }];
    match (acked, wants_ack(message)) {
        (true, _) => notes.push("acknowledged"),
        (false, true) => notes.push("wants an acknowledgement"),
        (false, false) => {}
    }
    let style = if authentic { Style::Bold } else { Style::Warning };
    let head = format!(
        "{} ({}) {}",
        message["from"].as_str().unwrap_or("-"),
        notes.join(", "),
        field(&["subject", "reservation_id"])
    );
    output.line(&output.paint(style, printable(&head).trim_end()))?;
    let text = match field(&["content", "text", "body_md", "response"]) {
        text if text.is_empty() => message["body"].as_str().unwrap_or_default().to_owned(),
        text => text,
    };
    if !text.is_empty() {
        output.line(printable_text(&text).trim_end())?;
    }
    Ok(output.line("")?)
}

fn wants_ack(message: &Value) -> bool {
    let payload = &message["payload"];
    let asked = payload["ack_required"] == true || payload["data"]["ack_required"] == true;
    payload["type"] == "context:mailbox" && asked && message["delivery"]["acked"] != true
}

async fn acknowledge(registry: &mut Registry, message: &Value, words: &str) -> Result<Value, Failure> {
    let payload = &message["payload"];
    let id = payload["message_id"].as_str().or(payload["data"]["message_id"].as_str()).unwrap_or_default();
    let from = message["from"].as_str().unwrap_or_default().to_owned();
    let mut ack =
        json!({ "type": "context:mailbox_ack", "message_id": id, "ack_ts": to_rfc3339(stamp::now()) });
    if !words.is_empty() {
        ack["response"] = json!(words);
    }
    let mut content = Map::new();
    content.insert("payload".to_owned(), ack);
    registry.send(&from, content).await?.done()
}
