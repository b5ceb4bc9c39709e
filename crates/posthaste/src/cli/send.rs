//! `posthaste send` and `posthaste reply`, through a server.

use std::time::Duration;

use clap::ValueEnum;
use posthaste_engine::stamp;
use posthaste_wire::control::{
    FileData, MessageParams, MessageResult, RecipientKind, SendParams, SendResult,
};
use serde_json::value::{RawValue, to_raw_value};

use super::args::{GlobalArgs, Priority, ReplyArgs, SendArgs};
use super::attachments::read_files;
use super::body_input::body;
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table, text_of};
use super::realm_access::{Purpose, RealmAccess, agent, must_have, with_realm, with_realm_for};

pub(super) fn send(global: &GlobalArgs, args: &SendArgs, output: &Output) -> Result<(), Failure> {
    if args.to.is_empty() && args.cc.is_empty() && args.bcc.is_empty() {
        return Err(Failure::new(Exit::Usage, "for whom? give --to"));
    }
    let priority = args.priority.as_deref().map(priority).transpose()?;
    let from = agent(args.from.as_deref());
    let attachments = read_files(&args.attach)?;
    let params = SendParams {
        from: from.clone(),
        to: args.to.clone(),
        cc: args.cc.clone(),
        bcc: args.bcc.clone(),
        kind: args.kind.clone().unwrap_or_default(),
        subject: args.subject.clone(),
        body: text_body(&body(&args.body)?)?,
        priority,
        ack_required: args.ack,
        expires_at: args.expires.map(from_now),
        conversation: args.thread.clone(),
        in_reply_to: args.in_reply_to.clone(),
        key: args.key.clone(),
        attachments,
    };
    // A realm that does not exist has no recipient but the sender: a message to another agent is refused before a data
    // directory is made for it.
    let mut others = args.to.iter().chain(&args.cc).chain(&args.bcc).filter(|to| Some(*to) != from.as_ref());
    if let Some(other) = others.next() {
        must_have(other, global, &args.realm)?;
    }
    with_realm_for(Purpose::Make, global, &args.realm, async |realm| {
        let sent = realm.call("send", params).await.map_err(|failure| hint_at_commas(failure, args))?;
        show_sent(&sent, output)
    })
}

/// The time after a span, in milliseconds.
pub(super) fn from_now(span: Duration) -> i64 {
    stamp::now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

fn text_body(text: &str) -> Result<Box<RawValue>, Failure> {
    Ok(to_raw_value(text)?)
}

pub(super) fn reply(global: &GlobalArgs, args: &ReplyArgs, output: &Output) -> Result<(), Failure> {
    let from = agent(args.from.as_deref());
    let files = read_files(&args.attach)?;
    // The message is looked up first, so that an editor is not opened for an answer that cannot be sent.
    let message =
        with_realm(global, &args.realm, async |realm| realm.message(from.as_deref(), &args.message).await)?;
    let text = body(&args.body)?;
    with_realm(global, &args.realm, async |realm| {
        let me = match &from {
            Some(from) => from.clone(),
            None => realm.whoami().await?.name,
        };
        let sent = realm.call("send", answer(&message, args, me, &text, files)?).await?;
        show_sent(&sent, output)
    })
}

/// Adds a hint if a recipient was not found whose name has a comma: names may have commas, so a list of recipients in one
/// word is a name.
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

fn answer(
    found: &MessageResult,
    args: &ReplyArgs,
    me: String,
    text: &str,
    attachments: Vec<FileData>,
) -> Result<SendParams, Failure> {
    let message = &found.message;
    let sender = &message.from;
    let mut to = vec![format!("agent:{sender}")];
    if args.all {
        let others = found.deliveries.iter().filter(|delivery| delivery.copy != RecipientKind::Bcc);
        let others = others.map(|delivery| &delivery.agent);
        to.extend(
            others.filter(|other| **other != me && *other != sender).map(|other| format!("agent:{other}")),
        );
    }
    let heading = message.subject.as_deref().unwrap_or_default();
    let is_answer = heading.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let subject = match &args.subject {
        Some(subject) => subject.clone(),
        None if is_answer || heading.is_empty() => heading.to_owned(),
        None => format!("Re: {heading}"),
    };
    Ok(SendParams {
        from: Some(me),
        to,
        cc: Vec::new(),
        bcc: Vec::new(),
        kind: message.kind.clone(),
        subject: Some(subject),
        body: text_body(text)?,
        priority: Some(message.priority),
        ack_required: false,
        expires_at: None,
        // A message outside every conversation opens one when it is answered, under its own id.
        conversation: Some(message.conversation.as_ref().unwrap_or(&message.id).clone()),
        in_reply_to: Some(message.id.clone()),
        key: None,
        attachments,
    })
}

/// The tier of a priority's name or number.
fn priority(text: &str) -> Result<u8, Failure> {
    if let Some(tier) = text.parse().ok().filter(|tier| (1..=5).contains(tier)) {
        return Ok(tier);
    }
    let known = Priority::from_str(text, true);
    known.map(Priority::tier).map_err(|_| {
        Failure::new(
            Exit::Usage,
            format!("{text:?} is not a priority: urgent, high, normal, low, bulk, or 1 to 5"),
        )
    })
}

fn show_sent(sent: &SendResult, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(sent);
    }
    output.line(&sent.id)?;
    let mut table = Table::new(["TO", "STATE"]);
    for receipt in &sent.receipts {
        table.row([receipt.agent.clone(), text_of(receipt.state)], Style::Plain);
    }
    Ok(output.table(&table)?)
}

impl RealmAccess {
    /// One message, as an agent sees it.
    pub(super) async fn message(&self, agent: Option<&str>, id: &str) -> Result<MessageResult, Failure> {
        let params = MessageParams { agent: agent.map(str::to_owned), message: id.to_owned() };
        self.call("message", params).await
    }
}
