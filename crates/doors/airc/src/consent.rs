//! Consent: asking, accepting, blocking, and lifting a block. The bearer of the token is the one who acts.

use axum::Json;
use axum::response::IntoResponse;
use posthaste_engine::nouns::{AgentId, Contact, ContactState};
use posthaste_engine::verbs::contacts::{Answer as Reply, Ask, EndContact};
use posthaste_wire::time::to_rfc3339;
use serde_json::{Value, json};

use super::context::{Context, Fields, find_name, spelled};
use super::errors::{Answer, Trouble};

/// The longest introduction, in bytes.
const LONGEST_MESSAGE: usize = 2_000;

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
        let word = fields.text(&["action", "type"])?.ok_or_else(|| Trouble::bad("action is missing"))?;
        Ok(match word.strip_prefix("consent:").unwrap_or(word) {
            "request" => Self::Request,
            "accept" => Self::Accept,
            "block" => Self::Block,
            "unblock" => Self::Unblock,
            "decline" | "reject" | "revoke" | "end" => Self::End,
            other => {
                let why = format!("action: request, accept, block or unblock is expected, not {other:?}");
                return Err(Trouble::bad(why));
            }
        })
    }
}

/// `POST /consent`
pub(super) async fn post(context: Context, fields: Fields) -> Answer {
    let action = Action::read(&fields)?;
    let names: Vec<String> = ["handle", "to", "from", "peer"]
        .iter()
        .filter_map(|name| fields.text(&[name]).transpose())
        .collect::<Answer<Vec<&str>>>()?
        .into_iter()
        .map(str::to_owned)
        .collect();
    let (from, to) = (fields.text(&["from"])?.map(spelled), fields.text(&["to", "handle"])?.map(spelled));
    // Without authentication the request itself says who acts.
    let claimed = (!context.shared.needs_token()).then(|| match action {
        Action::Accept if fields.get(&["handle"]).is_none() => to.clone().or_else(|| from.clone()),
        _ => from.clone(),
    });
    let (actor, others) = context
        .actor_and(claimed.flatten().as_deref(), move |view, caller| {
            let others = names.iter().filter(|name| spelled(name) != caller.agent.as_str());
            Ok(others.map(|name| (name.clone(), find_name(view, caller, name))).collect::<Vec<_>>())
        })
        .await?;
    let me = actor.handle();
    if let (Some(from), Some(to)) = (&from, &to)
        && from != me
        && to != me
    {
        return Err(Trouble::forbidden("consent between two others is theirs to give"));
    }
    if action == Action::Request && from.as_ref().is_some_and(|from| from != me) {
        return Err(Trouble::forbidden("one asks for oneself alone"));
    }
    let peer = match others.into_iter().next() {
        None => return Err(Trouble::bad("handle: somebody else is expected")),
        Some((name, None)) => return Err(Trouble::nobody(&name)),
        Some((_, Some(peer))) => peer,
    };
    let state = carry_out(&context, &actor.caller, action, &peer, &fields).await?;
    let body = json!({
        "success": true,
        "handle": peer,
        "from": actor.agent.id,
        "to": peer,
        "state": state,
        "status": state,
    });
    Ok(Json(body).into_response())
}

async fn carry_out(
    context: &Context,
    caller: &posthaste_engine::nouns::Caller,
    action: Action,
    peer: &AgentId,
    fields: &Fields,
) -> Answer<&'static str> {
    let engine = &context.engine;
    Ok(match action {
        Action::Request => {
            let reason = fields.text(&["message", "reason", "text"])?.map(str::to_owned);
            if reason.as_ref().is_some_and(|reason| reason.len() > LONGEST_MESSAGE) {
                return Err(Trouble::bad("message: at most 2000 bytes"));
            }
            context.turn("consent requests", caller.agent.as_str(), context.shared.rates().consents)?;
            let ask = Ask { to: peer.clone(), reason, expires_at: None };
            word(engine.submit(caller, ask).await?.state)
        }
        Action::Accept | Action::Block => {
            let state = if action == Action::Accept { ContactState::Accepted } else { ContactState::Blocked };
            let reply = Reply { from: peer.clone(), state, expires_at: None };
            word(engine.submit(caller, reply).await?.state)
        }
        Action::Unblock | Action::End => {
            let (me, other, asking) = (caller.agent.clone(), peer.clone(), caller.clone());
            let theirs = engine.read(move |view| view.contact(&asking, &other, &me)).await?;
            let blocked = theirs.as_ref().is_some_and(|contact| contact.state == ContactState::Blocked);
            if blocked == (action == Action::Unblock) {
                engine.submit(caller, EndContact { with: peer.clone() }).await?;
            } else if blocked {
                return Ok(word(ContactState::Blocked));
            }
            match (action, theirs) {
                (Action::Unblock, Some(contact)) if !blocked => word(contact.state),
                _ => "none",
            }
        }
    })
}

fn word(state: ContactState) -> &'static str {
    state.as_str()
}

/// `GET /consent`: requests that wait for the caller; or, with `?handle=` or `?from=&to=`, how two stand.
pub(super) async fn get(context: Context) -> Answer {
    let actor = context.actor(context.query("user")).await?;
    let pair = match (context.query("from"), context.query("to"), context.query("handle")) {
        (Some(from), Some(to), _) => Some((spelled(from), spelled(to))),
        (_, _, Some(handle)) => Some((actor.handle().to_owned(), spelled(handle))),
        _ => None,
    };
    if let Some((from, to)) = pair {
        return standing(&context, &actor.caller, &from, &to).await;
    }
    let caller = actor.caller.clone();
    let waiting = context.engine.read(move |view| view.contact_requests(&caller, &caller.agent)).await?;
    let pending: Vec<Value> = waiting.iter().map(request).collect();
    let body = json!({ "success": true, "user": actor.agent.id, "count": pending.len(), "pending": pending });
    Ok(Json(body).into_response())
}

async fn standing(
    context: &Context,
    caller: &posthaste_engine::nouns::Caller,
    from: &str,
    to: &str,
) -> Answer {
    let ids = (
        AgentId::new(from).map_err(|_| Trouble::nobody(from))?,
        AgentId::new(to).map_err(|_| Trouble::nobody(to))?,
    );
    if !caller.is(&ids.0) && !caller.is(&ids.1) {
        return Err(Trouble::forbidden("how two others stand is between them"));
    }
    let asking = caller.clone();
    let (there, back) = context
        .engine
        .read(move |view| {
            Ok((view.contact(&asking, &ids.0, &ids.1)?, view.contact(&asking, &ids.1, &ids.0)?))
        })
        .await?;
    let state = |contact: &Option<Contact>| contact.as_ref().map_or("none", |contact| contact.state.as_str());
    let body = json!({
        "success": true,
        "from": from,
        "to": to,
        "state": state(&there),
        "status": state(&there),
        "incoming": state(&back),
        "updatedAt": there.as_ref().map(|contact| to_rfc3339(contact.updated_at)),
        "version": there.as_ref().map_or(0, |contact| contact.updated_at),
    });
    Ok(Json(body).into_response())
}

fn request(contact: &Contact) -> Value {
    json!({
        "from": contact.from,
        "handle": contact.from,
        "to": contact.to,
        "message": contact.reason,
        "state": contact.state.as_str(),
        "created_at": to_rfc3339(contact.created_at),
    })
}
