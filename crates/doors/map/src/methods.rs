//! The table of methods: every name in both vocabularies, what it takes to call it, and who answers it.

use std::borrow::Cow;

use posthaste_wire::map::codes;
use serde_json::value::RawValue;

use super::connection::{Connection, Outcome, Reply};
use super::errors::DoorError;
use super::session::Session;
use super::{
    agent_list, agents, connect, federation, mail, scopes, send, sessions, streams, structure, tasks, turns,
};

/// Everything that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Send,
    SendToScope,
    Broadcast,
    Request,
    Inject,
    Subscribe,
    Unsubscribe,
    Ack,
    Pause,
    Resume,
    Replay,
    Register,
    Unregister,
    ListAgents,
    GetAgent,
    UpdateAgent,
    Spawn,
    Stop,
    Suspend,
    ResumeAgent,
    Graph,
    Relatives(structure::Side),
    RoleList,
    EnvironmentList,
    UserList,
    CreateScope,
    DeleteScope,
    ListScopes,
    GetScope,
    JoinScope,
    LeaveScope,
    ScopeMembers,
    CreateTask,
    AssignTask,
    UpdateTask,
    ListTasks,
    GetTask,
    Permissions,
    FederationConnect,
    FederationRoute,
    Disconnect,
    Shutdown,
    SessionList,
    SessionLoad,
    SessionClose,
    SessionInfo,
    MailCreate,
    MailGet,
    MailList,
    MailClose,
    MailReopen,
    MailPresence,
    MailJoin,
    MailLeave,
    MailInvite,
    MailTurn,
    MailTurns,
    MailThread,
    MailThreads,
    MailSummary,
    MailReplay,
}

fn find(name: &str) -> Option<Method> {
    use structure::Side;
    Some(match name {
        "map/send" => Method::Send,
        "map/send/scope" => Method::SendToScope,
        "map/broadcast" => Method::Broadcast,
        "map/request" => Method::Request,
        "map/inject" => Method::Inject,
        "map/subscribe" => Method::Subscribe,
        "map/unsubscribe" => Method::Unsubscribe,
        "map/subscribe.ack" | "map/ack" => Method::Ack,
        "map/pause" | "map/subscribe.pause" => Method::Pause,
        "map/resume" | "map/subscribe.resume" => Method::Resume,
        "map/replay" => Method::Replay,
        "map/agents/register" | "map/agent.register" => Method::Register,
        "map/agents/unregister" | "map/agent.unregister" => Method::Unregister,
        "map/agents/list" | "map/agent.list" => Method::ListAgents,
        "map/agents/get" | "map/agent.get" => Method::GetAgent,
        "map/agents/update"
        | "map/agents/update/state"
        | "map/agents/update/metadata"
        | "map/agent.update" => Method::UpdateAgent,
        "map/agents/spawn" | "map/agent.spawn" => Method::Spawn,
        "map/agents/stop" | "map/agent.stop" => Method::Stop,
        "map/agents/suspend" | "map/agent.suspend" => Method::Suspend,
        "map/agents/resume" | "map/agent.resume" => Method::ResumeAgent,
        "map/structure/graph" | "map/hierarchy.get" => Method::Graph,
        "map/hierarchy.parent" => Method::Relatives(Side::Parent),
        "map/hierarchy.children" => Method::Relatives(Side::Children),
        "map/hierarchy.siblings" => Method::Relatives(Side::Siblings),
        "map/hierarchy.ancestors" => Method::Relatives(Side::Ancestors),
        "map/hierarchy.descendants" => Method::Relatives(Side::Descendants),
        "map/role.list" => Method::RoleList,
        "map/env.list" => Method::EnvironmentList,
        "map/user.list" => Method::UserList,
        "map/scopes/create" | "map/scope.create" => Method::CreateScope,
        "map/scopes/delete" | "map/scope.delete" => Method::DeleteScope,
        "map/scopes/list" | "map/scope.list" => Method::ListScopes,
        "map/scopes/get" | "map/scope.get" => Method::GetScope,
        "map/scopes/join" | "map/scope.join" => Method::JoinScope,
        "map/scopes/leave" | "map/scope.leave" => Method::LeaveScope,
        "map/scopes/members" | "map/scope.members" => Method::ScopeMembers,
        "map/tasks/create" | "map/task.create" => Method::CreateTask,
        "map/tasks/assign" | "map/task.assign" => Method::AssignTask,
        "map/tasks/update" | "map/task.update" => Method::UpdateTask,
        "map/tasks/list" | "map/task.list" => Method::ListTasks,
        "map/tasks/get" | "map/task.get" => Method::GetTask,
        "map/permissions/update" => Method::Permissions,
        "map/federation/connect" => Method::FederationConnect,
        "map/federation/route" => Method::FederationRoute,
        "map/disconnect" => Method::Disconnect,
        "map/shutdown" => Method::Shutdown,
        "map/session/list" => Method::SessionList,
        "map/session/load" => Method::SessionLoad,
        "map/session/close" => Method::SessionClose,
        "map/session/info" => Method::SessionInfo,
        "mail/create" => Method::MailCreate,
        "mail/get" => Method::MailGet,
        "mail/list" => Method::MailList,
        "mail/close" => Method::MailClose,
        "mail/reopen" => Method::MailReopen,
        "mail/presence" => Method::MailPresence,
        "mail/join" => Method::MailJoin,
        "mail/leave" => Method::MailLeave,
        "mail/invite" => Method::MailInvite,
        "mail/turn" => Method::MailTurn,
        "mail/turns/list" => Method::MailTurns,
        "mail/thread/create" => Method::MailThread,
        "mail/thread/list" => Method::MailThreads,
        "mail/summary" => Method::MailSummary,
        "mail/replay" => Method::MailReplay,
        _ => return None,
    })
}

