//! What clients and hooks read by address: inboxes, threads, messages, agents, reservations, and what the office offers.

use posthaste_engine::nouns::{AgentId, Caller, DeliveryState, Millis};
use posthaste_engine::views::{InboxMessage, InboxQuery, ReservationQuery, Tracked};
use posthaste_engine::{Refusal, stamp};
use posthaste_wire::mcp::resources::{Contents, ContentsData, Resource, ResourceTemplate};
use serde_json::{Value, json};

use super::call::{ALIVE, Call, VIA};
use super::errors::{DoorError, did_you_mean, nearest};
use super::to_wire::{self, Since};
use super::tools::inbox::{self, Wanted};
use super::tools::{identity, reservations, threads};
use super::{attachments, table};
use crate::ToolSet;
use posthaste_host::projects::{Found, Project, alias};

/// Projects that are listed.
const MOST_PROJECTS: usize = 1_000;

/// The media type of nearly all of them.
const JSON: &str = "application/json";

/// Those with one address.
const FIXED: &[(&str, &str)] = &[
    ("resource://config/environment", "The office's settings that concern clients"),
    ("resource://tooling/directory", "The tools by family"),
    ("resource://tooling/schemas", "The tools' arguments"),
    ("resource://tooling/metrics", "How much the office has done"),
    ("resource://tooling/locks", "Locks (there are none)"),
    ("resource://tooling/projects", "The projects of the office"),
];

/// Those with a part to fill in.
const TEMPLATES: &[(&str, &str)] = &[
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
    ("resource://projects{?format}", "The projects of the office"),
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

/// An address taken apart.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) path: Vec<String>,
    query: Vec<(String, String)>,
}

impl Address {
    pub(super) fn parse(uri: &str) -> Result<Self, DoorError> {
        let unknown = || {
            let names = FIXED.iter().chain(TEMPLATES).map(|(uri, _)| *uri);
            let near = nearest(uri, names);
            DoorError::new("RESOURCE_NOT_FOUND", format!("there is no resource {uri}{}", did_you_mean(&near)))
        };
        let rest = uri.strip_prefix("resource://").ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path: Vec<String> = match path.split_once('/') {
            // A directory's path is one part, however many it has itself.
            Some(("identity", rest)) => {
                vec!["identity".to_owned(), format!("/{}", decoded(rest).trim_start_matches('/'))]
            }
            _ => path.split('/').filter(|part| !part.is_empty()).map(decoded).collect(),
        };
        if path.is_empty() {
            return Err(unknown());
        }
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (decoded(name), decoded(value))).collect();
        Ok(Self { path, query })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .map_or(default, |value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes"))
    }

    fn number(&self, name: &str, default: i64, most: i64) -> Result<i64, DoorError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            DoorError::new("INVALID_ARGUMENT", format!("{name} must be 1 to {most}, not '{text}'"))
        })
    }

    fn limit(&self, default: i64) -> Result<usize, DoorError> {
        Ok(usize::try_from(self.number("limit", default, 1_000)?).unwrap_or(20))
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.get("agent")
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.get("agent_token").or_else(|| self.get("registration_token"))
    }

    /// The project it is about: named in the query, or the last part of the path where that is one.
    pub(super) fn project(&self) -> Result<&str, DoorError> {
        let in_path = match self.path.as_slice() {
            [kind, key] if matches!(kind.as_str(), "agents" | "file_reservations" | "project") => {
                Some(key.as_str())
            }
            _ => None,
        };
        in_path.or_else(|| self.get("project")).ok_or_else(|| {
            DoorError::new("MISSING_ARGUMENT", "name the project: ?project=<absolute path or slug>")
        })
    }
}

