//! One row for every method: the class of object it touches, what it does to it, and parameters that name the object.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Caller;
use super::things::{Class, Door, FILE_HASH, PROJECT, Thing, later};

/// What a method does with its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Reads,
    Changes,
    /// Enters the caller itself.
    Joins,
    /// It touches no object of another caller's; it must neither show nor change one.
    Neither,
}

pub(super) struct Row {
    pub(super) door: Door,
    pub(super) method: String,
    pub(super) class: Class,
    pub(super) act: Act,
    /// For whom the call is seen to work.
    pub(super) works_for: Caller,
    /// The parameters, from the object and the caller's own name.
    pub(super) params: fn(&Thing, &str) -> Value,
}

fn control() -> Vec<Row> {
    use Act::{Changes, Neither, Reads};
    use Class::{Agent, Contact, Conversation, Message, Reservation, Token};
    let row = |method: &str, class, act, params: fn(&Thing, &str) -> Value| Row {
        door: Door::Control,
        method: method.to_owned(),
        class,
        act,
        works_for: Caller::Owner,
        params,
    };
    let party = |row: Row| Row { works_for: Caller::Party, ..row };
    let admin = |row: Row| Row { works_for: Caller::Administrator, ..row };
    vec![
        row("whoami", Message, Neither, |_, _| json!({})),
        // Registering a name again that is Ann's.
        row("register", Agent, Neither, |thing, _| json!({ "id": thing.id, "name": "mine now" })),
        row("agents", Agent, Reads, |thing, _| {
            // The entry behind the one that is asked for: pages go by name.
            json!({ "after": &thing.id[..thing.id.len() - 1], "limit": 1 })
        }),
        row("agent", Agent, Reads, |thing, _| json!({ "agent": thing.id })),
        admin(row("agent.remove", Agent, Changes, |thing, _| json!({ "agent": thing.id, "force": true }))),
        row(
            "send",
            Message,
            Neither,
            |thing, _| json!({ "to": ["oscar"], "body": "x", "in_reply_to": thing.id, "conversation": thing.id }),
        ),
        party(row("inbox", Message, Reads, |_, _| json!({ "limit": 1 }))),
        party(row("read", Message, Changes, |thing, _| json!({ "message": thing.id }))),
        party(row("ack", Message, Changes, |thing, _| json!({ "message": thing.id }))),
        row("search", Message, Reads, |thing, _| json!({ "query": thing.marker })),
        row("attachment", Message, Reads, |thing, _| json!({ "message": thing.id, "sha256": FILE_HASH })),
        row("message", Message, Reads, |thing, _| json!({ "message": thing.id })),
        row("thread", Conversation, Reads, |thing, _| json!({ "id": thing.id })),
        row("conversations", Conversation, Reads, |_, _| json!({ "limit": 5 })),
        row("events", Message, Reads, |thing, _| json!({ "after": thing.number - 1, "limit": 5 })),
        // Ann's name for her reservation, and a pattern that overlaps hers.
        row(
            "reserve",
            Reservation,
            Neither,
            |thing, _| json!({ "key": thing.id, "scope": thing.id, "paths": ["**"], "exclusive": false, "expires_at": later() }),
        ),
        row("release", Reservation, Changes, |thing, _| json!({ "ids": [thing.number] })),
        row(
            "reservations",
            Reservation,
            Reads,
            |thing, _| json!({ "scope": thing.id, "after": thing.number - 1, "limit": 1 }),
        ),
        row("contacts", Contact, Reads, |_, _| json!({})),
        row("contact.ask", Contact, Neither, |thing, _| json!({ "other": thing.id })),
        row("contact.accept", Contact, Neither, |_, _| json!({ "other": "ann" })),
        row("contact.block", Contact, Neither, |thing, _| json!({ "other": thing.id })),
        row("contact.end", Contact, Changes, |thing, _| json!({ "other": thing.id })),
        row("nudge", Agent, Neither, |thing, _| json!({ "to": thing.id, "type": "check", "message": "x" })),
        row("hooks", Token, Neither, |_, _| json!({})),
        admin(row("rules", Token, Changes, |thing, _| json!({ "thread_depth": 20 + thing.before % 1_000 }))),
        row("realm.open", Token, Neither, |thing, _| json!({ "name": thing.marker })),
        row("realm.list", Token, Neither, |_, _| json!({})),
        row(
            "project.claim",
            Token,
            Neither,
            |thing, _| json!({ "names": [format!("/srv/{}", thing.marker)] }),
        ),
        row("project.list", Token, Neither, |_, _| json!({})),
        row("project.move", Token, Neither, |_, _| json!({ "path": "/srv/elsewhere", "realm": "main" })),
        row("project.release", Token, Neither, |_, _| json!({ "path": "/srv/elsewhere" })),
        admin(row("token.create", Token, Changes, |_, _| json!({ "role": "agent", "name": "more" }))),
        admin(row("token.list", Token, Reads, |_, _| json!({}))),
        admin(row("token.revoke", Token, Changes, |thing, _| json!({ "id": thing.id }))),
    ]
}

