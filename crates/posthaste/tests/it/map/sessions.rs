//! MAP sessions and agents from outside: who is gone, who may what, and what listeners hear of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

fn full() -> Value {
    json!({ "protocolVersion": "2025-01-01", "clientInfo": { "name": "root" }, "capabilities": { "streaming": true } })
}

async fn names(client: &mut Client) -> Vec<String> {
    let agents = client.call("map/agents/list", json!({})).await.unwrap()["agents"].take();
    agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect()
}

async fn event(client: &mut Client, kind: &str) -> Value {
    let kind = kind.to_owned();
    client.next(move |frame| frame["params"]["event"]["type"] == kind.as_str()).await["params"]["event"]
        .take()
}

#[tokio::test]
async fn shutdown_with_cascade_unregisters_spawned_agents() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut root, hello) = connect_raw(&office, full()).await;
    let child = root.call("map/agent.spawn", json!({ "name": "child" })).await.unwrap();
    let child = child["agent"]["id"].as_str().unwrap().to_owned();
    root.call("map/agent.spawn", json!({ "name": "grandchild", "parent": child })).await.unwrap();
    let mut other = Client::connect(&office, "client").await;
    assert_eq!(names(&mut other).await.len(), 3, "{}", hello["agentId"]);
    root.call("map/shutdown", json!({ "reason": "done", "timeout": 5000, "cascade": true })).await.unwrap();
    assert_eq!(names(&mut other).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_session_whose_agent_was_unregistered_acts_as_itself_or_its_next() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, mut worker) =
        (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let mut system = Client::connect(&office, "system").await;
    system.call("map/agents/unregister", json!({ "agentId": "worker" })).await.unwrap();
    let send = json!({ "to": { "agent": "boss" }, "payload": "still here" });
    worker.call("map/send", send.clone()).await.unwrap();
    assert_ne!(boss.message().await["from"], "worker");
    worker.call("map/agents/register", json!({ "agentId": "worker-2" })).await.unwrap();
    worker.call("map/send", send).await.unwrap();
    assert_eq!(boss.message().await["from"], "worker-2");
}