/// Text in which `%2F` and the like stand for characters.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let pair = after.get(..2).filter(|_| *byte == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a resource.
pub(super) async fn read(call: &Call, uri: &str) -> Result<Contents, DoorError> {
    let address = Address::parse(uri)?;
    let path: Vec<&str> = address.path.iter().map(String::as_str).collect();
    let value = match path.as_slice() {
        ["inbox", agent] => inbox_of(call, &address, agent).await?,
        ["outbox", agent] => outbox(call, &address, agent).await?,
        ["mailbox" | "mailbox-with-commits", agent] => mailbox(call, &address, agent).await?,
        ["thread", id] => thread(call, &address, id).await?,
        ["message", id] => message(call, &address, id).await?,
        ["attachment", message, hash] => {
            let (mime_type, base64) = attachment(call, &address, message, hash).await?;
            return Ok(Contents { uri: uri.to_owned(), mime_type, data: ContentsData::Blob(base64) });
        }
        ["agents", key] => agents(call, key).await?,
        ["project", key] => {
            let project = call.project(key).await?;
            let mut value = to_wire::project(&project);
            value["agents"] = agents(call, key).await?["agents"].take();
            value
        }
        ["file_reservations", key] => file_reservations(call, &address, key).await?,
        ["views", view, agent] => view_of(call, &address, view, agent).await?,
        ["identity", path] => identity_of(call, path).await?,
        ["projects"] | ["tooling", "projects"] => projects(call).await?,
        ["tooling", "directory"] => directory(),
        ["tooling", "schemas"] => schemas(),
        ["tooling", "locks"] => json!({ "locks": [], "summary": { "total": 0 } }),
        ["tooling", "metrics"] => metrics(call).await?,
        ["tooling", "recent", seconds] => recent(call, &address, seconds).await?,
        ["tooling", "capabilities", agent] => capabilities(call, &address, agent).await?,
        ["config", "environment"] => json!({
            "environment": "posthaste",
            "version": env!("CARGO_PKG_VERSION"),
            "realm": call.visitor.home.realm(),
            "tools": call.door.tool_set().as_str(),
            "limits": { "message_bytes": call.door.office().limits().message_bytes, "attachment_bytes": attachments::MOST_BYTES },
        }),
        _ => {
            let near = nearest(uri, FIXED.iter().chain(TEMPLATES).map(|(uri, _)| *uri));
            return Err(DoorError::new(
                "RESOURCE_NOT_FOUND",
                format!("there is no resource {uri}{}", did_you_mean(&near)),
            ));
        }
    };
    let data = ContentsData::Text(value.to_string());
    Ok(Contents { uri: uri.to_owned(), mime_type: JSON.to_owned(), data })
}

async fn at(call: &Call, address: &Address, agent: &str) -> Result<(Project, Caller), DoorError> {
    let project = call.project(address.project()?).await?;
    let caller = call.act_with(&project, agent, address.token()).await?;
    Ok((project, caller))
}

fn box_of(project: &Project, agent: &str, messages: Vec<Value>) -> Value {
    json!({ "project": project.human_key, "agent": agent, "count": messages.len(), "messages": messages })
}

async fn inbox_of(call: &Call, address: &Address, agent: &str) -> Result<Value, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let wanted = Wanted {
        limit: address.limit(20)?,
        urgent: address.flag("urgent_only", false),
        unread: address.flag("unread_only", false),
        since: address.get("since_ts").map(|text| Since::parse(&text.replace(' ', "+"))).transpose()?,
        ..Wanted::default()
    };
    let letters = inbox::letters(call, &project, &caller, wanted).await?;
    let bodies = address.flag("include_bodies", false);
    let rows = letters.iter().map(|letter| to_wire::letter(&project, letter, bodies)).collect();
    Ok(box_of(&project, agent, rows))
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

async fn outbox(call: &Call, address: &Address, agent: &str) -> Result<Value, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let bodies = address.flag("include_bodies", false);
    let letters = sent(call, &project, &caller, address.limit(20)?).await?;
    let rows = letters.iter().map(|letter| to_wire::tracked(&project, letter, bodies)).collect();
    Ok(box_of(&project, agent, rows))
}

async fn mailbox(call: &Call, address: &Address, agent: &str) -> Result<Value, DoorError> {
    let (project, caller) = at(call, address, agent).await?;
    let limit = address.limit(20)?;
    let received = inbox::letters(call, &project, &caller, Wanted { limit, ..Wanted::default() }).await?;
    let mut rows: Vec<(i64, Value)> = received
        .iter()
        .map(|letter| (letter.message.seq, to_wire::letter(&project, letter, false)))
        .collect();
    for letter in sent(call, &project, &caller, limit).await? {
        rows.push((letter.message.seq, to_wire::tracked(&project, &letter, false)));
    }
    rows.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
    rows.dedup_by_key(|(place, _)| *place);
    rows.truncate(limit);
    Ok(box_of(&project, agent, rows.into_iter().map(|(_, row)| row).collect()))
}

async fn thread(call: &Call, address: &Address, id: &str) -> Result<Value, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let letters = threads::letters(call, &project, &viewers, id, 1_000).await?;
    let bodies = address.flag("include_bodies", false);
    let rows: Vec<Value> = letters.iter().map(|letter| to_wire::tracked(&project, letter, bodies)).collect();
    Ok(json!({ "project": project.human_key, "thread_id": id, "messages": rows }))
}

