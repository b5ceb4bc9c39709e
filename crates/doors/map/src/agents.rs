//! Agents: registering and reclaiming them, looking one up, changing, steering and stopping them.

use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json, TokenRole, Visibility};
use posthaste_engine::verbs::agents::{Existing, Register, Registered, SetState, Unregister, Update};
use posthaste_engine::{EngineError, Refusal};
use posthaste_host::caller::Identity;
use posthaste_wire::map::agent::{
    AgentParams, GetParams, GetResult, RegisterParams, RegisterResult, ResumeResult, ResumedFrom,
    SpawnResult, StopResult, SuspendResult, UnregisterResult, UpdateParams, UpdateResult,
};
use posthaste_wire::map::{Switch, codes};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, params};
use super::nouns::{self, OWN, stored_meta};
use super::session::{POLICY, Policy, Session};
use super::{MAX_AGENTS, VIA, agent_list, messages, overrides, send, structure};

/// The member of an agent's metadata that names the principal it was registered for.
const PRINCIPAL: &str = "principal";

/// The verb that params of registering and spawning ask for.
fn registration(params: &RegisterParams, session: &Session) -> Result<Register, DoorError> {
    let scopes = params.scopes.iter().flatten().map(|id| from_wire::scope(id)).collect::<Result<_, _>>()?;
    if let Some(state) = &params.state {
        check_state(state)?;
    }
    let mut meta = without_own(params.metadata.clone().unwrap_or_default());
    for (name, value) in [
        ("environment", &params.environment),
        ("capabilityDescriptor", &params.capability_descriptor),
        ("persistentIdentity", &params.persistent_identity),
    ] {
        if let Some(value) = value {
            meta.insert(format!("{OWN}{name}"), value.clone());
        }
    }
    meta.insert(format!("{OWN}{PRINCIPAL}"), session.identity.name.as_str().into());
    Ok(Register {
        id: params.agent_id.as_deref().map(from_wire::agent).transpose()?,
        kind: Some(AgentKind::Agent),
        name: params.name.clone(),
        description: params.description.clone(),
        role: params.role.clone(),
        parent: params.parent.as_deref().map(from_wire::agent).transpose()?,
        state: params.state.clone(),
        visibility: params.visibility.as_deref().map(read_visibility).transpose()?,
        capabilities: params.capabilities.as_ref().map(from_wire::json),
        bounds: params.permission_overrides.as_ref().map(overrides::from_wire).transpose()?,
        meta: Some(stored_meta(meta)),
        scopes,
        ..Register::default()
    })
}

/// Metadata without members that would count as the door's own.
fn without_own(metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.into_iter().filter(|(name, _)| !name.starts_with(OWN)).collect()
}

fn read_visibility(word: &str) -> Result<Visibility, DoorError> {
    Visibility::from_word(word)
        .ok_or_else(|| DoorError::params("visibility: public, parent-only, scope or system"))
}

/// Accepts the states of both vocabularies and custom states.
fn check_state(state: &str) -> Result<(), DoorError> {
    let known = matches!(
        state,
        "registered"
            | "active"
            | "busy"
            | "idle"
            | "suspended"
            | "stopping"
            | "stopped"
            | "failed"
            | "orphaned"
    );
    let own =
        ["x-", "custom:"].iter().any(|start| state.strip_prefix(start).is_some_and(|rest| !rest.is_empty()));
    if known || own {
        return Ok(());
    }
    Err(DoorError::new(codes::STATE_INVALID, format!("{state:?} is not a state; make up your own as x-…")))
}

/// `map/agents/register`.
pub(super) async fn register(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let asked: RegisterParams = params(given)?;
    let mut register = registration(&asked, session)?;
    if register.id.is_none() && asked.resume_persistent_identity == Some(true) {
        register.id = left_behind(at, session, asked.persistent_identity.as_ref()).await?;
    }
    let entered = come_back(at, session, register).await?;
    Ok(Answer::of(&RegisterResult {
        agent: nouns::agent(&entered.agent),
        resumed: entered.resumed.then_some(true),
        resumed_from: entered.previous_session.map(|previous_session_id| ResumedFrom { previous_session_id }),
    }))
}

