//! `posthaste read` and `posthaste ack`, through a server.

use std::path::PathBuf;

use posthaste_wire::control::{Delivery, MarkParams, MessageResult};
use serde::Serialize;
use serde_json::Value;

use super::args::{AckArgs, GlobalArgs, ReadArgs};
use super::attachments;
use super::exit::Failure;
use super::inbox::priority_of;
use super::output::{Output, Style, printable, printable_text};
use super::realm_access::{agent, with_realm};
use super::times;

/// A message and the attachments that were saved, as `--json` prints them.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    message: &'a MessageResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<&'a [PathBuf]>,
}

pub(super) fn read(global: &GlobalArgs, args: &ReadArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| {
        let found = realm.message(who.as_deref(), &args.message).await?;
        let saved = match &args.save {
            Some(folder) => Some(attachments::save(realm, who.as_deref(), &found.message, folder).await?),
            None => None,
        };
        if !args.peek {
            let params = MarkParams { agent: who.clone(), message: found.message.id.clone(), response: None };
            realm.call::<Delivery>("read", params).await?;
        }
        if output.is_json() {
            return output.json(&Shown { message: &found, saved: saved.as_deref() });
        }
        show(&found, output)?;
        if saved.is_none() && !found.message.attachments.is_empty() {
            eprintln!("\n--save DIR saves the attachments");
        }
        for path in saved.iter().flatten() {
            output.line(&format!("saved {}", path.display()))?;
        }
        if output.is_terminal() {
            output
                .line(&format!("\n{}", output.paint(Style::Dim, &how_to_answer(&found, who.as_deref()))))?;
        }
        Ok(())
    })
}

pub(super) fn ack(global: &GlobalArgs, args: &AckArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| {
        let params =
            MarkParams { agent: who, message: args.message.clone(), response: args.response.clone() };
        let delivery: Delivery = realm.call("ack", params).await?;
        if output.is_json() {
            return output.json(&delivery);
        }
        Ok(output.line("acknowledged")?)
    })
}

/// The commands that answer a message.
fn how_to_answer(found: &MessageResult, who: Option<&str>) -> String {
    let number = found.message.seq;
    let flag = |name: &str| who.map(|who| format!(" --{name} {who}")).unwrap_or_default();
    let reply = format!("answer: posthaste reply {number}{}", flag("from"));
    match found.message.ack_required {
        true => format!("acknowledge: posthaste ack {number}{}\n{reply}", flag("agent")),
        false => reply,
    }
}

/// Prints a message with its head.
fn show(found: &MessageResult, output: &Output) -> Result<(), Failure> {
    let message = &found.message;
    let to: Vec<&str> = found.deliveries.iter().map(|delivery| delivery.agent.as_str()).collect();
    let heads = [
        ("From", message.from.clone()),
        ("To", to.join(", ")),
        ("Date", times::to_the_second(message.at.as_str())),
        ("Kind", message.kind.clone()),
        ("Priority", priority_of(message).to_owned()),
        ("Ack", if message.ack_required { "wanted".to_owned() } else { String::new() }),
        ("Thread", message.conversation.clone().unwrap_or_default()),
        ("Subject", message.subject.clone().unwrap_or_default()),
    ];
    for (head, text) in heads.iter().filter(|(_, text)| !text.is_empty()) {
        output.line(&format!("{} {}", output.paint(Style::Bold, &format!("{head}:")), printable(text)))?;
    }
    for line in attachments::lines(message) {
        output.line(&format!("{} {line}", output.paint(Style::Bold, "Attached:")))?;
    }
    Ok(output.line(&format!("\n{}", body_text(&message.body)))?)
}

/// The body of a message as text.
pub(super) fn body_text(body: &Value) -> String {
    match body {
        Value::String(text) => printable_text(text),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
