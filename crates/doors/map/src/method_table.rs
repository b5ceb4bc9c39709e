//! The table of methods: one row each, with its names in both vocabularies, what it takes to call it, and its handler.

use posthaste_wire::map::Switch;

use super::methods::Method;
use super::structure::{self, Side};
use super::{agent_list, agents, connect, federation, mail, scopes, send, sessions, streams, tasks, turns};

/// A handler that takes the connection, the session and the parameters.
macro_rules! with_params {
    ($handler:path) => {
        |call| Box::pin($handler(call.at, call.session, call.params))
    };
}

/// A handler that takes the same and whether delivery is best effort only.
macro_rules! with_effort {
    ($handler:path) => {
        |call| {
            let best_effort = call.best_effort();
            Box::pin($handler(call.at, call.session, call.params, best_effort))
        }
    };
}

/// A question about the relatives of an agent.
macro_rules! relatives {
    ($side:ident) => {
        |call| Box::pin(structure::relatives(call.at, call.session, call.params, Side::$side))
    };
}

/// Everything that can be called, but for the server's own methods, `x-posthaste/…`.
pub(super) static METHODS: &[Method] = &[
    // Connecting and authentication.
    Method::connecting(&["map/connect"], |at, params| Box::pin(connect::connect(at, params))),
    Method::connecting(&["map/initialize"], |at, params| Box::pin(connect::initialize(at, params))),
    Method::connecting(&["map/authenticate"], |at, params| Box::pin(connect::authenticate(at, params))),
    Method::connecting(&["map/auth/refresh"], |at, params| Box::pin(connect::refresh(at, params))),
    // Messages.
    Method::send(&["map/send"]).needs(&[Switch::Send]),
    Method::pipelined(&["map/send/scope"], with_effort!(send::send_to_scope)).needs(&[Switch::Send]),
    Method::pipelined(&["map/broadcast"], with_effort!(send::broadcast))
        .needs(&[Switch::Broadcast, Switch::Send]),
    Method::pipelined(&["map/request"], with_effort!(send::request)).needs(&[Switch::Send]),
    Method::pipelined(&["map/inject"], with_effort!(send::inject)).needs(&[Switch::Send]),
    // Subscriptions.
    Method::ready(&["map/subscribe"], |call| {
        Box::pin(streams::subscribe(call.at, call.session, call.params, call.by_extension))
    })
    .needs(&[Switch::Observe]),
    Method::flow_control(&["map/unsubscribe"], |call| {
        Box::pin(async move { streams::unsubscribe(call.session, call.params) })
    }),
    Method::flow_control(&["map/subscribe.ack", "map/ack"], |call| {
        Box::pin(streams::ack(call.at, call.session, call.params))
    }),
    Method::flow_control(&["map/pause", "map/subscribe.pause"], |call| {
        Box::pin(async move { streams::pause(call.session, call.params) })
    }),
    Method::flow_control(&["map/resume", "map/subscribe.resume"], |call| {
        Box::pin(async move { streams::resume(call.session, call.params) })
    }),
    Method::ready(&["map/replay"], with_params!(streams::replay)).needs(&[Switch::Observe]),
    // Agents. Stopping and steering one's own agents needs no capability; the handlers check the rest.
    Method::ready(&["map/agents/register", "map/agent.register"], with_params!(agents::register))
        .needs(&[Switch::Register])
        .adds_agents(),
    Method::ready(&["map/agents/unregister", "map/agent.unregister"], with_params!(agents::unregister))
        .needs(&[Switch::Unregister]),
    Method::ready(&["map/agents/list", "map/agent.list"], with_params!(agent_list::list))
        .needs(&[Switch::Query]),
    Method::ready(&["map/agents/get", "map/agent.get"], with_params!(agents::get)).needs(&[Switch::Query]),
    Method::ready(
        &["map/agents/update", "map/agents/update/state", "map/agents/update/metadata", "map/agent.update"],
        with_params!(agents::update),
    ),
    Method::ready(&["map/agents/spawn", "map/agent.spawn"], with_params!(agents::spawn))
        .needs(&[Switch::Spawn])
        .adds_agents(),
    Method::ready(&["map/agents/stop", "map/agent.stop"], with_params!(agents::stop)),
    Method::ready(&["map/agents/suspend", "map/agent.suspend"], with_params!(agents::suspend)),
    Method::ready(&["map/agents/resume", "map/agent.resume"], with_params!(agents::resume)),
    // The structure of agents.
    Method::ready(&["map/structure/graph", "map/hierarchy.get"], with_params!(structure::graph))
        .needs(&[Switch::Query]),
    Method::ready(&["map/hierarchy.parent"], relatives!(Parent)).needs(&[Switch::Query]).shows_hierarchy(),
    Method::ready(&["map/hierarchy.children"], relatives!(Children))
        .needs(&[Switch::Query])
        .shows_hierarchy(),
    Method::ready(&["map/hierarchy.siblings"], relatives!(Siblings))
        .needs(&[Switch::Query])
        .shows_hierarchy(),
    Method::ready(&["map/hierarchy.ancestors"], relatives!(Ancestors))
        .needs(&[Switch::Query])
        .shows_hierarchy(),
    Method::ready(&["map/hierarchy.descendants"], relatives!(Descendants))
        .needs(&[Switch::Query])
        .shows_hierarchy(),
    Method::ready(&["map/role.list"], |call| Box::pin(structure::roles(call.at, call.session)))
        .needs(&[Switch::Query]),
    Method::ready(&["map/env.list"], |call| Box::pin(structure::environments(call.at, call.session)))
        .needs(&[Switch::Query]),
    Method::ready(&["map/user.list"], |call| Box::pin(structure::users(call.at, call.session)))
        .needs(&[Switch::Query]),
    // Scopes. Agents of the session join and leave without a capability.
    Method::ready(&["map/scopes/create", "map/scope.create"], with_params!(scopes::create))
        .needs(&[Switch::CreateScopes])
        .changes_scopes(),
    Method::ready(&["map/scopes/delete", "map/scope.delete"], with_params!(scopes::delete))
        .needs(&[Switch::ManageScopes])
        .changes_scopes(),
    Method::ready(&["map/scopes/list", "map/scope.list"], with_params!(scopes::list)).needs(&[Switch::Query]),
    Method::ready(&["map/scopes/get", "map/scope.get"], with_params!(scopes::get)).needs(&[Switch::Query]),
    Method::ready(&["map/scopes/join", "map/scope.join"], with_params!(scopes::join)).changes_scopes(),
    Method::ready(&["map/scopes/leave", "map/scope.leave"], with_params!(scopes::leave)).changes_scopes(),
    Method::ready(&["map/scopes/members", "map/scope.members"], with_params!(scopes::members))
        .needs(&[Switch::Query]),
    // Tasks.
    Method::ready(&["map/tasks/create", "map/task.create"], with_params!(tasks::create))
        .needs(&[Switch::CreateTasks]),
    Method::ready(&["map/tasks/assign", "map/task.assign"], with_params!(tasks::assign))
        .needs(&[Switch::AssignTasks]),
    Method::ready(&["map/tasks/update", "map/task.update"], with_params!(tasks::update))
        .needs(&[Switch::UpdateTasks]),
    Method::ready(&["map/tasks/list", "map/task.list"], with_params!(tasks::list))
        .needs(&[Switch::ListTasks]),
    Method::ready(&["map/tasks/get", "map/task.get"], with_params!(tasks::get)).needs(&[Switch::ListTasks]),
    // Sessions.
    Method::ready(&["map/permissions/update"], with_params!(sessions::permissions)),
    Method::ready(&["map/disconnect"], with_params!(sessions::disconnect)),
    Method::ready(&["map/shutdown"], with_params!(sessions::shutdown)),
    Method::ready(&["map/session/list"], |call| {
        Box::pin(async move { Ok(sessions::list(call.at, call.session)) })
    }),
    Method::ready(&["map/session/load"], with_params!(sessions::load)),
    Method::ready(&["map/session/close"], with_params!(sessions::close)),
    Method::ready(&["map/session/info"], |call| Box::pin(async move { Ok(sessions::info(call.session)) })),
    // Other systems.
    Method::pipelined(&["map/federation/connect"], |call| {
        Box::pin(async move { federation::connect(call.at, call.session, call.params) })
    })
    .needs(&[Switch::Federate])
    .federates(),
    Method::pipelined(&["map/federation/route"], with_params!(federation::route))
        .needs(&[Switch::Federate, Switch::Send])
        .federates(),
    // Conversations.
    Method::ready(&["mail/create"], with_params!(mail::create)).needs(&[Switch::CreateMail]),
    Method::ready(&["mail/get"], with_params!(mail::get)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/list"], with_params!(mail::list)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/close"], with_params!(mail::close)).needs(&[Switch::CreateMail]),
    Method::ready(&["mail/reopen"], with_params!(mail::reopen)).needs(&[Switch::CreateMail]),
    Method::ready(&["mail/presence"], with_params!(mail::presence)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/join"], with_params!(mail::join)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/leave"], with_params!(mail::leave)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/invite"], with_params!(mail::invite)).needs(&[Switch::InviteMail]),
    Method::turn(&["mail/turn"]).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/turns/list"], with_params!(turns::list)).needs(&[Switch::ViewMailHistory]),
    Method::ready(&["mail/thread/create"], with_params!(turns::open_thread))
        .needs(&[Switch::CreateMailThreads]),
    Method::ready(&["mail/thread/list"], with_params!(turns::threads)).needs(&[Switch::JoinMail]),
    Method::ready(&["mail/summary"], with_params!(turns::summary)).needs(&[Switch::ViewMailHistory]),
    Method::ready(&["mail/replay"], with_params!(turns::replay)).needs(&[Switch::ViewMailHistory]),
];
