//! `posthaste read` and `posthaste ack`, through an office.

use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::attachments;
use super::desk::{agent, at_desk};
use super::exit::Failure;
use super::inbox::priority_of;
use super::mail_args::{AckArgs, ReadArgs};
use super::output::{Output, Style, printable, printable_text, text_of};
use super::times;

pub(super) fn read(global: &GlobalArgs, args: &ReadArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| {
        let mut letter = desk.letter(who.as_deref(), &args.message).await?;
        let saved = match &args.save {
            Some(folder) => Some(attachments::save(desk, who.as_deref(), &letter, folder).await?),
            None => None,
        };
        if !args.peek {
            desk.call("read", json!({ "agent": who, "message": letter["id"] })).await?;
        }
        if output.is_json() {
            if let Some(saved) = &saved {
                letter["saved"] = json!(saved);
            }
            return output.json(&letter);
        }
        show(&letter, output)?;
        if saved.is_none() && !attachments::lines(&letter).is_empty() {
            eprintln!("\n--save DIR saves the attachments");
        }
        for path in saved.iter().flatten() {
            output.line(&format!("saved {}", path.display()))?;
        }
        if output.is_terminal() {
            output
                .line(&format!("\n{}", output.paint(Style::Dim, &how_to_answer(&letter, who.as_deref()))))?;
        }
        Ok(())
    })
}

pub(super) fn ack(global: &GlobalArgs, args: &AckArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| {
        let params = json!({ "agent": who, "message": args.message, "response": args.response });
        let delivery = desk.call("ack", params).await?;
        if output.is_json() {
            return output.json(&delivery);
        }
        Ok(output.line("acknowledged")?)
    })
}

/// The commands that answer a message.
fn how_to_answer(letter: &Value, who: Option<&str>) -> String {
    let number = text_of(&letter["seq"]);
    let flag = |name: &str| who.map(|who| format!(" --{name} {who}")).unwrap_or_default();
    let reply = format!("answer: posthaste reply {number}{}", flag("from"));
    match letter["ack_required"] == true {
        true => format!("acknowledge: posthaste ack {number}{}\n{reply}", flag("agent")),
        false => reply,
    }
}

/// A letter with its head, as people read it.
pub(super) fn show(letter: &Value, output: &Output) -> Result<(), Failure> {
    let to = letter["deliveries"].as_array().into_iter().flatten().map(|copy| text_of(&copy["agent"]));
    let heads = [
        ("From", text_of(&letter["from"])),
        ("To", to.collect::<Vec<_>>().join(", ")),
        ("Date", times::to_the_second(&letter["at"])),
        ("Kind", text_of(&letter["kind"])),
        ("Priority", priority_of(letter).to_owned()),
        ("Ack", if letter["ack_required"] == true { "wanted".to_owned() } else { String::new() }),
        ("Thread", letter["conversation"].as_str().unwrap_or_default().to_owned()),
        ("Subject", letter["subject"].as_str().unwrap_or_default().to_owned()),
    ];
    for (head, text) in heads.iter().filter(|(_, text)| !text.is_empty()) {
        output.line(&format!("{} {}", output.paint(Style::Bold, &format!("{head}:")), printable(text)))?;
    }
    for line in attachments::lines(letter) {
        output.line(&format!("{} {line}", output.paint(Style::Bold, "Attached:")))?;
    }
    Ok(output.line(&format!("\n{}", body_of(&letter["body"])))?)
}

/// What a letter says, as text.
pub(super) fn body_of(body: &Value) -> String {
    match body {
        Value::String(text) => printable_text(text),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
