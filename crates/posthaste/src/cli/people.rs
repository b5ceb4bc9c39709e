//! `posthaste agents`, `agent`, `register`, `contacts` and `whoami`: the address book, and how agents stand with each other.

use serde_json::json;

use super::args::GlobalArgs;
use super::context;
use super::desk::{Purpose, agent, at_desk, at_desk_for};
use super::exit::Failure;
use super::mail_args::{AgentCommand, ContactCommand, ContactsArgs, DeskArgs, ListArgs, RegisterArgs};
use super::output::{Output, Style, Table, short_time, text_of};

pub(super) fn agents(global: &GlobalArgs, args: &ListArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, &args.desk, async |desk| {
        let answer = desk.call("agents", json!({ "limit": args.limit, "after": args.next })).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let mut table = Table::new(["ID", "KIND", "NAME", "ROLE", "STATE", "CONNECTED", "DOOR", "SINCE"]);
        for one in answer["agents"].as_array().into_iter().flatten() {
            let [id, kind, name, role, state, door] =
                ["id", "kind", "name", "role", "state", "door"].map(|field| text_of(&one[field]));
            let connected = if one["connected"] == true { "yes" } else { "no" }.to_owned();
            let since = short_time(&one["created_at"]);
            table.row([id, kind, name, role, state, connected, door, since], Style::Plain);
        }
        output.table(&table)?;
        args.say_more(&answer);
        Ok(())
    })
}

pub(super) fn agent_command(
    global: &GlobalArgs,
    command: &AgentCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        AgentCommand::Show { name, desk } => show(global, desk, name, output),
        AgentCommand::Remove { name, force, desk } => remove(global, desk, name, *force, output),
    }
}

fn show(global: &GlobalArgs, desk: &DeskArgs, name: &str, output: &Output) -> Result<(), Failure> {
    at_desk(global, desk, async |desk| {
        let one = desk.call("agent", json!({ "agent": name })).await?;
        if output.is_json() {
            return output.json(&one);
        }
        let doors = one["connected_by"].as_array().into_iter().flatten().map(text_of);
        let connected = match one["connected"] == true {
            true => format!("yes, by {}", doors.collect::<Vec<_>>().join(", ")),
            false => "no".to_owned(),
        };
        let rows = [
            ("id", text_of(&one["id"])),
            ("kind", text_of(&one["kind"])),
            ("name", text_of(&one["name"])),
            ("role", text_of(&one["role"])),
            ("state", text_of(&one["state"])),
            ("connected", connected),
            ("last seen", short_time(&one["last_seen"])),
            ("door", text_of(&one["door"])),
            ("owner", text_of(&one["owner"])),
            ("unread", text_of(&one["unread"])),
            ("not handed over", text_of(&one["waiting"])),
            ("since", short_time(&one["created_at"])),
        ];
        let mut table = Table::bare();
        for (what, value) in rows {
            if !value.is_empty() && value != "-" {
                table.row([what.to_owned(), value], Style::Plain);
            }
        }
        Ok(output.table(&table)?)
    })
}

fn remove(
    global: &GlobalArgs,
    desk: &DeskArgs,
    name: &str,
    force: bool,
    output: &Output,
) -> Result<(), Failure> {
    at_desk(global, desk, async |desk| {
        let done = desk.call("agent.remove", json!({ "agent": name, "force": force })).await?;
        if output.is_json() {
            return output.json(&done);
        }
        output
            .line(&format!("{name} is removed from the address book; its messages stay in the event log"))?;
        if let Some(waiting) = done["waiting"].as_i64().filter(|waiting| *waiting > 0) {
            output.line(&format!("{waiting} of its messages were not handed over"))?;
        }
        for token in done["tokens"].as_array().into_iter().flatten() {
            let token = text_of(token);
            output.line(&format!(
                "a valid token carries this name, so mail to it waits again; to end that: posthaste token revoke {token}"
            ))?;
        }
        Ok(())
    })
}

pub(super) fn register(global: &GlobalArgs, args: &RegisterArgs, output: &Output) -> Result<(), Failure> {
    at_desk_for(Purpose::Make, global, &args.desk, async |desk| {
        let id = match &args.name {
            Some(name) => name.clone(),
            None => text_of(&desk.call("whoami", json!({})).await?["name"]),
        };
        let params = json!({ "id": id, "name": args.display_name, "role": args.role, "kind": args.kind });
        let one = desk.call("register", params).await?;
        if output.is_json() {
            return output.json(&one);
        }
        let how = if one["resumed"] == true { "was registered already" } else { "is registered" };
        Ok(output.line(&format!("{} {how}", text_of(&one["id"])))?)
    })
}

pub(super) fn whoami(global: &GlobalArgs, args: &DeskArgs, output: &Output) -> Result<(), Failure> {
    at_desk(global, args, async |desk| {
        let me = desk.call("whoami", json!({})).await?;
        if output.is_json() {
            return output.json(&me);
        }
        let [name, role, realm] = ["name", "role", "realm"].map(|field| text_of(&me[field]));
        let server = context::meant(global, &args.office())?;
        let place = server["url"].as_str().or(server["data"].as_str()).unwrap_or_default();
        Ok(output.line(&format!("{name} ({role}) in {realm} at {place}, {}", text_of(&server["named"])))?)
    })
}

pub(super) fn contacts(global: &GlobalArgs, args: &ContactsArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk(), async |desk| {
        let (method, other, reason) = match &args.command {
            None => {
                let answer = desk.call("contacts", json!({ "agent": who })).await?;
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
