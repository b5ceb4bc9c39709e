//! ConnectParams and authenticating: how a connection gets its session.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::Engine;
use posthaste_engine::nouns::{Agent, AgentId, AgentKind, Caller, TokenRole};
use posthaste_engine::verbs::agents::{Existing, Register};
use posthaste_engine::verbs::office::Announce;
use posthaste_engine::views::AgentQuery;
use posthaste_host::caller::{AuthError, Identity};
use posthaste_wire::map::connect::{
    self as wire, AuthRefused, AuthRequired, AuthRequiredResult, AuthenticateResult, Authenticated,
    ConnectParams, ConnectResult, Credentials, InitializeResult, MailEnabled, Principal, RefreshResult,
    ServerCapabilities, SystemInfo,
};
use posthaste_wire::map::lenient::some_object;
use posthaste_wire::map::{Capabilities, Mode, Switch, codes, detect_mode};
use serde_json::Value;
use serde_json::value::RawValue;

use super::connection::{Answer, Connection, Outcome};
use super::errors::DoorError;
use super::from_wire::params;
use super::nouns::{self, stored};
use super::session::{Dialect, Opening, PARTICIPANT, Part, Policy, Session, fresh};
use super::{MAX_MESSAGE, MAX_SUBSCRIPTIONS, VIA, agents, capabilities, messages, streams};
use crate::Door;

/// The version of the SDK's protocol.
const PROTOCOL_VERSION: u32 = 1;

/// Why credentials do not count, in the words of auth results.
struct AuthFailure {
    code: &'static str,
    message: String,
}

impl AuthFailure {
    /// As an error, for calls whose result cannot say it.
    fn into_error(self) -> DoorError {
        let code = match self.code {
            "expired" => codes::TOKEN_EXPIRED,
            "method_not_supported" => codes::METHOD_NOT_SUPPORTED,
            _ => codes::AUTH_FAILED,
        };
        DoorError::new(code, self.message)
    }

    /// As a result.
    fn into_result(self) -> AuthRefused {
        let error = wire::AuthError { code: self.code.to_owned(), message: self.message };
        AuthRefused { success: false, error }
    }
}

/// `map/connect`.
pub(super) async fn connect(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let asked: ConnectParams = params(given)?;
    if let Some(word) = &asked.participant_type
        && Part::from_word(word).is_none()
    {
        return Err(DoorError::params("participantType: client, agent, gateway or system"));
    }
    if let Some(version) = &asked.protocol_version
        && !(version.is_number() || version.is_string())
    {
        return Err(DoorError::params("protocolVersion: a number"));
    }
    if let Some(session) = at.session.clone() {
        return Ok(Answer::of(&describe(at, &session)));
    }
    if let Some(auth) = asked.auth.clone()
        && let Err(why) = check_credentials(at, &auth).await
    {
        return Err(why.into_error());
    }
    if at.identity.is_none() {
        at.greeting = Some(Box::new(asked));
        return Ok(Answer::of(&AuthRequiredResult {
            protocol_version: PROTOCOL_VERSION,
            system_info: system_info(&at.engine),
            auth_required: AuthRequired {
                methods: vec!["bearer".to_owned(), "api-key".to_owned()],
                required: true,
                realm: at.engine.realm().to_string(),
            },
        }));
    }
    Ok(Answer::of(&begin_or_resume(at, asked).await?.1))
}

/// Begins or resumes the session that `map/connect` asks for.
async fn begin_or_resume(
    at: &mut Connection,
    asked: ConnectParams,
) -> Result<(Arc<Session>, ConnectResult), DoorError> {
    if let Some(token) = &asked.resume_token
        && let Some(session) = at.registry.resumable(token)
        && Some(&session.identity) == at.identity.as_ref()
    {
        let result = take_up(at, session.clone()).await?;
        return Ok((session, result));
    }
    let session = begin(at, &asked, Dialect::Sdk).await?;
    let mut reclaimed = Vec::new();
    for id in asked.reclaim_agents.iter().flatten() {
        let claim = Register { id: Some(AgentId::new(id)?), ..Register::default() };
        // Agents that cannot be taken over are missing in the result.
        if let Ok(found) = agents::enter(at, &session, claim, true).await {
            reclaimed.push(nouns::agent(&found.agent));
        }
    }
    let mut result = describe(at, &session);
    result.reclaimed_agents = asked.reclaim_agents.is_some().then_some(reclaimed);
    Ok((session, result))
}

