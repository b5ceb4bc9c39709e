//! What clients and hooks read by address: inboxes, threads, messages, agents, reservations, and what the server offers.

use std::sync::Arc;

use posthaste_engine::nouns::{AgentId, Caller, DeliveryState, Event, Millis};
use posthaste_engine::views::{InboxMessage, InboxQuery, ReservationQuery, Tracked};
use posthaste_engine::{Refusal, stamp};
use posthaste_wire::mcp::answers::{
    self, AgentList, Capabilities, Environment, EnvironmentLimits, IdentityAnswer, InboxMessage as InboxRow,
    Locks, Mailbox, MailboxMessage, Metrics, ProjectAgents, RecentEvent, RecentEvents, ReservationRow,
    ThreadMessages, ToolDirectory, ToolRow, ToolSchemas, TrackedMessage,
};
use posthaste_wire::mcp::resources::{Contents, ContentsData, Resource, ResourceTemplate};

use super::address::{Address, unknown};
use super::call::{ALIVE, Call, VIA};
use super::dispatch::text;
use super::errors::DoorError;
use super::to_wire::{self, Since};
use super::tools::inbox::{self, Wanted};
use super::tools::{identity, reservations, threads};
use super::{attachments, table};
use crate::ToolSet;
use posthaste_host::projects::{Found, Project, alias};

/// Projects that are listed.
const MAX_PROJECTS: usize = 1_000;

/// The media type of all resources but attachments.
const JSON: &str = "application/json";

/// Resources with one address.
pub(super) const FIXED: &[(&str, &str)] = &[
    ("resource://config/environment", "The server's settings that concern clients"),
    ("resource://tooling/directory", "The tools by family"),
    ("resource://tooling/schemas", "The tools' arguments"),
    ("resource://tooling/metrics", "How much the server has done"),
    ("resource://tooling/locks", "Locks (there are none)"),
    ("resource://tooling/projects", "The projects of the server"),
];

/// Resources with a part of the address to fill in.
pub(super) const TEMPLATES: &[(&str, &str)] = &[
    (
        "resource://inbox/{agent}{?project,since_ts,urgent_only,include_bodies,limit,unread_only,agent_token,format}",
        "An agent's mail",
    ),
    (
        "resource://outbox/{agent}{?project,limit,include_bodies,since_ts,agent_token,format}",
        "What an agent sent",
    ),
    ("resource://mailbox/{agent}{?project,limit,agent_token,format}", "What an agent sent and received"),
    (
        "resource://mailbox-with-commits/{agent}{?project,limit,agent_token,format}",
        "The same; there are no commits",
    ),
    (
        "resource://thread/{thread_id}{?project,agent,agent_token,include_bodies,format}",
        "The messages of a thread",
    ),
    ("resource://message/{message_id}{?project,agent,agent_token,format}", "One message"),
    (
        "resource://attachment/{message_id}/{sha256}{?project,agent,agent_token}",
        "A file that a message carries",
    ),
    ("resource://agents/{project_key}{?format}", "The agents of a project"),
    ("resource://file_reservations/{slug}{?active_only,format}", "Who holds which paths"),
    ("resource://project/{slug}{?format}", "A project and its agents"),
    ("resource://projects{?format}", "The projects of the server"),
    ("resource://identity/{path}", "The project that a directory belongs to"),
    (
        "resource://views/urgent-unread/{agent}{?project,limit,agent_token,format}",
        "Unread mail that is pressing",
    ),
    ("resource://views/ack-required/{agent}{?project,limit,agent_token,format}", "Mail to be acknowledged"),
    (
        "resource://views/acks-stale/{agent}{?project,ttl_seconds,limit,agent_token,format}",
        "Mail unacknowledged for long",
    ),
    (
        "resource://views/ack-overdue/{agent}{?project,ttl_minutes,limit,agent_token,format}",
        "The same, in minutes",
    ),
    (
        "resource://tooling/recent/{window_seconds}{?agent,project,format}",
        "What happened lately in a project",
    ),
    ("resource://tooling/capabilities/{agent}{?project,format}", "What an agent may do"),
];

