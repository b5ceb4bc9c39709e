//! Permission is checked before the existence of the object.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

/// Methods that need a capability, the capability, and params that name an object that does not exist.
fn rows() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let agent = json!({ "agentId": "ghost" });
    let scope = json!({ "scopeId": "ghost" });
    let talk = json!({ "conversationId": "ghost" });
    let message = json!({ "to": { "agent": "ghost" }, "payload": "x" });
    let elsewhere = json!({ "to": { "system": "ghost", "agent": "x" }, "payload": "x" });
    let route = json!({ "systemId": "ghost", "message": { "to": { "agent": "ghost" }, "payload": "x" } });
    vec![
        ("map/federation/route", "federation", "canFederate", route.clone()),
        ("map/federation/route", "messaging", "canSend", route),
        (
            "map/federation/connect",
            "federation",
            "canFederate",
            json!({ "systemId": "ghost", "endpoint": "ws://127.0.0.1:1" }),
        ),
        ("map/send", "messaging", "canSend", message.clone()),
        ("map/send", "messaging", "canSend", elsewhere),
        ("map/send/scope", "messaging", "canSend", json!({ "scopeId": "ghost", "payload": "x" })),
        ("map/request", "messaging", "canSend", message),
        ("map/inject", "lifecycle", "canSteer", json!({ "agentId": "ghost", "content": "x" })),
        ("map/agents/get", "observation", "canQuery", agent.clone()),
        ("map/structure/graph", "observation", "canQuery", json!({ "rootAgentId": "ghost" })),
        ("map/agents/unregister", "lifecycle", "canUnregister", agent.clone()),
        ("map/agents/spawn", "lifecycle", "canSpawn", json!({ "name": "x", "parent": "ghost" })),
        ("map/agents/register", "lifecycle", "canRegister", json!({ "name": "x", "parent": "ghost" })),
        ("map/agents/stop", "lifecycle", "canStop", agent.clone()),
        ("map/agents/suspend", "lifecycle", "canStop", agent.clone()),
        ("map/agents/resume", "lifecycle", "canStop", agent),
        ("map/scopes/get", "observation", "canQuery", scope.clone()),
        ("map/scopes/members", "observation", "canQuery", scope.clone()),
        ("map/scopes/delete", "scopes", "canManageScopes", scope),
        ("map/scopes/create", "scopes", "canCreateScopes", json!({ "parent": "ghost" })),
        ("map/scopes/join", "scopes", "canManageScopes", json!({ "scopeId": "ghost", "agentId": "ghost" })),
        ("map/scopes/leave", "scopes", "canManageScopes", json!({ "scopeId": "ghost", "agentId": "ghost" })),
        ("map/tasks/assign", "tasks", "canAssign", json!({ "taskId": "ghost", "agentId": "ghost" })),
        ("map/tasks/update", "tasks", "canUpdate", json!({ "taskId": "ghost", "title": "x" })),
        ("map/tasks/get", "tasks", "canList", json!({ "taskId": "ghost" })),
        ("map/replay", "observation", "canObserve", json!({ "afterEventId": "ghost" })),
        ("mail/get", "mail", "canJoin", talk.clone()),
        ("mail/join", "mail", "canJoin", talk.clone()),
        ("mail/leave", "mail", "canJoin", talk.clone()),
        ("mail/close", "mail", "canCreate", talk.clone()),
        ("mail/reopen", "mail", "canCreate", talk.clone()),
        (
            "mail/invite",
            "mail",
            "canInvite",
            json!({ "conversationId": "ghost", "participant": { "id": "ghost" } }),
        ),
        (
            "mail/turn",
            "mail",
            "canJoin",
            json!({ "conversationId": "ghost", "contentType": "text", "content": "x" }),
        ),
        ("mail/turns/list", "mail", "canViewHistory", talk.clone()),
        (
            "mail/thread/create",
            "mail",
            "canCreateThreads",
            json!({ "conversationId": "ghost", "rootTurnId": "ghost" }),
        ),
        ("mail/thread/list", "mail", "canJoin", talk.clone()),
        ("mail/summary", "mail", "canViewHistory", talk.clone()),
        ("mail/replay", "mail", "canViewHistory", talk),
    ]
}

