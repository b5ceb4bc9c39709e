//! `posthaste send` and `posthaste reply`, through an office.

use clap::ValueEnum;
use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::attachments::read_files;
use super::desk::{Desk, Purpose, agent, at_desk, at_desk_for, must_have};
use super::exit::{Exit, Failure};
use super::human_body::body;
use super::mail_args::{Pressing, ReplyArgs, SendArgs};
use super::output::{Output, Style, Table, text_of};

pub(super) fn send(global: &GlobalArgs, args: &SendArgs, output: &Output) -> Result<(), Failure> {
    if args.to.is_empty() && args.cc.is_empty() && args.bcc.is_empty() {
        return Err(Failure::new(Exit::Usage, "for whom? give --to"));
    }
    let priority = args.priority.as_deref().map(pressing).transpose()?;
    let expires = args
        .expires
        .map(|span| stamp::now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)));
    let from = agent(args.from.as_deref());
    let files = read_files(&args.attach)?;
    let text = body(&args.body)?;
    let params = json!({
        "from": from,
        "to": args.to,
        "cc": args.cc,
        "bcc": args.bcc,
        "kind": args.kind.clone().unwrap_or_default(),
        "subject": args.subject,
        "body": text,
        "priority": priority,
        "ack_required": args.ack,
        "expires_at": expires,
        "conversation": args.thread,
        "in_reply_to": args.in_reply_to,
        "key": args.key,
        "attachments": files,
    });
    // Where nothing is yet there is no recipient but the sender, so that a message to another is refused before a data
    // directory is made for it.
    let mut others = args.to.iter().chain(&args.cc).chain(&args.bcc).filter(|to| Some(*to) != from.as_ref());
    if let Some(other) = others.next() {
        must_have(other, global, &args.desk)?;
    }
    at_desk_for(Purpose::Make, global, &args.desk, async |desk| {
        let sent = desk.call("send", params).await.map_err(|failure| hint_at_commas(failure, args))?;
        show_sent(&sent, output)
    })
}

pub(super) fn reply(global: &GlobalArgs, args: &ReplyArgs, output: &Output) -> Result<(), Failure> {
    let from = agent(args.from.as_deref());
    let files = read_files(&args.attach)?;
    // Whether there is anything to answer is asked before somebody writes the answer.
    let letter = at_desk(global, &args.desk, async |desk| {
        desk.call("message", json!({ "agent": from, "message": args.message })).await
    })?;
    let text = body(&args.body)?;
    at_desk(global, &args.desk, async |desk| {
        let me = match &from {
            Some(from) => from.clone(),
            None => text_of(&desk.call("whoami", json!({})).await?["name"]),
        };
        let mut params = answer(&letter, args, &me, text);
        params["attachments"] = files.into();
        let sent = desk.call("send", params).await?;
        show_sent(&sent, output)
    })
}

/// Names may have commas, so a list of recipients in one word is told from them when it is not found.
fn hint_at_commas(failure: Failure, args: &SendArgs) -> Failure {
    let listed = [(&args.to, "--to"), (&args.cc, "--cc"), (&args.bcc, "--bcc")]
        .into_iter()
        .find_map(|(words, flag)| Some((words.iter().find(|word| word.contains(','))?, flag)));
    match listed {
        Some((word, flag)) if failure.refusal() == Some("no_such_agent") => {
            let each: Vec<String> = word.split(',').map(|name| format!("{flag} {}", name.trim())).collect();
            Failure::new(
                failure.exit,
                format!("{}; for several recipients: {}", failure.error, each.join(" ")),
            )
        }
        _ => failure,
    }
}

fn answer(letter: &Value, args: &ReplyArgs, me: &str, text: String) -> Value {
    let sender = text_of(&letter["from"]);
    let mut to = vec![format!("agent:{sender}")];
    if args.all {
        let others = letter["deliveries"].as_array().into_iter().flatten();
        let others = others.filter(|copy| copy["copy"] != "bcc").map(|copy| text_of(&copy["agent"]));
        to.extend(
            others.filter(|other| *other != me && *other != sender).map(|other| format!("agent:{other}")),
        );
    }
    let heading = letter["subject"].as_str().unwrap_or_default();
    let is_answer = heading.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let heading = match &args.subject {
        Some(subject) => subject.clone(),
        None if is_answer || heading.is_empty() => heading.to_owned(),
        None => format!("Re: {heading}"),
    };
    // A letter outside every conversation opens one when it is answered, under its own id.
    let conversation = letter["conversation"].as_str().or(letter["id"].as_str());
    json!({
        "from": me, "to": to, "subject": heading, "body": text, "kind": letter["kind"],
        "priority": letter["priority"], "conversation": conversation, "in_reply_to": letter["id"],
    })
}

/// The tier of a word or of a number.
fn pressing(text: &str) -> Result<u8, Failure> {
    if let Some(tier) = text.parse().ok().filter(|tier| (1..=5).contains(tier)) {
        return Ok(tier);
    }
    let known = Pressing::from_str(text, true);
    known.map(Pressing::tier).map_err(|_| {
        Failure::new(
            Exit::Usage,
            format!("{text:?} is not a priority: urgent, high, normal, low, bulk, or 1 to 5"),
        )
    })
}

fn show_sent(sent: &Value, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(sent);
    }
    output.line(&text_of(&sent["id"]))?;
    let mut table = Table::new(["TO", "STATE"]);
    for receipt in sent["receipts"].as_array().into_iter().flatten() {
        table.row([text_of(&receipt["agent"]), text_of(&receipt["state"])], Style::Plain);
    }
    Ok(output.table(&table)?)
}

impl Desk {
    /// One letter, as an agent sees it.
    pub(super) async fn letter(&self, agent: Option<&str>, id: &str) -> Result<Value, Failure> {
        self.call("message", json!({ "agent": agent, "message": id })).await
    }
}