/// The session of the connection. A peer that calls without `map/connect` is a client, in the vocabulary that it used before.
pub(super) async fn session(at: &mut Connection) -> Result<Arc<Session>, DoorError> {
    if let Some(session) = &at.session {
        return Ok(session.clone());
    }
    let asked = at.greeting.take().unwrap_or_default();
    begin(at, &asked, at.dialect).await
}

/// Begins a new session.
async fn begin(
    at: &mut Connection,
    asked: &ConnectParams,
    dialect: Dialect,
) -> Result<Arc<Session>, DoorError> {
    let Some(identity) = at.identity.clone() else {
        return Err(DoorError::new(codes::AUTH_REQUIRED, "say who you are first"));
    };
    let part = asked.participant_type.as_deref().and_then(Part::from_word).unwrap_or(Part::Client);
    let wanted = asked.disconnect_policy.clone().unwrap_or_default();
    let policy = match wanted.agent_behavior.as_deref() {
        Some("unregister") => Policy::Unregister,
        Some("orphan") => Policy::Orphan,
        Some("grace-period") | None => wanted
            .grace_period_ms
            .map_or(Policy::DEFAULT, |millis| Policy::Grace(Duration::from_millis(millis))),
        Some(_) => return Err(DoorError::params("agentBehavior: unregister, orphan or grace-period")),
    };
    let steers = identity.role == TokenRole::Admin;
    let wanted_id = asked.participant_id.as_deref();
    let participant = choose_participant(at, wanted_id).await?;
    let opening = Opening {
        chosen: wanted_id == Some(participant.as_str()),
        participant,
        part,
        name: asked.name.clone(),
        dialect,
        policy,
        notify: wanted.notify_subscribers != Some(false),
        capabilities: capabilities::grant(at.door.keeps_mail(), steers, asked.capabilities.as_ref()),
        identity,
    };
    let session = Arc::new(Session::new(opening));
    session.attach(at.lend());
    at.registry.add(session.clone());
    at.registry.note_receiving(&session);
    at.session = Some(session.clone());
    at.dialect = dialect;
    if let Err(error) = enter(at, &session).await {
        at.session = None;
        session.detach();
        at.registry.remove(&session);
        return Err(error);
    }
    at.watch_token();
    Ok(session)
}

/// A session for one request: it acts under the name on its token and ends with the response.
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

