//! Safe Mode, `/api/…`: the protocol of the published clients. A token is needed, a signature is not; a signature that
//! can be checked must be valid.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use posthaste_engine::nouns::{Agent, AgentId, Caller, Privacy};
use posthaste_engine::views::AgentQuery;
use posthaste_wire::airc::{
    AgentsAnswer, ContentPayload, Envelope, Fields, Health, Identity, LeaveAnswer, ListedAgent,
    PROTOCOL_VERSION, Payload, Target, UnsignedMembers, verify_body,
};
use serde_json::Value;

use super::VIA;
use super::context::{Actor, Context, Form, Holder, key_of, normalized, visitor};
use super::errors::{Answer, DoorError};
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
    Err(DoorError::new(
        403,
        "safe_mode_disabled",
        "Safe Mode is off for this request; sign your messages and use the paths without /api, \
         or start the server with --safe-mode on",
    ))
}

/// `POST /api/presence`: `register` or `heartbeat`.
pub(super) async fn presence(context: Context, Form(fields): Form) -> Answer {
    check_on(&context)?;
    match fields.text(&["action"])? {
        Some("register") => register(context, Form(fields)).await,
        Some("heartbeat" | "update") | None => {
            let name = fields.text(&["username", "handle", "from"])?;
            // Older clients register without an action: with a name that is not taken, and no token.
            if let Some(name) = name.filter(|_| bearer(&context.headers).is_none())
                && fields.get(&["action"]).is_none()
                && present(&context, &normalized(name)).await?.is_none()
            {
                return register(context, Form(fields)).await;
            }
            if name.is_none() && fields.text(&["status"])?.is_none() {
                return Err(DoorError::bad("action: register or heartbeat is expected"));
            }
            let actor = context.actor(name).await?;
            check_header(&context, &actor.agent, &fields)?;
            presence::beat(&context, &actor, &fields).await
        }
        Some("leave" | "offline") => {
            let actor = context.actor(fields.text(&["username", "handle", "from"])?).await?;
            context.engine.presences().leave(&actor.agent.id);
            Ok(Json(LeaveAnswer { success: true, username: actor.agent.id.to_string() }).into_response())
        }
        Some(other) => {
            Err(DoorError::bad(format!("action: register or heartbeat is expected, not {other:?}")))
        }
    }
}

