//! Leaving, coming back, and what a participant is allowed to do.

use std::sync::Arc;

use posthaste_engine::EngineError;
use posthaste_engine::nouns::{AgentId, Json};
use posthaste_engine::verbs::agents::Unregister;
use posthaste_engine::verbs::office::Announce;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::params;
use super::session::{Part, Session};
use super::{connect, disconnect, messages};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct One {
    session_id: Option<String>,
    reason: Option<String>,
    cascade: bool,
}

/// `map/disconnect`: the session is let go before the answer leaves, so that it can be resumed at once.
pub(super) async fn disconnect(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let _: One = params(given)?;
    let token = session.token();
    at.session = None;
    disconnect::leave(&at.door, &at.engine, &at.registry, session.clone()).await;
    Ok(json!({
        "session": session.info(),
        "resumeToken": token,
        "acknowledged": true,
        "success": true,
    })
    .into())
}

/// `map/shutdown`: the session and its agents end, and with `cascade` everyone below them.
pub(super) async fn shutdown(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: One = params(given)?;
    let reason = one.reason.unwrap_or_else(|| "shutdown".to_owned());
    if one.cascade {
        for agent in session.agents() {
            let (caller, id) = (session.caller_as(agent.clone()), agent.clone());
            let below = at.engine.read(move |view| Ok(view.relatives(&caller, &id, 64)?.descendants)).await;
            // One that stood below another of them is gone by now.
            let below = match below {
                Err(EngineError::Refused(_)) => continue,
                below => below?,
            };
            // The deepest first, so that nobody is left without a parent.
            for child in below.into_iter().rev() {
                let verb = Unregister { agent: child.id.clone(), reason: Some(reason.clone()), cause: None };
                // One that may not be touched, or is gone already, is passed over.
                if at.engine.submit(&session.caller_as(agent.clone()), verb).await.is_ok() {
                    at.registry.forget_agent(session, &child.id);
                }
            }
        }
    }
    at.session = None;
    end(at, session, &reason).await;
    Ok(json!({ "acknowledged": true, "success": true, "session": session.info() }).into())
}

/// Ends a session for good.
async fn end(at: &Connection, session: &Arc<Session>, reason: &str) {
    let cause = disconnect::detach_for_good(&at.engine, session).await;
    for agent in session.agents() {
        let verb = Unregister { agent: agent.clone(), reason: Some(reason.to_owned()), cause };
        session.remove_agent(&agent);
        drop(at.engine.submit(&session.caller_as(agent), verb).await);
    }
    disconnect::end(&at.engine, &at.registry, session, reason, cause).await;
}

/// `map/session/list`: the sessions of this principal.
pub(super) fn list(at: &Connection, session: &Session) -> Answer {
    let sessions: Vec<Value> = at
        .registry
        .sessions()
        .iter()
        .filter(|other| other.identity == session.identity)
        .map(|other| other.info())
        .collect();
    json!({ "sessions": sessions }).into()
}

/// `map/session/load`: goes on with another session of the same principal, with its agents and subscriptions, if that
/// one has no connection. The session at hand is let go and can be taken up again in the same way.
pub(super) async fn load(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let id = one.session_id.ok_or_else(|| DoorError::params("sessionId: which session"))?;
    let known = at.registry.session(&id).filter(|other| other.identity == session.identity);
    let Some(other) = known else { return Err(DoorError::params("there is no such session")) };
    if id == session.id {
        return Ok(json!({ "sessionId": id, "restored": true }).into());
    }
    // Somebody is using it.
    if other.is_live() {
        return Ok(json!({ "sessionId": id, "restored": false }).into());
    }
    at.session = None;
    disconnect::leave(&at.door, &at.engine, &at.registry, session.clone()).await;
    let mut answer = connect::take_up(at, other).await?;
    answer["restored"] = true.into();
    Ok(answer.into())
}

/// `map/session/close`.
pub(super) async fn close(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: One = params(given)?;
    let closing = match &one.session_id {
        None => session.clone(),
        Some(id) if *id == session.id => session.clone(),
        Some(id) => at
            .registry
            .session(id)
            .filter(|other| other.identity == session.identity)
            .ok_or_else(|| DoorError::params("there is no such session"))?,
    };
    end(at, &closing, "session closed").await;
    if closing.id == session.id {
        at.session = None;
    }
    Ok(json!({ "session": closing.info(), "closed": true, "success": true }).into())
}

/// `map/session/info`.
pub(super) fn info(session: &Session) -> Answer {
    let mut info = session.info();
    info["participantId"] = session.participant.as_str().into();
    info["participantType"] = session.part.as_str().into();
    info["agents"] = json!(session.agents());
    json!({ "session": info }).into()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionParams {
    client_id: String,
    permissions: Map<String, Value>,
}

/// `map/permissions/update`: what another participant may do from now on.
pub(super) async fn permissions(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let asked: PermissionParams = params(given)?;
    if session.part != Part::System || !session.is_operator() {
        return Err(DoorError::denied("only system participants change what others may do"));
    }
    let id = AgentId::new(&asked.client_id)?;
    let found = at
        .registry
        .participant(&id)
        .or_else(|| at.registry.session(&asked.client_id))
        .or_else(|| at.registry.sessions().into_iter().find(|other| other.owns(&id)));
    let other = found.ok_or_else(|| DoorError::params("clientId: there is no such participant"))?;
    let received = other.receives();
    let effective = other.change_capabilities(&asked.permissions);
    at.registry.note_receiving(&other);
    match (received, other.receives()) {
        (true, false) => {
            // From here on nobody is told that a message arrived there; what did arrive is still handed over.
            let names = other.agents();
            names.iter().chain([&other.participant]).for_each(|agent| at.engine.close_mailboxes(agent));
            other.carriers_gone().await;
        }
        (false, true) => messages::open_all(&at.engine, &other).await?,
        _ => {}
    }
    let told = json!({
        "clientId": other.participant,
        "changes": asked.permissions,
        "effectivePermissions": effective,
        "updatedBy": session.participant,
    });
    let word = "permissions.client.updated".to_owned();
    at.engine.submit(&session.caller(), Announce { word, data: Json::from_value(&told), to: None }).await?;
    Ok(json!({ "success": true, "effectivePermissions": effective }).into())
}
