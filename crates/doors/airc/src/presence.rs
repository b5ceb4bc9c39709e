//! Presence: heartbeats, and lists of present agents that respect each agent's privacy tier.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{Agent, Millis, Privacy};
use posthaste_engine::presence::Presence;
use posthaste_engine::stamp;
use posthaste_engine::verbs::agents::Update;
use posthaste_wire::airc::{
    Fields, HeartbeatAnswer, Offline, PresenceCounts, PresenceEntry, PresenceList, PresenceOf,
};
use posthaste_wire::time::to_rfc3339;

use super::context::{Actor, Context, Form, is_identity, normalized, visitor};
use super::errors::{Answer, DoorError};
use super::identity;

/// How long a heartbeat counts.
pub(super) const VALID_FOR: Millis = 90_000;
/// The longest status and the longest note, in bytes.
const MAX_STATUS_BYTES: usize = 64;
const MAX_NOTE_BYTES: usize = 2_000;

/// `POST /presence`
pub(super) async fn post(context: Context, Form(fields): Form) -> Answer {
    let actor = context.actor(fields.text(&["handle", "username", "from"])?).await?;
    beat(&context, &actor, &fields).await
}

/// Notes a heartbeat. A new tier takes effect at once and outlives the heartbeat.
pub(super) async fn beat(context: &Context, actor: &Actor, fields: &Fields) -> Answer {
    let heartbeat = Heartbeat::read(fields)?;
    let turn = context.turn("heartbeats", actor.handle(), context.door.rates().heartbeats)?;
    let agent = note(context, actor, heartbeat).await?;
    let now = stamp::now();
    let body = HeartbeatAnswer {
        success: true,
        handle: agent.id.to_string(),
        username: agent.id.to_string(),
        privacy: agent.privacy.as_str().into(),
        last_seen: to_rfc3339(now),
        expires_at: to_rfc3339(now + VALID_FOR),
    };
    let mut response = Json(body).into_response();
    turn.write(response.headers_mut());
    Ok(response)
}

/// What a heartbeat says.
pub(super) struct Heartbeat {
    status: String,
    note: Option<String>,
    privacy: Option<Privacy>,
}

impl Heartbeat {
    pub(super) fn read(fields: &Fields) -> Answer<Self> {
        let status = fields.text(&["status"])?.unwrap_or("available");
        if status.is_empty() || status.len() > MAX_STATUS_BYTES || status.chars().any(char::is_control) {
            return Err(DoorError::bad("status: 1 to 64 bytes are expected"));
        }
        let note = fields.text(&["context", "workingOn", "working_on", "building"])?;
        if note.is_some_and(|note| note.len() > MAX_NOTE_BYTES) {
            return Err(DoorError::bad("context: at most 2000 bytes"));
        }
        let privacy = match fields.text(&["privacy", "visibility"])? {
            None => None,
            Some("public") => Some(Privacy::Public),
            Some("contacts") => Some(Privacy::Contacts),
            Some("invisible" | "none") => Some(Privacy::Invisible),
            Some(other) => {
                let why = format!("privacy: public, contacts or invisible is expected, not {other:?}");
                return Err(DoorError::new(400, "invalid_privacy", why));
            }
        };
        Ok(Self { status: status.to_owned(), note: note.map(str::to_owned), privacy })
    }
}

/// Applies a heartbeat.
pub(super) async fn note(context: &Context, actor: &Actor, heartbeat: Heartbeat) -> Answer<Agent> {
    let mut agent = Agent::clone(&actor.agent);
    if let Some(privacy) = heartbeat.privacy.filter(|privacy| *privacy != agent.privacy) {
        let update = Update { privacy: Some(privacy), ..Update::of(agent.id.clone()) };
        agent = context.engine.submit(&actor.caller, update).await?;
    }
    let presences = context.engine.presences();
    match heartbeat.status.as_str() {
        "offline" => presences.leave(&agent.id),
        _ => presences.beat(agent.id.clone(), heartbeat.status, heartbeat.note, VALID_FOR),
    }
    Ok(agent)
}

/// `GET /presence`: agents that the caller may see; without a token, public identities of this door.
pub(super) async fn list(context: Context) -> Answer {
    let actor = context.optional_actor().await?;
    show(&context, actor, None).await
}

/// The same in Safe Mode, where asking for one user is refused if there is no such user. One that the caller may not see is
/// offline.
pub(super) async fn list_or_one(context: Context) -> Answer {
    let actor = context.optional_actor().await?;
    let sought = match context.query("user").or(context.query("handle")) {
        Some(name) => Some(identity::find(&context, actor.clone(), name).await?),
        None => None,
    };
    show(&context, actor, sought).await
}

async fn show(context: &Context, actor: Option<Actor>, sought: Option<Agent>) -> Answer {
    let me = actor.as_ref().map(|actor| actor.agent.id.clone());
    let known = actor.is_some();
    let caller = actor.map_or_else(visitor, |actor| actor.caller);
    let engine = context.engine.clone();
    let seen = context.engine.read(move |view| engine.presences().list(view, &caller)).await?;
    let only_public = context.query("privacy") == Some("public");
    let wanted = context.query("user").or(context.query("handle")).map(normalized);
    let now = stamp::now();
    let (mut active, mut away) = (Vec::new(), Vec::new());
    for (agent, presence) in &seen {
        if (only_public && agent.privacy != Privacy::Public)
            || !(known || is_identity(agent))
            || wanted.as_ref().is_some_and(|wanted| wanted != agent.id.as_str())
        {
            continue;
        }
        let entry = entry(agent, presence, me.as_ref() == Some(&agent.id), now);
        if presence.status == "away" { away.push(entry) } else { active.push(entry) }
    }
    let users: Vec<PresenceEntry> = active.iter().chain(&away).cloned().collect();
    let presence = sought.map(|agent| match users.first() {
        Some(entry) => PresenceOf::Present(Box::new(entry.clone())),
        None => PresenceOf::Offline(Offline {
            handle: agent.id.to_string(),
            username: agent.id.to_string(),
            status: "offline".into(),
            working_on: "".into(),
        }),
    });
    let counts = PresenceCounts { active: active.len(), away: away.len(), total: users.len() };
    Ok(Json(PresenceList { success: true, counts, active, away, users, presence }).into_response())
}

fn entry(agent: &Agent, presence: &Presence, own: bool, now: Millis) -> PresenceEntry {
    let seen = to_rfc3339(presence.seen_at);
    PresenceEntry {
        handle: agent.id.to_string(),
        username: agent.id.to_string(),
        display_name: agent.name.clone(),
        status: presence.status.clone(),
        context: presence.note.clone(),
        working_on: presence.note.clone().unwrap_or_default(),
        last_seen: seen.clone(),
        last_seen_camel: seen,
        expires_at: to_rfc3339(presence.expires_at),
        ago: ago(now - presence.seen_at),
        privacy: own.then(|| agent.privacy.as_str().into()),
    }
}

fn ago(millis: Millis) -> String {
    match millis / 1_000 {
        ..5 => "just now".to_owned(),
        seconds @ 5..60 => format!("{seconds}s ago"),
        seconds => format!("{}m ago", seconds / 60),
    }
}