/// Registers, or issues another token to an identity that proves itself: with its key, or with its last token where it
/// has no key.
pub(super) async fn register(context: Context, Form(fields): Form) -> Answer {
    check_on(&context)?;
    if fields.text(&["action"])?.is_some_and(|action| action != "register") {
        return Err(DoorError::bad("action: register is expected"));
    }
    let newcomer = identity::safe_newcomer(&fields)?;
    let heartbeat = presence::Heartbeat::read(&fields)?;
    let (agent, holder) = match present(&context, newcomer.handle.as_str()).await? {
        Some(agent) => register_again(&context, agent, &fields).await?,
        None => (register_signed(&context, newcomer, &fields).await?, Holder::Proven),
    };
    let actor = Actor::new(Caller::member(agent.id.clone(), VIA), agent);
    let agent = presence::note(&context, &actor, heartbeat).await?;
    let end = match holder {
        Holder::Given { end } => end,
        Holder::Proven | Holder::Issued(_) => None,
    };
    let (token, until) = match holder {
        // Renewing revokes the old token, so that an identity notices if another caller uses it.
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
    // Read as the server: a name is taken even if the caller may not see its agent.
    let found = context.engine.read(move |view| view.entry(&Caller::office(), &id)).await;
    match found {
        Ok(agent) if agent.is_active() || agent.state == Agent::REVOKED => Ok(Some(agent)),
        Ok(_) => Ok(None),
        Err(error) if error.refusal().is_some() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An identity that registers again, and by what right.
async fn register_again(context: &Context, agent: Agent, fields: &Fields) -> Answer<(Agent, Holder)> {
    let taken = |why: &str| DoorError::new(409, "handle_taken", why);
    if agent.state == Agent::REVOKED {
        return Err(taken("this identity has been revoked"));
    }
    // Agents of other doors have tokens that were made for those doors.
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

async fn register_signed(context: &Context, newcomer: Newcomer, fields: &Fields) -> Answer<Agent> {
    if let (Some(key), Some(signature)) = (&newcomer.key, header_signature(context)) {
        verify_body(&fields.text, signature, key)?;
    }
    identity::create_agent(context, newcomer).await
}

fn header_signature(context: &Context) -> Option<&str> {
    context.headers.get("x-airc-signature").and_then(|value| value.to_str().ok())
}

/// Whether a header signs the request with the agent's key. A signature that cannot be checked, because the agent has no
/// key, is ignored.
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
pub(super) async fn send(context: Context, Form(fields): Form) -> Answer {
    check_on(&context)?;
    let to = fields.text(&["to"])?.filter(|to| !to.trim().is_empty());
    let to = to.ok_or_else(|| DoorError::bad("to: a recipient is needed"))?.to_owned();
    let from = fields.text(&["from", "username"])?;
    let (actor, recipient) = messages::sender_and_recipient(&context, from, &to).await?;
    let turn = messages::take_turns(&context, &actor, &Target::parse(&to))?;
    let in_header = check_header(&context, &actor.agent, &fields)?;
    let envelope = signed(&actor, &fields)?;
    let raw_payload = match fields.get(&["payload"]) {
        None => None,
        Some(payload @ Value::Object(_)) => Some(payload.clone()),
        Some(_) => return Err(DoorError::new(400, "invalid_payload", "payload: an object is expected")),
    };
    let body = fields.text(&["text", "body", "content", "message"])?.map(str::to_owned);
    let kind = fields.text(&["type"])?.filter(|kind| !kind.is_empty()).unwrap_or("text");
    let effective = raw_payload.clone().or_else(|| body.as_ref().map(|body| content(kind, body)));
    let payload = effective.as_ref().and_then(Value::as_object).map(Payload::read).transpose();
    let payload = payload
        .map_err(|error| DoorError::new(400, "invalid_payload", error.to_string()).with_field(error.field))?;
    if matches!(payload, Some(Payload::Reservation(_))) && envelope.is_none() && !in_header {
        let why = "a reservation is its owner's by signature: sign the message or the request";
        return Err(DoorError::new(401, "signature_required", why));
    }
    let name = |names: &[&str]| -> Answer<Option<String>> {
        match fields.text(names)? {
            Some(name) if name.is_empty() || name.len() > 256 => {
                Err(DoorError::bad(format!("{}: 1 to 256 bytes are expected", names[0])))
            }
            name => Ok(name.map(str::to_owned)),
        }
    };
    let member = |name: &str| fields.get(&[name]).and_then(Value::as_str).map(str::to_owned);
    let meta = UnsignedMembers {
        id: member("id"),
        to: member("to"),
        thread_id: member("thread_id"),
        reply_to: member("reply_to"),
        payload: raw_payload,
    };
    let draft = Draft {
        target: Target::parse(&to),
        recipient,
        id: name(&["id"])?,
        nonce: name(&["nonce"])?,
        thread_id: name(&["thread_id"])?,
        body,
        payload,
        raw_payload: effective,
        meta: envelope.is_none().then_some(meta),
        envelope,
    };
    messages::send(&context, &actor, draft, turn).await
}

/// The payload of a message that has only a text.
fn content(kind: &str, text: &str) -> Value {
    let payload = ContentPayload { kind: kind.to_owned().into(), content: text.into() };
    serde_json::to_value(payload).unwrap_or_default()
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

/// `GET /api/agents?capability=&q=&available=&limit=`: identities that the caller may see.
pub(super) async fn agents(context: Context) -> Answer {
    check_on(&context)?;
    let actor = context.optional_actor().await?;
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
                    let is_shown = agent.privacy == Privacy::Public
                        || caller.is(&agent.id)
                        || view.contact(&caller, &caller.agent, &agent.id).is_ok_and(|contact| {
                            contact.is_some_and(|contact| contact.state.as_str() == "accepted")
                                && agent.privacy == Privacy::Contacts
                        });
                    let presence = engine.presences().of(view, &caller, &agent)?;
                    if agent.via != VIA || !is_shown || (available && presence.is_none()) {
                        continue;
                    }
                    let identity = to_wire::identity(&agent, &base);
                    if !can(&identity, capability.as_deref()) || !matches(&identity, words.as_deref()) {
                        continue;
                    }
                    found.push(ListedAgent { identity, available: presence.is_some() });
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
    Ok(Json(AgentsAnswer { success: true, count: agents.len(), agents }).into_response())
}

/// Whether an identity has a capability.
fn can(identity: &Identity, capability: Option<&str>) -> bool {
    let Some(capability) = capability else { return true };
    let lists = [&identity.capabilities, &identity.capabilities["payloads"]];
    lists.iter().filter_map(|list| list.as_array()).flatten().any(|one| one == capability)
}

/// Whether an identity's names contain a text.
fn matches(identity: &Identity, words: Option<&str>) -> bool {
    let Some(words) = words else { return true };
    let names = [Some(&identity.handle), identity.display_name.as_ref()];
    names.into_iter().flatten().any(|name| name.to_lowercase().contains(words))
}

/// `GET /api/presence`
pub(super) async fn presences(context: Context) -> Answer {
    check_on(&context)?;
    presence::list_or_one(context).await
}

/// `POST /api/consent` and `GET /api/consent`
pub(super) async fn consent(context: Context, Form(fields): Form) -> Answer {
    check_on(&context)?;
    super::consent::post(context, Form(fields)).await
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
pub(super) async fn health(context: Context) -> Response {
    let report = context.door.check_health().await;
    let is_healthy = report.problem.is_none();
    let (status, word) = match is_healthy {
        true => (StatusCode::OK, "healthy"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    let body = Health {
        success: is_healthy,
        status: word.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: "AIRC".into(),
        protocol_version: PROTOCOL_VERSION.into(),
        safe_mode: context.safe_mode(),
        reason: report.problem,
    };
    (status, Json(body)).into_response()
}