/// A resource's short name: the first part of its path.
fn name_of(uri: &str) -> &str {
    let rest = uri.strip_prefix("resource://").unwrap_or(uri);
    rest.split(['{', '?']).next().unwrap_or(rest).trim_end_matches('/')
}

/// The resources with one address.
pub(super) fn listed() -> Vec<Resource> {
    let row = |(uri, about): &(&str, &str)| Resource {
        uri: (*uri).to_owned(),
        name: name_of(uri).to_owned(),
        description: (*about).to_owned(),
        mime_type: JSON.to_owned(),
    };
    FIXED.iter().map(row).collect()
}

/// The resources with a part of the address to fill in.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let row = |(uri, about): &(&str, &str)| ResourceTemplate {
        uri_template: (*uri).to_owned(),
        name: name_of(uri).to_owned(),
        description: (*about).to_owned(),
        mime_type: JSON.to_owned(),
    };
    TEMPLATES.iter().map(row).collect()
}

/// Reads a resource.
pub(super) async fn read(call: &Call, uri: &str) -> Result<Contents, DoorError> {
    let address = Address::parse(uri)?;
    let path: Vec<&str> = address.path.iter().map(String::as_str).collect();
    let text = match path.as_slice() {
        ["inbox", agent] => text(&inbox_of(call, &address, agent).await?),
        ["outbox", agent] => text(&outbox(call, &address, agent).await?),
        ["mailbox" | "mailbox-with-commits", agent] => text(&mailbox(call, &address, agent).await?),
        ["thread", id] => text(&thread(call, &address, id).await?),
        ["message", id] => text(&message(call, &address, id).await?),
        ["attachment", message, hash] => {
            let (mime_type, base64) = attachment(call, &address, message, hash).await?;
            return Ok(Contents { uri: uri.to_owned(), mime_type, data: ContentsData::Blob(base64) });
        }
        ["agents", key] => text(&agents(call, key).await?),
        ["project", key] => {
            let AgentList { project, agents } = agents(call, key).await?;
            text(&ProjectAgents { project, agents })
        }
        ["file_reservations", key] => text(&file_reservations(call, &address, key).await?),
        ["views", view, agent] => text(&view_of(call, &address, view, agent).await?),
        ["identity", path] => text(&identity_of(call, path).await),
        ["projects"] | ["tooling", "projects"] => text(&projects(call).await?),
        ["tooling", "directory"] => text(&directory()),
        ["tooling", "schemas"] => text(&schemas()),
        ["tooling", "locks"] => text(&Locks::default()),
        ["tooling", "metrics"] => text(&metrics(call).await?),
        ["tooling", "recent", seconds] => text(&recent(call, &address, seconds).await?),
        ["tooling", "capabilities", agent] => text(&capabilities(call, &address, agent).await?),
        ["config", "environment"] => text(&Environment {
            environment: "posthaste".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            realm: call.visitor.home.realm().to_string(),
            tools: call.door.tool_set().as_str().to_owned(),
            limits: EnvironmentLimits {
                message_bytes: call.door.office().limits().message_bytes,
                attachment_bytes: attachments::MOST_BYTES,
            },
        }),
        _ => {
            return Err(unknown(uri));
        }
    };
    let data = ContentsData::Text(text);
    Ok(Contents { uri: uri.to_owned(), mime_type: JSON.to_owned(), data })
}

async fn at(call: &Call, address: &Address, agent: &str) -> Result<(Project, Caller), DoorError> {
    let project = call.project(address.project()?).await?;
    let caller = call.act(&project, agent, address.token()).await?;
    Ok((project, caller))
}

