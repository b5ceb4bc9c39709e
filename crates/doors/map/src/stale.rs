//! Agents and participants of an earlier run of the server, without a connection. Participants are unregistered; agents are
//! kept, unregistered or orphaned as their `disconnectPolicy` says, counted from the start of this run.

use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, RealmName};
use posthaste_engine::verbs::agents::{Orphan, Unregister};
use posthaste_engine::views::AgentQuery;
use posthaste_engine::{Engine, EngineError, Refusal};
use tokio::time::Instant;

use super::VIA;
use super::nouns;
use super::registry::SessionRegistry;
use super::session::{PARTICIPANT, POLICY, Policy};
use crate::Door;

/// Agents read per query.
const PAGE: usize = 500;

/// An agent that may still reconnect, its creation time, by which its entry is recognised, and the deadline.
type Awaited = (AgentId, i64, Instant);

/// Resolves the stale agents of every realm, one realm after the other, so that a start with many realms does not open all of
/// them at once.
pub async fn resolve_all(door: Door) {
    let realms = match door.office().realms() {
        Ok(realms) => realms,
        Err(error) => return tracing::warn!(%error, "agents of an earlier run were not looked for"),
    };
    let mut waits = tokio::task::JoinSet::new();
    for realm in realms {
        if door.stop().is_cancelled() {
            return;
        }
        // No handle is kept, so that an idle realm can be closed.
        let awaited = match door.office().realm(&realm).await {
            Ok(engine) => first_look(&door, &engine).await,
            Err(error) => {
                tracing::warn!(%realm, %error, "agents of an earlier run were not looked for");
                continue;
            }
        };
        if !awaited.is_empty() {
            waits.spawn(wait_for(door.clone(), realm, awaited));
        }
    }
    waits.join_all().await;
}

/// The same for one realm, when the first connection of this run comes to it.
pub(super) async fn resolve(door: Door, engine: Engine) {
    let realm = engine.realm().clone();
    let awaited = look(&door.registries().of(&realm), &engine).await;
    drop(engine);
    wait_for(door, realm, awaited).await;
}

async fn first_look(door: &Door, engine: &Engine) -> Vec<Awaited> {
    let registry = door.registries().of(engine.realm());
    if registry.is_new() { look(&registry, engine).await } else { Vec::new() }
}

/// Resolves the stale agents of one realm; returns those whose grace period is not over.
async fn look(registry: &Arc<SessionRegistry>, engine: &Engine) -> Vec<Awaited> {
    let mut awaited = Vec::new();
    let mut query = AgentQuery {
        kinds: vec![AgentKind::Agent, AgentKind::Client, AgentKind::Gateway, AgentKind::System],
        limit: PAGE,
        ..AgentQuery::default()
    };
    let start = Instant::now();
    loop {
        let asked = query.clone();
        let page = match engine.read(move |view| view.agents(&Caller::office(), &asked)).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "agents of an earlier run were not looked for");
                return awaited;
            }
        };
        for agent in page.items.iter().filter(|agent| is_stale(registry, engine, agent)) {
            // Ids that a participant chose may be chosen again; generated ones cannot.
            if agent.kind != AgentKind::Agent {
                if agent.id.as_str().starts_with(PARTICIPANT) {
                    unregister(engine, &agent.id, "the server was restarted").await;
                }
                continue;
            }
            match Policy::from_value(nouns::own_member(agent, POLICY).as_ref()) {
                Policy::Unregister => unregister(engine, &agent.id, "disconnected").await,
                Policy::Orphan => orphan(engine, agent).await,
                Policy::Grace(window) => {
                    // Longer than the clock can count means forever.
                    let end = start.checked_add(window);
                    awaited.extend(end.map(|end| (agent.id.clone(), agent.created_at, end)));
                }
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return awaited,
        }
    }
}

/// Waits for the deadline of each agent and unregisters those that did not reconnect.
async fn wait_for(door: Door, realm: RealmName, mut awaited: Vec<Awaited>) {
    awaited.sort_by_key(|(_, _, end)| *end);
    for (id, created_at, end) in awaited {
        if door.stop().run_until_cancelled(tokio::time::sleep_until(end)).await.is_none() {
            return;
        }
        let Ok(engine) = door.office().realm(&realm).await else { return };
        let registry = door.registries().of(&realm);
        let asked = id.clone();
        let found = engine.read(move |view| Ok(view.agent(&Caller::office(), &asked).ok())).await;
        let is_same = |agent: &Agent| agent.created_at == created_at && is_stale(&registry, &engine, agent);
        if found.ok().flatten().is_some_and(|agent| is_same(&agent)) {
            unregister(&engine, &id, "grace period over").await;
        }
    }
}

/// Whether an agent of this door has neither a connection nor a session that may reconnect.
fn is_stale(registry: &SessionRegistry, engine: &Engine, agent: &Agent) -> bool {
    agent.via == VIA
        && agent.state != Agent::ORPHANED
        && !engine.is_attached(&agent.id)
        && !registry.sessions().iter().any(|session| session.owns(&agent.id))
}

async fn unregister(engine: &Engine, agent: &AgentId, reason: &str) {
    let verb = Unregister { agent: agent.clone(), reason: Some(reason.to_owned()), cause: None };
    match engine.submit(&Caller::office(), verb).await {
        Ok(_) | Err(EngineError::Refused(Refusal::NoSuchAgent { .. })) => {}
        Err(error) => tracing::warn!(%agent, %error, "an agent of an earlier run was not taken out"),
    }
}

async fn orphan(engine: &Engine, agent: &Agent) {
    if agent.owner.is_none() {
        return;
    }
    let verb = Orphan { agent: agent.id.clone(), cause: None };
    if let Err(error) = engine.submit(&Caller::office(), verb).await {
        tracing::warn!(agent = %agent.id, %error, "an agent of an earlier run was not orphaned");
    }
}
