//! `posthaste inbox`, through a server: a list, or messages as they arrive.

use posthaste_wire::control::{
    DeliveryState, EventsParams, EventsResult, InboxMessage, InboxOrder, InboxParams, InboxResult, Message,
    PageSize,
};

use super::args::{GlobalArgs, InboxArgs};
use super::exit::Failure;
use super::output::{Output, Style, Table, printable, short_time, text_of};
use super::realm_access::{RealmAccess, agent, with_realm};
use super::reconnect::Persistent;

/// How long one call waits for events, in milliseconds; shorter than the timeouts of proxies.
pub(super) const EVENT_WAIT_MS: u64 = 20_000;
/// Messages of a list unless `--limit` is given.
const DEFAULT_LIMIT: u32 = 50;
/// Messages of one page with `--watch`.
const WATCH_PAGE: usize = 200;
/// Events of one page with `--watch`.
const EVENT_PAGE: usize = 500;

pub(super) fn run(global: &GlobalArgs, args: &InboxArgs, output: &Output) -> Result<(), Failure> {
    let who = agent(args.agent.as_deref());
    with_realm(global, &args.realm, async |realm| match args.watch {
        true => watch(realm, args, who.as_deref(), output).await,
        false => list(realm, args, who.as_deref(), output).await,
    })
}

async fn list(
    realm: &RealmAccess,
    args: &InboxArgs,
    who: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    let params = InboxParams {
        agent: who.map(str::to_owned),
        unread: args.unread,
        kinds: args.kinds.clone(),
        order: if args.by_priority { InboxOrder::Priority } else { InboxOrder::Newest },
        before: args.before,
        limit: PageSize(args.limit.unwrap_or(DEFAULT_LIMIT) as usize),
        ..InboxParams::default()
    };
    let page = own_mail(who, realm.call("inbox", params).await)?;
    if output.is_json() {
        return output.json(&page);
    }
    let mut table = Table::new(["ID", "WHEN", "FROM", "KIND", "SUBJECT", "PRIORITY", "ACK", "STATE"]);
    for InboxMessage { message, delivery } in &page.messages {
        let style = match (is_unread(delivery.state), message.priority < 3) {
            (true, true) => Style::Bad,
            (true, false) => Style::Bold,
            (false, _) => Style::Dim,
        };
        let ack = match (message.ack_required, delivery.acked_at.is_some()) {
            (_, true) => "done",
            (true, false) => "wanted",
            (false, false) => "",
        };
        let row = [
            message.seq.to_string(),
            short_time(message.at.as_str()),
            message.from.clone(),
            message.kind.clone(),
            message.subject.clone().unwrap_or_default(),
            priority_of(message).to_owned(),
            ack.to_owned(),
            text_of(delivery.state),
        ];
        table.row(row, style);
    }
    output.table(&table)?;
    if let Some(next) = page.next {
        eprintln!("There is more: --next {next}");
    }
    Ok(())
}

fn is_unread(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Queued | DeliveryState::Delivered)
}

/// A page of an agent's mail; empty for a caller that asks for its own and is not registered.
fn own_mail(who: Option<&str>, page: Result<InboxResult, Failure>) -> Result<InboxResult, Failure> {
    match page {
        Err(failure) if who.is_none() && failure.refusal() == Some("no_such_agent") => {
            Ok(InboxResult::default())
        }
        page => page,
    }
}

/// The name of a message's priority; empty for the normal one.
pub(super) fn priority_of(message: &Message) -> &'static str {
    match message.priority {
        1 => "urgent",
        2 => "high",
        4 => "low",
        5 => "bulk",
        _ => "",
    }
}

/// Prints the unread messages, then messages as they arrive. Nothing is marked as read, and nothing is printed twice.
async fn watch(
    realm: &RealmAccess,
    args: &InboxArgs,
    who: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    let mut after = 0;
    let mut unread = true;
    let mut server = Persistent::new(realm, !args.no_retry);
    // The position in the event log is read first, so that messages that arrive during the listing are not missed.
    let end = EventsParams { limit: PageSize(1), ..EventsParams::default() };
    let mut cursor = server.call::<EventsResult>("events", end).await?.cursor;
    loop {
        loop {
            let params = InboxParams {
                agent: who.map(str::to_owned),
                unread: unread && args.unread,
                kinds: args.kinds.clone(),
                order: InboxOrder::Oldest,
                after: Some(after),
                limit: PageSize(WATCH_PAGE),
                ..InboxParams::default()
            };
            let page = own_mail(who, server.call("inbox", params).await)?;
            for found in &page.messages {
                after = found.message.seq.max(after);
                if unread && !is_unread(found.delivery.state) {
                    continue;
                }
                show(found, output)?;
            }
            if page.next.is_none() {
                break;
            }
        }
        unread = false;
        let params = EventsParams {
            after: Some(cursor),
            kinds: vec!["message.sent".to_owned()],
            wait: EVENT_WAIT_MS,
            limit: PageSize(EVENT_PAGE),
            ..EventsParams::default()
        };
        cursor = server.call::<EventsResult>("events", params).await?.cursor;
    }
}

fn show(found: &InboxMessage, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return Ok(output.line(&serde_json::to_string(found)?)?);
    }
    let message = &found.message;
    let line = format!(
        "{}  {}  {}  {}",
        short_time(message.at.as_str()),
        message.seq,
        output.paint(Style::Bold, &printable(&message.from)),
        printable(message.subject.as_deref().unwrap_or_default()),
    );
    Ok(output.line(&line)?)
}