#[tokio::test]
async fn a_connect_that_authenticates_later_resumes_its_session() {
    let office = Office::open(&[]).await;
    let token = office.admin_token();
    let mut first = Client::open_with(&office, &token).await;
    let hello = json!({ "protocolVersion": 1, "participantType": "agent" });
    let before = first.call("map/connect", hello).await.unwrap();
    first.call("map/agents/register", json!({ "agentId": "ann" })).await.unwrap();
    drop(first);
    let mut again = Client::stranger(&office).await;
    let hello =
        json!({ "protocolVersion": 1, "participantType": "agent", "resumeToken": before["resumeToken"] });
    // The server may not have noticed yet that the connection is gone.
    let mut after = Value::Null;
    for _ in 0..50 {
        let asked = again.call("map/connect", hello.clone()).await.unwrap();
        assert!(asked.get("authRequired").is_some(), "{asked}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let said = json!({ "method": "bearer", "credential": token });
        after = again.call("map/authenticate", said).await.unwrap();
        if after["sessionId"] == before["sessionId"] {
            break;
        }
        again = Client::stranger(&office).await;
    }
    assert_eq!(after["sessionId"], before["sessionId"]);
    assert_eq!((&after["success"], &after["ownedAgents"]), (&json!(true), &json!(["ann"])));
}

#[tokio::test]
async fn compatible_sessions_have_best_effort_only_and_keep_their_mode() {
    let office = Office::open(&["--no-auth"]).await;
    let mut gone = Client::agent(&office, "gone").await;
    gone.call("map/disconnect", json!({})).await.unwrap();
    drop(gone);
    let greeting =
        json!({ "protocolVersion": "2025-01-01", "mode": "acp-compat", "clientInfo": { "name": "acp" } });
    let (mut compat, _) = connect_raw(&office, greeting).await;
    for delivery in ["queue", "interrupt"] {
        let inject = json!({ "agentId": "gone", "content": "lost", "delivery": delivery });
        let answer = compat.call("map/inject", inject).await.unwrap();
        assert_eq!(
            (&answer["injected"], &answer["delivery"]),
            (&json!(false), &json!("message")),
            "{answer}"
        );
    }
    let asked = json!({ "to": { "agent": "gone" }, "payload": "lost", "meta": null });
    assert_eq!(compat.call("map/request", asked).await.unwrap_err()["code"], 2003);
    let again = compat.call("map/initialize", full()).await.unwrap();
    assert_eq!(
        (&again["mode"], &again["capabilities"]["maxSubscriptions"]),
        (&json!("acp-compat"), &json!(1))
    );
    let mut back = Client::connect(&office, "agent").await;
    back.call("map/agents/register", json!({ "agentId": "gone" })).await.unwrap();
    compat.call("map/send", json!({ "to": { "agent": "gone" }, "payload": "now" })).await.unwrap();
    assert_eq!(back.message().await["payload"], "now", "nothing was kept for it");
}

#[tokio::test]
async fn an_agent_sees_as_much_of_the_hierarchy_as_it_may() {
    let office = Office::open(&["--no-auth"]).await;
    let mut top = Client::agent(&office, "top").await;
    top.call("map/agents/spawn", json!({ "agentId": "middle", "parent": "top" })).await.unwrap();
    top.call("map/agents/spawn", json!({ "agentId": "aside", "parent": "top" })).await.unwrap();
    for (structure, nodes, above) in [("none", 1, false), ("local", 3, true), ("full", 5, true)] {
        let id = format!("low-{structure}");
        let mut low = Client::connect(&office, "agent").await;
        let bounds = json!({ "canSee": { "structure": structure } });
        let low_one = json!({ "agentId": id, "parent": "middle", "permissionOverrides": bounds });
        low.call("map/agents/register", low_one).await.unwrap();
        if structure == "none" {
            top.call("map/agents/spawn", json!({ "agentId": "beside", "parent": "middle" })).await.unwrap();
        }
        let graph = low.call("map/structure/graph", json!({})).await.unwrap();
        let around = json!({ "agentId": id, "include": { "parent": true, "ancestors": true } });
        let around = low.call("map/agents/get", around).await.unwrap();
        assert_eq!(graph["nodes"].as_array().unwrap().len(), nodes, "{structure}: {graph}");
        assert_eq!(around["parent"]["id"] == "middle", above, "{structure}: {around}");
        let ancestors = around["ancestors"].as_array().map_or(0, Vec::len);
        let expected = match structure {
            "none" => 0,
            "local" => 1,
            _ => 2,
        };
        assert_eq!(ancestors, expected, "{structure}: {around}");
        low.call("map/agents/unregister", json!({ "agentId": id })).await.unwrap();
    }
}

#[tokio::test]
async fn filters_by_priority_are_for_messages_and_by_agent_for_whom_they_are_for() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut boss, _worker) = (Client::agent(&office, "boss").await, Client::agent(&office, "worker").await);
    let mut watching = Client::connect(&office, "client").await;
    let filter = json!({ "priorities": ["urgent"], "agents": ["work*"] });
    watching.call("map/subscribe", json!({ "filter": filter })).await.unwrap();
    let send = |priority: &str| json!({ "to": { "agent": "worker" }, "payload": priority, "meta": { "priority": priority } });
    boss.call("map/send", send("low")).await.unwrap();
    boss.call("map/send", send("urgent")).await.unwrap();
    let sent = event(&mut watching, "message_sent").await;
    assert_eq!(
        (&sent["data"]["payload"], &sent["data"]["to"]),
        (&json!("urgent"), &json!({ "agent": "worker" }))
    );
    let mut system = Client::connect(&office, "system").await;
    system.call("map/agents/suspend", json!({ "agentId": "worker" })).await.unwrap();
    let state = event(&mut watching, "agent_state_changed").await;
    assert_eq!(state["data"]["newState"], "suspended");
}

