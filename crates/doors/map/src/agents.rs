//! Agents: registering and reclaiming them, looking one up, changing, steering and stopping them.

use std::sync::Arc;

use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json, TokenRole, Visibility};
use posthaste_engine::verbs::agents::{Existing, Register, Registered, SetState, Unregister, Update};
use posthaste_engine::{EngineError, Refusal};
use posthaste_wire::map::{Switch, codes};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{self, object_or_default, or_default, params};
use super::session::{POLICY, Policy, Session};
use super::to_wire::{self, OWN};
use super::{MAX_AGENTS, VIA, agent_list, messages, overrides, send, structure};
use posthaste_host::caller::Identity;

/// Under what name an entry keeps whom it was made for.
const PRINCIPAL: &str = "principal";

/// The parameters of registering and spawning.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    agent_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    role: Option<String>,
    parent: Option<String>,
    scopes: Option<Vec<String>>,
    visibility: Option<String>,
    state: Option<String>,
    capabilities: Option<Value>,
    environment: Option<Value>,
    capability_descriptor: Option<Value>,
    persistent_identity: Option<Value>,
    resume_persistent_identity: Option<bool>,
    metadata: Option<Map<String, Value>>,
    permission_overrides: Option<Value>,
    initial_message: Option<Value>,
}

impl Written {
    fn read(&self, session: &Session) -> Result<Register, DoorError> {
        let scopes = self.scopes.iter().flatten().map(|id| from_wire::scope(id)).collect::<Result<_, _>>()?;
        if let Some(state) = &self.state {
            check_state(state)?;
        }
        let mut meta = own_meta(self.metadata.clone().unwrap_or_default());
        for (name, value) in [
            ("environment", &self.environment),
            ("capabilityDescriptor", &self.capability_descriptor),
            ("persistentIdentity", &self.persistent_identity),
        ] {
            if let Some(value) = value {
                meta.insert(format!("{OWN}{name}"), value.clone());
            }
        }
        meta.insert(format!("{OWN}{PRINCIPAL}"), session.identity.name.as_str().into());
        Ok(Register {
            id: self.agent_id.as_deref().map(from_wire::agent).transpose()?,
            kind: Some(AgentKind::Agent),
            name: self.name.clone(),
            description: self.description.clone(),
            role: self.role.clone(),
            parent: self.parent.as_deref().map(from_wire::agent).transpose()?,
            state: self.state.clone(),
            visibility: self.visibility.as_deref().map(read_visibility).transpose()?,
            capabilities: self.capabilities.as_ref().map(from_wire::json),
            bounds: self.permission_overrides.as_ref().map(overrides::from_wire).transpose()?,
            meta: Some(Json::from_value(&Value::Object(meta))),
            scopes,
            ..Register::default()
        })
    }
}

/// Metadata without members that would pass for MAP's own.
fn own_meta(metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.into_iter().filter(|(name, _)| !name.starts_with(OWN)).collect()
}

fn read_visibility(word: &str) -> Result<Visibility, DoorError> {
    Visibility::from_word(word)
        .ok_or_else(|| DoorError::params("visibility: public, parent-only, scope or system"))
}

/// The states that any of the vocabularies has, and those that agents make up for themselves.
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
    let written: Written = params(given)?;
    let mut register = written.read(session)?;
    if register.id.is_none() && written.resume_persistent_identity == Some(true) {
        register.id = left_behind(at, session, written.persistent_identity.as_ref()).await?;
    }
    let entered = come_back(at, session, register).await?;
    let mut answer = json!({ "agent": to_wire::agent(&entered.agent) });
    if entered.resumed {
        answer["resumed"] = true.into();
    }
    if let Some(previous) = entered.previous_session {
        answer["resumedFrom"] = json!({ "previousSessionId": previous });
    }
    Ok(answer.into())
}

/// The agent with this persistent identity that its connection left behind, if it is this principal's.
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

/// An agent that a session has got.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) agent: Agent,
    /// Whether it was there before.
    pub(super) resumed: bool,
    /// The session that had it, if that is still known.
    previous_session: Option<String>,
}

/// Enters an agent that gives its name only. With the token and the name that it had before it is the same agent, unless a
/// connection has that now; then it gets an id of its own.
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
        // A person's mailbox is not an agent's because they have one name.
        Some(agent) if agent.kind != AgentKind::Agent && own.is_none() => None,
        Some(agent) => may_reclaim(at, session, &agent).then_some(agent.id),
        None => own,
    };
    let Some(id) = id else { return enter(at, session, register, false).await };
    match enter(at, session, Register { id: Some(id), ..register.clone() }, false).await {
        // Another connection came first, or the name is not free after all.
        Err(failure) if failure.code == codes::AGENT_EXISTS => enter(at, session, register, false).await,
        entered => entered,
    }
}