/// The capability that a method takes.
fn need(method: Method) -> Option<(&'static str, &'static str)> {
    Some(match method {
        Method::Send | Method::SendToScope | Method::Request => ("messaging", "canSend"),
        Method::Broadcast => ("messaging", "canBroadcast"),
        Method::Subscribe | Method::Replay => ("observation", "canObserve"),
        Method::ListAgents
        | Method::GetAgent
        | Method::Graph
        | Method::Relatives(_)
        | Method::RoleList
        | Method::EnvironmentList
        | Method::UserList
        | Method::ListScopes
        | Method::GetScope
        | Method::ScopeMembers => ("observation", "canQuery"),
        Method::Register => ("lifecycle", "canRegister"),
        Method::Unregister => ("lifecycle", "canUnregister"),
        Method::Spawn => ("lifecycle", "canSpawn"),
        Method::CreateScope => ("scopes", "canCreateScopes"),
        Method::DeleteScope => ("scopes", "canManageScopes"),
        Method::CreateTask => ("tasks", "canCreate"),
        Method::AssignTask => ("tasks", "canAssign"),
        Method::UpdateTask => ("tasks", "canUpdate"),
        Method::ListTasks | Method::GetTask => ("tasks", "canList"),
        Method::MailCreate | Method::MailClose | Method::MailReopen => ("mail", "canCreate"),
        Method::MailGet
        | Method::MailList
        | Method::MailJoin
        | Method::MailLeave
        | Method::MailTurn
        | Method::MailPresence
        | Method::MailThreads => ("mail", "canJoin"),
        Method::MailInvite => ("mail", "canInvite"),
        Method::MailTurns | Method::MailSummary | Method::MailReplay => ("mail", "canViewHistory"),
        Method::MailThread => ("mail", "canCreateThreads"),
        Method::FederationConnect | Method::FederationRoute => ("federation", "canFederate"),
        // Stopping and steering one's own agents, and their coming to and leaving scopes, takes none; the methods ask for the rest themselves.
        _ => return None,
    })
}

/// Whether a method only says how fast events may come, and looks at nothing that was written.
fn is_about_the_flow(method: Method) -> bool {
    matches!(method, Method::Ack | Method::Pause | Method::Resume | Method::Unsubscribe)
}

