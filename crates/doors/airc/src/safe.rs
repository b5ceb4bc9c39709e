//! Safe Mode, `/api/…`: what the published clients speak. A token is needed, a signature is not, but one that is there
//! and can be checked must be good.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{Agent, AgentId, Caller, Privacy};
use posthaste_engine::views::AgentQuery;
use posthaste_wire::airc::{Envelope, Payload, Target, verify_body};
use serde_json::{Map, Value, json};

use super::VIA;
use super::context::{Actor, Context, Fields, Holder, key_of, spelled, visitor};
use super::errors::{Answer, Trouble};
use super::from_wire::Draft;
use super::identity::{self, Newcomer};
use super::inbox::LARGEST_PAGE;
use super::{messages, presence, to_wire};
use posthaste_host::caller::bearer;

/// Refuses everything of Safe Mode where it is switched off.
pub(super) fn check_on(context: &Context) -> Answer<()> {
    if context.safe_mode() {
        return Ok(());
    }
    Err(Trouble::new(
        403,
        "safe_mode_disabled",
        "Safe Mode is off for this request; sign your messages and use the paths without /api, \
         or start the server with --safe-mode on",
    ))
}

/// `POST /api/presence`: `register` or `heartbeat`.
pub(super) async fn presence(context: Context, fields: Fields) -> Answer {
    check_on(&context)?;
    match fields.text(&["action"])? {
        Some("register") => register(context, fields).await,
        Some("heartbeat" | "update") | None => {
            let name = fields.text(&["username", "handle", "from"])?;
            // Older clients register without saying so: a name that is not taken, and no token.
            if let Some(name) = name.filter(|_| bearer(&context.headers).is_none())
                && fields.get(&["action"]).is_none()
                && present(&context, &spelled(name)).await?.is_none()
            {
                return register(context, fields).await;
            }
            if name.is_none() && fields.text(&["status"])?.is_none() {
                return Err(Trouble::bad("action: register or heartbeat is expected"));
            }
            let actor = context.actor(name).await?;
            check_header(&context, &actor.agent, &fields)?;
            presence::beat(&context, &actor, &fields).await
        }
        Some("leave" | "offline") => {
            let actor = context.actor(fields.text(&["username", "handle", "from"])?).await?;
            context.engine.presences().leave(&actor.agent.id);
            Ok(Json(json!({ "success": true, "username": actor.agent.id })).into_response())
        }
        Some(other) => Err(Trouble::bad(format!("action: register or heartbeat is expected, not {other:?}"))),
    }
}

/// Registers, or gives another token to an identity that proves itself: with its key, or with its last token where it
/// has no key.
pub(super) async fn register(context: Context, fields: Fields) -> Answer {
    check_on(&context)?;
    if fields.text(&["action"])?.is_some_and(|action| action != "register") {
        return Err(Trouble::bad("action: register is expected"));
    }
    let newcomer = identity::safe_newcomer(&fields)?;
    let told = presence::Told::read(&fields)?;
    let (agent, holder) = match present(&context, newcomer.handle.as_str()).await? {
        Some(agent) => let_back(&context, agent, &fields).await?,
        None => (enter(&context, newcomer, &fields).await?, Holder::Proven),
    };
    let actor = Actor::new(Caller::member(agent.id.clone(), VIA), agent);
    let agent = presence::note(&context, &actor, told).await?;
    let end = match holder {
        Holder::Given { end } => end,
        Holder::Proven | Holder::Issued(_) => None,
    };
    let (token, until) = match holder {
        // The old token is revoked with it, so that an identity notices if another caller took it.
        Holder::Issued(old) => identity::renew(&context, old).await?,
        Holder::Proven | Holder::Given { .. } => {
            let (token, until) = identity::issue(&context, &agent.id, end).await?;
            (token, Some(until))
        }
    };
    Ok(Json(identity::session(&context, &agent, &token, until)).into_response())
}

