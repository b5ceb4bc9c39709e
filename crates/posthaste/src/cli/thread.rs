//! `posthaste thread`, `posthaste conversations` and `posthaste search`.

use posthaste_wire::control::{
    ConversationStatus, ConversationsParams, ConversationsResult, PageSize, Said, SearchParams, SearchResult,
    ThreadParams, ThreadResult,
};

use super::args::{ConversationsArgs, GlobalArgs, SearchArgs, ThreadArgs};
use super::exit::Failure;
use super::output::{Output, Style, Table, printable, short_time, text_of};
use super::read::body_text;
use super::realm_access::{agent, with_realm};

pub(super) fn thread(global: &GlobalArgs, args: &ThreadArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| {
        let params = ThreadParams { agent: who, id: args.id.clone() };
        let thread: ThreadResult = realm.call("thread", params).await?;
        if output.is_json() {
            return output.json(&thread);
        }
        let heading = thread.conversation.as_ref().and_then(|found| found.subject.as_deref());
        let heading = format!("{} {}", thread.id, heading.unwrap_or_default());
        output.line(&output.paint(Style::Bold, &printable(&heading)))?;
        for said in &thread.said {
            let (from, at, subject, body) = match said {
                Said::Message(message) => (&message.from, &message.at, &message.subject, &message.body),
                Said::Turn(turn) => (&turn.from, &turn.at, &None, &turn.body),
            };
            let head = format!(
                "\n{} {} {}",
                output.paint(Style::Bold, &printable(from)),
                output.paint(Style::Dim, &short_time(at.as_str())),
                printable(subject.as_deref().unwrap_or_default()),
            );
            output.line(head.trim_end_matches(' '))?;
            output.line(&body_text(body))?;
        }
        if thread.more {
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
    with_realm(global, &args.list.realm, async |realm| {
        let params = ConversationsParams {
            agent: who,
            active: args.active,
            cursor: args.list.next_number()?,
            limit: PageSize(args.list.limit as usize),
        };
        let page: ConversationsResult = realm.call("conversations", params).await?;
        if output.is_json() {
            return output.json(&page);
        }
        let mut table = Table::new(["ID", "KIND", "STATUS", "SUBJECT", "WHO", "TURNS", "LAST"]);
        for one in &page.conversations {
            let style = if one.status == ConversationStatus::Active { Style::Plain } else { Style::Dim };
            let row = [
                one.id.clone(),
                one.kind.clone(),
                text_of(one.status),
                one.subject.clone().unwrap_or_default(),
                one.participants.to_string(),
                one.turns.to_string(),
                short_time(one.updated_at.as_str()),
            ];
            table.row(row, style);
        }
        output.table(&table)?;
        args.list.say_more(page.next.as_ref());
        Ok(())
    })
}

pub(super) fn search(global: &GlobalArgs, args: &SearchArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| {
        let params = SearchParams {
            query: args.query.join(" "),
            agent: who,
            from: args.from.clone(),
            conversation: args.thread.clone(),
            newest: args.newest,
            before: args.next,
            limit: PageSize(args.limit as usize),
        };
        let found: SearchResult = realm.call("search", params).await?;
        if output.is_json() {
            return output.json(&found);
        }
        let mut table = Table::new(["ID", "FROM", "SUBJECT", "FOUND"]);
        for hit in &found.hits {
            // `read` takes the number of a message; a turn is named by its id.
            let id = if hit.message.is_none() { text_of(&hit.turn) } else { hit.seq.to_string() };
            let subject = hit.subject.clone().unwrap_or_default();
            table.row([id, text_of(&hit.from), subject, hit.snippet.replace('\n', " ")], Style::Plain);
        }
        output.table(&table)?;
        if found.partial {
            eprintln!("There may be more.");
        }
        Ok(())
    })
}
