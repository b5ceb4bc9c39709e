//! Greeting and authenticating: how a connection gets its session.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::Engine;
use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, Json, TokenRole};
use posthaste_engine::verbs::agents::{Existing, Register};
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::views::AgentQuery;
use posthaste_wire::map::{Mode, Switch, codes, detect_mode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::{params, some_object};
use super::session::{Dialect, Opening, PARTICIPANT, Part, Policy, Session, fresh};
use super::{MAX_MESSAGE, MAX_SUBSCRIPTIONS, VIA, agents, capabilities, messages, streams, to_wire};
use crate::Door;
use posthaste_host::caller::{AuthError, Identity};

/// The parameters of `map/connect`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Greeting {
    protocol_version: Option<Value>,
    participant_type: Option<String>,
    participant_id: Option<String>,
    name: Option<String>,
    capabilities: Option<Map<String, Value>>,
    resume_token: Option<String>,
    reclaim_agents: Option<Vec<String>>,
    #[serde(deserialize_with = "some_object")]
    disconnect_policy: Option<WrittenPolicy>,
    #[serde(deserialize_with = "some_object")]
    auth: Option<Credentials>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenPolicy {
    agent_behavior: Option<String>,
    grace_period_ms: Option<u64>,
    notify_subscribers: Option<bool>,
}

/// How somebody says who it is. Documents say `credential`, the SDK's factories send `token`, its gateways `credentials`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Credentials {
    method: Option<String>,
    credential: Option<String>,
    credentials: Option<String>,
    token: Option<String>,
}

impl Credentials {
    fn secret(&self) -> Option<&str> {
        [&self.credential, &self.credentials, &self.token].into_iter().find_map(Option::as_deref)
    }
}

/// Why somebody was not believed, in the word that auth results use.
struct Disbelief {
    code: &'static str,
    message: String,
}

impl Disbelief {
    /// As an error, where the call has no result to say it in.
    fn failure(self) -> DoorError {
        let code = match self.code {
            "expired" => codes::TOKEN_EXPIRED,
            "method_not_supported" => codes::METHOD_NOT_SUPPORTED,
            _ => codes::AUTH_FAILED,
        };
        DoorError::new(code, self.message)
    }
}

/// `map/connect`.
pub(super) async fn connect(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let greeting: Greeting = params(given)?;
    if let Some(word) = &greeting.participant_type
        && Part::from_word(word).is_none()
    {
        return Err(DoorError::params("participantType: client, agent, gateway or system"));
    }
    if let Some(version) = &greeting.protocol_version
        && !(version.is_number() || version.is_string())
    {
        return Err(DoorError::params("protocolVersion: a number"));
    }
    if let Some(session) = at.session.clone() {
        return Ok(welcome(at, &session, None).await?.into());
    }
    if let Some(auth) = greeting.auth.clone()
        && let Err(why) = believe(at, &auth).await
    {
        return Err(why.failure());
    }
    if at.identity.is_none() {
        at.greeting = Some(Box::new(greeting));
        return Ok(json!({
            "protocolVersion": 1,
            "systemInfo": system_info(&at.engine),
            "authRequired": { "methods": ["bearer", "api-key"], "required": true, "realm": at.engine.realm() },
        })
        .into());
    }
    Ok(greet(at, greeting).await?.1.into())
}

/// Begins or resumes the session that a greeting asks for; gives it with the answer to the greeting.
async fn greet(at: &mut Connection, greeting: Greeting) -> Result<(Arc<Session>, Value), DoorError> {
    if let Some(token) = &greeting.resume_token
        && let Some(session) = at.registry.resumable(token)
        && Some(&session.identity) == at.identity.as_ref()
    {
        let hello = take_up(at, session.clone()).await?;
        return Ok((session, hello));
    }
    let session = begin(at, &greeting, Dialect::Sdk).await?;
    let mut reclaimed = Vec::new();
    for id in greeting.reclaim_agents.iter().flatten() {
        let claim = Register { id: Some(AgentId::new(id)?), ..Register::default() };
        // Whoever cannot be reclaimed is simply not among the reclaimed.
        if let Ok(found) = agents::enter(at, &session, claim, true).await {
            reclaimed.push(to_wire::agent(&found.agent));
        }
    }
    let reclaimed = greeting.reclaim_agents.is_some().then_some(reclaimed);
    let mut hello = welcome(at, &session, None).await?;
    if let Some(reclaimed) = reclaimed {
        hello["reclaimedAgents"] = Value::Array(reclaimed);
    }
    Ok((session, hello))
}

