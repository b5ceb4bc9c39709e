//! `posthaste tail`: the history as it happens.

use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::at_desk;
use super::exit::Failure;
use super::inbox::WAIT;
use super::mail_args::TailArgs;
use super::output::{Output, Style, printable, text_of};

/// Events asked for at a time.
const PAGE: usize = 500;

pub(super) fn run(global: &GlobalArgs, args: &TailArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, &args.desk, async |desk| {
        let mut cursor = match (args.after, args.last) {
            (Some(after), _) => json!(after),
            (None, last) => {
                let head = desk.call("events", json!({ "limit": 1 })).await?["cursor"].as_i64().unwrap_or(0);
                json!((head - last.unwrap_or(0)).max(0))
            }
        };
        loop {
            let wait = if args.no_follow { 0 } else { WAIT };
            let answer = desk
                .call(
                    "events",
                    json!({
                        "after": cursor, "kinds": args.kinds, "agents": args.agent, "conversation": args.thread,
                        "wait": wait, "limit": PAGE,
                    }),
                )
                .await?;
            let events = answer["events"].as_array().cloned().unwrap_or_default();
            for event in &events {
                show(event, output)?;
            }
            // A page that is not full has looked at everything there was.
            if args.no_follow && events.len() < PAGE {
                return Ok(());
            }
            cursor = answer["cursor"].clone();
        }
    })
}

fn show(event: &Value, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(output.line(&event.to_string())?);
    }
    let kind = text_of(&event["kind"]);
    let style = match kind.split('.').next() {
        Some("message") => Style::Good,
        Some("reservation" | "contact") => Style::Warning,
        _ => Style::Plain,
    };
    let line = format!(
        "{:>8}  {}  {}  {}  {}",
        text_of(&event["seq"]),
        output.paint(Style::Dim, event["at"].as_str().unwrap_or_default()),
        output.paint(style, &format!("{kind:<22}")),
        printable(&text_of(&event["actor"])),
        printable(&gist(event)),
    );
    Ok(output.line(line.trim_end())?)
}

/// What an event is about, in a few words.
fn gist(event: &Value) -> String {
    if let Some(message) = event["message"].as_object() {
        let to = message.get("to").and_then(Value::as_array).into_iter().flatten();
        let to: Vec<String> = to.map(short_address).collect();
        let subject = message.get("subject").and_then(Value::as_str).unwrap_or_default();
        let about = event["fact"]["agent"].as_str().map(|agent| format!(" by {agent}")).unwrap_or_default();
        return format!("→ {} {subject}{about}", to.join(", "));
    }
    let fact = &event["fact"];
    if fact["kind"] == "announced" {
        return format!("{} {}", text_of(&fact["word"]), text_of(&fact["data"]));
    }
    let mut words = Vec::new();
    for field in
        ["agent", "conversation", "scope", "task", "reservation", "from", "to", "current", "state", "reason"]
    {
        match &fact[field] {
            Value::String(text) => words.push(text.clone()),
            Value::Object(object) => {
                let name = object.get("id").or_else(|| object.get("paths"));
                words.extend(name.map(text_of));
            }
            _ => {}
        }
    }
    words.join(" ")
}

/// An address without its wrapping.
fn short_address(address: &Value) -> String {
    match address {
        Value::String(text) => text.clone(),
        Value::Object(object) => object.values().map(text_of).collect::<Vec<_>>().join("@"),
        other => other.to_string(),
    }
}
