//! `posthaste inbox`, through an office: a list, or letters as they come.

use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::{Desk, agent, at_desk};
use super::exit::Failure;
use super::mail_args::InboxArgs;
use super::output::{Output, Style, Table, printable, short_time, text_of};
use super::reconnect::Persistent;

/// How long one question for news waits, in milliseconds; shorter than anything between us gives up.
pub(super) const WAIT: u64 = 20_000;
/// Letters of a list unless said otherwise.
const USUAL: u32 = 50;

pub(super) fn run(global: &GlobalArgs, args: &InboxArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| match args.watch {
        true => watch(desk, args, who.as_deref(), output).await,
        false => list(desk, args, who.as_deref(), output).await,
    })
}

async fn list(desk: &Desk, args: &InboxArgs, who: Option<&str>, output: &Output) -> Result<(), Failure> {
    let params = json!({
        "agent": who,
        "unread": args.unread,
        "kinds": args.kinds,
        "order": if args.by_priority { "priority" } else { "newest" },
        "before": args.before,
        "limit": args.limit.unwrap_or(USUAL),
    });
    let answer = own_mail(who, desk.call("inbox", params).await)?;
    if output.is_json() {
        return output.json(&answer);
    }
    let mut table = Table::new(["ID", "WHEN", "FROM", "KIND", "SUBJECT", "PRIORITY", "ACK", "STATE"]);
    for letter in answer["messages"].as_array().into_iter().flatten() {
        let state = text_of(&letter["delivery"]["state"]);
        let unread = matches!(state.as_str(), "queued" | "delivered");
        let pressing = letter["priority"].as_u64().is_some_and(|tier| tier < 3);
        let style = match (unread, pressing) {
            (true, true) => Style::Bad,
            (true, false) => Style::Bold,
            (false, _) => Style::Dim,
        };
        let subject = letter["subject"].as_str().unwrap_or_default().to_owned();
        let [number, from, kind] = ["seq", "from", "kind"].map(|field| text_of(&letter[field]));
        let ack = match (letter["ack_required"] == true, letter["delivery"]["acked_at"].is_string()) {
            (_, true) => "done",
            (true, false) => "wanted",
            (false, false) => "",
        };
        let (at, priority) = (short_time(&letter["at"]), priority_of(letter).to_owned());
        table.row([number, at, from, kind, subject, priority, ack.to_owned(), state], style);
    }
    output.table(&table)?;
    if let Some(next) = answer["next"].as_i64() {
        eprintln!("There is more: --next {next}");
    }
    Ok(())
}

/// A page of an agent's mail. A caller that is in no address book yet and asks for its own has none.
fn own_mail(who: Option<&str>, page: Result<Value, Failure>) -> Result<Value, Failure> {
    match page {
        Err(failure) if who.is_none() && failure.refusal() == Some("no_such_agent") => {
            Ok(json!({ "messages": [], "next": null }))
        }
        page => page,
    }
}

/// How pressing a message is, in a word; nothing for what is usual.
pub(super) fn priority_of(message: &Value) -> &'static str {
    match message["priority"].as_u64() {
        Some(1) => "urgent",
        Some(2) => "high",
        Some(4) => "low",
        Some(5) => "bulk",
        _ => "",
    }
}

/// Prints what is unread, then letters as they come. Nothing is marked, and nothing is printed twice.
async fn watch(desk: &Desk, args: &InboxArgs, who: Option<&str>, output: &Output) -> Result<(), Failure> {
    let mut after = 0;
    let mut unread = true;
    let mut server = Persistent::new(desk, !args.no_retry);
    // The place in the event log comes first, so that what happens while we look is not missed.
    let mut cursor = server.call("events", json!({ "limit": 1 })).await?["cursor"].clone();
    loop {
        loop {
            let params = json!({
                "agent": who, "unread": unread && args.unread, "kinds": args.kinds, "order": "oldest",
                "after": after, "limit": 200,
            });
            let page = own_mail(who, server.call("inbox", params).await)?;
            for letter in page["messages"].as_array().into_iter().flatten() {
                after = letter["seq"].as_i64().unwrap_or(after).max(after);
                let state = letter["delivery"]["state"].as_str();
                if unread && !matches!(state, Some("queued" | "delivered")) {
                    continue;
                }
                show(letter, output)?;
            }
            if page["next"].is_null() {
                break;
            }
        }
        unread = false;
        let params = json!({ "after": cursor, "kinds": ["message.sent"], "wait": WAIT, "limit": 500 });
        cursor = server.call("events", params).await?["cursor"].clone();
    }
}

fn show(letter: &Value, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(output.line(&letter.to_string())?);
    }
    let line = format!(
        "{}  {}  {}  {}",
        short_time(&letter["at"]),
        text_of(&letter["seq"]),
        output.paint(Style::Bold, &printable(&text_of(&letter["from"]))),
        printable(letter["subject"].as_str().unwrap_or_default()),
    );
    Ok(output.line(&line)?)
}