/// The session at hand; a peer that calls without a greeting is a client, in the vocabulary that it spoke before.
pub(super) async fn session(at: &mut Connection) -> Result<Arc<Session>, DoorError> {
    if let Some(session) = &at.session {
        return Ok(session.clone());
    }
    let greeting = at.greeting.take().unwrap_or_default();
    begin(at, &greeting, at.dialect).await
}

/// Makes a new session.
async fn begin(
    at: &mut Connection,
    greeting: &Greeting,
    dialect: Dialect,
) -> Result<Arc<Session>, DoorError> {
    let Some(identity) = at.identity.clone() else {
        return Err(DoorError::new(codes::AUTH_REQUIRED, "say who you are first"));
    };
    let part = greeting.participant_type.as_deref().and_then(Part::from_word).unwrap_or(Part::Client);
    let written = greeting.disconnect_policy.clone().unwrap_or_default();
    let policy = match written.agent_behavior.as_deref() {
        Some("unregister") => Policy::Unregister,
        Some("orphan") => Policy::Orphan,
        Some("grace-period") | None => written
            .grace_period_ms
            .map_or(Policy::USUAL, |millis| Policy::Grace(Duration::from_millis(millis))),
        Some(_) => return Err(DoorError::params("agentBehavior: unregister, orphan or grace-period")),
    };
    let steers = identity.role == TokenRole::Admin;
    let asked = greeting.participant_id.as_deref();
    let participant = choose_participant(at, asked).await?;
    let opening = Opening {
        chosen: asked == Some(participant.as_str()),
        participant,
        part,
        name: greeting.name.clone(),
        dialect,
        policy,
        notify: written.notify_subscribers != Some(false),
        capabilities: capabilities::grant(at.door.keeps_mail(), steers, greeting.capabilities.as_ref()),
        identity,
    };
    let session = Arc::new(Session::new(opening));
    session.attach(at.lend());
    at.registry.add(session.clone());
    at.registry.note_receiving(&session);
    at.session = Some(session.clone());
    at.dialect = dialect;
    if let Err(failure) = enter(at, &session).await {
        at.session = None;
        session.detach();
        at.registry.remove(&session);
        return Err(failure);
    }
    at.watch_token();
    Ok(session)
}

/// A session for one request: it acts under the name on its token and ends with the answer.
pub(super) fn passing(door: &Door, identity: &Identity) -> Arc<Session> {
    let steers = identity.role == TokenRole::Admin;
    Arc::new(Session::new(Opening {
        participant: identity.name.clone(),
        chosen: false,
        part: Part::Client,
        name: None,
        identity: identity.clone(),
        dialect: Dialect::Sdk,
        policy: Policy::Orphan,
        notify: false,
        capabilities: capabilities::grant(door.keeps_mail(), steers, None),
    }))
}

/// The id that a participant asks for, if nobody else has it.
async fn choose_participant(at: &Connection, asked: Option<&str>) -> Result<AgentId, DoorError> {
    let fresh = || AgentId::new(fresh(PARTICIPANT)).map_err(DoorError::from);
    let Some(asked) = asked else { return fresh() };
    let asked = AgentId::new(asked)?;
    if let Some(other) = at.registry.participant(&asked) {
        // One that is gone makes room for its successor, if that is the same principal.
        if other.is_live() || Some(&other.identity) != at.identity.as_ref() {
            return fresh();
        }
        return Ok(asked);
    }
    let (name, realm) = (asked.clone(), at.engine.realm().clone());
    let bearer = at.identity.as_ref().map(Identity::bearer);
    let known = at.engine.read(move |view| {
        let owned = AgentQuery { owner: Some(name.clone()), limit: 1, ..AgentQuery::default() };
        let owned = view.agents(&Caller::office(), &owned)?.items.pop();
        let may_take = bearer.is_some_and(|bearer| view.may_take(&realm, &bearer, &name).is_ok());
        Ok((view.agent(&Caller::office(), &name).ok(), owned, may_take))
    });
    let (entry, owned, may_take) = known.await?;
    let is_own = |agent: &Agent| at.identity.as_ref().is_some_and(|own| agents::is_of(agent, own));
    // A participant owns what is owned under its name, so nothing of another's may be.
    let is_free = may_take && owned.is_none_or(|agent| is_own(&agent));
    match entry {
        // What an earlier run of the office left behind.
        Some(agent) if agent.kind == AgentKind::Client && agent.via == VIA && is_own(&agent) => Ok(asked),
        None if is_free => Ok(asked),
        _ => fresh(),
    }
}

