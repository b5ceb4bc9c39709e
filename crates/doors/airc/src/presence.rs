//! Presence: heartbeats, and who is about under everyone's privacy tier.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{Agent, Millis, Privacy};
use posthaste_engine::presence::Presence;
use posthaste_engine::stamp;
use posthaste_engine::verbs::agents::Update;
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::context::{Actor, Context, Fields, is_identity, spelled, visitor};
use super::errors::{Answer, Trouble};
use super::identity;

/// How long a heartbeat counts.
pub(super) const LASTS: Millis = 90_000;
/// The longest status and the longest note, in bytes.
const LONGEST_STATUS: usize = 64;
const LONGEST_NOTE: usize = 2_000;

/// `POST /presence`
pub(super) async fn post(context: Context, fields: Fields) -> Answer {
    let actor = context.actor(fields.text(&["handle", "username", "from"])?).await?;
    beat(&context, &actor, &fields).await
}

/// Notes a heartbeat. A new tier takes effect at once and outlives the heartbeat.
pub(super) async fn beat(context: &Context, actor: &Actor, fields: &Fields) -> Answer {
    let told = Told::read(fields)?;
    let turn = context.turn("heartbeats", actor.handle(), context.shared.rates().heartbeats)?;
    let agent = note(context, actor, told).await?;
    let now = stamp::now();
    let mut response = Json(json!({
        "success": true,
        "handle": agent.id,
        "username": agent.id,
        "privacy": agent.privacy.as_str(),
        "last_seen": to_rfc3339(now),
        "expires_at": to_rfc3339(now + LASTS),
    }))
    .into_response();
    turn.write(response.headers_mut());
    Ok(response)
}

/// What a heartbeat says.
pub(super) struct Told {
    status: String,
    note: Option<String>,
    privacy: Option<Privacy>,
}

impl Told {
    pub(super) fn read(fields: &Fields) -> Answer<Self> {
        let status = fields.text(&["status"])?.unwrap_or("available");
        if status.is_empty() || status.len() > LONGEST_STATUS || status.chars().any(char::is_control) {
            return Err(Trouble::bad("status: 1 to 64 bytes are expected"));
        }
        let note = fields.text(&["context", "workingOn", "working_on", "building"])?;
        if note.is_some_and(|note| note.len() > LONGEST_NOTE) {
            return Err(Trouble::bad("context: at most 2000 bytes"));
        }
        let privacy = match fields.text(&["privacy", "visibility"])? {
            None => None,
            Some("public") => Some(Privacy::Public),
            Some("contacts") => Some(Privacy::Contacts),
            Some("invisible" | "none") => Some(Privacy::Invisible),
            Some(other) => {
                let why = format!("privacy: public, contacts or invisible is expected, not {other:?}");
                return Err(Trouble::new(400, "invalid_privacy", why));
            }
        };
        Ok(Self { status: status.to_owned(), note: note.map(str::to_owned), privacy })
    }
}

/// Carries out what a heartbeat says.
pub(super) async fn note(context: &Context, actor: &Actor, told: Told) -> Answer<Agent> {
    let mut agent = Agent::clone(&actor.agent);
    if let Some(privacy) = told.privacy.filter(|privacy| *privacy != agent.privacy) {
        let update = Update { privacy: Some(privacy), ..Update::of(agent.id.clone()) };
        agent = context.engine.submit(&actor.caller, update).await?;
    }
    let presences = context.engine.presences();
    match told.status.as_str() {
        "offline" => presences.leave(&agent.id),
        _ => presences.beat(agent.id.clone(), told.status, told.note, LASTS),
    }
    Ok(agent)
}

/// `GET /presence`: agents that the caller may see; without a token, identities of this door that show themselves to all.
pub(super) async fn list(context: Context) -> Answer {
    let actor = context.looker().await?;
    show(&context, actor, None).await
}

/// The same in Safe Mode, where a caller that asks for one user is told if there is no such user. One that does not show
/// itself to the caller is offline.
pub(super) async fn list_or_one(context: Context) -> Answer {
    let actor = context.looker().await?;
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
    let wanted = context.query("user").or(context.query("handle")).map(spelled);
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
    let users: Vec<Value> = active.iter().chain(&away).cloned().collect();
    let mut body = json!({
        "success": true,
        "counts": { "active": active.len(), "away": away.len(), "total": users.len() },
        "active": active,
        "away": away,
        "users": users,
    });
    if let Some(agent) = sought {
        let offline =
            || json!({ "handle": agent.id, "username": agent.id, "status": "offline", "workingOn": "" });
        body["presence"] = body["users"].get(0).cloned().unwrap_or_else(offline);
    }
    Ok(Json(body).into_response())
}

fn entry(agent: &Agent, presence: &Presence, own: bool, now: Millis) -> Value {
    let seen = to_rfc3339(presence.seen_at);
    let mut entry = json!({
        "handle": agent.id,
        "username": agent.id,
        "display_name": agent.name,
        "status": presence.status,
        "context": presence.note,
        // A string in AIRC's OpenAPI document, and not null.
        "workingOn": presence.note.as_deref().unwrap_or_default(),
        "last_seen": seen,
        "lastSeen": seen,
        "expires_at": to_rfc3339(presence.expires_at),
        "ago": ago(now - presence.seen_at),
    });
    if own {
        entry["privacy"] = json!(agent.privacy.as_str());
    }
    entry
}

fn ago(millis: Millis) -> String {
    match millis / 1_000 {
        ..5 => "just now".to_owned(),
        seconds @ 5..60 => format!("{seconds}s ago"),
        seconds => format!("{}m ago", seconds / 60),
    }
}
