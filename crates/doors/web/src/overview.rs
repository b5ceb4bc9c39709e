//! The first page: health of the server, agents and their traffic, what waits for the visitor.

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use posthaste_engine::Filter;
use posthaste_engine::nouns::{Agent, Event, Seq, Task, TaskStatus};
use posthaste_engine::views::{
    AgentGroup, AgentQuery, Clash, InboxMessage, InboxOrder, InboxQuery, Minute, OfficeStats, Page as Listed,
    TaskQuery,
};
use std::sync::Arc;

use super::answers::{Page, fragment};
use super::frame::{self, Section};
use super::query::encoded;
use super::rows::{self, OVERDUE};
use super::visitor::Visitor;
use super::{live, message, plot, text};
use posthaste_host::units::show_bytes;

/// Agents shown by name.
const NAMED: usize = 60;

struct Seen {
    stats: OfficeStats,
    minutes: Vec<Minute>,
    groups: Vec<AgentGroup>,
    agents: Vec<(Agent, bool)>,
    tasks: Vec<Task>,
    clashes: Vec<Clash>,
    mine: Vec<InboxMessage>,
    unacked: Listed<InboxMessage, Seq>,
    overdue: usize,
    dead: Listed<InboxMessage, Seq>,
    latest: Vec<Arc<Event>>,
}

/// `GET /ui`.
pub(super) async fn page(visitor: Visitor) -> Page {
    let (me, now) = (visitor.me().clone(), visitor.now);
    let engine = visitor.engine.clone();
    let seen = visitor
        .read(move |view, caller| {
            let query = AgentQuery { limit: NAMED, ..AgentQuery::default() };
            let mut agents = Vec::new();
            for agent in view.agents(caller, &query)?.items {
                let about = super::agents::is_about(&engine, view, caller, &agent)?;
                agents.push((agent, about));
            }
            let active = vec![TaskStatus::InProgress, TaskStatus::Blocked, TaskStatus::Open];
            let tasks = TaskQuery { statuses: active, newest_first: true, limit: 8, ..TaskQuery::default() };
            let waiting =
                InboxQuery { unread: true, order: InboxOrder::Priority, limit: 6, ..InboxQuery::default() };
            let none = || Listed { items: Vec::new(), next: None };
            let overdue = view.unacknowledged(caller, &me, Some(now - OVERDUE), None, 99);
            let shown = Filter::Kinds(
                ["message.sent", "task.*", "reservation.*", "conversation.*"].map(str::to_owned).to_vec(),
            );
            Ok(Seen {
                stats: view.stats(caller)?,
                minutes: view.rate(caller, 60)?,
                groups: view.agent_groups(caller)?,
                agents,
                tasks: view.tasks(caller, &tasks)?.items,
                clashes: view.clashes(caller, 6)?,
                // A visitor that is not in the directory has no mail yet.
                mine: view.inbox(caller, &me, &waiting).map(|page| page.items).unwrap_or_default(),
                unacked: view.unacknowledged(caller, &me, None, None, 99).unwrap_or_else(|_| none()),
                overdue: overdue.map_or(0, |page| page.items.len()),
                dead: view.failed_deliveries(caller, None, 5)?,
                latest: view.earlier(caller, Seq::MAX, &shown, 12)?.events,
            })
        })
        .await;
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return Ok(super::answers::DoorError::from(error).framed(&visitor).await),
    };
    Ok(message::beside(&visitor, Section::Overview, "Overview", body(&visitor, &seen)).await)
}

/// `GET /ui/pulse`: the pill alone, for the script.
pub(super) async fn pulse(visitor: Visitor) -> Response {
    let state = visitor.state().await;
    fragment(frame::pill(&state.pill)).into_response()
}

