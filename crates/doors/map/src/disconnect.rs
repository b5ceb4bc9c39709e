//! Disconnecting: the session can be resumed for a while; its agents are kept, unregistered or orphaned, as their
//! `disconnectPolicy` says.

use std::sync::Arc;

use posthaste_engine::nouns::AgentId;
use posthaste_engine::verbs::agents::{Orphan, Unregister};
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::{Engine, EngineError, Refusal};

use super::RESUME_WINDOW;
use super::nouns::stored;
use super::registry::SessionRegistry;
use super::session::{Policy, Session};
use crate::Door;

/// How often unregistering an agent is tried while the server is busy.
const UNREGISTER_TRIES: u32 = 3;

/// Releases a session whose connection ended: announces it and applies its policy to its agents.
pub(super) async fn leave(
    door: &Door,
    engine: &Engine,
    registry: &Arc<SessionRegistry>,
    session: Arc<Session>,
) {
    let Some(epoch) = session.detach() else { return };
    let cause = tell_end(engine, &session).await;
    let window = match session.policy {
        Policy::Unregister => {
            retire_agents(engine, &session, "disconnected", cause).await;
            RESUME_WINDOW
        }
        Policy::Orphan => {
            orphan_agents(engine, &session, cause).await;
            RESUME_WINDOW
        }
        Policy::Grace(window) => window,
    };
    let (door, engine, registry) = (door.clone(), engine.clone(), registry.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = door.stop().cancelled() => return,
            () = tokio::time::sleep(window) => {}
        }
        if session.is_gone_since(epoch) {
            end(&engine, &registry, &session, "grace period over", cause).await;
        }
    });
}

/// Detaches a session's connection and announces that, unless the session lost it before.
pub(super) async fn detach_for_good(engine: &Engine, session: &Session) -> Option<i64> {
    session.detach()?;
    tell_end(engine, session).await
}

async fn tell_end(engine: &Engine, session: &Session) -> Option<i64> {
    match announce_end(engine, session).await {
        Ok(cause) => cause,
        Err(error) => {
            tracing::debug!(session = session.id, %error, "the end of a session was not announced");
            None
        }
    }
}

async fn announce_end(engine: &Engine, session: &Session) -> Result<Option<i64>, EngineError> {
    if !session.notify {
        return Ok(None);
    }
    let word = "participant.disconnected".to_owned();
    let caller = session.caller_as(session.participant.clone());
    let data = stored(&session.participant_data(None));
    engine.submit(&caller, Announce { word, data, to: None }).await.map(Some)
}

/// Ends a session, so that it cannot be resumed.
pub(super) async fn end(
    engine: &Engine,
    registry: &SessionRegistry,
    session: &Session,
    reason: &str,
    cause: Option<i64>,
) {
    session.detach();
    registry.remove(session);
    if session.policy != Policy::Orphan {
        retire_agents(engine, session, reason, cause).await;
    }
    for subscription in session.subscriptions() {
        session.remove_subscription(&subscription.id);
    }
    // A later session with the same name keeps it.
    if session.is_listed() && registry.participant(&session.participant).is_none() {
        retire(engine, session, &session.participant, reason, cause).await;
    }
}

async fn retire_agents(engine: &Engine, session: &Session, reason: &str, cause: Option<i64>) {
    session.carriers_gone().await;
    for agent in session.agents() {
        // Another session may have taken it over.
        if !engine.is_attached(&agent) {
            retire(engine, session, &agent, reason, cause).await;
        }
        session.remove_agent(&agent);
    }
}

async fn retire(engine: &Engine, session: &Session, agent: &AgentId, reason: &str, cause: Option<i64>) {
    let unregister = Unregister { agent: agent.clone(), reason: Some(reason.to_owned()), cause };
    for _ in 0..UNREGISTER_TRIES {
        match engine.submit(&session.caller_as(agent.clone()), unregister.clone()).await {
            Ok(_) | Err(EngineError::Refused(Refusal::NoSuchAgent { .. })) => return,
            // A slow disk; nothing else retries.
            Err(EngineError::Refused(Refusal::Busy)) => {}
            Err(error) => {
                return tracing::warn!(%agent, %error, "an agent without a connection was not unregistered");
            }
        }
    }
    tracing::warn!(%agent, "an agent without a connection was not unregistered: the server is busy");
}

async fn orphan_agents(engine: &Engine, session: &Session, cause: Option<i64>) {
    for agent in session.agents() {
        let verb = Orphan { agent: agent.clone(), cause };
        if let Err(error) = engine.submit(&session.caller_as(agent.clone()), verb).await {
            tracing::warn!(%agent, %error, "an agent was not orphaned");
        }
    }
}
