//! `posthaste thread`, `posthaste conversations` and `posthaste search`.

use serde_json::{Value, json};

use super::args::GlobalArgs;
use super::desk::{agent, at_desk};
use super::exit::Failure;
use super::mail_args::{ConversationsArgs, SearchArgs, ThreadArgs};
use super::output::{Output, Style, Table, printable, short_time, text_of};
use super::read::body_of;

pub(super) fn thread(global: &GlobalArgs, args: &ThreadArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| {
        let answer = desk.call("thread", json!({ "agent": who, "id": args.id })).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let heading = answer["conversation"]["subject"].as_str().unwrap_or_default();
        output
            .line(&output.paint(Style::Bold, &printable(&format!("{} {heading}", text_of(&answer["id"])))))?;
        for said in answer["said"].as_array().into_iter().flatten() {
            let head = format!(
                "\n{} {} {}",
                output.paint(Style::Bold, &printable(&text_of(&said["from"]))),
                output.paint(Style::Dim, &short_time(&said["at"])),
                printable(said["subject"].as_str().unwrap_or_default()),
            );
            output.line(head.trim_end_matches(' '))?;
            output.line(&body_of(&said["body"]))?;
        }
        if answer["more"] == true {
            eprintln!("There is more than fits here.");
        }
        Ok(())
    })
}

pub(super) fn conversations(
    global: &GlobalArgs,
    args: &ConversationsArgs,
    output: &Output,
) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.list.desk, async |desk| {
        let params = json!({
            "agent": who, "active": args.active, "limit": args.list.limit, "cursor": args.list.next_number()?,
        });
        let answer = desk.call("conversations", params).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let mut table = Table::new(["ID", "KIND", "STATUS", "SUBJECT", "WHO", "TURNS", "LAST"]);
        for one in answer["conversations"].as_array().into_iter().flatten() {
            let style = if one["status"] == "active" { Style::Plain } else { Style::Dim };
            let subject = one["subject"].as_str().unwrap_or_default().to_owned();
            let [id, kind, status] = ["id", "kind", "status"].map(|field| text_of(&one[field]));
            let [who, turns] = ["participants", "turns"].map(|field| text_of(&one[field]));
            table.row([id, kind, status, subject, who, turns, short_time(&one["updated_at"])], style);
        }
        output.table(&table)?;
        args.list.say_more(&answer);
        Ok(())
    })
}

pub(super) fn search(global: &GlobalArgs, args: &SearchArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    at_desk(global, &args.desk, async |desk| {
        let params = json!({
            "agent": who, "query": args.query.join(" "), "from": args.from, "conversation": args.thread,
            "newest": args.newest, "limit": args.limit, "before": args.next,
        });
        let answer = desk.call("search", params).await?;
        if output.is_json() {
            return output.json(&answer);
        }
        let mut table = Table::new(["ID", "FROM", "SUBJECT", "FOUND"]);
        for hit in answer["hits"].as_array().into_iter().flatten() {
            // A message is read by its number; a turn has none of its own.
            let id = if hit["message"].is_null() { &hit["turn"] } else { &hit["seq"] };
            let subject = hit["subject"].as_str().unwrap_or_default().to_owned();
            let found = Value::String(hit["snippet"].as_str().unwrap_or_default().replace('\n', " "));
            table.row([text_of(id), text_of(&hit["from"]), subject, text_of(&found)], Style::Plain);
        }
        output.table(&table)?;
        if answer["partial"] == true {
            eprintln!("There may be more.");
        }
        Ok(())
    })
}