/// Enters a participant into the address book and tells everyone that it is here. Agents' connections have no entry
/// of their own: their agents have.
async fn enter(at: &mut Connection, session: &Arc<Session>) -> Result<(), DoorError> {
    let caller = session.caller_as(session.participant.clone());
    let data = Json::from_value(&session.participant_data());
    let announce = Announce { word: "participant.connected".to_owned(), data, to: None };
    // Posted together, committed together.
    let announced = at.engine.enqueue(&caller, announce).await?;
    if session.part != Part::Agent {
        list(at, session).await?;
    }
    announced.answer().await?;
    Ok(())
}

/// Gives a participant an entry of its own in the address book, so that it can send and be answered.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>) -> Result<(), DoorError> {
    if session.is_listed() {
        return Ok(());
    }
    let register = Register {
        id: Some(session.participant.clone()),
        kind: Some(session.part.kind()),
        name: session.name.clone(),
        meta: Some(agents::principal_mark(session)),
        existing: Existing::TakeOver,
        bearer: Some(session.identity.bearer()),
        ..Register::default()
    };
    let caller = session.caller_as(session.participant.clone());
    at.engine.submit(&caller, register).await?;
    session.set_listed();
    // Who has no connection reads its mail by other ways.
    if let Some(line) = session.line() {
        let (stop, go) = messages::open(&at.engine, session, &line, &session.participant).await?;
        session.add_slot(stop);
        at.go.push(go);
    }
    Ok(())
}

/// Gives a session its connection back, with everything it listened to.
pub(super) async fn take_up(at: &mut Connection, session: Arc<Session>) -> Result<Value, DoorError> {
    let line = at.lend();
    session.attach(line.clone());
    at.session = Some(session.clone());
    at.dialect = session.dialect();
    let mut present = Vec::new();
    if session.is_listed()
        && let Ok((stop, go)) = messages::open(&at.engine, &session, &line, &session.participant).await
    {
        session.add_slot(stop);
        at.go.push(go);
    }
    for agent in session.agents() {
        agents::adopt(at, &session, &agent).await?;
    }
    // What went to another holder meanwhile is not taken up again.
    session.review(&at.engine).await?;
    for agent in session.agents() {
        match messages::open(&at.engine, &session, &line, &agent).await {
            Ok((stop, go)) => {
                session.add_agent(agent.clone(), stop);
                at.go.push(go);
                present.push(agent);
            }
            Err(_) => session.remove_agent(&agent),
        }
    }
    for subscription in session.subscriptions() {
        streams::go_on(at, &session, &subscription).await?;
    }
    let mut told = session.participant_data();
    told["resumed"] = true.into();
    let caller = session.caller_as(session.participant.clone());
    let word = "participant.connected".to_owned();
    at.engine.submit(&caller, Announce { word, data: Json::from_value(&told), to: None }).await?;
    at.watch_token();
    welcome(at, &session, Some(present)).await
}

