//! `posthaste nudge` and `posthaste hooks`: the neighbours of a mail directory.

use std::path::Path;

use posthaste_wire::files::signals::Hook;
use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::at_desk;
use super::exit::{Exit, Failure};
use super::mail_args::{NudgeArgs, SignalArgs};
use super::output::{Output, Style, Table, text_of};
use posthaste_files::{MailDir, StateDir, nudge_now};

pub(super) fn nudge(global: &GlobalArgs, args: &NudgeArgs, output: &Output) -> Result<(), Failure> {
    let done = match &args.place.mail_dir {
        Some(dir) => {
            let nudge = nudge_now(&args.from, &args.kind, &args.message, args.requires_response);
            state_beside(dir)?.nudge(&args.to, &nudge)?;
            let mut value = nudge.to_value();
            value["to"] = json!(args.to);
            value
        }
        None => at_desk(global, &args.place.desk, async |desk| {
            let params = json!({
                "from": args.from, "to": args.to, "type": args.kind, "message": args.message,
                "requires_response": args.requires_response,
            });
            desk.call("nudge", params).await
        })?,
    };
    if output.is_json() {
        return output.json(&done);
    }
    Ok(output.line(&format!("{} is nudged", args.to))?)
}

pub(super) fn hooks(global: &GlobalArgs, args: &SignalArgs, output: &Output) -> Result<(), Failure> {
    let hooks: Vec<Value> = match &args.mail_dir {
        Some(dir) => {
            let mail = if dir.exists() { Some(MailDir::open(dir)?) } else { None };
            state_beside(dir)?.hooks().iter().map(|hook| with_mail(hook, mail.as_ref())).collect()
        }
        None => at_desk(global, &args.desk, async |desk| {
            let answer = desk.call("hooks", json!({})).await?;
            Ok(answer["hooks"].as_array().cloned().unwrap_or_default())
        })?,
    };
    if output.is_json() {
        return output.json(&json!({ "hooks": hooks, "next": null }));
    }
    let mut table = Table::new(["AGENT", "STATUS", "BEAD", "TITLE", "ASSIGNED", "LAST ACTIVITY", "MAIL"]);
    for hook in &hooks {
        let style = match hook["status"].as_str() {
            Some("pending") => Style::Warning,
            Some("active") => Style::Good,
            _ => Style::Dim,
        };
        let cells = ["agent", "status", "bead_id", "title", "assigned_at", "last_activity", "mail"];
        table.row(cells.map(|field| text_of(&hook[field])), style);
    }
    Ok(output.table(&table)?)
}

/// A hook together with how it stands with the mail that explains it.
fn with_mail(hook: &Hook, mail: Option<&MailDir>) -> Value {
    let mut value = hook.to_value();
    let inbox = mail.and_then(|mail| mail.inbox(&hook.agent).ok());
    let assignments = inbox.iter().flat_map(|inbox| &inbox.entries).filter(|entry| {
        let about = |bead: &String| {
            entry.message.extra.get("bead_id").and_then(Value::as_str) == Some(bead)
                || entry.message.subject.contains(bead.as_str())
                || entry.message.body_text().contains(bead.as_str())
        };
        entry.message.kind == "work_assignment" && hook.bead.as_ref().is_none_or(about)
    });
    let unread: Vec<bool> = assignments.map(|entry| !entry.message.read).collect();
    let busy = matches!(hook.status.as_str(), "pending" | "active");
    value["mail"] = match (busy, unread.is_empty(), unread.contains(&true)) {
        (false, true, _) => Value::Null,
        (false, false, true) => json!("mail without hook"),
        (false, false, false) => json!("read"),
        (true, true, _) => json!("no mail"),
        (true, false, true) => json!("unread"),
        (true, false, false) => json!("read"),
    };
    value
}

fn state_beside(dir: &Path) -> Result<StateDir, Failure> {
    let dir = std::path::absolute(dir)?;
    StateDir::of(&dir).ok_or_else(|| {
        let text =
            format!("{} is not called `mail`, so hooks and nudges have no place beside it", dir.display());
        Failure::new(Exit::Usage, text)
    })
}