fn body(visitor: &Visitor, seen: &Seen) -> Markup {
    html! {
        div data-refresh="10" {
            h1.sr { "Overview" }
            (plot::rate(visitor, &seen.minutes))
            div.grid.uneven {
                (health(visitor, &seen.stats))
                (needs_me(visitor, seen))
            }
            section {
                h2 { a href=(visitor.to("/agents")) { "Agents" } " " span.dim { (text::count(seen.stats.agents)) } (doors(&seen.groups)) }
                @if seen.agents.is_empty() {
                    (frame::empty("Agents that register through any door appear here.", "posthaste demo"))
                }
                ul.people {
                    @for (agent, about) in &seen.agents {
                        li class=(if *about { "about" } else { "away" }) {
                            span.dot title=(if *about { "connected" } else { "not connected" }) {}
                            (rows::agent(visitor, &agent.id)) " " (rows::door(&agent.via))
                            span.dim { " " (agent.state) }
                        }
                    }
                    @if seen.stats.agents > NAMED as i64 { li { a href=(visitor.to("/agents")) { "and " (seen.stats.agents - NAMED as i64) " more" } } }
                }
            }
            div.grid {
                section {
                    h2 { a href=(visitor.to("/tasks")) { "Active tasks" } " " span.dim { (text::count(seen.stats.open_tasks)) } }
                    @if seen.tasks.is_empty() { p.dim { "No task is open." } }
                    ul.plain.tight { @for task in &seen.tasks { (super::tasks::line(visitor, task)) } }
                }
                section {
                    h2 { a href=(visitor.to("/reservations")) { "Conflicts now" } " " span.dim { (seen.clashes.len()) } }
                    @if seen.clashes.is_empty() { p.dim { (seen.stats.reservations) " reservations in force, none overlap." } }
                    ul.plain.tight { @for clash in &seen.clashes { li { (super::reservations::clash(visitor, clash)) } } }
                }
            }
            section {
                h2 { a href=(visitor.to("/live")) { "Just now" } }
                @if seen.latest.is_empty() { (frame::empty("Messages appear here as they are sent.", "posthaste demo")) }
                ol.rows.events { @for event in seen.latest.iter().rev() { (live::row(visitor, event)) } }
            }
        }
    }
}

fn doors(groups: &[AgentGroup]) -> Markup {
    let mut by_door: Vec<(&str, i64)> = Vec::new();
    for group in groups {
        match by_door.iter_mut().find(|(via, _)| *via == group.via) {
            Some((_, count)) => *count += group.count,
            None => by_door.push((&group.via, group.count)),
        }
    }
    html! { span.legend { @for (via, count) in by_door { span { (rows::door(via)) " " (via) " " (count) } } } }
}

fn health(visitor: &Visitor, stats: &OfficeStats) -> Markup {
    let engine = &visitor.engine;
    let (attached, followers) = engine.listeners();
    let queue = engine.queue_depth();
    let most = engine.limits().queue_commands;
    let commits = &engine.meter().commits;
    let slow = |share: f64| -> String {
        let all = commits.count() as f64;
        let end = commits.cumulative().into_iter().find(|(_, below)| *below as f64 >= all * share);
        end.map_or_else(|| "> 1 s".to_owned(), |(end, _)| format!("≤ {} ms", end as f64 / 1e3))
    };
    html! {
        section {
            h2 { "Server" }
            dl.facts.numbers {
                dt { "Queue" } dd { (queue) span.dim { " of " (most) } meter.bar min="0" max=(most) value=(queue) high=(most / 2) optimum="0" title={(queue) " commands wait for the writer"} {} }
                dt { "Commits" } dd { @if commits.count() == 0 { "none yet" } @else { "half " (slow(0.5)) ", 99 % " (slow(0.99)) span.dim { " of " (text::rounded(i64::try_from(commits.count()).unwrap_or(0))) } } }
                dt { "Event log" } dd { (text::count(stats.events)) " events" }
                dt { "Database" } dd { (show_bytes(u64::try_from(stats.bytes).unwrap_or(0))) }
                dt { "Connected" } dd { (attached) " agents, " (followers) " followers" }
                dt { "Conversations" } dd { a href=(visitor.to("/conversations?status=active")) { (text::count(stats.active_conversations)) " active" } }
                dt { "Open since" } dd { (text::length(i64::try_from(visitor.host.started().elapsed().as_millis()).unwrap_or(0))) }
            }
        }
    }
}

fn needs_me(visitor: &Visitor, seen: &Seen) -> Markup {
    let mine = encoded(visitor.me().as_str());
    let quiet = seen.mine.is_empty() && seen.unacked.items.is_empty() && seen.dead.items.is_empty();
    html! {
        section {
            h2 { "Needs me" }
            @if quiet { p.dim { "Nothing. Messages to " b { (visitor.me()) } " wait here." } }
            @if !seen.unacked.items.is_empty() {
                p { a href=(visitor.to(&format!("/inbox?agent={mine}&show=asked"))) { (seen.unacked.items.len()) @if seen.unacked.next.is_some() { "+" } " messages ask for an acknowledgement" } @if seen.overdue > 0 { " " (rows::chip("danger", &format!("{} overdue", seen.overdue))) } }
            }
            @if !seen.dead.items.is_empty() {
                p { a href=(visitor.to(&format!("/inbox?agent={mine}&show=dead"))) { (seen.dead.items.len()) @if seen.dead.next.is_some() { "+" } " dead messages" } " " (rows::chip("danger", "expired or failed")) }
            }
            ul.rows { @for found in &seen.mine { (rows::message(visitor, &found.message, Some(&found.delivery))) } }
        }
    }
}