/// The unconnected agent with this persistent identity, if it is this principal's.
async fn left_behind(
    at: &Connection,
    session: &Session,
    identity: Option<&Value>,
) -> Result<Option<AgentId>, DoorError> {
    let Some(wanted) = identity.and_then(agent_list::persistent_id).map(str::to_owned) else {
        return Ok(None);
    };
    let known = at.engine.read(move |view| agent_list::with_persistent_id(view, wanted));
    let found = known.await?.into_iter().find(|agent| may_reclaim(at, session, agent));
    Ok(found.map(|agent| agent.id))
}

/// An agent that was added to a session.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) agent: Agent,
    /// Whether it was registered before.
    pub(super) resumed: bool,
    /// The session that had it, if that is still known.
    previous_session: Option<String>,
}

/// Registers an agent that gives a name but no id. With the token and the name of an earlier agent it is that agent, unless
/// another connection has it; then it gets a new id.
pub(super) async fn come_back(
    at: &mut Connection,
    session: &Arc<Session>,
    register: Register,
) -> Result<Entered, DoorError> {
    let (None, Some(name)) = (&register.id, &register.name) else {
        return enter(at, session, register, false).await;
    };
    let (bearer, name) = (session.identity.bearer(), name.clone());
    let own = bearer.is_called(&name).then(|| bearer.name.clone());
    let found = at.engine.read(move |view| view.returning(&Caller::office(), &bearer, &name)).await?;
    let id = match found {
        // A user's mailbox does not become an agent's because both have the same name.
        Some(agent) if agent.kind != AgentKind::Agent && own.is_none() => None,
        Some(agent) => may_reclaim(at, session, &agent).then_some(agent.id),
        None => own,
    };
    let Some(id) = id else { return enter(at, session, register, false).await };
    match enter(at, session, Register { id: Some(id), ..register.clone() }, false).await {
        // Another connection took the id meanwhile, or the name is not free.
        Err(error) if error.code == codes::AGENT_EXISTS => enter(at, session, register, false).await,
        entered => entered,
    }
}

/// Registers an agent and delivers its mail on this connection. An id that is in use is taken over if it has no connection
/// and is this principal's; with `only`, no other id is accepted.
pub(super) async fn enter(
    at: &mut Connection,
    session: &Arc<Session>,
    mut register: Register,
    only: bool,
) -> Result<Entered, DoorError> {
    if session.agents().len() >= MAX_AGENTS {
        return Err(DoorError::new(
            codes::QUOTA_EXCEEDED,
            format!("a session has at most {MAX_AGENTS} agents"),
        ));
    }
    let line = session.line().ok_or_else(|| DoorError::denied("agents need a connection"))?;
    let mut caller = session.caller_as(session.participant.clone());
    register.owner = Some(session.participant.clone());
    register.bearer = Some(session.identity.bearer());
    // Of two connections that ask for one id at once, the second is refused.
    let _claim = match &register.id {
        Some(id) => {
            let taken = || Refusal::AgentExists { agent: id.clone() };
            Some(at.registry.clone().claim(id).ok_or_else(taken)?)
        }
        None => None,
    };
    let mut earlier = None;
    if let Some(id) = register.id.clone() {
        let asked = id.clone();
        let present = at.engine.read(move |view| {
            let bearer = view.bearer_of(&Caller::office(), &asked)?;
            Ok(view.agent(&Caller::office(), &asked).ok().map(|agent| (agent, bearer)))
        });
        let present = present.await?;
        earlier = present.as_ref().and_then(|(agent, _)| nouns::own_member(agent, POLICY));
        // The name on its token belongs to a session, even if another token registered it and is connected.
        let own = session.identity.name == id;
        let squatted = own && present.as_ref().is_some_and(|(_, bearer)| bearer.as_ref() != Some(&id));
        match present.map(|(agent, _)| agent) {
            Some(agent) if squatted || may_reclaim(at, session, &agent) => {
                register.existing = Existing::TakeOver;
                caller = Caller::admin(session.participant.clone(), VIA);
                if agent.state == Agent::ORPHANED || agent.has_ended() {
                    register.state.get_or_insert_with(|| Agent::IDLE.to_owned());
                }
                // An agent that another caller suspended stays suspended.
                if agent.bounds.as_ref().is_some_and(|bounds| bounds.held) {
                    register.state = None;
                }
            }
            Some(agent) => return Err(Refusal::AgentExists { agent: agent.id }.into()),
            None if only => return Err(DoorError::no_agent(id.as_str())),
            None => {}
        }
    }
    keep_policy(&mut register, session.policy, earlier.is_some());
    let Registered { agent, resumed } = at.engine.submit(&caller, register).await?;
    let id = agent.id.clone();
    let mut previous_session = None;
    if resumed {
        // The session that had it must not unregister it when its grace period ends.
        for other in at.registry.sessions().iter().filter(|other| other.id != session.id && other.owns(&id)) {
            other.remove_agent(&id);
            previous_session = Some(other.id.clone());
        }
    }
    // Messages to the participant itself stay with the participant.
    let (stop, go) = messages::open(&at.engine, session, &line, &id).await?;
    session.add_agent(id, stop);
    at.go.push(go);
    Ok(Entered { agent, resumed, previous_session })
}