/// The id that a participant asks for if it is free, else a new one.
async fn choose_participant(at: &Connection, asked: Option<&str>) -> Result<AgentId, DoorError> {
    let fresh = || AgentId::new(fresh(PARTICIPANT)).map_err(DoorError::from);
    let Some(asked) = asked else { return fresh() };
    let asked = AgentId::new(asked)?;
    if let Some(other) = at.registry.participant(&asked) {
        // A session without a connection gives up its id to a later one of the same principal.
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
    // A participant owns the agents that are owned under its name, so none of them may be another principal's.
    let is_free = may_take && owned.is_none_or(|agent| is_own(&agent));
    match entry {
        // An entry of an earlier run of the server.
        Some(agent) if agent.kind == AgentKind::Client && agent.via == VIA && is_own(&agent) => Ok(asked),
        None if is_free => Ok(asked),
        _ => fresh(),
    }
}

/// Registers a participant and announces that it connected. Connections of agents have no entry of their own: their agents
/// have.
async fn enter(at: &mut Connection, session: &Arc<Session>) -> Result<(), DoorError> {
    let caller = session.caller_as(session.participant.clone());
    let data = stored(&session.participant_data(None));
    let announce = Announce { word: "participant.connected".to_owned(), data, to: None };
    // Queued together, so that both are in one commit.
    let announced = at.engine.enqueue(&caller, announce).await?;
    if session.part != Part::Agent {
        list(at, session).await?;
    }
    announced.answer().await?;
    Ok(())
}

/// Registers the participant itself, so that it can send messages and receive answers.
pub(super) async fn list(at: &mut Connection, session: &Arc<Session>) -> Result<(), DoorError> {
    if session.is_listed() {
        return Ok(());
    }
    let register = Register {
        id: Some(session.participant.clone()),
        kind: Some(session.part.kind()),
        name: session.name.clone(),
        meta: Some(agents::principal_meta(session)),
        existing: Existing::TakeOver,
        bearer: Some(session.identity.bearer()),
        ..Register::default()
    };
    let caller = session.caller_as(session.participant.clone());
    at.engine.submit(&caller, register).await?;
    session.set_listed();
    // A session of one request has no connection to deliver to.
    if let Some(line) = session.line() {
        let (stop, go) = messages::open(&at.engine, session, &line, &session.participant).await?;
        session.add_slot(stop);
        at.go.push(go);
    }
    Ok(())
}

/// Attaches a session to this connection, with its agents and subscriptions.
pub(super) async fn take_up(at: &mut Connection, session: Arc<Session>) -> Result<ConnectResult, DoorError> {
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
    // Names that other holders have now are given up.
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
    let caller = session.caller_as(session.participant.clone());
    let word = "participant.connected".to_owned();
    let data = stored(&session.participant_data(Some(true)));
    at.engine.submit(&caller, Announce { word, data, to: None }).await?;
    at.watch_token();
    let (caller, names) = (session.caller(), present.clone());
    let agents = at
        .engine
        .read(move |view| Ok(names.iter().filter_map(|id| view.agent(&caller, id).ok()).collect::<Vec<_>>()));
    let agents = agents.await?;
    Ok(ConnectResult {
        reconnected: Some(true),
        owned_agents: Some(present.iter().map(ToString::to_string).collect()),
        reclaimed_agents: Some(nouns::agents(&agents)),
        ..describe(at, &session)
    })
}

/// The result of `map/connect` for a session.
fn describe(at: &Connection, session: &Session) -> ConnectResult {
    ConnectResult {
        protocol_version: PROTOCOL_VERSION,
        session_id: session.id.clone(),
        participant_id: session.participant.to_string(),
        capabilities: Capabilities::clone(&session.capabilities()),
        system_info: system_info(&at.engine),
        principal: principal(at),
        resume_token: session.token(),
        reconnected: None,
        owned_agents: None,
        reclaimed_agents: None,
        restored: None,
        success: None,
    }
}

/// The authenticated caller, and when its token expires.
fn principal(at: &Connection) -> Option<Principal> {
    let identity = at.identity.as_ref()?;
    let expires_at = at.token.as_ref().and_then(|token| token.expires_at);
    Some(Principal { id: identity.name.to_string(), expires_at })
}

/// Other systems know this one by the name of the realm.
fn system_info(engine: &Engine) -> SystemInfo {
    SystemInfo {
        name: "posthaste".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        system_id: engine.realm().to_string(),
    }
}

/// `map/initialize`: the draft's way to connect, which registers an agent, too.
pub(super) async fn initialize(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let asked: Value = params(given)?;
    let mode = detect_mode(&asked);
    if let Some(session) = at.session.clone() {
        // A session keeps its mode, but a client that asks for acp-compat after another call gets it.
        let mode = match session.dialect() {
            Dialect::Draft(mode) => mode,
            Dialect::Sdk if mode == Mode::AcpCompat => {
                return downgrade(at, &session, &asked).await;
            }
            Dialect::Sdk => Mode::Full,
        };
        return Ok(initialized(at, &session, mode, &session.actor()));
    }
    let auth: Option<Credentials> = some_object(&asked["auth"]).map_err(DoorError::params)?;
    if let Some(auth) = auth
        && let Err(why) = check_credentials(at, &auth).await
    {
        return Err(why.into_error());
    }
    let given = asked.pointer("/clientInfo/name").and_then(Value::as_str);
    let name = given.unwrap_or("agent").to_owned();
    let connect = ConnectParams {
        participant_type: Some("agent".to_owned()),
        name: Some(name.clone()),
        ..ConnectParams::default()
    };
    let session = begin(at, &connect, Dialect::Draft(mode)).await?;
    let register =
        Register { name: Some(name), meta: Some(agents::principal_meta(&session)), ..Register::default() };
    let entered = match given {
        Some(_) => agents::come_back(at, &session, register).await?,
        // The default name belongs to no client.
        None => agents::enter(at, &session, register, false).await?,
    };
    Ok(initialized(at, &session, mode, &entered.agent.id))
}

/// Switches a session that began with another call to acp-compat mode, in which it has an agent.
async fn downgrade(at: &mut Connection, session: &Arc<Session>, asked: &Value) -> Outcome {
    // A session of one request has no connection, and so no agents.
    if !session.has_agents() && session.line().is_some() {
        let name = asked.pointer("/clientInfo/name").and_then(Value::as_str).unwrap_or("agent");
        let meta = Some(agents::principal_meta(session));
        let register = Register { name: Some(name.to_owned()), meta, ..Register::default() };
        agents::enter(at, session, register, false).await?;
    }
    session.become_compat();
    at.dialect = session.dialect();
    Ok(initialized(at, session, Mode::AcpCompat, &session.actor()))
}

fn initialized(at: &Connection, session: &Session, mode: Mode, agent: &AgentId) -> Answer {
    let full = mode == Mode::Full;
    let semantics: &[&str] =
        if full { &["inject", "interrupt", "queue", "best-effort"] } else { &["best-effort"] };
    Answer::of(&InitializeResult {
        protocol_version: "2025-01-01".to_owned(),
        mode: mode.as_str().to_owned(),
        server_info: system_info(&at.engine),
        capabilities: ServerCapabilities {
            streaming: true,
            scopes: true,
            tasks: true,
            roles: true,
            environments: true,
            federation: full && session.may(Switch::Federate),
            replay: true,
            delivery_semantics: semantics.iter().map(ToString::to_string).collect(),
            max_subscriptions: if full { MAX_SUBSCRIPTIONS } else { 1 },
            max_message_size: MAX_MESSAGE,
            mail: MailEnabled { enabled: at.door.keeps_mail() },
        },
        agent_id: agent.to_string(),
    })
}

/// `map/authenticate`: credentials that do not count are a result, not an error.
pub(super) async fn authenticate(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let auth: Credentials = params(given)?;
    if let Err(why) = check_credentials(at, &auth).await {
        return Ok(Answer::of(&AuthenticateResult::Refused(why.into_result())));
    }
    let waiting = at.greeting.take();
    let session = at.session.clone();
    if let (None, Some(asked)) = (&session, waiting) {
        // The `map/connect` that had to wait for authentication is done now.
        let (_, result) = begin_or_resume(at, *asked).await?;
        let result = ConnectResult { success: Some(true), ..result };
        return Ok(Answer::of(&AuthenticateResult::Connected(Box::new(result))));
    }
    let session = session.as_deref();
    Ok(Answer::of(&AuthenticateResult::Accepted(Box::new(Authenticated {
        success: true,
        principal: principal(at),
        session_id: session.map(|session| session.id.clone()),
        participant_id: session.map(|session| session.participant.to_string()),
        capabilities: session.map(|session| Capabilities::clone(&session.capabilities())),
        resume_token: session.map(Session::token),
    }))))
}

/// `map/auth/refresh`.
pub(super) async fn refresh(at: &mut Connection, given: Option<&RawValue>) -> Outcome {
    let auth: Credentials = params(given)?;
    Ok(match check_credentials(at, &auth).await {
        Ok(()) => {
            let principal = principal(at);
            // The SDK's client reads the principal; its types have the token and its expiry, too.
            Answer::of(&RefreshResult {
                success: true,
                access_token: auth.secret().map(str::to_owned),
                expires_at: principal.as_ref().and_then(|principal| principal.expires_at),
                principal,
            })
        }
        Err(why) => Answer::of(&why.into_result()),
    })
}

/// Authenticates the connection. A session that has begun keeps its identity.
async fn check_credentials(at: &mut Connection, auth: &Credentials) -> Result<(), AuthFailure> {
    let unsupported = |method: &str| AuthFailure {
        code: "method_not_supported",
        message: format!("the method {method} is not offered: bearer or api-key"),
    };
    match auth.method.as_deref().unwrap_or("bearer") {
        "none" if at.identity.is_some() => return Ok(()),
        "none" => {
            return Err(AuthFailure { code: "auth_required", message: "a token is needed".to_owned() });
        }
        "bearer" | "api-key" | "token" => {}
        other => return Err(unsupported(other)),
    }
    let Some(secret) = auth.secret() else {
        return match at.identity {
            Some(_) if !at.door.needs_token() => Ok(()),
            _ => Err(AuthFailure { code: "invalid_credentials", message: "no token was given".to_owned() }),
        };
    };
    match at.door.authenticate(&at.engine, Some(secret), VIA).await {
        Ok((identity, token)) => {
            let changes = at.session.as_ref().is_some_and(|session| session.identity != identity);
            if changes {
                let message = "the session belongs to another principal".to_owned();
                return Err(AuthFailure { code: "invalid_credentials", message });
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
                Ok(true) => Err(AuthFailure { code: "expired", message: "the token has expired".to_owned() }),
                _ => Err(AuthFailure { code: "invalid_credentials", message: error.to_string() }),
            }
        }
        Err(error) => Err(AuthFailure { code: "internal", message: error.to_string() }),
    }
}