/// Refuses what the session may not do: by its capabilities, or because ACP's extension methods have no room for it.
fn check(session: &Session, method: Method, by_extension: bool) -> Result<(), DoorError> {
    if let Some((group, switch)) = need(method)
        && !session.may(group, switch)
    {
        let code = if group == "mail" { codes::MAIL_PERMISSION_DENIED } else { codes::PERMISSION_DENIED };
        return Err(DoorError::new(code, format!("not allowed: {group}.{switch}")));
    }
    // These carry messages, too.
    let carries = matches!(method, Method::Broadcast | Method::Inject | Method::FederationRoute);
    if carries && !session.may("messaging", "canSend") {
        return Err(DoorError::denied("not allowed: messaging.canSend"));
    }
    let scopes_are_read_only = session.is_compat() || by_extension;
    match method {
        Method::CreateScope | Method::DeleteScope | Method::JoinScope | Method::LeaveScope
            if scopes_are_read_only =>
        {
            Err(DoorError::denied("scopes can only be listed in acp-compat mode"))
        }
        Method::Relatives(_) if session.is_compat() => Err(structure::flat_only()),
        Method::FederationConnect | Method::FederationRoute if session.is_compat() => {
            Err(federation::not_in_compat())
        }
        Method::Register | Method::Spawn if session.is_compat() => {
            Err(DoorError::denied("a session of acp-compat mode has one agent"))
        }
        _ => Ok(()),
    }
}

/// Answers a call.
pub(super) async fn call(connection: &mut Connection, name: &str, params: Option<&RawValue>) -> Reply {
    if let Some(wait) = connection.bucket.take().wait {
        return Reply::Ready(Err(DoorError::too_often(wait)));
    }
    match name {
        "map/connect" => return Box::pin(connect::connect(connection, params)).await.into(),
        "map/initialize" => return Box::pin(connect::initialize(connection, params)).await.into(),
        "map/authenticate" => return Box::pin(connect::authenticate(connection, params)).await.into(),
        "map/auth/refresh" => return Box::pin(connect::refresh(connection, params)).await.into(),
        _ => {}
    }
    match answer(connection, name, params).await {
        Ok(reply) => reply,
        Err(failure) => Reply::Ready(Err(failure)),
    }
}

async fn answer(
    connection: &mut Connection,
    name: &str,
    params: Option<&RawValue>,
) -> Result<Reply, DoorError> {
    let identity = connection.identity.clone().ok_or_else(|| {
        DoorError::new(
            codes::AUTH_REQUIRED,
            "say who you are first: map/connect with auth, or map/authenticate",
        )
    })?;
    if name.starts_with(posthaste_wire::control::PREFIX) {
        connection.settle().await;
        let call = connection.door.own_methods().call(&connection.engine, &identity, name, params);
        let result = call.await;
        return Ok(Reply::Ready(match result {
            Ok(result) => Ok(super::connection::Answer(result.get().to_owned())),
            Err(error) => Err(DoorError::new(error.code, error.message)),
        }));
    }
    if name.starts_with("mail/") && !connection.door.keeps_mail() {
        return Err(DoorError::new(codes::MAIL_NOT_ENABLED, "this office keeps no mail"));
    }
    let (by_extension, plain) = match name.strip_prefix("_map/") {
        Some(rest) => (true, Cow::Owned(format!("map/{rest}"))),
        None => (false, Cow::Borrowed(name)),
    };
    let method = find(&plain).ok_or_else(|| DoorError::no_method(name))?;
    let session = match &connection.session {
        Some(session) => session.clone(),
        None => Box::pin(connect::session(connection)).await?,
    };
    session.review(&connection.engine).await?;
    check(&session, method, by_extension)?;
    let best_effort = by_extension || session.is_compat();
    let at = &mut *connection;
    Ok(match method {
        Method::Send => send::send(at, &session, params, best_effort).await?,
        Method::SendToScope => Box::pin(send::send_to_scope(at, &session, params, best_effort)).await?,
        Method::Broadcast => Box::pin(send::broadcast(at, &session, params, best_effort)).await?,
        Method::Request => Box::pin(send::request(at, &session, params, best_effort)).await?,
        Method::Inject => Box::pin(send::inject(at, &session, params, best_effort)).await?,
        Method::MailTurn => turns::say(at, &session, params).await?,
        Method::FederationConnect => federation::connect(at, &session, params)?,
        Method::FederationRoute => Box::pin(federation::route(at, &session, params)).await?,
        // The others are called less often; apart, they do not make the call of these larger.
        other => {
            if !is_about_the_flow(other) {
                at.settle().await;
            }
            Box::pin(now(at, &session, other, params, by_extension)).await.into()
        }
    })
}