fn mailbox_of<M>(project: &Project, agent: &str, messages: Vec<M>) -> Mailbox<M> {
    let count = messages.len();
    Mailbox { project: project.human_key.clone(), agent: agent.to_owned(), count, messages }
}

async fn inbox_of(call: &Call, address: &Address, agent: &str) -> Result<Mailbox<InboxRow>, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let wanted = Wanted {
        limit: address.limit(20)?,
        urgent: address.flag("urgent_only", false),
        unread: address.flag("unread_only", false),
        since: address.get("since_ts").map(|text| Since::parse(&text.replace(' ', "+"))).transpose()?,
        ..Wanted::default()
    };
    let found = inbox::messages(call, &project, &caller, wanted).await?;
    let bodies = address.flag("include_bodies", false);
    Ok(mailbox_of(&project, agent, to_wire::inbox(&project, &found, bodies)))
}

async fn sent(
    call: &Call,
    project: &Project,
    caller: &Caller,
    limit: usize,
) -> Result<Vec<Tracked>, DoorError> {
    let asking = caller.clone();
    let page = call.look(project, caller, move |view| view.sent(&asking, &asking.agent, None, limit)).await?;
    Ok(page.items)
}

async fn outbox(call: &Call, address: &Address, agent: &str) -> Result<Mailbox<TrackedMessage>, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let bodies = address.flag("include_bodies", false);
    let found = sent(call, &project, &caller, address.limit(20)?).await?;
    let rows = found.iter().map(|found| to_wire::tracked(&project, found, bodies)).collect();
    Ok(mailbox_of(&project, agent, rows))
}

async fn mailbox(call: &Call, address: &Address, agent: &str) -> Result<Mailbox<MailboxMessage>, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let limit = address.limit(20)?;
    let wanted = Wanted { limit, ..Wanted::default() };
    let received = inbox::messages(call, &project, &caller, wanted).await?;
    let mut rows: Vec<(i64, MailboxMessage)> = received
        .iter()
        .map(|found| (found.message.seq, MailboxMessage::Received(to_wire::received(&project, found, false))))
        .collect();
    for found in sent(call, &project, &caller, limit).await? {
        rows.push((found.message.seq, MailboxMessage::Sent(to_wire::tracked(&project, &found, false))));
    }
    rows.sort_by_key(|(seq, _)| std::cmp::Reverse(*seq));
    rows.dedup_by_key(|(seq, _)| *seq);
    rows.truncate(limit);
    Ok(mailbox_of(&project, agent, rows.into_iter().map(|(_, row)| row).collect()))
}

async fn thread(call: &Call, address: &Address, id: &str) -> Result<ThreadMessages, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let found = threads::messages(call, &project, &viewers, id, 1_000).await?;
    let bodies = address.flag("include_bodies", false);
    let messages = found.iter().map(|found| to_wire::tracked(&project, found, bodies)).collect();
    Ok(ThreadMessages { project: project.human_key, thread_id: id.to_owned(), messages })
}

fn number(id: &str) -> Result<i64, DoorError> {
    id.parse().map_err(|_| DoorError::new("MESSAGE_NOT_FOUND", format!("'{id}' is not a message id")))
}

async fn message(call: &Call, address: &Address, id: &str) -> Result<TrackedMessage, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let number = number(id)?;
    let found = project.engine.read(move |view| {
        let mut refused = Refusal::NoSuchMessage;
        for viewer in &viewers {
            match view.message_at(viewer, number) {
                Ok(found) => return Ok(found),
                Err(posthaste_engine::EngineError::Refused(why)) => refused = why,
                Err(error) => return Err(error),
            }
        }
        Err(refused.into())
    });
    Ok(to_wire::tracked(&project, &found.await?, true))
}

async fn attachment(
    call: &Call,
    address: &Address,
    message: &str,
    hash: &str,
) -> Result<(String, String), DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    attachments::fetch(&project, viewers, number(message)?, hash).await
}

