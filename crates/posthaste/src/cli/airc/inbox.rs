//! `posthaste airc inbox`: received messages, whether their signatures are valid, and acknowledgements.

use posthaste_engine::stamp;
use posthaste_wire::airc::AckPayload;
use posthaste_wire::time::to_rfc3339;
use serde::Serialize;
use serde_json::Value;

use super::super::exit::Failure;
use super::super::output::{Output, Style, printable, printable_text};
use super::args::InboxArgs;
use super::escaped;
use super::registry::Registry;

/// The inbox as JSON.
#[derive(Serialize)]
struct Page<'a> {
    messages: Vec<Received>,
    next: &'a Value,
}

/// A received message, whether its signature is valid, and the answer to its acknowledgement.
#[derive(Serialize)]
struct Received {
    message: Value,
    verified: bool,
    acked: Option<Value>,
}

pub(super) async fn run(registry: &mut Registry, given: &InboxArgs, output: &Output) -> Result<(), Failure> {
    let mut path = format!("/messages/inbox?limit={}", given.limit.clamp(1, 200));
    for (name, value) in [("payload_type", &given.kind), ("since", &given.since), ("cursor", &given.next)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", escaped(value)));
        }
    }
    let answer = registry.get(&path).await?.done()?;
    let messages = answer["messages"].as_array().cloned().unwrap_or_default();
    let mut shown = Vec::new();
    for message in messages {
        let authentic = registry.is_authentic(&message).await?;
        let acked = match (&given.ack, wants_ack(&message)) {
            (Some(response), true) => Some(acknowledge(registry, &message, response).await?),
            _ => None,
        };
        shown.push(Received { message, verified: authentic, acked });
    }
    if output.is_json() {
        return output.json(&Page { messages: shown, next: &answer["nextCursor"] });
    }
    for one in &shown {
        show(&one.message, one.verified, one.acked.is_some(), output)?;
    }
    Ok(())
}

/// Prints a message: its sender, type and subject in one line, then its text.
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

async fn acknowledge(registry: &mut Registry, message: &Value, response: &str) -> Result<Value, Failure> {
    let payload = &message["payload"];
    let id = payload["message_id"].as_str().or(payload["data"]["message_id"].as_str()).unwrap_or_default();
    let from = message["from"].as_str().unwrap_or_default().to_owned();
    let ack = AckPayload {
        kind: AckPayload::KIND.into(),
        message_id: id.to_owned(),
        ack_ts: to_rfc3339(stamp::now()),
        response: Some(response.to_owned()).filter(|response| !response.is_empty()),
    };
    registry.send(&from, serde_json::to_value(ack)?, None).await?.done()
}