#[tokio::test]
async fn a_message_whose_time_is_over_has_failed() {
    let office = Office::open(&["--no-auth"]).await;
    let mut boss = Client::agent(&office, "boss").await;
    let mut gone = Client::agent(&office, "gone").await;
    gone.call("map/disconnect", json!({})).await.unwrap();
    let (mut watching, _) = connect_raw(&office, full()).await;
    let failed = json!({ "filter": { "eventTypes": ["message.failed"] } });
    watching.call("map/subscribe", failed).await.unwrap();
    let send = json!({ "to": { "agent": "gone" }, "payload": "x", "meta": { "ttl": 50 } });
    let sent = boss.call("map/send", send).await.unwrap();
    let event = event(&mut watching, "message.failed").await;
    assert_eq!((&event["messageId"], &event["error"]["message"]), (&sent["messageId"], &json!("expired")));
}

#[tokio::test]
async fn a_message_that_arrived_in_time_does_not_fail_afterwards() {
    let office = Office::open(&["--no-auth"]).await;
    let mut boss = Client::agent(&office, "boss").await;
    let mut here = Client::agent(&office, "here").await;
    let mut gone = Client::agent(&office, "gone").await;
    gone.call("map/disconnect", json!({})).await.unwrap();
    let (mut watching, _) = connect_raw(&office, full()).await;
    watching.call("map/subscribe", json!({ "filter": { "eventTypes": ["message*"] } })).await.unwrap();
    let mut arrived = Vec::new();
    for meta in [json!({ "ttl": 200 }), json!({ "ttl": 200, "delivery": "queue" })] {
        let send = json!({ "to": { "agent": "here" }, "payload": "x", "meta": meta });
        let sent = boss.call("map/send", send).await.unwrap();
        assert_eq!(sent["receipts"][0]["status"], "delivered");
        here.message().await;
        arrived.push(sent["messageId"].clone());
    }
    // Its end is later than theirs, so theirs would have been told by then.
    let late = json!({ "to": { "agent": "gone" }, "payload": "x", "meta": { "ttl": 300 } });
    let late = boss.call("map/send", late).await.unwrap();
    let failed = event(&mut watching, "message.failed").await;
    assert_eq!(failed["messageId"], late["messageId"]);
    let replay = json!({ "filter": { "eventTypes": ["message"] } });
    let replay = watching.call("map/replay", replay).await.unwrap();
    for event in replay["events"].as_array().unwrap().iter().map(|one| &one["event"]) {
        let wanted = if arrived.contains(&event["envelope"]["id"]) { "delivered" } else { "failed" };
        assert_eq!(event["receipts"][0]["status"], wanted, "{event}");
    }
}

#[tokio::test]
async fn sessions_that_may_not_send_may_not_broadcast_or_inject() {
    let office = Office::open(&["--no-auth"]).await;
    let _other = Client::agent(&office, "other").await;
    let mut mute = Client::stranger(&office).await;
    let may = json!({ "messaging": { "canSend": false } });
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "capabilities": may });
    mute.call("map/connect", hello).await.unwrap();
    mute.call("map/agents/register", json!({ "agentId": "mute" })).await.unwrap();
    for (method, params) in [
        ("map/broadcast", json!({ "payload": "x" })),
        ("map/inject", json!({ "agentId": "other", "content": "x" })),
    ] {
        let refused = mute.call(method, params).await.unwrap_err();
        assert_eq!(
            (&refused["code"], &refused["data"]["category"]),
            (&json!(1003), &json!("auth")),
            "{method}"
        );
    }
}

#[tokio::test]
async fn errors_of_the_envelope_say_as_much_as_others() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    for text in ["{", "5"] {
        client.text(text).await;
        let answer = client.next(|frame| frame.get("error").is_some()).await;
        let data = &answer["error"]["data"];
        assert_eq!((&data["category"], &data["retryable"]), (&json!("protocol"), &json!(false)), "{answer}");
    }
}