async fn present(context: &Context, handle: &str) -> Answer<Option<Agent>> {
    let Ok(id) = AgentId::new(handle) else { return Ok(None) };
    // Asked as the office: a name in use is in use, whoever may see it.
    let found = context.engine.read(move |view| view.entry(&Caller::office(), &id)).await;
    match found {
        Ok(agent) if agent.is_active() || agent.state == Agent::REVOKED => Ok(Some(agent)),
        Ok(_) => Ok(None),
        Err(error) if error.refusal().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An identity that comes back, and by what right.
async fn let_back(context: &Context, agent: Agent, fields: &Fields) -> Answer<(Agent, Holder)> {
    let taken = |why: &str| Trouble::new(409, "handle_taken", why);
    if agent.state == Agent::REVOKED {
        return Err(taken("this identity has been revoked"));
    }
    // An agent of another door has a token of that door's making.
    if agent.via != VIA {
        return Err(taken("this name belongs to an agent that did not come by Safe Mode"));
    }
    if let Some(key) = key_of(&agent) {
        let good = header_signature(context)
            .is_some_and(|signature| verify_body(&fields.text, signature, &key).is_ok());
        if !good {
            return Err(taken("this handle has a key; sign the request with it (X-AIRC-Signature)"));
        }
        return Ok((agent, Holder::Proven));
    }
    match context.holds(&agent.id).await? {
        Some(holder) => Ok((agent, holder)),
        None => Err(taken(
            "this handle is taken and has no key: send its last token (Authorization: Bearer TOKEN) or choose \
             another handle; `posthaste token create --role agent --name HANDLE` makes a token for one that was lost",
        )),
    }
}

async fn enter(context: &Context, newcomer: Newcomer, fields: &Fields) -> Answer<Agent> {
    if let (Some(key), Some(signature)) = (&newcomer.key, header_signature(context)) {
        verify_body(&fields.text, signature, key)?;
    }
    identity::enter(context, newcomer).await
}

fn header_signature(context: &Context) -> Option<&str> {
    context.headers.get("x-airc-signature").and_then(|value| value.to_str().ok())
}

/// Whether the request is signed in its headers by the key that is known. A signature that cannot be checked, because no
/// key is known, is passed over.
fn check_header(context: &Context, agent: &Agent, fields: &Fields) -> Answer<bool> {
    match (header_signature(context), key_of(agent)) {
        (Some(signature), Some(key)) => {
            verify_body(&fields.text, signature, &key)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// `POST /api/messages`
pub(super) async fn send(context: Context, fields: Fields) -> Answer {
    check_on(&context)?;
    let to = fields.text(&["to"])?.filter(|to| !to.trim().is_empty());
    let to = to.ok_or_else(|| Trouble::bad("to: a recipient is needed"))?.to_owned();
    let from = fields.text(&["from", "username"])?;
    let (actor, recipient) = messages::speaker(&context, from, &to).await?;
    let turn = messages::take_turns(&context, &actor, &Target::parse(&to))?;
    let in_header = check_header(&context, &actor.agent, &fields)?;
    let envelope = signed(&actor, &fields)?;
    let raw_payload = match fields.get(&["payload"]) {
        None => None,
        Some(payload @ Value::Object(_)) => Some(payload.clone()),
        Some(_) => return Err(Trouble::new(400, "invalid_payload", "payload: an object is expected")),
    };
    let body = fields.text(&["text", "body", "content", "message"])?.map(str::to_owned);
    let kind = fields.text(&["type"])?.filter(|kind| !kind.is_empty()).unwrap_or("text");
    let said =
        raw_payload.clone().or_else(|| body.as_ref().map(|body| json!({ "type": kind, "content": body })));
    let payload = said.as_ref().and_then(Value::as_object).map(Payload::read).transpose();
    let payload = payload.map_err(|error| {
        Trouble::new(400, "invalid_payload", error.to_string()).with("field", json!(error.field))
    })?;
    if matches!(payload, Some(Payload::Reservation(_))) && envelope.is_none() && !in_header {
        let why = "a reservation is its owner's by signature: sign the message or the request";
        return Err(Trouble::new(401, "signature_required", why));
    }
    let name = |names: &[&str]| -> Answer<Option<String>> {
        match fields.text(names)? {
            Some(name) if name.is_empty() || name.len() > 256 => {
                Err(Trouble::bad(format!("{}: 1 to 256 bytes are expected", names[0])))
            }
            name => Ok(name.map(str::to_owned)),
        }
    };
    let mut meta = Map::new();
    for member in ["id", "to", "thread_id", "reply_to"] {
        if let Some(value) = fields.get(&[member]).filter(|value| value.is_string()) {
            meta.insert(member.to_owned(), value.clone());
        }
    }
    if let Some(payload) = &raw_payload {
        meta.insert("payload".to_owned(), payload.clone());
    }
    let draft = Draft {
        target: Target::parse(&to),
        recipient,
        id: name(&["id"])?,
        nonce: name(&["nonce"])?,
        thread_id: name(&["thread_id"])?,
        body,
        payload,
        raw_payload: said,
        meta: envelope.is_none().then(|| json!({ "airc": meta })),
        envelope,
    };
    messages::send(&context, &actor, draft, turn).await
}

/// The envelope, if the message is signed in its body and the signature can be checked.
fn signed(actor: &Actor, fields: &Fields) -> Answer<Option<String>> {
    let (Some(_), Some(key)) = (fields.get(&["signature"]), actor.key()) else { return Ok(None) };
    let envelope = Envelope::parse(&fields.text)?;
    envelope.verify(&key).or_else(|error| envelope.verify_without_text(&key).map_err(|_| error))?;
    if let Some(at) = envelope.timestamp {
        messages::check_recent(at)?;
    }
    Ok(Some(envelope.text))
}

/// `GET /api/agents?capability=&q=&available=&limit=`: identities that show themselves to the caller.
pub(super) async fn agents(context: Context) -> Answer {
    check_on(&context)?;
    let actor = context.looker().await?;
    let caller = actor.map_or_else(visitor, |actor| actor.caller);
    let limit = context.number("limit", 50, LARGEST_PAGE)?;
    let (capability, words) =
        (context.query("capability").map(str::to_owned), context.query("q").map(str::to_lowercase));
    let available = context.flag("available");
    let (engine, base) = (context.engine.clone(), context.base());
    let agents = context
        .engine
        .read(move |view| {
            let mut found = Vec::new();
            let mut query = AgentQuery { limit: 500, ..AgentQuery::default() };
            loop {
                let page = view.agents(&caller, &query)?;
                for agent in page.items {
                    let shows = agent.privacy == Privacy::Public
                        || caller.is(&agent.id)
                        || view.contact(&caller, &caller.agent, &agent.id).is_ok_and(|contact| {
                            contact.is_some_and(|contact| contact.state.as_str() == "accepted")
                                && agent.privacy == Privacy::Contacts
                        });
                    let about = engine.presences().of(view, &caller, &agent)?;
                    if agent.via != VIA || !shows || (available && about.is_none()) {
                        continue;
                    }
                    let mut entry = to_wire::identity(&agent, &base);
                    if !can(&entry, capability.as_deref()) || !named(&entry, words.as_deref()) {
                        continue;
                    }
                    entry["available"] = json!(about.is_some());
                    found.push(entry);
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
                match page.next {
                    Some(next) if !view.has_enough() => query.after = Some(next),
                    _ => return Ok(found),
                }
            }
        })
        .await?;
    Ok(Json(json!({ "success": true, "count": agents.len(), "agents": agents })).into_response())
}

fn can(entry: &Value, capability: Option<&str>) -> bool {
    let Some(capability) = capability else { return true };
    let lists = [&entry["capabilities"], &entry["capabilities"]["payloads"]];
    lists.iter().filter_map(|list| list.as_array()).flatten().any(|one| one == capability)
}

fn named(entry: &Value, words: Option<&str>) -> bool {
    let Some(words) = words else { return true };
    ["handle", "display_name"]
        .iter()
        .any(|name| entry[*name].as_str().is_some_and(|text| text.to_lowercase().contains(words)))
}

/// `GET /api/presence`
pub(super) async fn who(context: Context) -> Answer {
    check_on(&context)?;
    presence::list_or_one(context).await
}

/// `POST /api/consent` and `GET /api/consent`
pub(super) async fn consent(context: Context, fields: Fields) -> Answer {
    check_on(&context)?;
    super::consent::post(context, fields).await
}

pub(super) async fn consents(context: Context) -> Answer {
    check_on(&context)?;
    super::consent::get(context).await
}

/// `GET /api/identity/{handle}`
pub(super) async fn show(context: Context) -> Answer {
    check_on(&context)?;
    identity::show(context).await
}

/// `GET /api/health`
pub(super) async fn health(context: Context) -> axum::response::Response {
    let report = context.shared.check_health().await;
    let status = if report.problem.is_none() { 200 } else { 503 };
    let body = json!({
        "success": report.problem.is_none(),
        "status": if report.problem.is_none() { "healthy" } else { "unhealthy" },
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": "AIRC",
        "protocol_version": posthaste_wire::airc::PROTOCOL_VERSION,
        "safe_mode": context.safe_mode(),
        "reason": report.problem,
    });
    let status = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    (status, Json(body)).into_response()
}