fn number(id: &str) -> Result<i64, DoorError> {
    id.parse().map_err(|_| DoorError::new("MESSAGE_NOT_FOUND", format!("'{id}' is not a message id")))
}

async fn message(call: &Call, address: &Address, id: &str) -> Result<Value, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let number = number(id)?;
    let found = project.engine.read(move |view| {
        let mut refused = Refusal::NoSuchMessage;
        for viewer in &viewers {
            match view.message_at(viewer, number) {
                Ok(letter) => return Ok(letter),
                Err(posthaste_engine::EngineError::Refused(why)) => refused = why,
                Err(error) => return Err(error),
            }
        }
        Err(refused.into())
    });
    Ok(to_wire::tracked(&project, &found.await?, true))
}

async fn attachment(call: &Call, address: &Address, message: &str, hash: &str) -> Result<(String, String), DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    attachments::fetch(&project, viewers, number(message)?, hash).await
}

async fn agents(call: &Call, key: &str) -> Result<Value, DoorError> {
    let project = call.project(key).await?;
    let rows = identity::agents(call, &project, None, 1_000).await?;
    let rows: Vec<Value> = rows
        .iter()
        .map(|(agent, seen)| {
            let mut row = to_wire::profile(&project, agent, seen.as_ref());
            row["door"] = agent.via.as_str().into();
            row
        })
        .collect();
    Ok(json!({ "project": to_wire::project(&project), "agents": rows }))
}

async fn file_reservations(call: &Call, address: &Address, key: &str) -> Result<Value, DoorError> {
    let project = call.project(key).await?;
    let own = call.own(&project)?;
    let (asking, ended) = (own.clone(), !address.flag("active_only", true));
    let query = ReservationQuery { ended, limit: 1_000, ..ReservationQuery::default() };
    let page = call.look(&project, &own, move |view| view.reservations(&asking, &query)).await?;
    let now = stamp::now();
    let mut rows = Vec::new();
    for lease in page.items {
        let seen = reservations::last_seen(call, &project, &lease.owner).await?;
        let stale = seen.is_none_or(|seen| now - seen > ALIVE);
        let mut row = to_wire::granted(&lease);
        row["agent"] = lease.owner.as_str().into();
        row["scope"] = lease.scope.as_str().into();
        row["created_ts"] = to_wire::time(lease.issued_at).into();
        row["released_ts"] = json!(lease.released_at.map(to_wire::time));
        row["status"] = json!(lease.status);
        row["stale"] = stale.into();
        row["stale_reasons"] = if stale { json!(["agent_inactive"]) } else { json!([]) };
        row["last_agent_activity_ts"] = json!(seen.map(to_wire::time));
        rows.push(row);
    }
    Ok(Value::Array(rows))
}

