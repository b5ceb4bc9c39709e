//! Sessions: ending, listing and loading them, and changing what a participant may do.

use std::sync::Arc;

use posthaste_engine::EngineError;
use posthaste_engine::nouns::AgentId;
use posthaste_engine::verbs::agents::Unregister;
use posthaste_engine::verbs::office::Announce;
use posthaste_wire::map::Capabilities;
use posthaste_wire::map::connect::ConnectResult;
use posthaste_wire::map::session::{
    CloseResult, DisconnectResult, InfoResult, ListResult, LoadResult, PermissionParams, PermissionResult,
    PermissionsUpdated, SessionInfo, SessionParams, ShutdownResult,
};
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::params;
use super::nouns::stored;
use super::session::{Part, Session};
use super::{connect, disconnect, messages};

/// `map/disconnect`: the session is released before the response is sent, so that it can be resumed at once.
pub(super) async fn disconnect(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let _: SessionParams = params(given)?;
    let token = session.token();
    at.session = None;
    disconnect::leave(&at.door, &at.engine, &at.registry, session.clone()).await;
    Ok(Answer::of(&DisconnectResult {
        session: session.info(),
        resume_token: token,
        acknowledged: true,
        success: true,
    }))
}

/// `map/shutdown`: ends the session and its agents, and with `cascade` all agents below them.
pub(super) async fn shutdown(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: SessionParams = params(given)?;
    let reason = one.reason.unwrap_or_else(|| "shutdown".to_owned());
    if one.cascade {
        for agent in session.agents() {
            let (caller, id) = (session.caller_as(agent.clone()), agent.clone());
            let below = at.engine.read(move |view| Ok(view.relatives(&caller, &id, 64)?.descendants)).await;
            // One that was below another of them is unregistered by now.
            let below = match below {
                Err(EngineError::Refused(_)) => continue,
                below => below?,
            };
            // The deepest first, so that no agent loses its parent before it is unregistered.
            for child in below.into_iter().rev() {
                let verb = Unregister { agent: child.id.clone(), reason: Some(reason.clone()), cause: None };
                // Agents that the session may not unregister, or that are gone, are skipped.
                if at.engine.submit(&session.caller_as(agent.clone()), verb).await.is_ok() {
                    at.registry.forget_agent(session, &child.id);
                }
            }
        }
    }
    at.session = None;
    end(at, session, &reason).await;
    Ok(Answer::of(&ShutdownResult { acknowledged: true, success: true, session: session.info() }))
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
    let own = at.registry.sessions().into_iter().filter(|other| other.identity == session.identity);
    Answer::of(&ListResult { sessions: own.map(|other| other.info()).collect() })
}

/// `map/session/load`: switches to another session of the same principal, with its agents and subscriptions, if that one has
/// no connection. The current session is released and can be loaded again in the same way.
pub(super) async fn load(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: SessionParams = params(given)?;
    let id = one.session_id.ok_or_else(|| DoorError::params("sessionId: which session"))?;
    let known = at.registry.session(&id).filter(|other| other.identity == session.identity);
    let Some(other) = known else { return Err(DoorError::params("there is no such session")) };
    if id == session.id {
        return Ok(Answer::of(&LoadResult { session_id: id, restored: true }));
    }
    // Another connection has it.
    if other.is_live() {
        return Ok(Answer::of(&LoadResult { session_id: id, restored: false }));
    }
    at.session = None;
    disconnect::leave(&at.door, &at.engine, &at.registry, session.clone()).await;
    let result = connect::take_up(at, other).await?;
    Ok(Answer::of(&ConnectResult { restored: Some(true), ..result }))
}

/// `map/session/close`.
pub(super) async fn close(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: SessionParams = params(given)?;
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
    Ok(Answer::of(&CloseResult { session: closing.info(), closed: true, success: true }))
}

/// `map/session/info`.
pub(super) fn info(session: &Session) -> Answer {
    let info = SessionInfo {
        participant_id: Some(session.participant.to_string()),
        participant_type: Some(session.part.as_str().to_owned()),
        agents: Some(session.agents().iter().map(ToString::to_string).collect()),
        ..session.info()
    };
    Answer::of(&InfoResult { session: info })
}

/// `map/permissions/update`: changes what another participant may do.
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
            // No new message is queued for delivery from here on; queued ones are still delivered.
            let names = other.agents();
            names.iter().chain([&other.participant]).for_each(|agent| at.engine.close_mailboxes(agent));
            other.carriers_gone().await;
        }
        (false, true) => messages::open_all(&at.engine, &other).await?,
        _ => {}
    }
    let effective = Capabilities::clone(&effective);
    let data = stored(&PermissionsUpdated {
        client_id: other.participant.to_string(),
        changes: asked.permissions,
        effective_permissions: effective.clone(),
        updated_by: session.participant.to_string(),
    });
    let word = "permissions.client.updated".to_owned();
    at.engine.submit(&session.caller(), Announce { word, data, to: None }).await?;
    Ok(Answer::of(&PermissionResult { success: true, effective_permissions: effective }))
}
