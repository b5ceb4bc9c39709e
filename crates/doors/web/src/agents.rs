//! Agents: the directory, who stands above whom, who writes to whom, and one agent's entry.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use posthaste_engine::Engine;
use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Contact, Privacy, ScopeId};
use posthaste_engine::presence::Presence;
use posthaste_engine::views::{AgentQuery, RecentActivity, Relatives, View, Viewed};

use super::answers::{DoorError, Page};
use super::frame::{self, Section};
use super::query::{Given, encoded, param};
use super::visitor::Visitor;
use super::{ROWS, graph, message, rows, text};

/// Agents in one tree.
const TREE: usize = 1_000;

/// Whether an agent is connected or said lately that it is about, as far as the caller may know.
pub(super) fn is_about(engine: &Engine, view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<bool> {
    if presence(engine, view, caller, agent)?.is_some() {
        return Ok(true);
    }
    let open = caller.may_act_for(&agent.id) || agent.privacy == Privacy::Public;
    Ok(open && engine.is_attached(&agent.id))
}

fn presence(engine: &Engine, view: &View<'_>, caller: &Caller, agent: &Agent) -> Viewed<Option<Presence>> {
    engine.presences().of(view, caller, agent)
}

/// `GET /ui/agents`.
pub(super) async fn list(visitor: Visitor) -> Page {
    match listed(&visitor).await {
        Ok(body) => Ok(message::beside(&visitor, Section::Agents, "Agents", body).await),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn listed(visitor: &Visitor) -> Result<Markup, DoorError> {
    let given = Given::new(visitor.here.query().unwrap_or(""));
    let look = given.get("look");
    let tab = |word: Option<&'static str>, name| {
        let address = word.map_or(visitor.to("/agents"), |word| visitor.to(&format!("/agents?look={word}")));
        (address, name, look == word)
    };
    let tabs =
        [tab(None, "Directory"), tab(Some("tree"), "Hierarchy"), tab(Some("graph"), "Who writes to whom")];
    let body = match look {
        Some("tree") => tree(visitor).await?,
        Some("graph") => graph::page(visitor).await?,
        _ => directory(visitor, &given).await?,
    };
    Ok(html! { h1 { "Agents" } (frame::tabs("How to look at them", &tabs)) (body) })
}

async fn directory(visitor: &Visitor, given: &Given) -> Result<Markup, DoorError> {
    let scope =
        given.get("scope").map(ScopeId::new).transpose().map_err(|why| DoorError::bad(why.to_string()))?;
    let after = given.agent("after")?;
    let first = after.is_none();
    let query = AgentQuery {
        scope,
        after,
        roles: given.owned("role").into_iter().collect(),
        kinds: given.get("kind").and_then(AgentKind::from_word).into_iter().collect(),
        retired: given.is_on("retired"),
        limit: ROWS,
        ..AgentQuery::default()
    };
    let engine = visitor.engine.clone();
    let (agents, next) = visitor
        .read(move |view, caller| {
            let page = view.agents(caller, &query)?;
            let mut agents = Vec::new();
            for agent in page.items {
                let about = is_about(&engine, view, caller, &agent)?;
                agents.push((agent, about));
            }
            Ok((agents, page.next))
        })
        .await?;
    let next = next.map(|next| visitor.here_with("after", Some(next.as_str())));
    Ok(html! {
        form.filters action=(visitor.to("/agents")) {
            label { "Role " input name="role" size="10" value=[given.get("role")]; }
            label { "Scope " input name="scope" size="10" value=[given.get("scope")]; }
            label { "Sort " select name="kind" {
                option value="" { "any" }
                @for kind in AgentKind::ALL { option value=(kind.as_str()) selected[given.get("kind") == Some(kind.as_str())] { (kind.as_str()) } }
            } }
            label { input type="checkbox" name="retired" value="1" checked[given.is_on("retired")]; " also agents that left" }
            button { "Show" }
        }
        @if agents.is_empty() {
            (frame::empty("Agents that register through any door appear here.", "posthaste token create --role agent --name ann"))
        }
        @else {
            div.scroll { table.list data-list="" {
                thead { tr { th { "Agent" } th { "Role" } th { "State" } th { "Door" } th { "Scopes" } th { "Above" } th { "Changed" } } }
                tbody { @for (agent, about) in &agents { (line(visitor, agent, *about)) } }
            } }
        }
        @if !first || next.is_some() { nav.pager {
            @if !first { a href=(visitor.here_with("after", None)) { "← First" } }
            @if let Some(next) = next { a href=(next) { "Next →" } }
        } }
    })
}

fn line(visitor: &Visitor, agent: &Agent, about: bool) -> Markup {
    html! {
        tr class=(if about { "row about" } else { "row away" }) {
            td { span.dot title=(if about { "connected" } else { "not connected" }) {} a.open href=(visitor.to(&format!("/agents/{}", encoded(agent.id.as_str())))) { (agent.id) } @if agent.kind != AgentKind::Agent { " " (rows::chip("", agent.kind.as_str())) } }
            td { (agent.role.as_deref().unwrap_or("")) }
            td { (agent.state) }
            td { (rows::door(&agent.via)) }
            td { @for scope in agent.scopes.iter().take(3) { a.dim href=(visitor.to(&format!("/agents?scope={}", encoded(scope.as_str())))) { (scope) } " " } }
            td { @if let Some(parent) = &agent.parent { (rows::agent(visitor, parent)) } }
            td.dim { (text::ago(visitor.now, agent.updated_at)) }
        }
    }
}

async fn tree(visitor: &Visitor) -> Result<Markup, DoorError> {
    let engine = visitor.engine.clone();
    let (agents, more) = visitor
        .read(move |view, caller| {
            let page = view.agents(caller, &AgentQuery { limit: TREE, ..AgentQuery::default() })?;
            let mut agents = Vec::new();
            for agent in page.items {
                let about = is_about(&engine, view, caller, &agent)?;
                agents.push((agent, about));
            }
            Ok((agents, page.next.is_some()))
        })
        .await?;
    let known: BTreeMap<&AgentId, ()> = agents.iter().map(|(agent, _)| (&agent.id, ())).collect();
    let mut below: BTreeMap<Option<&AgentId>, Vec<&(Agent, bool)>> = BTreeMap::new();
    for entry in &agents {
        let parent = entry.0.parent.as_ref().filter(|parent| known.contains_key(parent));
        below.entry(parent).or_default().push(entry);
    }
    Ok(html! {
        @if agents.is_empty() { (frame::empty("Agents that other agents spawn stand below them here.", "posthaste demo")) }
        section.tree { (branch(visitor, &below, None, 0)) }
        @if more { p.dim { "The first " (TREE) "; there are more." } }
    })
}

fn branch(
    visitor: &Visitor,
    below: &BTreeMap<Option<&AgentId>, Vec<&(Agent, bool)>>,
    parent: Option<&AgentId>,
    depth: usize,
) -> Markup {
    html! {
        @if let Some(entries) = below.get(&parent) {
            ul {
                @for (agent, about) in entries {
                    li {
                        span class=(if *about { "path about" } else { "path away" }) {
                            span.dot title=(if *about { "connected" } else { "not connected" }) {}
                            (rows::agent(visitor, &agent.id)) " " (rows::door(&agent.via))
                            span.dim { " " (agent.role.as_deref().unwrap_or("")) " " (agent.state) }
                        }
                        // There are no cycles, but a damaged database must not hang the page.
                        @if depth < 32 { (branch(visitor, below, Some(&agent.id), depth + 1)) }
                    }
                }
            }
        }
    }
}

struct Seen {
    agent: Agent,
    about: bool,
    presence: Option<Presence>,
    traces: RecentActivity,
    around: Relatives,
    contacts: Option<Vec<Contact>>,
    unread: Option<i64>,
}

/// `GET /ui/agents/{id}`.
pub(super) async fn page(visitor: Visitor, Path(params): Path<Vec<(String, String)>>) -> Page {
    match shown(&visitor, param(&params, "id")).await {
        Ok(page) => Ok(page),
        Err(error) => Ok(error.framed(&visitor).await),
    }
}

async fn shown(visitor: &Visitor, id: &str) -> Result<Response, DoorError> {
    let id = AgentId::new(id).map_err(|why| DoorError::bad(why.to_string()))?;
    let engine = visitor.engine.clone();
    let seen = visitor
        .read(move |view, caller| {
            let agent = view.agent(caller, &id)?;
            Ok(Seen {
                about: is_about(&engine, view, caller, &agent)?,
                presence: presence(&engine, view, caller, &agent)?,
                traces: view.recent_activity(caller, &id)?,
                around: view.relatives(caller, &id, 8)?,
                // Only for callers that may open the mailbox.
                contacts: view.contacts(caller, &id).ok(),
                unread: view.unread_up_to(caller, &id, 999).ok(),
                agent,
            })
        })
        .await?;
    let title = seen.agent.id.to_string();
    Ok(message::beside(visitor, Section::Agents, &title, body(visitor, &seen)).await)
}

fn body(visitor: &Visitor, seen: &Seen) -> Markup {
    let agent = &seen.agent;
    let id = encoded(agent.id.as_str());
    let last = [
        Some(agent.updated_at),
        seen.traces.last_sent,
        seen.presence.as_ref().map(|presence| presence.seen_at),
    ];
    let last = last.into_iter().flatten().max().unwrap_or(agent.created_at);
    html! {
        h1 { span class={"dot " (if seen.about { "on" } else { "off" })} {} (agent.id) @if let Some(name) = agent.name.as_deref().filter(|name| *name != agent.id.as_str()) { " " span.dim { (name) } } }
        @if let Some(text) = &agent.description { p { (text) } }
        div.buttons {
            a.button.primary href=(visitor.to(&format!("/write?to={id}"))) { "Write" }
            @if seen.unread.is_some() { a.button href=(visitor.to(&format!("/inbox?agent={id}"))) { "Inbox" @if seen.unread > Some(0) { " " b { (seen.unread.unwrap_or(0)) } } } }
            a.button href=(visitor.to(&format!("/live?agent={id}"))) { "Live" }
            a.button href=(visitor.to(&format!("/conversations?agent={id}"))) { "Conversations" }
            a.button href=(visitor.to(&format!("/tasks?agent={id}"))) { "Tasks" }
        }
        div.grid {
            section {
                h2 { "Entry" }
                dl.facts {
                    dt { "Sort" } dd { (agent.kind.as_str()) }
                    dt { "Role" } dd { (agent.role.as_deref().unwrap_or("—")) }
                    dt { "State" } dd { (agent.state) @if let Some(presence) = &seen.presence { " · " (presence.status) @if let Some(note) = &presence.note { " " q { (text::cut(note, 80)) } } } }
                    dt { "Last seen" } dd { @if seen.about { "here now, " } (text::ago(visitor.now, last)) " ago" }
                    dt { "Visible to" } dd { (agent.visibility.as_str()) }
                    dt { "First messages" } dd { (agent.contact_policy.as_str()) }
                    dt { "Presence" } dd { (agent.privacy.as_str()) }
                    @if let Some(owner) = &agent.owner { dt { "Owner" } dd { (owner) } }
                    dt { "Scopes" } dd { @if agent.scopes.is_empty() { "—" } @for scope in &agent.scopes { a href=(visitor.to(&format!("/agents?scope={}", encoded(scope.as_str())))) { (scope) } " " } }
                    dt { "Since" } dd { (text::ago(visitor.now, agent.created_at)) }
                }
            }
            section {
                h2 { "Doors" }
                dl.facts {
                    dt { (rows::door(&agent.via)) } dd { "registered by " (agent.via) " as " code { (agent.id) } }
                    @for (via, count) in &seen.traces.doors { dt { (rows::door(via)) } dd { (count) " of its latest messages came by " (via) } }
                }
                h2 { "Writes to" }
                @if seen.traces.partners.is_empty() { p.dim { "no agent lately, or none that you may see" } }
                ul.people { @for (other, count) in &seen.traces.partners { li { (rows::agent(visitor, other)) " " span.dim { (count) } } } }
            }
        }
        (relatives(visitor, &seen.around))
        @if let Some(contacts) = &seen.contacts { (contacts_of(visitor, agent, contacts)) }
        @if let Some(keys) = &agent.keys { section { h2 { "Keys" } pre.json { (pretty(&keys.value())) } } }
        @if let Some(capabilities) = &agent.capabilities { details { summary { "Capabilities" } pre.json { (pretty(&capabilities.value())) } } }
        @if let Some(meta) = &agent.meta { details { summary { "Meta" } pre.json { (pretty(&meta.value())) } } }
        (step_in(visitor, agent))
    }
}

fn pretty(value: &serde_json::Value) -> String {
    text::cut(&serde_json::to_string_pretty(value).unwrap_or_default(), 8_000)
}

fn relatives(visitor: &Visitor, around: &Relatives) -> Markup {
    let list = |name: &str, agents: &[Agent]| {
        html! { @if !agents.is_empty() { dt { (name) } dd { @for agent in agents.iter().take(40) { (rows::agent(visitor, &agent.id)) " " } @if agents.len() > 40 { "and " (agents.len() - 40) " more" } } } }
    };
    html! {
        @if !(around.ancestors.is_empty() && around.children.is_empty() && around.siblings.is_empty()) {
            section {
                h2 { "Hierarchy" }
                dl.facts { (list("Above", &around.ancestors)) (list("Beside", &around.siblings)) (list("Below", &around.descendants)) }
            }
        }
    }
}

fn contacts_of(visitor: &Visitor, agent: &Agent, contacts: &[Contact]) -> Markup {
    html! {
        section {
            h2 { "Contacts" }
            @if contacts.is_empty() { p.dim { "No contact was asked for; " @if agent.contact_policy.as_str() == "open" { "all agents may write." } @else { "a stranger’s first message is refused and becomes a request." } } }
            ul.plain {
                @for contact in contacts {
                    li {
                        (rows::agent(visitor, &contact.from)) " → " (rows::agent(visitor, &contact.to)) " "
                        (rows::chip(match contact.state.as_str() { "accepted" => "ok", "blocked" => "danger", _ => "warn" }, contact.state.as_str()))
                        @if let Some(reason) = &contact.reason { " " q { (text::cut(reason, 120)) } }
                        @if contact.state.as_str() == "pending" && contact.to == *visitor.me() {
                            form.inline method="post" action=(visitor.to("/do/contact")) {
                                (frame::form_token(visitor))
                                input type="hidden" name="from" value=(contact.from);
                                input type="hidden" name="next" value=(visitor.here.path());
                                button.small name="answer" value="accept" { "Accept" } button.small name="answer" value="block" { "Block" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn step_in(visitor: &Visitor, agent: &Agent) -> Markup {
    let may = visitor.is_admin() || agent.owner.as_ref() == Some(visitor.me());
    let paused = agent.is_suspended();
    html! {
        section.stepin {
            h2 { "Step in as " (visitor.me()) }
            form.composer method="post" action=(visitor.to("/do/interrupt")) {
                (frame::form_token(visitor))
                input type="hidden" name="agent" value=(agent.id);
                label for="why" { "Interrupt: an urgent message that asks to be acknowledged" }
                textarea #why name="text" rows="2" required maxlength="60000" placeholder="Stop, and read this first …" {}
                @if may && !paused { label { input type="checkbox" name="pause" value="1"; " and pause the agent: it keeps receiving but may not send" } }
                div.buttons { button.danger { "Interrupt" } }
            }
            @if may && paused {
                form method="post" action=(visitor.to("/do/resume")) {
                    (frame::form_token(visitor)) input type="hidden" name="agent" value=(agent.id);
                    button { "Let it go on" }
                }
            }
        }
    }
}
