//! The mail of any agent, as that agent sees it: for the agent itself, its owner and administrators.

use maud::{Markup, html};
use posthaste_engine::nouns::{AgentId, Priority, Seq};
use posthaste_engine::views::{AgentQuery, InboxMessage, InboxOrder, InboxQuery};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::{Given, encoded};
use super::rows::{self, OVERDUE};
use super::visitor::Visitor;
use super::{ROWS, message};

/// No more than this is counted: beyond it the number says nothing.
const MANY: i64 = 999;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    All,
    Unread,
    Urgent,
    Asked,
    Overdue,
    Sent,
    Dead,
}

const TABS: [(Show, &str, &str); 7] = [
    (Show::All, "all", "All"),
    (Show::Unread, "unread", "Unread"),
    (Show::Urgent, "urgent", "Urgent"),
    (Show::Asked, "asked", "Acks asked"),
    (Show::Overdue, "overdue", "Overdue"),
    (Show::Sent, "sent", "Sent"),
    (Show::Dead, "dead", "Dead messages"),
];

struct Seen {
    messages: Vec<Markup>,
    next: Option<Seq>,
    unread: i64,
    asked: usize,
    overdue: usize,
}

/// `GET /ui/inbox`.
pub(super) async fn page(visitor: Visitor) -> Page {
    match shown(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Inbox, "Inbox", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let agent = given.agent("agent")?.unwrap_or_else(|| visitor.me().clone());
    let show = given.get("show").and_then(|word| TABS.iter().find(|(_, known, _)| *known == word));
    let show = show.map_or(Show::All, |(show, _, _)| *show);
    let before = given.seq("before")?;
    if agent == *visitor.me() && visitor.engine.poisoned().is_none() {
        visitor.enter().await?;
    }
    let (looker, whose, now) = (visitor.clone(), agent.clone(), visitor.now);
    let seen = visitor
        .read(move |view, caller| {
            let rows_of = |page: Vec<InboxMessage>| -> Vec<Markup> {
                page.iter()
                    .map(|found| rows::message(&looker, &found.message, Some(&found.delivery)))
                    .collect()
            };
            let query = InboxQuery {
                unread: show == Show::Unread,
                at_least: (show == Show::Urgent).then_some(Priority::HIGH),
                order: InboxOrder::Newest,
                before,
                limit: ROWS,
                ..InboxQuery::default()
            };
            let overdue = Some(now - OVERDUE);
            let (rows, next) = match show {
                Show::All | Show::Unread | Show::Urgent => {
                    let page = view.inbox(caller, &whose, &query)?;
                    (rows_of(page.items), page.next)
                }
                Show::Asked | Show::Overdue => {
                    let late = overdue.filter(|_| show == Show::Overdue);
                    let page = view.unacknowledged(caller, &whose, late, before, ROWS)?;
                    (rows_of(page.items), page.next)
                }
                Show::Sent => {
                    let page = view.sent(caller, &whose, before, ROWS)?;
                    let row = |tracked: &posthaste_engine::views::Tracked| {
                        let one = tracked.deliveries.first().filter(|_| tracked.deliveries.len() == 1);
                        let read = one.filter(|copy| !copy.state.is_unread());
                        rows::message(&looker, &tracked.message, read)
                    };
                    (page.items.iter().map(row).collect(), page.next)
                }
                Show::Dead => {
                    let page = view.failed_deliveries(caller, before, ROWS)?;
                    let of_agent =
                        |found: &InboxMessage| found.delivery.agent == whose || found.message.from == whose;
                    let all = caller.is(&whose) && caller.rights.admin;
                    (
                        rows_of(page.items.into_iter().filter(|found| all || of_agent(found)).collect()),
                        page.next,
                    )
                }
            };
            Ok(Seen {
                messages: rows,
                next,
                unread: view.unread_up_to(caller, &whose, MANY)?,
                asked: view.unacknowledged(caller, &whose, None, None, 99)?.items.len(),
                overdue: view.unacknowledged(caller, &whose, overdue, None, 99)?.items.len(),
            })
        })
        .await?;
    let others = others(visitor).await;
    let at = |show: &str| visitor.to(&format!("/inbox?agent={}&show={show}", encoded(agent.as_str())));
    let tabs: Vec<(String, &str, bool)> =
        TABS.iter().map(|(of, word, name)| (at(word), *name, *of == show)).collect();
    let older = seen.next.map(|next| visitor.here_with("before", Some(&next.to_string())));
    let newest = before.map(|_| visitor.here_with("before", None));
    Ok(html! {
        h1 { "Inbox of " (rows::agent(visitor, &agent)) }
        (chooser(visitor, &agent, &others))
        p.counts {
            span { b { (seen.unread) @if seen.unread >= MANY { "+" } } " unread" }
            span { b { (seen.asked) @if seen.asked >= 99 { "+" } } " acks outstanding" }
            span class=(if seen.overdue > 0 { "bad" } else { "" }) { b { (seen.overdue) @if seen.overdue >= 99 { "+" } } " overdue" }
        }
        (frame::tabs("Which messages", &tabs))
        @if seen.messages.is_empty() { (nothing(visitor, &agent, show)) }
        ul.rows data-list="" data-refresh="15" { @for message in &seen.messages { (message) } }
        (frame::pager(newest, older))
    })
}

/// The mailboxes that the visitor may open.
async fn others(visitor: &Visitor) -> Vec<AgentId> {
    let admin = visitor.is_admin();
    let me = visitor.me().clone();
    let found = visitor
        .read(move |view, caller| {
            let query = AgentQuery { owner: (!admin).then_some(me), limit: 200, ..AgentQuery::default() };
            Ok(view.agents(caller, &query)?.items.into_iter().map(|agent| agent.id).collect())
        })
        .await;
    found.unwrap_or_default()
}

fn chooser(visitor: &Visitor, agent: &AgentId, others: &[AgentId]) -> Markup {
    html! {
        @if others.len() > 1 {
            form.filters action=(visitor.to("/inbox")) {
                label { "What another sees "
                    input name="agent" list="boxes" value=(agent) size="20" autocomplete="off";
                }
                datalist #boxes { @for id in others { option value=(id) {} } }
                button { "Open" }
            }
        }
    }
}

fn nothing(visitor: &Visitor, agent: &AgentId, show: Show) -> Markup {
    let (what, command) = match show {
        Show::All => {
            let realm = if visitor.base.is_empty() {
                String::new()
            } else {
                format!("/r/{}", visitor.engine.realm())
            };
            let line = format!(
                "curl -s http://127.0.0.1:7678{realm}/x-posthaste/rpc -H \"Authorization: Bearer $TOKEN\" \\\n  -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x-posthaste/send\",\"params\":{{\"to\":[\"{agent}\"],\"body\":\"Hello\"}}}}'"
            );
            ("Messages to this agent are listed here. Write one above, or from a shell:", line)
        }
        Show::Unread => ("Nothing is unread.", String::new()),
        Show::Urgent => ("Nothing is urgent.", String::new()),
        Show::Asked => ("No acknowledgement is asked for.", String::new()),
        Show::Overdue => ("Nothing is overdue.", String::new()),
        Show::Sent => ("This agent has sent nothing.", String::new()),
        Show::Dead => ("No message has expired or failed.", String::new()),
    };
    frame::empty(what, &command)
}