/// Enters an agent into the address book and waits for its mail here. An id that is in use is handed over if nobody
/// is connected under it and it is this principal's; `only` such an id is wanted when agents are reclaimed.
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
    // Of two connections that ask for one id at once, the second is told that it is taken.
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
        earlier = present.as_ref().and_then(|(agent, _)| to_wire::own_member(agent, POLICY));
        // Under the name on its token a session takes what another token entered, whether or not that is connected.
        let own = session.identity.name == id;
        let squatted = own && present.as_ref().is_some_and(|(_, bearer)| bearer.as_ref() != Some(&id));
        match present.map(|(agent, _)| agent) {
            Some(agent) if squatted || may_reclaim(at, session, &agent) => {
                register.existing = Existing::TakeOver;
                caller = Caller::admin(session.participant.clone(), VIA);
                if agent.state == Agent::ORPHANED || agent.has_ended() {
                    register.state.get_or_insert_with(|| Agent::IDLE.to_owned());
                }
                // A pause that others told it to make outlasts its connection.
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
        // Whoever had it before must not take it away when its own time is over.
        for other in at.registry.sessions().iter().filter(|other| other.id != session.id && other.owns(&id)) {
            other.remove_agent(&id);
            previous_session = Some(other.id.clone());
        }
    }
    // What the participant itself was sent before it had an agent stays with the participant.
    let (stop, go) = messages::open(&at.engine, session, &line, &id).await?;
    session.add_agent(id, stop);
    at.go.push(go);
    Ok(Entered { agent, resumed, previous_session })
}

/// Notes what becomes of an agent when its connection goes. The usual policy goes without saying, unless the entry says
/// another.
fn keep_policy(register: &mut Register, policy: Policy, says_another: bool) {
    if policy == Policy::USUAL && !says_another {
        return;
    }
    let mut meta = match register.meta.as_ref().map(Json::value) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    meta.insert(format!("{OWN}{POLICY}"), policy.to_value());
    register.meta = Some(Json::from_value(&Value::Object(meta)));
}