/// Stores the disconnect policy with the agent, unless it is the default and none was stored before.
fn keep_policy(register: &mut Register, policy: Policy, stored_before: bool) {
    if policy == Policy::DEFAULT && !stored_before {
        return;
    }
    let mut meta = nouns::members(register.meta.as_ref());
    meta.insert(format!("{OWN}{POLICY}"), policy.to_value());
    register.meta = Some(stored_meta(meta));
}

/// Makes the session the owner of its agent again that was orphaned while the session had no connection.
pub(super) async fn adopt(at: &Connection, session: &Session, id: &AgentId) -> Result<(), DoorError> {
    let asked = id.clone();
    let found = at.engine.read(move |view| Ok(view.agent(&Caller::office(), &asked).ok())).await?;
    // Another holder may have the name by now.
    let Some(agent) = found.filter(|agent| agent.owner.is_none() && may_reclaim(at, session, agent)) else {
        return Ok(());
    };
    let register = Register {
        id: Some(id.clone()),
        owner: Some(session.participant.clone()),
        state: (agent.state == Agent::ORPHANED).then(|| Agent::IDLE.to_owned()),
        existing: Existing::TakeOver,
        ..Register::default()
    };
    at.engine.submit(&Caller::admin(session.participant.clone(), VIA), register).await?;
    Ok(())
}

/// Whether this session may take over an agent, which must have no connection.
fn may_reclaim(at: &Connection, session: &Session, agent: &Agent) -> bool {
    if at.engine.is_attached(&agent.id) || at.registry.is_not_receiving(&agent.id) {
        return false;
    }
    if session.identity.name == agent.id {
        return true;
    }
    // Whether agents of other doors are connected cannot be known here.
    if agent.via != VIA || agent.kind != AgentKind::Agent {
        return false;
    }
    is_of(agent, &session.identity)
}

/// Whether an agent was registered for this principal. Administrators count as any principal.
pub(super) fn is_of(agent: &Agent, identity: &Identity) -> bool {
    let principal = nouns::own_member(agent, PRINCIPAL);
    identity.role == TokenRole::Admin
        || principal.as_ref().and_then(Value::as_str) == Some(identity.name.as_str())
}

/// Metadata that names the principal an entry is registered for.
pub(super) fn principal_meta(session: &Session) -> Json {
    stored_meta(Map::from_iter([(format!("{OWN}{PRINCIPAL}"), session.identity.name.as_str().into())]))
}

/// `map/agents/unregister`.
pub(super) async fn unregister(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: AgentParams = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let verb = Unregister { agent: id.clone(), reason: one.reason, cause: None };
    let agent = at.engine.submit(&session.caller_for(&id), verb).await?;
    at.registry.forget_agent(session, &id);
    Ok(Answer::of(&UnregisterResult { agent: nouns::agent(&agent), unregistered: true, success: true }))
}

/// `map/agents/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let GetParams { agent_id, include } = params(given)?;
    if session.is_compat() && include.any() {
        return Err(structure::flat_only());
    }
    let id = from_wire::agent(&agent_id)?;
    let caller = session.caller_for(&id);
    let depth = include.max_depth.unwrap_or(64);
    let (agent, around) = at
        .engine
        .read(move |view| Ok((view.agent(&caller, &id)?, view.relatives(&caller, &id, depth)?)))
        .await?;
    let some = |wanted: bool, agents: &[Agent]| wanted.then(|| nouns::agents(agents));
    Ok(Answer::of(&GetResult {
        agent: nouns::agent(&agent),
        parent: around.parent.as_ref().filter(|_| include.parent).map(nouns::agent),
        children: some(include.children, &around.children),
        siblings: some(include.siblings, &around.siblings),
        ancestors: some(include.ancestors, &around.ancestors),
        descendants: some(include.descendants, &around.descendants),
    }))
}

