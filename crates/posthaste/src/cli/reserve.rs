//! `posthaste reserve`, `posthaste release` and `posthaste reservations`.

use posthaste_engine::stamp;
use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::{agent, at_desk};
use super::exit::{Exit, Failure};
use super::mail_args::{ReleaseArgs, ReservationsArgs, ReserveArgs};
use super::output::{Output, Style, Table, short_time, text_of};

pub(super) fn reserve(global: &GlobalArgs, args: &ReserveArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    let ttl = i64::try_from(args.ttl.as_millis()).unwrap_or(i64::MAX);
    let params = json!({
        "agent": who, "scope": args.scope, "directory": here(), "paths": args.paths, "exclusive": !args.shared, "reason": args.reason,
        "expires_at": stamp::now().saturating_add(ttl),
    });
    at_desk(global, &args.desk, async |desk| {
        let made = desk.call_as(who.as_deref(), "reserve", params).await?;
        let conflicts = made["conflicts"].as_array().cloned().unwrap_or_default();
        if output.is_json() {
            output.json(&made)?;
        } else {
            output.line(&format!("{} until {}", text_of(&made["id"]), short_time(&made["expires_at"])))?;
            if !conflicts.is_empty() {
                let mut table = Table::new(["PATH", "OVERLAPS", "HOLDER", "UNTIL"]);
                for one in &conflicts {
                    let [path, held, holder] =
                        ["path", "held_path", "holder"].map(|field| text_of(&one[field]));
                    table.row([path, held, holder, short_time(&one["expires_at"])], Style::Warning);
                }
                output.table(&table)?;
            }
        }
        match conflicts.len() {
            0 => Ok(()),
            count => {
                let overlaps = if count == 1 { "1 overlap".to_owned() } else { format!("{count} overlaps") };
                let text = format!("reserved, with {overlaps} with what others hold");
                Err(Failure::warning(Exit::Unhealthy, text))
            }
        }
    })
}

/// The directory of the command: several work trees of a realm are projects of their own.
fn here() -> Option<String> {
    std::env::current_dir().ok()?.to_str().map(str::to_owned)
}

pub(super) fn release(global: &GlobalArgs, args: &ReleaseArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| {
        let params = json!({ "agent": who, "ids": args.ids, "scope": args.scope, "directory": here() });
        let answer = desk.call("release", params).await?;
        if output.is_json() {
            return output.json(&json!({ "released": answer["released"], "next": null }));
        }
        let count = answer["released"].as_array().map_or(0, Vec::len);
        Ok(output.line(&format!("{count} released"))?)
    })
}

pub(super) fn reservations(
    global: &GlobalArgs,
    args: &ReservationsArgs,
    output: &Output,
) -> Result<(), Failure> {
    at_desk(global, &args.list.desk, async |desk| {
        let params = json!({
            "scope": args.scope, "owner": args.agent, "ended": args.ended, "limit": args.list.limit,
            "after": args.list.next_number()?.unwrap_or(0),
        });
        let answer = desk.call("reservations", params).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let mut table = Table::new(["ID", "OWNER", "SCOPE", "PATHS", "HOW", "STATUS", "UNTIL", "REASON"]);
        for one in answer["reservations"].as_array().into_iter().flatten() {
            let paths = one["paths"].as_array().into_iter().flatten().map(text_of).collect::<Vec<_>>();
            let how = if one["exclusive"] == Value::Bool(true) { "alone" } else { "shared" };
            let style = if one["status"] == "active" { Style::Plain } else { Style::Dim };
            let [id, owner, scope, status] =
                ["id", "owner", "scope", "status"].map(|field| text_of(&one[field]));
            let reason = one["reason"].as_str().unwrap_or_default().to_owned();
            let until = short_time(&one["expires_at"]);
            table.row([id, owner, scope, paths.join(" "), how.to_owned(), status, until, reason], style);
        }
        output.table(&table)?;
        args.list.say_more(&answer);
        Ok(())
    })
}