/// Stands behind an agent of the session again that was orphaned while the session was away.
pub(super) async fn adopt(at: &Connection, session: &Session, id: &AgentId) -> Result<(), DoorError> {
    let asked = id.clone();
    let found = at.engine.read(move |view| Ok(view.agent(&Caller::office(), &asked).ok())).await?;
    // The name may have gone to somebody else since.
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

/// Whether an agent without a connection may be handed to this session.
fn may_reclaim(at: &Connection, session: &Session, agent: &Agent) -> bool {
    if at.engine.is_attached(&agent.id) || at.registry.is_not_receiving(&agent.id) {
        return false;
    }
    if session.identity.name == agent.id {
        return true;
    }
    // Agents that came by other doors are connected in ways that cannot be seen from here.
    if agent.via != VIA || agent.kind != AgentKind::Agent {
        return false;
    }
    is_of(agent, &session.identity)
}

/// Whether an entry was made for this principal. Those who run the office are everybody here.
pub(super) fn is_of(agent: &Agent, identity: &Identity) -> bool {
    let principal = to_wire::own_member(agent, PRINCIPAL);
    identity.role == TokenRole::Admin
        || principal.as_ref().and_then(Value::as_str) == Some(identity.name.as_str())
}

/// What an entry says of whom it was made for.
pub(super) fn principal_mark(session: &Session) -> Json {
    Json::from_value(&json!({ format!("{OWN}{PRINCIPAL}"): session.identity.name }))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    #[serde(alias = "id")]
    agent_id: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    force: Option<bool>,
}

/// `map/agents/unregister`.
pub(super) async fn unregister(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let one: One = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let verb = Unregister { agent: id.clone(), reason: one.reason, cause: None };
    let agent = at.engine.submit(&session.caller_for(&id), verb).await?;
    at.registry.forget_agent(session, &id);
    Ok(json!({ "agent": to_wire::agent(&agent), "unregistered": true, "success": true }).into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetParams {
    #[serde(alias = "id")]
    agent_id: String,
    #[serde(default, deserialize_with = "object_or_default")]
    include: Include,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Include {
    #[serde(deserialize_with = "or_default")]
    parent: bool,
    #[serde(deserialize_with = "or_default")]
    children: bool,
    #[serde(deserialize_with = "or_default")]
    siblings: bool,
    #[serde(deserialize_with = "or_default")]
    ancestors: bool,
    #[serde(deserialize_with = "or_default")]
    descendants: bool,
    max_depth: Option<u32>,
}

impl Include {
    fn asks_for_any(&self) -> bool {
        self.parent || self.children || self.siblings || self.ancestors || self.descendants
    }
}

/// `map/agents/get`.
pub(super) async fn get(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let GetParams { agent_id, include } = params(given)?;
    if session.is_compat() && include.asks_for_any() {
        return Err(structure::flat_only());
    }
    let id = from_wire::agent(&agent_id)?;
    let caller = session.caller_for(&id);
    let depth = include.max_depth.unwrap_or(64);
    let (agent, around) = at
        .engine
        .read(move |view| Ok((view.agent(&caller, &id)?, view.relatives(&caller, &id, depth)?)))
        .await?;
    let mut answer = json!({ "agent": to_wire::agent(&agent) });
    let many = |agents: &[Agent]| Value::Array(agents.iter().map(to_wire::agent).collect());
    if include.parent
        && let Some(parent) = &around.parent
    {
        answer["parent"] = to_wire::agent(parent);
    }
    for (wanted, name, agents) in [
        (include.children, "children", &around.children),
        (include.siblings, "siblings", &around.siblings),
        (include.ancestors, "ancestors", &around.ancestors),
        (include.descendants, "descendants", &around.descendants),
    ] {
        if wanted {
            answer[name] = many(agents);
        }
    }
    Ok(answer.into())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams {
    #[serde(alias = "id")]
    agent_id: String,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    visibility: Option<String>,
    #[serde(default)]
    capabilities: Option<Value>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    environment: Option<Value>,
    #[serde(default)]
    permission_overrides: Option<Value>,
}

/// `map/agents/update`.
pub(super) async fn update(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let asked: UpdateParams = params(given)?;
    let id = from_wire::agent(&asked.agent_id)?;
    if let Some(state) = &asked.state {
        check_state(state)?;
    }
    let caller = session.caller_for(&id);
    let mut meta = own_meta(asked.metadata.clone().unwrap_or_default());
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
        meta: (!meta.is_empty()).then(|| Json::from_value(&Value::Object(meta))),
        merge_meta: true,
        ..Update::of(id)
    };
    let agent = at.engine.submit(&caller, verb).await?;
    Ok(json!({ "agent": to_wire::agent(&agent), "success": true }).into())
}

/// `map/agents/spawn`: a child of the caller, in the caller's hands.
pub(super) async fn spawn(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let mut written: Written = params(given)?;
    if written.parent.is_none() {
        written.parent = session.agents().first().map(ToString::to_string);
    }
    let registered = enter(at, session, written.read(session)?, false).await?;
    let mut answer = json!({ "agent": to_wire::agent(&registered.agent) });
    if let Some(message) = &written.initial_message {
        let (payload, meta) = match message.get("payload") {
            Some(payload) => (payload, message.get("meta")),
            None => (message, None),
        };
        let sent = send::plain(at, session, &registered.agent.id, payload, meta).await?;
        answer["messageId"] = sent.message.id.to_string().into();
    }
    Ok(answer.into())
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
    let one: One = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let caller = steering(at, session, &id).await?;
    // One that is connected hears that it is to stop before it counts as stopped; listeners see both.
    let asked = at.engine.is_attached(&id) && one.force != Some(true);
    if asked {
        let state = "stopping".to_owned();
        at.engine.submit(&caller, SetState { agent: id.clone(), state }).await?;
    }
    let agent = at.engine.submit(&caller, SetState { agent: id, state: Agent::RETIRED.to_owned() }).await?;
    Ok(json!({ "stopping": asked, "stopped": true, "agent": to_wire::agent(&agent), "success": true }).into())
}

/// `map/agents/suspend`.
pub(super) async fn suspend(
    at: &mut Connection,
    session: &Arc<Session>,
    given: Option<&RawValue>,
) -> Outcome {
    let agent = set_suspended(at, session, given, SetState::suspend).await?;
    Ok(json!({ "suspended": true, "agent": to_wire::agent(&agent), "success": true }).into())
}

/// `map/agents/resume`.
pub(super) async fn resume(at: &mut Connection, session: &Arc<Session>, given: Option<&RawValue>) -> Outcome {
    let agent = set_suspended(at, session, given, SetState::resume).await?;
    Ok(json!({ "resumed": true, "agent": to_wire::agent(&agent), "success": true }).into())
}

async fn set_suspended(
    at: &Connection,
    session: &Session,
    given: Option<&RawValue>,
    change: fn(AgentId) -> SetState,
) -> Result<Agent, DoorError> {
    let one: One = params(given)?;
    let id = from_wire::agent(&one.agent_id)?;
    let caller = steering(at, session, &id).await?;
    Ok(at.engine.submit(&caller, change(id)).await?)
}