/// Methods whose answers are waited for before the next call is looked at.
async fn now(
    at: &mut Connection,
    session: &std::sync::Arc<Session>,
    method: Method,
    params: Option<&RawValue>,
    by_extension: bool,
) -> Outcome {
    match method {
        Method::Subscribe => streams::subscribe(at, session, params, by_extension).await,
        Method::Unsubscribe => streams::unsubscribe(session, params),
        Method::Ack => streams::ack(at, session, params).await,
        Method::Pause => streams::pause(session, params),
        Method::Resume => streams::resume(session, params),
        Method::Replay => streams::replay(at, session, params).await,
        Method::Register => agents::register(at, session, params).await,
        Method::Unregister => agents::unregister(at, session, params).await,
        Method::ListAgents => agent_list::list(at, session, params).await,
        Method::GetAgent => agents::get(at, session, params).await,
        Method::UpdateAgent => agents::update(at, session, params).await,
        Method::Spawn => agents::spawn(at, session, params).await,
        Method::Stop => agents::stop(at, session, params).await,
        Method::Suspend => agents::suspend(at, session, params, true).await,
        Method::ResumeAgent => agents::suspend(at, session, params, false).await,
        Method::Graph => structure::graph(at, session, params).await,
        Method::Relatives(side) => structure::relatives(at, session, params, side).await,
        Method::RoleList => structure::roles(at, session).await,
        Method::EnvironmentList => structure::environments(at, session).await,
        Method::UserList => structure::users(at, session).await,
        Method::CreateScope => scopes::create(at, session, params).await,
        Method::DeleteScope => scopes::delete(at, session, params).await,
        Method::ListScopes => scopes::list(at, session, params).await,
        Method::GetScope => scopes::get(at, session, params).await,
        Method::JoinScope => scopes::join(at, session, params).await,
        Method::LeaveScope => scopes::leave(at, session, params).await,
        Method::ScopeMembers => scopes::members(at, session, params).await,
        Method::CreateTask => tasks::create(at, session, params).await,
        Method::AssignTask => tasks::assign(at, session, params).await,
        Method::UpdateTask => tasks::update(at, session, params).await,
        Method::ListTasks => tasks::list(at, session, params).await,
        Method::GetTask => tasks::get(at, session, params).await,
        Method::Permissions => sessions::permissions(at, session, params).await,
        Method::Disconnect => sessions::disconnect(at, session, params).await,
        Method::Shutdown => sessions::shutdown(at, session, params).await,
        Method::SessionList => Ok(sessions::list(at, session)),
        Method::SessionLoad => sessions::load(at, session, params).await,
        Method::SessionClose => sessions::close(at, session, params).await,
        Method::SessionInfo => Ok(sessions::info(session)),
        Method::MailCreate => mail::create(at, session, params).await,
        Method::MailGet => mail::get(at, session, params).await,
        Method::MailList => mail::list(at, session, params).await,
        Method::MailClose => mail::close(at, session, params).await,
        Method::MailReopen => mail::reopen(at, session, params).await,
        Method::MailPresence => mail::presence(at, session, params).await,
        Method::MailJoin => mail::join(at, session, params).await,
        Method::MailLeave => mail::leave(at, session, params).await,
        Method::MailInvite => mail::invite(at, session, params).await,
        Method::MailTurns => turns::list(at, session, params).await,
        Method::MailThread => turns::open_thread(at, session, params).await,
        Method::MailThreads => turns::threads(at, session, params).await,
        Method::MailSummary => turns::summary(at, session, params).await,
        Method::MailReplay => turns::replay(at, session, params).await,
        Method::Send
        | Method::SendToScope
        | Method::Broadcast
        | Method::Request
        | Method::Inject
        | Method::FederationConnect
        | Method::FederationRoute
        | Method::MailTurn => Err(DoorError::no_method("")),
    }
}