/// The answer to a greeting.
async fn welcome(
    at: &Connection,
    session: &Session,
    resumed: Option<Vec<AgentId>>,
) -> Result<Value, DoorError> {
    let mut hello = json!({
        "protocolVersion": 1,
        "sessionId": session.id,
        "participantId": session.participant,
        "capabilities": session.capabilities(),
        "systemInfo": system_info(&at.engine),
        "principal": principal(at),
        "resumeToken": session.token(),
    });
    if let Some(owned) = resumed {
        let (engine, caller) = (&at.engine, session.caller());
        let names = owned.clone();
        let agents = engine.read(move |view| {
            Ok(names.iter().filter_map(|id| view.agent(&caller, id).ok()).collect::<Vec<_>>())
        });
        let agents: Vec<Value> = agents.await?.iter().map(to_wire::agent).collect();
        hello["reconnected"] = true.into();
        hello["ownedAgents"] = json!(owned);
        hello["reclaimedAgents"] = Value::Array(agents);
    }
    Ok(hello)
}

/// Who the peer is taken for, and until when.
fn principal(at: &Connection) -> Value {
    let Some(identity) = &at.identity else { return Value::Null };
    let mut principal = json!({ "id": identity.name });
    if let Some(end) = at.token.as_ref().and_then(|token| token.expires_at) {
        principal["expiresAt"] = end.into();
    }
    principal
}

/// The realm is the system: under its name it is known to others.
fn system_info(engine: &Engine) -> Value {
    json!({ "name": "posthaste", "version": env!("CARGO_PKG_VERSION"), "systemId": engine.realm() })
}

/// `map/initialize`: the draft's greeting, which makes an agent as well.
pub(super) async fn initialize(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let asked: Value = params(given)?;
    let mode = detect_mode(&asked);
    if let Some(session) = at.session.clone() {
        // What a session has begun with it keeps; but a client that asks for compatibility after another call gets it.
        let mode = match session.dialect() {
            Dialect::Draft(mode) => mode,
            Dialect::Sdk if mode == Mode::AcpCompat => {
                return downgrade(at, &session, &asked).await;
            }
            Dialect::Sdk => Mode::Full,
        };
        return Ok(initialized(at, &session, mode, &session.actor()).into());
    }
    let auth: Option<Credentials> = some_object(&asked["auth"]).map_err(DoorError::params)?;
    if let Some(auth) = auth
        && let Err(why) = believe(at, &auth).await
    {
        return Err(why.failure());
    }
    let given = asked.pointer("/clientInfo/name").and_then(Value::as_str);
    let name = given.unwrap_or("agent").to_owned();
    let greeting = Greeting {
        participant_type: Some("agent".to_owned()),
        name: Some(name.clone()),
        ..Greeting::default()
    };
    let session = begin(at, &greeting, Dialect::Draft(mode)).await?;
    let register =
        Register { name: Some(name), meta: Some(agents::principal_mark(&session)), ..Register::default() };
    let entered = match given {
        Some(_) => agents::come_back(at, &session, register).await?,
        // The name that clients without one get is no client's own.
        None => agents::enter(at, &session, register, false).await?,
    };
    Ok(initialized(at, &session, mode, &entered.agent.id).into())
}

/// Makes a session that began with another call one of acp-compat mode, which has an agent.
async fn downgrade(at: &mut Connection, session: &Arc<Session>, asked: &Value) -> Outcome {
    // A session of one request has no connection, and so no agents.
    if !session.has_agents() && session.line().is_some() {
        let name = asked.pointer("/clientInfo/name").and_then(Value::as_str).unwrap_or("agent");
        let meta = Some(agents::principal_mark(session));
        let register = Register { name: Some(name.to_owned()), meta, ..Register::default() };
        agents::enter(at, session, register, false).await?;
    }
    session.become_compat();
    at.dialect = session.dialect();
    Ok(initialized(at, session, Mode::AcpCompat, &session.actor()).into())
}

fn initialized(at: &Connection, session: &Session, mode: Mode, agent: &AgentId) -> Value {
    let full = mode == Mode::Full;
    let semantics: &[&str] =
        if full { &["inject", "interrupt", "queue", "best-effort"] } else { &["best-effort"] };
    json!({
        "protocolVersion": "2025-01-01",
        "mode": mode.as_str(),
        "serverInfo": system_info(&at.engine),
        "capabilities": {
            "streaming": true,
            "scopes": true,
            "tasks": true,
            "roles": true,
            "environments": true,
            "federation": full && session.may(Switch::Federate),
            "replay": true,
            "deliverySemantics": semantics,
            "maxSubscriptions": if full { MAX_SUBSCRIPTIONS } else { 1 },
            "maxMessageSize": MAX_MESSAGE,
            "mail": { "enabled": at.door.keeps_mail() },
        },
        "agentId": agent,
    })
}