async fn agents(call: &Call, key: &str) -> Result<AgentList, DoorError> {
    let project = call.project(key).await?;
    let rows = identity::agents(call, &project, None, 1_000).await?;
    let agents = rows.iter().map(|(agent, seen)| identity::listed(&project, agent, seen.as_ref()));
    Ok(AgentList { project: to_wire::project(&project), agents: agents.collect() })
}

async fn file_reservations(
    call: &Call,
    address: &Address,
    key: &str,
) -> Result<Vec<ReservationRow>, DoorError> {
    let project = call.project(key).await?;
    let own = call.own(&project)?;
    let (asking, ended) = (own.clone(), !address.flag("active_only", true));
    let query = ReservationQuery { ended, limit: 1_000, ..ReservationQuery::default() };
    let page = call.look(&project, &own, move |view| view.reservations(&asking, &query)).await?;
    let now = stamp::now();
    let mut rows = Vec::new();
    for held in page.items {
        let seen = reservations::last_seen(call, &project, &held.owner).await?;
        let stale = seen.is_none_or(|seen| now - seen > ALIVE);
        rows.push(ReservationRow {
            reservation: to_wire::granted(&held),
            agent: held.owner.to_string(),
            scope: held.scope.to_string(),
            created_ts: to_wire::time(held.issued_at),
            released_ts: held.released_at.map(to_wire::time),
            status: held.status.as_str().to_owned(),
            stale,
            stale_reasons: stale.then(|| "agent_inactive".to_owned()).into_iter().collect(),
            last_agent_activity_ts: seen.map(to_wire::time),
        });
    }
    Ok(rows)
}

async fn view_of(
    call: &Call,
    address: &Address,
    view: &str,
    agent: &str,
) -> Result<Mailbox<InboxRow>, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let limit = address.limit(20)?;
    let older: Option<Millis> = match view {
        "urgent-unread" | "ack-required" => None,
        "acks-stale" => Some(address.number("ttl_seconds", 3_600, 10_000_000)? * 1_000),
        "ack-overdue" => Some(address.number("ttl_minutes", 60, 1_000_000)? * 60_000),
        _ => {
            return Err(DoorError::new(
                "RESOURCE_NOT_FOUND",
                format!(
                    "there is no view {view}; there are urgent-unread, ack-required, acks-stale and ack-overdue"
                ),
            ));
        }
    };
    if view == "urgent-unread" {
        let wanted = Wanted { limit, urgent: true, unread: true, ..Wanted::default() };
        let found = inbox::messages(call, &project, &caller, wanted).await?;
        return Ok(mailbox_of(&project, agent, to_wire::inbox(&project, &found, false)));
    }
    let before = older.map(|older| stamp::now().saturating_sub(older));
    let asking = caller.clone();
    let found = call
        .look(&project, &caller, move |view| {
            let mut query = InboxQuery { limit: 500, ..InboxQuery::default() };
            let mut found: Vec<InboxMessage> = Vec::new();
            // Messages that want an acknowledgement are few; ten pages reach back far enough.
            for _ in 0..10 {
                let page = view.inbox(&asking, &asking.agent, &query)?;
                let waits = |found: &InboxMessage| {
                    found.message.ack_required
                        && found.delivery.state < DeliveryState::Acked
                        && before.is_none_or(|before| found.message.at <= before)
                };
                found.extend(page.items.into_iter().filter(waits));
                query.before = page.next;
                if page.next.is_none() || found.len() >= limit || view.has_enough() {
                    break;
                }
            }
            found.truncate(limit);
            Ok(found)
        })
        .await?;
    Ok(mailbox_of(&project, agent, to_wire::inbox(&project, &found, false)))
}

async fn identity_of(call: &Call, path: &str) -> IdentityAnswer {
    let found = match alias(path) {
        Some(path) => call.project(&path).await.ok(),
        None => None,
    };
    IdentityAnswer {
        path: path.to_owned(),
        project: found.as_ref().map(to_wire::project),
        slug: found.as_ref().map(|project| project.realm().to_string()),
    }
}