/// MAP's methods by their first spelling; other spellings are one of these.
fn map() -> Vec<Row> {
    use Act::{Changes, Neither, Reads};
    use Class::{Agent, Conversation, Message, Scope, Task};
    let row = |methods: &'static [&'static str], class, act, params: fn(&Thing, &str) -> Value| {
        methods.iter().map(move |method| Row {
            door: Door::Map,
            method: (*method).to_owned(),
            class,
            act,
            works_for: Caller::Owner,
            params,
        })
    };
    let conversation: fn(&Thing, &str) -> Value = |thing, _| json!({ "conversationId": thing.id });
    let task: fn(&Thing, &str) -> Value =
        |thing, _| json!({ "taskId": thing.id, "status": "blocked", "agentId": "oscar" });
    let agent: fn(&Thing, &str) -> Value =
        |thing, _| json!({ "agentId": thing.id, "state": "busy", "content": "x" });
    let scope: fn(&Thing, &str) -> Value =
        |thing, _| json!({ "scopeId": thing.id, "payload": { "text": "x" } });
    let nothing: fn(&Thing, &str) -> Value = |_, _| json!({});
    let mut rows = Vec::new();
    let mut add = |more: &mut dyn Iterator<Item = Row>| rows.extend(more);
    add(&mut row(
        &["map/send", "map/request"],
        Message,
        Neither,
        |thing, _| json!({ "to": "oscar", "payload": { "text": "x" }, "inReplyTo": thing.id, "timeoutMs": 1, "timeout": 1 }),
    ));
    add(&mut row(&["map/send/scope"], Scope, Neither, scope));
    add(&mut row(&["map/broadcast"], Message, Neither, |_, _| json!({ "payload": { "text": "x" } })));
    add(&mut row(&["map/inject"], Agent, Neither, agent));
    // Subscriptions belong to a connection; none of another's can be named over HTTP.
    add(&mut row(
        &[
            "map/subscribe",
            "map/unsubscribe",
            "map/subscribe.ack",
            "map/ack",
            "map/pause",
            "map/subscribe.pause",
            "map/resume",
            "map/subscribe.resume",
        ],
        Message,
        Neither,
        |_, _| json!({ "subscriptionId": "sub-1" }),
    ));
    add(&mut row(
        &["map/replay"],
        Task,
        Reads,
        |thing, _| json!({ "fromTimestamp": thing.before, "limit": 50 }),
    ));
    add(&mut row(
        &["map/agents/register", "map/agent.register", "map/agents/spawn", "map/agent.spawn"],
        Agent,
        Neither,
        agent,
    ));
    add(&mut row(&["map/agents/unregister", "map/agent.unregister"], Agent, Changes, agent));
    add(&mut row(
        &["map/agents/list", "map/agent.list"],
        Agent,
        Reads,
        |thing, _| json!({ "filter": { "name": thing.id, "agentIds": [thing.id] }, "limit": 1000 }),
    ));
    add(&mut row(
        &["map/agents/get", "map/agent.get"],
        Agent,
        Reads,
        |thing, _| json!({ "agentId": thing.id }),
    ));
    add(&mut row(
        &["map/agents/update", "map/agents/update/state", "map/agent.update"],
        Agent,
        Changes,
        agent,
    ));
    add(&mut row(
        &["map/agents/update/metadata"],
        Agent,
        Changes,
        |thing, _| json!({ "agentId": thing.id, "metadata": { "x": 1 } }),
    ));
    add(&mut row(
        &[
            "map/agents/stop",
            "map/agent.stop",
            "map/agents/suspend",
            "map/agent.suspend",
            "map/agents/resume",
            "map/agent.resume",
        ],
        Agent,
        Neither,
        agent,
    ));
    add(&mut row(&["map/structure/graph", "map/hierarchy.get"], Agent, Neither, nothing));
    add(&mut row(
        &[
            "map/hierarchy.parent",
            "map/hierarchy.children",
            "map/hierarchy.siblings",
            "map/hierarchy.ancestors",
            "map/hierarchy.descendants",
        ],
        Agent,
        Neither,
        agent,
    ));
    add(&mut row(&["map/role.list", "map/env.list", "map/user.list"], Message, Neither, nothing));
    add(&mut row(&["map/scopes/create", "map/scope.create"], Scope, Neither, scope));
    add(&mut row(&["map/scopes/delete", "map/scope.delete"], Scope, Changes, scope));
    add(&mut row(&["map/scopes/list", "map/scope.list"], Scope, Reads, |_, _| json!({ "limit": 1000 })));
    add(&mut row(&["map/scopes/get", "map/scope.get"], Scope, Reads, scope));
    add(&mut row(
        &[
            "map/scopes/join",
            "map/scope.join",
            "map/scopes/leave",
            "map/scope.leave",
            "map/scopes/members",
            "map/scope.members",
        ],
        Scope,
        Neither,
        scope,
    ));
    add(&mut row(
        &["map/tasks/create", "map/task.create"],
        Task,
        Neither,
        |thing, _| json!({ "id": thing.id, "title": "x", "status": "completed" }),
    ));
    add(&mut row(
        &["map/tasks/assign", "map/task.assign"],
        Task,
        Changes,
        |thing, _| json!({ "taskId": thing.id, "agentId": "mallory" }),
    ));
    add(&mut row(&["map/tasks/update", "map/task.update"], Task, Changes, task));
    add(&mut row(&["map/tasks/list", "map/task.list"], Task, Reads, |_, _| json!({ "limit": 1000 })));
    add(&mut row(&["map/tasks/get", "map/task.get"], Task, Reads, task));
    // A session belongs to a connection; none of another's can be named over HTTP.
    add(&mut row(
        &[
            "map/permissions/update",
            "map/federation/connect",
            "map/federation/route",
            "map/disconnect",
            "map/shutdown",
            "map/session/list",
            "map/session/load",
            "map/session/close",
            "map/session/info",
            "map/connect",
            "map/initialize",
            "map/authenticate",
            "map/auth/refresh",
            "map/federation/connect",
        ],
        Message,
        Neither,
        nothing,
    ));
    add(&mut row(
        &["mail/create"],
        Conversation,
        Neither,
        |thing, _| json!({ "parentConversationId": thing.id, "parentTurnId": thing.part }),
    ));
    add(&mut row(
        &["mail/get"],
        Conversation,
        Reads,
        |thing, _| json!({ "conversationId": thing.id, "include": { "recentTurns": 10 } }),
    ));
    add(&mut row(&["mail/list"], Conversation, Reads, |_, _| json!({ "limit": 1000 })));
    add(&mut row(&["mail/close", "mail/leave"], Conversation, Changes, conversation));
    add(&mut row(&["mail/reopen", "mail/presence"], Conversation, Neither, conversation));
    add(&mut row(&["mail/join"], Conversation, Act::Joins, conversation));
    add(&mut row(
        &["mail/invite"],
        Conversation,
        Changes,
        |thing, _| json!({ "conversationId": thing.id, "participant": { "id": "mallory" } }),
    ));
    add(&mut row(
        &["mail/turn"],
        Conversation,
        Changes,
        |thing, _| json!({ "conversationId": thing.id, "contentType": "text", "content": { "text": "x" } }),
    ));
    add(&mut row(&["mail/turns/list"], Conversation, Reads, conversation));
    add(&mut row(
        &["mail/thread/create"],
        Conversation,
        Changes,
        |thing, _| json!({ "conversationId": thing.id, "rootTurnId": thing.part, "subject": "x" }),
    ));
    add(&mut row(&["mail/thread/list"], Conversation, Neither, conversation));
    add(&mut row(&["mail/summary"], Conversation, Reads, conversation));
    add(&mut row(&["mail/replay"], Conversation, Reads, conversation));
    rows
}

