//! Consent: requests, acceptance, blocks, and lifting a block. The token's agent acts.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{AgentId, Caller, Contact, ContactState};
use posthaste_engine::verbs::contacts::{Answer as Reply, Ask, EndContact};
use posthaste_wire::airc::{ConsentAnswer, ConsentState, Fields, PendingConsent, PendingConsents};
use posthaste_wire::time::to_rfc3339;

use super::context::{Context, Form, find_name, normalized};
use super::errors::{Answer, DoorError};

/// The longest text of a request, in bytes.
const MAX_MESSAGE_BYTES: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Request,
    Accept,
    Block,
    Unblock,
    End,
}

impl Action {
    fn read(fields: &Fields) -> Answer<Self> {
        let word = fields.text(&["action", "type"])?.ok_or_else(|| DoorError::bad("action is missing"))?;
        Ok(match word.strip_prefix("consent:").unwrap_or(word) {
            "request" => Self::Request,
            "accept" => Self::Accept,
            "block" => Self::Block,
            "unblock" => Self::Unblock,
            "decline" | "reject" | "revoke" | "end" => Self::End,
            other => {
                let why = format!("action: request, accept, block or unblock is expected, not {other:?}");
                return Err(DoorError::bad(why));
            }
        })
    }
}

/// `POST /consent`
pub(super) async fn post(context: Context, Form(fields): Form) -> Answer {
    let action = Action::read(&fields)?;
    let names: Vec<String> = ["handle", "to", "from", "peer"]
        .iter()
        .filter_map(|name| fields.text(&[name]).transpose())
        .collect::<Result<Vec<&str>, _>>()?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let (from, to) =
        (fields.text(&["from"])?.map(normalized), fields.text(&["to", "handle"])?.map(normalized));
    // Without authentication the request itself names the agent that acts.
    let claimed = (!context.door.needs_token()).then(|| match action {
        Action::Accept if fields.get(&["handle"]).is_none() => to.clone().or_else(|| from.clone()),
        _ => from.clone(),
    });
    let (actor, others) = context
        .actor_and(claimed.flatten().as_deref(), move |view, caller| {
            let others = names.iter().filter(|name| normalized(name) != caller.agent.as_str());
            Ok(others.map(|name| (name.clone(), find_name(view, caller, name))).collect::<Vec<_>>())
        })
        .await?;
    let me = actor.handle();
    if let (Some(from), Some(to)) = (&from, &to)
        && from != me
        && to != me
    {
        return Err(DoorError::forbidden("consent between two others is theirs to give"));
    }
    if action == Action::Request && from.as_ref().is_some_and(|from| from != me) {
        return Err(DoorError::forbidden("one asks for oneself alone"));
    }
    let peer = match others.into_iter().next() {
        None => return Err(DoorError::bad("handle: another agent is expected")),
        Some((name, None)) => return Err(DoorError::no_identity(&name)),
        Some((_, Some(peer))) => peer,
    };
    let state = carry_out(&context, &actor.caller, action, &peer, &fields).await?;
    let body = ConsentAnswer {
        success: true,
        handle: peer.to_string(),
        from: actor.agent.id.to_string(),
        to: peer.to_string(),
        state: state.into(),
        status: state.into(),
    };
    Ok(Json(body).into_response())
}

async fn carry_out(
    context: &Context,
    caller: &Caller,
    action: Action,
    peer: &AgentId,
    fields: &Fields,
) -> Answer<&'static str> {
    let engine = &context.engine;
    Ok(match action {
        Action::Request => {
            let reason = fields.text(&["message", "reason", "text"])?.map(str::to_owned);
            if reason.as_ref().is_some_and(|reason| reason.len() > MAX_MESSAGE_BYTES) {
                return Err(DoorError::bad("message: at most 2000 bytes"));
            }
            context.turn("consent requests", caller.agent.as_str(), context.door.rates().consents)?;
            let ask = Ask { to: peer.clone(), reason, expires_at: None };
            engine.submit(caller, ask).await?.state.as_str()
        }
        Action::Accept | Action::Block => {
            let state = if action == Action::Accept { ContactState::Accepted } else { ContactState::Blocked };
            let reply = Reply { from: peer.clone(), state, expires_at: None };
            engine.submit(caller, reply).await?.state.as_str()
        }
        Action::Unblock | Action::End => {
            let (me, other, asking) = (caller.agent.clone(), peer.clone(), caller.clone());
            let theirs = engine.read(move |view| view.contact(&asking, &other, &me)).await?;
            let blocked = theirs.as_ref().is_some_and(|contact| contact.state == ContactState::Blocked);
            if blocked == (action == Action::Unblock) {
                engine.submit(caller, EndContact { with: peer.clone() }).await?;
            } else if blocked {
                return Ok(ContactState::Blocked.as_str());
            }
            match (action, theirs) {
                (Action::Unblock, Some(contact)) if !blocked => contact.state.as_str(),
                _ => "none",
            }
        }
    })
}

/// `GET /consent`: requests that wait for the caller; or, with `?handle=` or `?from=&to=`, the consent between two agents.
pub(super) async fn get(context: Context) -> Answer {
    let actor = context.actor(context.query("user")).await?;
    let pair = match (context.query("from"), context.query("to"), context.query("handle")) {
        (Some(from), Some(to), _) => Some((normalized(from), normalized(to))),
        (_, _, Some(handle)) => Some((actor.handle().to_owned(), normalized(handle))),
        _ => None,
    };
    if let Some((from, to)) = pair {
        return between(&context, &actor.caller, &from, &to).await;
    }
    let caller = actor.caller.clone();
    let waiting = context.engine.read(move |view| view.contact_requests(&caller, &caller.agent)).await?;
    let pending: Vec<PendingConsent> = waiting.iter().map(request).collect();
    let (user, count) = (actor.agent.id.to_string(), pending.len());
    let body = PendingConsents { success: true, user, count, pending };
    Ok(Json(body).into_response())
}

/// The consent between two agents, one of which must be the caller.
async fn between(context: &Context, caller: &Caller, from: &str, to: &str) -> Answer {
    let ids = (
        AgentId::new(from).map_err(|_| DoorError::no_identity(from))?,
        AgentId::new(to).map_err(|_| DoorError::no_identity(to))?,
    );
    if !caller.is(&ids.0) && !caller.is(&ids.1) {
        return Err(DoorError::forbidden("how two others stand is between them"));
    }
    let asking = caller.clone();
    let (there, back) = context
        .engine
        .read(move |view| {
            Ok((view.contact(&asking, &ids.0, &ids.1)?, view.contact(&asking, &ids.1, &ids.0)?))
        })
        .await?;
    let state = |contact: &Option<Contact>| contact.as_ref().map_or("none", |contact| contact.state.as_str());
    let body = ConsentState {
        success: true,
        from: from.to_owned(),
        to: to.to_owned(),
        state: state(&there).into(),
        status: state(&there).into(),
        incoming: state(&back).into(),
        updated_at: there.as_ref().map(|contact| to_rfc3339(contact.updated_at)),
        version: there.as_ref().map_or(0, |contact| contact.updated_at),
    };
    Ok(Json(body).into_response())
}

fn request(contact: &Contact) -> PendingConsent {
    PendingConsent {
        from: contact.from.to_string(),
        handle: contact.from.to_string(),
        to: contact.to.to_string(),
        message: contact.reason.clone(),
        state: contact.state.as_str().into(),
        created_at: to_rfc3339(contact.created_at),
    }
}