async fn projects(call: &Call) -> Result<Vec<answers::Project>, DoorError> {
    let mut rows = Vec::new();
    let home = call.visitor.home.realm();
    let mut seen = std::collections::HashSet::new();
    for claim in call.door.claims_for(home, MAX_PROJECTS).await? {
        if seen.insert(claim.realm.clone()) {
            let project = Project::new(call.visitor.home.clone(), Found::new(&claim, claim.alias.clone()));
            let mut row = to_wire::project(&project);
            row.id = to_wire::number(&["project", claim.realm.as_str()]);
            row.slug = claim.realm.to_string();
            rows.push(row);
        }
    }
    if seen.insert(home.clone()) {
        let found = call.door.named(home.clone()).await?;
        let project = Project::new(call.visitor.home.clone(), found);
        rows.push(to_wire::project(&project));
    }
    Ok(rows)
}

fn directory() -> ToolDirectory {
    let row = |tool: &table::Tool| ToolRow {
        name: tool.shown.name.clone(),
        summary: tool.shown.description.clone(),
        core: tool.line.core,
    };
    let tools: Vec<ToolRow> = table::listed(ToolSet::Full).map(row).collect();
    ToolDirectory { count: tools.len(), tools }
}

fn schemas() -> ToolSchemas {
    let tools = table::listed(ToolSet::Full)
        .map(|tool| (tool.line.name.to_owned(), serde_json::Value::Object(tool.shown.input_schema.clone())))
        .collect();
    ToolSchemas { tools }
}

async fn metrics(call: &Call) -> Result<Metrics, DoorError> {
    let own = call.visitor.identity.caller(VIA);
    let stats = call.visitor.home.read(move |view| view.stats(&own)).await?;
    Ok(Metrics {
        uptime_seconds: call.door.started().elapsed().as_secs(),
        agents: stats.agents,
        events: stats.events,
        reservations: stats.reservations,
        open_tasks: stats.open_tasks,
        bytes: stats.bytes,
    })
}

async fn recent(call: &Call, address: &Address, seconds: &str) -> Result<RecentEvents, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let window: i64 =
        seconds.parse().ok().filter(|window| (1..=31_536_000).contains(window)).ok_or_else(|| {
            DoorError::new("INVALID_ARGUMENT", format!("'{seconds}' is not a number of seconds up to a year"))
        })?;
    let since = stamp::now().saturating_sub(window * 1_000);
    let (entries, has_more) = project
        .engine
        .read(move |view| {
            let Some(viewer) = viewers.first() else { return Ok((Vec::new(), false)) };
            let after = view.last_seq_at(since)?;
            let replay = view.events(viewer, after, &posthaste_engine::Filter::everything(), 200)?;
            let row = |event: &Arc<Event>| RecentEvent {
                event: event.fact.kind().to_owned(),
                agent: event.actor.to_string(),
                timestamp: to_wire::event_time(event.at, event.seq),
            };
            Ok((replay.events.iter().map(row).collect::<Vec<_>>(), replay.more))
        })
        .await?;
    let (project, count) = (project.human_key, entries.len());
    Ok(RecentEvents { project, window_seconds: window, count, entries, has_more })
}

async fn capabilities(call: &Call, address: &Address, agent: &str) -> Result<Capabilities, DoorError> {
    let project = call.project(address.project()?).await?;
    let id = AgentId::new(agent).map_err(Refusal::from)?;
    let own = call.own(&project)?;
    let (found, _) = identity::seen(call, &project, &own, id).await?;
    Ok(Capabilities {
        project: project.human_key,
        agent: found.id.to_string(),
        capabilities: found.capabilities.as_ref().map(|declared| declared.value()),
        contact_policy: to_wire::policy(&found).to_owned(),
    })
}