#[tokio::test]
async fn callers_without_the_right_do_not_learn_whether_the_object_exists() {
    let office = Office::open(&["--no-auth"]).await;
    for (method, group, switch, asked) in rows() {
        let mut caller = Client::stranger(&office).await;
        let hello = json!({
            "protocolVersion": 1, "participantType": "client", "capabilities": { group: { switch: false } },
        });
        caller.call("map/connect", hello).await.unwrap();
        let refused = caller.call(method, asked.clone()).await.unwrap_err();
        let denied = if group == "mail" { 10003 } else { 1003 };
        assert_eq!(refused["code"], denied, "{method} without {group}.{switch}: {refused}");
        // With the right the answer says that the object does not exist, or that the system does not answer.
        let mut allowed = Client::connect(&office, "client").await;
        let answer = allowed.call(method, asked).await;
        assert!(
            answer.as_ref().is_ok_and(|_| method == "map/structure/graph")
                || answer.as_ref().is_err_and(|error| error["code"] != denied),
            "{method}: {answer:?}"
        );
    }
}

// The same for callers whose token gives them fewer rights.
#[tokio::test]
async fn ordinary_tokens_may_not_steer_or_federate() {
    let office = Office::open(&[]).await;
    let mut operator = Client::connect_with(&office, &office.admin_token(), "system").await;
    let made = json!({ "role": "agent", "name": "ann" });
    let made = operator.call("x-posthaste/token.create", made).await.unwrap();
    operator.call("map/agents/register", json!({ "agentId": "other" })).await.unwrap();
    let mut ann = Client::connect_with(&office, made["token"].as_str().unwrap(), "agent").await;
    ann.call("map/agents/register", json!({ "name": "ann" })).await.unwrap();
    for agent in ["ghost", "other"] {
        for method in ["map/agents/stop", "map/agents/suspend", "map/agents/resume"] {
            let refused = ann.call(method, json!({ "agentId": agent })).await.unwrap_err();
            assert_eq!(refused["code"], 1003, "{method} {agent}: {refused}");
        }
        let inject = json!({ "agentId": agent, "content": "x" });
        assert_eq!(ann.call("map/inject", inject).await.unwrap_err()["code"], 1003, "{agent}");
        let permissions = json!({ "clientId": agent, "permissions": {} });
        assert_eq!(
            ann.call("map/permissions/update", permissions).await.unwrap_err()["code"],
            1003,
            "{agent}"
        );
    }
    let route = json!({ "systemId": "ghost", "message": { "to": { "agent": "ann" }, "payload": "x" } });
    assert_eq!(ann.call("map/federation/route", route).await.unwrap_err()["code"], 1003);
    let connect = json!({ "systemId": "ghost", "endpoint": "ws://127.0.0.1:1" });
    assert_eq!(ann.call("map/federation/connect", connect).await.unwrap_err()["code"], 1003);
    // The server's own methods: an administrator's, whatever they are about.
    let theirs = [
        ("token.revoke", json!({ "id": "ghost" })),
        ("token.create", json!({ "role": "agent", "name": "other" })),
        ("agent.remove", json!({ "agent": "ghost" })),
        ("agent.remove", json!({ "agent": "other" })),
        ("realm.open", json!({ "name": "ghost" })),
        ("inbox", json!({ "agent": "ghost" })),
        ("inbox", json!({ "agent": "other" })),
    ];
    let mut said = Vec::new();
    for (method, asked) in theirs {
        let refused = ann.call(&format!("x-posthaste/{method}"), asked).await.unwrap_err();
        assert_eq!(refused["code"], -32000, "{method}: {refused}");
        said.push(refused["message"].clone());
    }
    assert_eq!((&said[2], &said[5]), (&said[3], &said[6]));
    ann.call("map/agents/stop", json!({ "agentId": "ann" })).await.unwrap();
}