/// `map/authenticate`: a failure is a result, not an error.
pub(super) async fn authenticate(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let auth: Credentials = params(given)?;
    if let Err(why) = believe(at, &auth).await {
        return Ok(json!({ "success": false, "error": { "code": why.code, "message": why.message } }).into());
    }
    let greeting = at.greeting.take();
    let mut answer = json!({});
    let session = match (at.session.clone(), greeting) {
        (Some(session), _) => Some(session),
        // What it asked for in its greeting, coming back to an earlier session included, it gets now.
        (None, Some(greeting)) => {
            let (session, hello) = greet(at, *greeting).await?;
            answer = hello;
            Some(session)
        }
        (None, None) => None,
    };
    answer["success"] = true.into();
    answer["principal"] = principal(at);
    if let Some(session) = session {
        answer["sessionId"] = session.id.as_str().into();
        answer["participantId"] = session.participant.as_str().into();
        answer["capabilities"] = json!(session.capabilities());
        answer["resumeToken"] = session.token().into();
    }
    Ok(answer.into())
}

/// `map/auth/refresh`.
pub(super) async fn refresh(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let auth: Credentials = params(given)?;
    Ok(match believe(at, &auth).await {
        Ok(()) => {
            let principal = principal(at);
            let mut answer = json!({ "success": true });
            // Beside what the client expects, what the types say: the token that counts, and until when.
            to_wire::put(&mut answer, "accessToken", auth.secret().map(str::to_owned));
            to_wire::put(&mut answer, "expiresAt", principal.get("expiresAt").cloned());
            answer["principal"] = principal;
            answer
        }
        Err(why) => json!({ "success": false, "error": { "code": why.code, "message": why.message } }),
    }
    .into())
}

/// Finds out who somebody is. A session that has begun keeps its identity.
async fn believe(at: &mut Connection, auth: &Credentials) -> Result<(), Disbelief> {
    let unsupported = |method: &str| Disbelief {
        code: "method_not_supported",
        message: format!("the method {method} is not offered: bearer or api-key"),
    };
    match auth.method.as_deref().unwrap_or("bearer") {
        "none" if at.identity.is_some() => return Ok(()),
        "none" => {
            return Err(Disbelief { code: "auth_required", message: "a token is needed".to_owned() });
        }
        "bearer" | "api-key" | "token" => {}
        other => return Err(unsupported(other)),
    }
    let Some(secret) = auth.secret() else {
        return match at.identity {
            Some(_) if !at.door.needs_token() => Ok(()),
            _ => Err(Disbelief { code: "invalid_credentials", message: "no token was given".to_owned() }),
        };
    };
    match at.door.recognise(&at.engine, Some(secret), VIA).await {
        Ok((identity, token)) => {
            let changes = at.session.as_ref().is_some_and(|session| session.identity != identity);
            if changes {
                let message = "the session belongs to somebody else".to_owned();
                return Err(Disbelief { code: "invalid_credentials", message });
            }
            at.bucket = at.door.bucket_of(&at.engine, &identity, token.as_ref());
            at.engine = at.door.engine_for(&at.engine, &identity, token.as_ref());
            at.identity = Some(identity);
            at.token = token;
            at.watch_token();
            Ok(())
        }
        Err(error @ (AuthError::Missing | AuthError::Invalid | AuthError::OtherDoor { .. })) => {
            let hash = posthaste_host::keys::hash(secret);
            let lapsed = at.engine.read(move |view| view.token_has_lapsed(&hash)).await;
            match lapsed {
                Ok(true) => Err(Disbelief { code: "expired", message: "the token has expired".to_owned() }),
                _ => Err(Disbelief { code: "invalid_credentials", message: error.to_string() }),
            }
        }
        Err(error) => Err(Disbelief { code: "internal", message: error.to_string() }),
    }
}
