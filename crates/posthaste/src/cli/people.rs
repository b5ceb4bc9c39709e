//! `posthaste agents`, `posthaste contacts` and `posthaste whoami`: who is there, and how they stand with each other.

use serde_json::json;

use super::args::GlobalArgs;
use super::desk::{agent, at_desk};
use super::exit::Failure;
use super::mail_args::{ContactCommand, ContactsArgs, DeskArgs, ListArgs};
use super::output::{Output, Style, Table, short_time, text_of};

pub(super) fn agents(global: &GlobalArgs, args: &ListArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, &args.desk, async |desk| {
        let answer = desk.call("agents", json!({ "limit": args.limit, "after": args.next })).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let mut table = Table::new(["ID", "KIND", "NAME", "ROLE", "STATE", "DOOR", "SINCE"]);
        for one in answer["agents"].as_array().into_iter().flatten() {
            let [id, kind, name, role, state, door] =
                ["id", "kind", "name", "role", "state", "door"].map(|field| text_of(&one[field]));
            table.row([id, kind, name, role, state, door, short_time(&one["created_at"])], Style::Plain);
        }
        output.table(&table)?;
        args.say_more(&answer);
        Ok(())
    })
}

pub(super) fn whoami(global: &GlobalArgs, args: &DeskArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, args, async |desk| {
        let me = desk.call("whoami", json!({})).await?;
        if output.is_json() {
            return output.json(&me);
        }
        let [name, role, realm] = ["name", "role", "realm"].map(|field| text_of(&me[field]));
        Ok(output.line(&format!("{name} ({role}) in {realm}"))?)
    })
}

pub(super) fn contacts(global: &GlobalArgs, args: &ContactsArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk(), async |desk| {
        let (method, other, reason) = match &args.command {
            None => {
                let answer = desk.call_as(who.as_deref(), "contacts", json!({ "agent": who })).await?;
                if output.is_json() {
                    return output.json(&json!({ "contacts": answer["contacts"], "next": null }));
                }
                let mut table = Table::new(["FROM", "TO", "STATE", "REASON", "SINCE"]);
                for one in answer["contacts"].as_array().into_iter().flatten() {
                    let [from, to, state, reason] =
                        ["from", "to", "state", "reason"].map(|field| text_of(&one[field]));
                    let style = match state.as_str() {
                        "pending" => Style::Warning,
                        "blocked" => Style::Dim,
                        _ => Style::Plain,
                    };
                    table.row([from, to, state, reason, short_time(&one["updated_at"])], style);
                }
                return Ok(output.table(&table)?);
            }
            Some(ContactCommand::Ask { other, reason }) => ("contact.ask", other, reason.clone()),
            Some(ContactCommand::Accept { other }) => ("contact.accept", other, None),
            Some(ContactCommand::Block { other }) => ("contact.block", other, None),
            Some(ContactCommand::End { other }) => ("contact.end", other, None),
        };
        let params = json!({ "agent": who, "other": other, "reason": reason });
        let contact = desk.call_as(who.as_deref(), method, params).await?;
        if output.is_json() {
            return output.json(&contact);
        }
        let state = contact["state"].as_str().unwrap_or("ended");
        Ok(output.line(&format!("{other}: {state}"))?)
    })
}