fn mcp() -> Vec<Row> {
    use Act::{Changes, Neither, Reads};
    use Class::{Agent, Contact, Conversation, Message, Reservation, Task};
    let row = |method: &str, class, act, params: fn(&Thing, &str) -> Value| Row {
        door: Door::Mcp,
        method: method.to_owned(),
        class,
        act,
        works_for: Caller::Owner,
        params,
    };
    let party = |row: Row| Row { works_for: Caller::Party, ..row };
    vec![
        row("health_check", Message, Neither, |_, _| json!({})),
        row("ensure_project", Message, Neither, |_, _| json!({ "human_key": PROJECT })),
        row(
            "register_agent",
            Agent,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "program": "p", "model": "m", "name": thing.id, "task_description": "mine" }),
        ),
        row(
            "create_agent_identity",
            Agent,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "program": "p", "model": "m", "name_hint": thing.id }),
        ),
        row("whois", Agent, Neither, |thing, _| json!({ "project_key": PROJECT, "agent_name": thing.id })),
        row(
            "list_agents",
            Agent,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "after": &thing.id[..thing.id.len() - 1], "limit": 1 }),
        ),
        row(
            "deregister_agent",
            Agent,
            Changes,
            |thing, _| json!({ "project_key": PROJECT, "agent_name": thing.id }),
        ),
        row(
            "send_message",
            Conversation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "sender_name": me, "to": ["oscar"], "subject": "s", "body_md": "x", "thread_id": thing.id }),
        ),
        party(row(
            "reply_message",
            Message,
            Reads,
            |thing, me| json!({ "project_key": PROJECT, "message_id": thing.number, "sender_name": me, "body_md": thing.marker }),
        )),
        party(row(
            "fetch_inbox",
            Message,
            Reads,
            |_, me| json!({ "project_key": PROJECT, "agent_name": me, "include_bodies": true, "limit": 3 }),
        )),
        party(row(
            "mark_message_read",
            Message,
            Changes,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "message_id": thing.number }),
        )),
        party(row(
            "acknowledge_message",
            Message,
            Changes,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "message_id": thing.number }),
        )),
        row(
            "search_messages",
            Message,
            Reads,
            |thing, _| json!({ "project_key": PROJECT, "query": thing.marker }),
        ),
        row(
            "summarize_thread",
            Conversation,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "thread_id": thing.id, "include_examples": true }),
        ),
        row(
            "file_reservation_paths",
            Reservation,
            Neither,
            |_, me| json!({ "project_key": PROJECT, "agent_name": me, "paths": ["q"], "exclusive": false }),
        ),
        row(
            "renew_file_reservations",
            Reservation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "file_reservation_ids": [thing.number] }),
        ),
        row(
            "release_file_reservations",
            Reservation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "file_reservation_ids": [thing.number] }),
        ),
        row(
            "check_file_reservation_conflicts",
            Reservation,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "paths": [thing.id] }),
        ),
        row(
            "force_release_file_reservation",
            Reservation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "file_reservation_id": thing.number }),
        ),
        row(
            "macro_start_session",
            Agent,
            Neither,
            |thing, _| json!({ "human_key": PROJECT, "program": "p", "model": "m", "agent_name": thing.id }),
        ),
        row(
            "macro_prepare_thread",
            Conversation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "thread_id": thing.id, "program": "p", "model": "m", "agent_name": me, "include_examples": true }),
        ),
        row(
            "macro_file_reservation_cycle",
            Reservation,
            Neither,
            |_, me| json!({ "project_key": PROJECT, "agent_name": me, "paths": ["q"], "exclusive": false, "auto_release": true }),
        ),
        row(
            "macro_contact_handshake",
            Contact,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "requester": me, "target": thing.id }),
        ),
        row(
            "request_contact",
            Contact,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "from_agent": me, "to_agent": thing.id }),
        ),
        row(
            "respond_contact",
            Contact,
            Neither,
            |_, me| json!({ "project_key": PROJECT, "to_agent": me, "from_agent": "ann", "accept": true }),
        ),
        row("list_contacts", Contact, Reads, |_, me| json!({ "project_key": PROJECT, "agent_name": me })),
        row(
            "set_contact_policy",
            Agent,
            Neither,
            |thing, _| json!({ "project_key": PROJECT, "agent_name": thing.id, "policy": "block_all" }),
        ),
        party(row(
            "wait_for_mail",
            Message,
            Reads,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "timeout_seconds": 0, "after_id": thing.number - 1, "include_bodies": true }),
        )),
        row(
            "open_conversation",
            Conversation,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "conversation_id": thing.id, "participants": ["oscar"] }),
        ),
        row(
            "list_conversations",
            Conversation,
            Reads,
            |_, me| json!({ "project_key": PROJECT, "agent_name": me, "limit": 5 }),
        ),
        row(
            "add_turn",
            Conversation,
            Changes,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "conversation_id": thing.id, "text": "x" }),
        ),
        row(
            "list_turns",
            Conversation,
            Reads,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "conversation_id": thing.id }),
        ),
        row(
            "close_conversation",
            Conversation,
            Changes,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "conversation_id": thing.id }),
        ),
        row(
            "send_request",
            Task,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "target": "oscar", "subject": "s", "body": "x", "task_id": thing.id }),
        ),
        row(
            "send_response",
            Task,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "target": "oscar", "subject": "s", "body": "x", "task_id": thing.id }),
        ),
        row(
            "send_interrupt",
            Task,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "target": "oscar", "subject": "s", "body": "x", "task_id": thing.id }),
        ),
        row(
            "send_broadcast",
            Task,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "targets": ["oscar"], "subject": "s", "body": "x", "task_id": thing.id }),
        ),
        row(
            "task_complete",
            Task,
            Changes,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "task_id": thing.id, "finish_message": "done" }),
        ),
        row(
            "acknowledge_broadcast",
            Message,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "message_id": thing.number }),
        ),
        row(
            "ignore_broadcast",
            Message,
            Neither,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "message_id": thing.number }),
        ),
        party(row(
            "await_message",
            Message,
            Reads,
            |thing, me| json!({ "project_key": PROJECT, "agent_name": me, "timeout_seconds": 0, "after_id": thing.number - 1 }),
        )),
        row(
            "install_precommit_guard",
            Message,
            Neither,
            |_, _| json!({ "project_key": PROJECT, "code_repo_path": "/nonexistent" }),
        ),
        row(
            "uninstall_precommit_guard",
            Message,
            Neither,
            |_, _| json!({ "code_repo_path": "/nonexistent" }),
        ),
    ]
}

pub(super) fn all() -> Vec<Row> {
    control().into_iter().chain(map()).chain(mcp()).collect()
}

/// Fails if a method in the source has no row, or a row has no method.
pub(super) fn check_complete(rows: &[Row]) {
    use crate::authority::{compare, control_methods, map_methods, mcp_tools};
    for (door, found) in
        [(Door::Control, control_methods()), (Door::Map, map_methods()), (Door::Mcp, mcp_tools())]
    {
        let rows: BTreeSet<String> =
            rows.iter().filter(|row| row.door == door).map(|row| row.method.clone()).collect();
        compare(door.name(), &found, &rows);
    }
}
