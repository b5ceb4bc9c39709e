//! Tasks: the list, and one of them with its hops between agents, its events, and the time by agent.

use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use posthaste_engine::nouns::{AgentId, Event, Millis, Task, TaskId, TaskStatus};
use posthaste_engine::views::{TaskQuery, TurnQuery};

use super::answers::{DoorError, Page};
use super::conversations::{Said, with_messages};
use super::frame::{self, Section};
use super::lanes::{self, Stroke};
use super::query::{Given, encoded, param};
use super::visitor::Visitor;
use super::{ROWS, live, message, rows, text};

/// `GET /ui/tasks`.
pub(super) async fn list(visitor: Visitor) -> Page {
    match listed(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Tasks, "Tasks", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn listed(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let status = given.get("status");
    let statuses = match status {
        Some("active") => vec![TaskStatus::Open, TaskStatus::InProgress, TaskStatus::Blocked],
        Some(word) => TaskStatus::from_word(word).into_iter().collect(),
        None => Vec::new(),
    };
    let before = given.seq("before")?;
    let query = TaskQuery {
        statuses,
        assignee: given.agent("agent")?,
        after: before.unwrap_or(0),
        newest_first: true,
        limit: ROWS,
        ..TaskQuery::default()
    };
    let page = visitor.read(move |view, caller| view.tasks(caller, &query)).await?;
    let tab = |word: Option<&'static str>, name| (visitor.here_with("status", word), name, status == word);
    let tabs = [
        tab(None, "All"),
        tab(Some("active"), "Active"),
        tab(Some("blocked"), "Blocked"),
        tab(Some("completed"), "Completed"),
        tab(Some("failed"), "Failed"),
    ];
    let older = page.next.map(|next| visitor.here_with("before", Some(&next.to_string())));
    Ok(html! {
        h1 { "Tasks" }
        (frame::tabs("Which tasks", &tabs))
        form.filters action=(visitor.to("/tasks")) {
            label { "Assigned to " input name="agent" data-complete="agents" size="14" value=[given.get("agent")]; }
            button { "Show" }
        }
        @if page.items.is_empty() {
            (frame::empty("Tasks that agents make are listed here with who works on them and how far they are.", "posthaste demo"))
        }
        ul.rows data-list="" data-refresh="15" { @for task in &page.items { (row(visitor, task)) } }
        (frame::pager(before.map(|_| visitor.here_with("before", None)), older))
    })
}

fn row(visitor: &Visitor, task: &Task) -> Markup {
    let end = task.ended_at.unwrap_or(visitor.now);
    html! {
        li.row {
            a.open href=(address(visitor, &task.id)) {
                span.who { (task.assignee.as_ref().map_or("—", |agent| agent.as_str())) }
                span.what { span.subject { (task.title.as_deref().unwrap_or(task.id.as_str())) } span.first { (task.description.as_deref().unwrap_or("")) } }
            }
            span.tail {
                (rows::task_state(task.status))
                span.dim title="How long it took, or has taken so far" { (text::span(end - task.created_at)) }
                span.dim { (task.contributors.len()) " agents" }
                (text::ago(visitor.now, task.updated_at))
            }
        }
    }
}

/// A task on a short line.
pub(super) fn line(visitor: &Visitor, task: &Task) -> Markup {
    html! {
        li {
            (rows::task_state(task.status)) " " (link(visitor, &task.id, task.title.as_deref()))
            @if let Some(agent) = &task.assignee { " " span.dim { "with " } (rows::agent(visitor, agent)) }
            " " span.dim { (text::ago(visitor.now, task.updated_at)) }
        }
    }
}

fn address(visitor: &Visitor, id: &TaskId) -> String {
    visitor.to(&format!("/tasks/{}", encoded(id.as_str())))
}

pub(super) fn link(visitor: &Visitor, id: &TaskId, title: Option<&str>) -> Markup {
    html! { a.task href=(address(visitor, id)) title=(id) { (text::cut(title.unwrap_or(id.as_str()), 60)) } }
}

/// `GET /ui/tasks/{id}`.
pub(super) async fn page(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    match shown(&visitor, param(&params, "id")).await {
        Ok(page) => Ok(page),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor, id: &str) -> Result<Response, DoorError> {
    let id = TaskId::new(id).map_err(|why| DoorError::bad(why.to_string()))?;
    let (task, said, course) = visitor
        .read(move |view, caller| {
            let task = view.task(caller, &id)?;
            let query = TurnQuery { newest_first: true, limit: lanes::MOST, ..TurnQuery::default() };
            let mut turns = view.turns(caller, &id, &query)?.items;
            turns.reverse();
            let said = with_messages(view, caller, turns);
            Ok((task, said, view.course(caller, &id, 0, 500)?))
        })
        .await?;
    let title = task.title.clone().unwrap_or_else(|| task.id.to_string());
    Ok(message::beside(visitor, Section::Tasks, &title, body(visitor, &task, &said, &course)).await)
}

fn body(visitor: &Visitor, task: &Task, said: &[Said], course: &[Arc<Event>]) -> Markup {
    let strokes: Vec<Stroke> = said.iter().map(Said::stroke).collect();
    let end = task.ended_at.unwrap_or(visitor.now);
    let id = encoded(task.id.as_str());
    html! {
        h1 { (task.title.as_deref().unwrap_or(task.id.as_str())) " " (rows::task_state(task.status)) }
        p.sub {
            code { (task.id) } " · owned by " (task.owner)
            @if let Some(agent) = &task.assignee { " · with " (rows::agent(visitor, agent)) }
            " · " (text::length(end - task.created_at)) @if task.ended_at.is_none() { " so far" }
            " · " a href=(visitor.to(&format!("/conversations/{id}"))) { "conversation" }
            " · " a href=(visitor.to(&format!("/live?conversation={id}"))) { "live" }
        }
        @if let Some(text) = &task.description { div.body { (super::markdown::render(text)) } }
        @if let Some(result) = &task.result { section { h2 { "Result" } div.body { (message::value(&result.value(), result.as_str())) } } }
        @if strokes.is_empty() { p.dim { "There are no turns about it yet." } }
        @else {
            details.picture open { summary { "Hops" } div.scroll tabindex="0" { (lanes::draw(&strokes, None)) } }
            (spent(visitor, task, &strokes))
        }
        section {
            h2 { "Course" }
            ol.rows.events { @for event in course { (live::row(visitor, event)) } }
        }
        @if !task.contributors.is_empty() {
            section { h2 { "Contributors" } ul.people { @for name in &task.contributors {
                li { @match AgentId::new(name) { Ok(id) => { (rows::agent(visitor, &id)) } Err(_) => { (name) } } }
            } } }
        }
    }
}

/// The time by agent: the time before a turn counts for its author, the time since the last turn for the assignee.
fn costs(task: &Task, strokes: &[Stroke], now: Millis) -> Vec<(AgentId, Millis, usize)> {
    let mut costs: Vec<(AgentId, Millis, usize)> = Vec::new();
    let mut add =
        |id: &AgentId, time: Millis, words: usize| match costs.iter_mut().find(|(known, _, _)| known == id) {
            Some((_, sum, said)) => {
                *sum += time;
                *said += words;
            }
            None => costs.push((id.clone(), time, words)),
        };
    let mut before = task.created_at;
    for stroke in strokes {
        add(&stroke.from, (stroke.at - before).max(0), 1);
        before = stroke.at;
    }
    if let Some(holder) = &task.assignee {
        let end = task.ended_at.unwrap_or(now);
        add(holder, (end - before).max(0), 0);
    }
    costs.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    costs
}

fn spent(visitor: &Visitor, task: &Task, strokes: &[Stroke]) -> Markup {
    let costs = costs(task, strokes, visitor.now);
    let all: Millis = costs.iter().map(|(_, time, _)| time).sum::<i64>().max(1);
    html! {
        section {
            h2 { "Where the time went" }
            table.spent {
                @for (agent, time, words) in costs.iter().take(20) {
                    tr {
                        td { (rows::agent(visitor, agent)) }
                        td.meter { meter min="0" max=(all) value=(time) {} }
                        td.n { (text::length(*time)) }
                        td.dim.n { (words) (if *words == 1 { " word" } else { " words" }) }
                    }
                }
            }
            p.dim { "The time before a turn counts for its author; the time since the last turn, for the assignee." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Reach;

    #[test]
    fn time_counts_for_the_author_of_the_next_turn() {
        let id = |name: &str| AgentId::new(name).unwrap();
        let task = Task {
            id: TaskId::new("t").unwrap(),
            title: None,
            description: None,
            status: TaskStatus::InProgress,
            owner: "ann".into(),
            assignee: Some(id("bob")),
            contributors: Vec::new(),
            result: None,
            meta: None,
            created_at: 0,
            updated_at: 0,
            ended_at: None,
            seq: 1,
        };
        let stroke = |from: &str, at| Stroke {
            at,
            from: id(from),
            reach: Reach::Everyone,
            text: String::new(),
            title: String::new(),
            link: None,
            thread: None,
            via: None,
        };
        let spent = costs(&task, &[stroke("ann", 10), stroke("bob", 40), stroke("ann", 45)], 100);
        assert_eq!(spent, [(id("bob"), 85, 1), (id("ann"), 15, 2)]);
    }
}
