//! `posthaste tail`: the event log, from any place on and as it grows.

use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::at_desk;
use super::exit::Failure;
use super::inbox::WAIT;
use super::mail_args::TailArgs;
use super::output::{Output, Style, printable, text_of};
use super::reconnect::Persistent;
use super::times;
use posthaste_host::address;

/// Events asked for at a time.
const PAGE: usize = 500;
/// Pages that `-n` looks back through. A page looks at thousands of events, few of which may match.
const LOOK_BACK_PAGES: usize = 100;

pub(super) fn run(global: &GlobalArgs, args: &TailArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, &args.desk, async |desk| {
        let mut server = Persistent::new(desk, !args.no_retry);
        let mut cursor = match (args.after, args.last) {
            (Some(after), _) => after,
            (None, last) => {
                let head =
                    server.call("events", json!({ "limit": 1 })).await?["cursor"].as_i64().unwrap_or(0);
                look_back(&mut server, args, head, last.unwrap_or(0)).await?
            }
        };
        loop {
            let wait = if args.no_follow { 0 } else { WAIT };
            let answer =
                server.call("events", page(args, json!({ "after": cursor, "wait": wait }), PAGE)).await?;
            for event in answer["events"].as_array().into_iter().flatten() {
                show(event, output)?;
            }
            cursor = answer["cursor"].as_i64().unwrap_or(cursor);
            if args.no_follow && answer["end"] == true {
                return Ok(());
            }
        }
    })
}

/// The parameters of one page of what the flags ask for.
fn page(args: &TailArgs, mut place: Value, limit: usize) -> Value {
    place["kinds"] = json!(args.kinds);
    place["agents"] = json!(args.agent);
    place["conversation"] = json!(args.thread);
    place["limit"] = json!(limit);
    place
}

/// The place before the last `count` events that match. They are not kept: reading goes on from there.
async fn look_back(
    server: &mut Persistent<'_>,
    args: &TailArgs,
    head: i64,
    count: u32,
) -> Result<i64, Failure> {
    let (mut missing, mut start, mut before) = (count as usize, head, head + 1);
    for _ in 0..LOOK_BACK_PAGES {
        if missing == 0 {
            return Ok(start);
        }
        let limit = missing.min(PAGE);
        let answer = server.call("events", page(args, json!({ "before": before }), limit)).await?;
        let found = answer["events"].as_array().map_or(&[][..], Vec::as_slice);
        if let Some(first) = found.first().and_then(|event| event["seq"].as_i64()) {
            start = first - 1;
        }
        missing -= found.len().min(missing);
        if answer["end"] == true {
            return Ok(start);
        }
        before = answer["cursor"].as_i64().unwrap_or(before);
    }
    if missing > 0 {
        let found = count as usize - missing;
        eprintln!(
            "looked back to event {before} and found {found} of {count} that match; --after 0 looks through all"
        );
    }
    Ok(start)
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
        output.paint(Style::Dim, &times::to_the_second(&event["at"])),
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
        let to: Vec<String> = to.map(in_words).collect();
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

/// An address without its wrapping, as it is typed.
fn in_words(value: &Value) -> String {
    serde_json::from_value(value.clone()).map_or_else(|_| text_of(value), |address| address::write(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    // F57
    #[test]
    fn addresses_are_shown_in_words() {
        let message = json!({
            "message": { "to": [{ "role": { "role": "builder", "within": null } }, { "agent": "ann" }, "all"], "subject": "go" },
        });
        assert_eq!(gist(&message), "→ role:builder, ann, all go");
    }
}