async fn view_of(call: &Call, address: &Address, view: &str, agent: &str) -> Result<Value, DoorError> {
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
        let letters = inbox::letters(call, &project, &caller, wanted).await?;
        let rows = letters.iter().map(|letter| to_wire::letter(&project, letter, false)).collect();
        return Ok(box_of(&project, agent, rows));
    }
    let before = older.map(|older| stamp::now().saturating_sub(older));
    let asking = caller.clone();
    let letters = call
        .look(&project, &caller, move |view| {
            let mut query = InboxQuery { limit: 500, ..InboxQuery::default() };
            let mut found: Vec<InboxMessage> = Vec::new();
            // Letters that want an answer are few; ten pages reach back far enough.
            for _ in 0..10 {
                let page = view.inbox(&asking, &asking.agent, &query)?;
                let waits = |letter: &InboxMessage| {
                    letter.message.ack_required
                        && letter.delivery.state < DeliveryState::Acked
                        && before.is_none_or(|before| letter.message.at <= before)
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
    let rows = letters.iter().map(|letter| to_wire::letter(&project, letter, false)).collect();
    Ok(box_of(&project, agent, rows))
}

async fn identity_of(call: &Call, path: &str) -> Result<Value, DoorError> {
    let found = match alias(path) {
        Some(path) => call.project(&path).await.ok(),
        None => None,
    };
    Ok(json!({
        "path": path,
        "project": found.as_ref().map(to_wire::project),
        "slug": found.as_ref().map(|project| project.realm().as_str()),
    }))
}

async fn projects(call: &Call) -> Result<Value, DoorError> {
    let mut rows: Vec<Value> = Vec::new();
    let home = call.visitor.home.realm();
    let mut seen = std::collections::HashSet::new();
    for claim in call.door.claims_for(home, MOST_PROJECTS).await? {
        if seen.insert(claim.realm.clone()) {
            let project = Project::new(call.visitor.home.clone(), Found::new(&claim, claim.alias.clone()));
            let mut row = to_wire::project(&project);
            row["id"] = to_wire::number(&["project", claim.realm.as_str()]).into();
            row["slug"] = claim.realm.as_str().into();
            rows.push(row);
        }
    }
    if seen.insert(home.clone()) {
        let found = call.door.named(home.clone()).await?;
        let project = Project::new(call.visitor.home.clone(), found);
        rows.push(to_wire::project(&project));
    }
    Ok(Value::Array(rows))
}

fn directory() -> Value {
    let row = |tool: &table::Tool| json!({ "name": tool.line.name, "summary": tool.line.about, "core": tool.line.core });
    let tools: Vec<Value> = table::listed(ToolSet::Full).map(row).collect();
    json!({ "tools": tools, "count": tools.len() })
}

fn schemas() -> Value {
    let tools: Value = table::listed(ToolSet::Full)
        .map(|tool| (tool.line.name.to_owned(), Value::Object(tool.shown.input_schema.clone())))
        .collect();
    json!({ "tools": tools })
}

async fn metrics(call: &Call) -> Result<Value, DoorError> {
    let own = call.visitor.identity.caller(VIA);
    let stats = call.visitor.home.read(move |view| view.stats(&own)).await?;
    Ok(json!({
        "uptime_seconds": call.door.started().elapsed().as_secs(),
        "agents": stats.agents,
        "events": stats.events,
        "reservations": stats.reservations,
        "open_tasks": stats.open_tasks,
        "bytes": stats.bytes,
    }))
}

async fn recent(call: &Call, address: &Address, seconds: &str) -> Result<Value, DoorError> {
    let project = call.project(address.project()?).await?;
    let viewers = call.viewers(&project, address.agent(), address.token()).await?;
    let window: i64 =
        seconds.parse().ok().filter(|window| (1..=31_536_000).contains(window)).ok_or_else(|| {
            DoorError::new("INVALID_ARGUMENT", format!("'{seconds}' is not a number of seconds up to a year"))
        })?;
    let since = stamp::now().saturating_sub(window * 1_000);
    let (rows, more) = project
        .engine
        .read(move |view| {
            let Some(viewer) = viewers.first() else { return Ok((Vec::new(), false)) };
            let after = view.last_seq_at(since)?;
            let replay = view.events(viewer, after, &posthaste_engine::Filter::everything(), 200)?;
            let row = |event: &std::sync::Arc<posthaste_engine::nouns::Event>| {
                json!({ "event": event.fact.kind(), "agent": event.actor, "timestamp": to_wire::placed(event.at, event.seq) })
            };
            Ok((replay.events.iter().map(row).collect::<Vec<Value>>(), replay.more))
        })
        .await?;
    Ok(json!({
        "project": project.human_key, "window_seconds": window, "count": rows.len(), "entries": rows, "has_more": more,
    }))
}

async fn capabilities(call: &Call, address: &Address, agent: &str) -> Result<Value, DoorError> {
    let project = call.project(address.project()?).await?;
    let id = AgentId::new(agent).map_err(Refusal::from)?;
    let own = call.own(&project)?;
    let (found, _) = identity::seen(call, &project, &own, id).await?;
    Ok(json!({
        "project": project.human_key,
        "agent": found.id,
        "capabilities": found.capabilities.as_ref().map(|declared| declared.value()),
        "contact_policy": to_wire::policy(&found),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address =
            Address::parse("resource://inbox/BlueLake?project=/srv/a%20b&limit=5&include_bodies=true")
                .unwrap();
        assert_eq!(address.path, ["inbox", "BlueLake"]);
        assert_eq!(address.project().unwrap(), "/srv/a b");
        assert_eq!((address.limit(20).unwrap(), address.flag("include_bodies", false)), (5, true));
        let address = Address::parse("resource://identity//srv/app").unwrap();
        assert_eq!(address.path, ["identity", "/srv/app"]);
        for bad in ["", "http://inbox/x", "resource://", "resource:inbox"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        assert!(Address::parse("resource://inbox/x?limit=0").unwrap().limit(20).is_err());
        assert_eq!(decoded("%E6%BC%A2%zz%"), "漢%zz%");
    }
}
