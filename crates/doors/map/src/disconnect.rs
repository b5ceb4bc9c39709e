//! What happens when a connection goes: its session waits to be resumed, its agents fare as their policy says.

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

/// How often a busy office is asked to take an agent out; each time it is waited for.
const TRIES: u32 = 3;

/// Lets a session go when its connection does: others are told, and its agents fare as its policy says.
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

/// Takes a session's connection away for good and tells others, if it still had one: of one that lost it they have heard.
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

/// Ends a session for good: nobody can resume it any more.
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
    // Whoever came back under the same name without resuming goes on under it.
    if session.is_listed() && registry.participant(&session.participant).is_none() {
        retire(engine, session, &session.participant, reason, cause).await;
    }
}

async fn retire_agents(engine: &Engine, session: &Session, reason: &str, cause: Option<i64>) {
    session.carriers_gone().await;
    for agent in session.agents() {
        // Somebody else may have reclaimed it meanwhile.
        if !engine.is_attached(&agent) {
            retire(engine, session, &agent, reason, cause).await;
        }
        session.remove_agent(&agent);
    }
}

async fn retire(engine: &Engine, session: &Session, agent: &AgentId, reason: &str, cause: Option<i64>) {
    let unregister = Unregister { agent: agent.clone(), reason: Some(reason.to_owned()), cause };
    for _ in 0..TRIES {
        match engine.submit(&session.caller_as(agent.clone()), unregister.clone()).await {
            Ok(_) | Err(EngineError::Refused(Refusal::NoSuchAgent { .. })) => return,
            // A disk that hesitated; nobody else will ask again.
            Err(EngineError::Refused(Refusal::Busy)) => {}
            Err(error) => {
                return tracing::warn!(%agent, %error, "an agent without a connection was not taken out");
            }
        }
    }
    tracing::warn!(%agent, "an agent without a connection was not taken out: the office is busy");
}

async fn orphan_agents(engine: &Engine, session: &Session, cause: Option<i64>) {
    for agent in session.agents() {
        let verb = Orphan { agent: agent.clone(), cause };
        if let Err(error) = engine.submit(&session.caller_as(agent.clone()), verb).await {
            tracing::warn!(%agent, %error, "an orphaned agent was not noted");
        }
    }
}
