//! `posthaste tail`: the event log, from any position on and as it grows.

use posthaste_wire::control::{Event, EventsParams, EventsResult, Message, PageSize, Seq};
use serde_json::Value;

use super::args::{GlobalArgs, TailArgs};
use super::exit::Failure;
use super::inbox::EVENT_WAIT_MS;
use super::output::{Output, Style, printable, text_of};
use super::realm_access::with_realm;
use super::reconnect::Persistent;
use super::times;
use posthaste_host::address;

/// Events of one page.
const PAGE: usize = 500;
/// Pages that `-n` looks back through. The server looks at thousands of events for a page, few of which may match.
const LOOK_BACK_PAGES: usize = 100;

pub(super) fn run(global: &GlobalArgs, args: &TailArgs, output: &Output) -> Result<(), Failure> {
    with_realm(global, &args.realm, async |realm| {
        let mut server = Persistent::new(realm, !args.no_retry);
        let mut cursor = match (args.after, args.last) {
            (Some(after), _) => after,
            (None, last) => {
                let params = EventsParams { limit: PageSize(1), ..EventsParams::default() };
                let end = server.call::<EventsResult>("events", params).await?.cursor;
                look_back(&mut server, args, end, last.unwrap_or(0)).await?
            }
        };
        loop {
            let wait = if args.no_follow { 0 } else { EVENT_WAIT_MS };
            let params = EventsParams { after: Some(cursor), wait, ..matching(args, PAGE) };
            let page: EventsResult = server.call("events", params).await?;
            for event in &page.events {
                show(event, output)?;
            }
            cursor = page.cursor;
            if args.no_follow && page.end {
                return Ok(());
            }
        }
    })
}

/// The parameters for one page of the events that match the flags.
fn matching(args: &TailArgs, limit: usize) -> EventsParams {
    EventsParams {
        kinds: args.kinds.clone(),
        agents: args.agent.clone(),
        conversation: args.thread.clone(),
        limit: PageSize(limit),
        ..EventsParams::default()
    }
}

/// The position before the last `count` events that match. The events are not kept: the caller reads on from there.
async fn look_back(
    server: &mut Persistent<'_>,
    args: &TailArgs,
    end: Seq,
    count: u32,
) -> Result<Seq, Failure> {
    let (mut missing, mut start, mut before) = (count as usize, end, end + 1);
    for _ in 0..LOOK_BACK_PAGES {
        if missing == 0 {
            return Ok(start);
        }
        let params = EventsParams { before: Some(before), ..matching(args, missing.min(PAGE)) };
        let page: EventsResult = server.call("events", params).await?;
        if let Some(first) = page.events.first() {
            start = first.seq - 1;
        }
        missing -= page.events.len().min(missing);
        if page.end {
            return Ok(start);
        }
        before = page.cursor;
    }
    if missing > 0 {
        let found = count as usize - missing;
        eprintln!(
            "looked back to event {before} and found {found} of {count} that match; --after 0 looks through all"
        );
    }
    Ok(start)
}

fn show(event: &Event, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(output.line(&serde_json::to_string(event)?)?);
    }
    let style = match event.kind.split('.').next() {
        Some("message") => Style::Good,
        Some("reservation" | "contact") => Style::Warning,
        _ => Style::Plain,
    };
    let about = match &event.message {
        Some(message) => about_message(message, &event.fact),
        None => about_fact(&event.fact),
    };
    let line = format!(
        "{:>8}  {}  {}  {}  {}",
        event.seq,
        output.paint(Style::Dim, &times::to_the_second(event.at.as_str())),
        output.paint(style, &format!("{:<22}", event.kind)),
        printable(&event.actor),
        printable(&about),
    );
    Ok(output.line(line.trim_end())?)
}

/// Recipients and subject of a message that an event is about.
fn about_message(message: &Message, fact: &Value) -> String {
    let to: Vec<String> = message.to.iter().map(typed_address).collect();
    let subject = message.subject.as_deref().unwrap_or_default();
    let agent = fact["agent"].as_str().map(|agent| format!(" by {agent}")).unwrap_or_default();
    format!("→ {} {subject}{agent}", to.join(", "))
}

/// What an event is about, in a few words. A fact has members of its own for each kind of event.
fn about_fact(fact: &Value) -> String {
    if fact["kind"] == "announced" {
        return format!("{} {}", text_of(&fact["word"]), text_of(&fact["data"]));
    }
    let mut words = Vec::new();
    for member in
        ["agent", "conversation", "scope", "task", "reservation", "from", "to", "current", "state", "reason"]
    {
        match &fact[member] {
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

/// An address as it is typed after `--to`.
fn typed_address(value: &Value) -> String {
    serde_json::from_value(value.clone()).map_or_else(|_| text_of(value), |address| address::write(&address))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // F57
    #[test]
    fn addresses_are_shown_as_they_are_typed() {
        let to = [
            json!({ "role": { "role": "builder", "within": null } }),
            json!({ "agent": "ann" }),
            json!("all"),
        ];
        assert_eq!(to.map(|address| typed_address(&address)).join(", "), "role:builder, ann, all");
    }
}