/// `map/agents/update`.
pub(super) async fn update(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: UpdateParams = params(given)?;
    let id = from_wire::agent(&asked.agent_id)?;
    if let Some(state) = &asked.state {
        check_state(state)?;
    }
    let caller = session.caller_for(&id);
    let mut meta = without_own(asked.metadata.clone().unwrap_or_default());
    if let Some(environment) = &asked.environment {
        meta.insert(format!("{OWN}environment"), environment.clone());
    }
    let verb = Update {
        state: asked.state,
        name: asked.name,
        description: asked.description,
        role: asked.role,
        parent: asked.parent.as_deref().map(from_wire::agent).transpose()?,
        visibility: asked.visibility.as_deref().map(read_visibility).transpose()?,
        capabilities: asked.capabilities.as_ref().map(from_wire::json),
        bounds: asked.permission_overrides.as_ref().map(overrides::from_wire).transpose()?,
        meta: (!meta.is_empty()).then(|| stored_meta(meta)),
        merge_meta: true,
        ..Update::of(id)
    };
    let agent = at.engine.submit(&caller, verb).await?;
    Ok(Answer::of(&UpdateResult { agent: nouns::agent(&agent), success: true }))
}

/// `map/agents/spawn`: registers a child of the caller, in the caller's session.
pub(super) async fn spawn(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let mut asked: RegisterParams = params(given)?;
    if asked.parent.is_none() {
        asked.parent = session.agents().first().map(ToString::to_string);
    }
    let agent = enter(at, session, registration(&asked, session)?, false).await?.agent;
    let mut result = SpawnResult { agent: nouns::agent(&agent), message_id: None };
    if let Some(message) = &asked.initial_message {
        let (payload, meta) = match message.get("payload") {
            Some(payload) => (payload, message.get("meta")),
            None => (message, None),
        };
        let sent = send::plain(at, session, &agent.id, payload, meta).await?;
        result.message_id = Some(sent.message.id.to_string());
    }
    Ok(Answer::of(&result))
}

/// The caller that may steer an agent: with the right to, the server's, for agents that the session sees. Without it the
/// session may steer its own agents and those below them; any other is refused alike, whether it exists or not.
async fn steering(at: &Connection, session: &Session, id: &AgentId) -> Result<Caller, DoorError> {
    let (caller, seen) = (session.caller_for(id), id.clone());
    let found = at.engine.read(move |view| view.agent(&caller, &seen)).await;
    match (session.may(Switch::Stop), found) {
        (true, found) => found.map(|_| session.steering()).map_err(Into::into),
        (false, Err(EngineError::Refused(Refusal::NoSuchAgent { .. }))) => {
            Err(DoorError::not_allowed(Switch::Stop))
        }
        (false, found) => found.map(|_| session.caller_for(id)).map_err(Into::into),
    }
}

/// `map/agents/stop`.
pub(super) async fn stop(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let one: AgentParams = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let caller = steering(at, session, &id).await?;
    // A connected agent is asked to stop before it counts as stopped; subscribers see both events.
    let asked = at.engine.is_attached(&id) && one.force != Some(true);
    if asked {
        let state = "stopping".to_owned();
        at.engine.submit(&caller, SetState { agent: id.clone(), state }).await?;
    }
    let agent = at.engine.submit(&caller, SetState { agent: id, state: Agent::RETIRED.to_owned() }).await?;
    Ok(Answer::of(&StopResult { stopping: asked, stopped: true, agent: nouns::agent(&agent), success: true }))
}

/// `map/agents/suspend`.
pub(super) async fn suspend(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let agent = set_suspended(at, session, given, SetState::suspend).await?;
    Ok(Answer::of(&SuspendResult { suspended: true, agent: nouns::agent(&agent), success: true }))
}

/// `map/agents/resume`.
pub(super) async fn resume(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let agent = set_suspended(at, session, given, SetState::resume).await?;
    Ok(Answer::of(&ResumeResult { resumed: true, agent: nouns::agent(&agent), success: true }))
}

async fn set_suspended(
    at: &Connection,
    session: &Session,
    given: Option<&RawValue>,
    change: fn(AgentId) -> SetState,
) -> Result<Agent, DoorError> {
    let one: AgentParams = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let caller = steering(at, session, &id).await?;
    Ok(at.engine.submit(&caller, change(id)).await?)
}
