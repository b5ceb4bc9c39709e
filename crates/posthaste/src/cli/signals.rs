//! `posthaste nudge` and `posthaste hooks`: files next to a mail directory.

use std::path::Path;

use posthaste_wire::control::{HooksResult, NoParams, NudgeParams};
use posthaste_wire::files::signals::{Hook, SentNudge};
use serde::Serialize;
use serde_json::Value;

use super::args::GlobalArgs;
use super::args::{NudgeArgs, SignalArgs};
use super::exit::{Exit, Failure};
use super::output::{Output, Page, Style, Table, text_of};
use super::realm_access::with_realm;
use posthaste_files::{MailDir, StateDir, nudge_now};

pub(super) fn nudge(global: &GlobalArgs, args: &NudgeArgs, output: &Output) -> Result<(), Failure> {
    let done = match &args.place.mail_dir {
        Some(dir) => {
            let nudge = nudge_now(&args.from, &args.kind, &args.message, args.requires_response);
            state_beside(dir)?.nudge(&args.to, &nudge)?;
            serde_json::to_value(SentNudge { nudge, to: args.to.clone() })?
        }
        None => with_realm(global, &args.place.realm, async |realm| {
            let params = NudgeParams {
                from: Some(args.from.clone()),
                to: args.to.clone(),
                kind: args.kind.clone(),
                message: args.message.clone(),
                requires_response: args.requires_response,
            };
            realm.call("nudge", params).await
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
        None => with_realm(global, &args.realm, async |realm| {
            let HooksResult { hooks } = realm.call("hooks", NoParams {}).await?;
            Ok(hooks.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
        })?,
    };
    if output.is_json() {
        return output.json(&Page::only("hooks", &hooks));
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

/// A hook, and whether the message that explains it was read.
#[derive(Serialize)]
struct HookWithMail<'a> {
    #[serde(flatten)]
    hook: &'a Hook,
    mail: Option<&'static str>,
}

fn with_mail(hook: &Hook, mail: Option<&MailDir>) -> Value {
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
    let mail = match (busy, unread.is_empty(), unread.contains(&true)) {
        (false, true, _) => None,
        (false, false, true) => Some("mail without hook"),
        (true, true, _) => Some("no mail"),
        (true, false, true) => Some("unread"),
        (_, false, false) => Some("read"),
    };
    serde_json::to_value(HookWithMail { hook, mail }).unwrap_or_default()
}

fn state_beside(dir: &Path) -> Result<StateDir, Failure> {
    let dir = std::path::absolute(dir)?;
    StateDir::of(&dir).ok_or_else(|| {
        let text =
            format!("{} is not called `mail`, so hooks and nudges have no place beside it", dir.display());
        Failure::new(Exit::Usage, text)
    })
}
