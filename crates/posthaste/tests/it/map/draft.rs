//! The draft's dialect: what acp-compat mode leaves out, whose answer counts, and what events contain.

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

fn full() -> Value {
    json!({ "protocolVersion": "2025-01-01", "clientInfo": { "name": "root" }, "capabilities": { "streaming": true } })
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

/// The next event of one type, with what the subscription wrote around it.
async fn next_event(client: &mut Client, kind: &str) -> Value {
    let kind = kind.to_owned();
    client.next(move |frame| frame["params"]["event"]["type"] == kind.as_str()).await["params"].take()
}

#[tokio::test]
async fn without_payloads_the_envelope_has_none_either() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut watching, _) = connect_raw(&office, full()).await;
    let asked =
        json!({ "filter": { "eventTypes": ["message"] }, "options": { "includeMessagePayloads": false } });
    watching.call("map/subscribe", asked.clone()).await.unwrap();
    let mut from = Client::agent(&office, "from").await;
    let _to = Client::agent(&office, "to").await;
    from.call("map/send", json!({ "to": { "agent": "to" }, "payload": "kept" })).await.unwrap();
    let live = next_event(&mut watching, "message").await;
    let replay = watching.call("map/replay", asked).await.unwrap();
    for event in [&live["event"], &replay["events"][0]["event"]] {
        assert_eq!((&event["envelope"]["from"], event["envelope"].get("payload")), (&json!("from"), None));
        assert!(!event.to_string().contains("kept"), "{event}");
    }
}

#[tokio::test]
async fn acp_compat_mode_has_no_federation_and_no_tree() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut compat, hello) = connect_raw(&office, json!({ "mode": "acp-compat" })).await;
    let own = &hello["agentId"];
    let away = json!({ "to": { "system": "beta", "agent": "ann" }, "payload": 1 });
    for method in ["map/send", "_map/send", "map/request"] {
        assert_eq!(code(&mut compat, method, away.clone()).await, 5000, "{method}");
    }
    for prefix in ["map", "_map"] {
        let list = compat.call(&format!("{prefix}/hierarchy.get"), json!({})).await.unwrap();
        assert_eq!((&list["agents"][0]["id"], list.get("edges")), (own, None), "{list}");
        for side in ["parent", "children", "siblings", "ancestors", "descendants"] {
            let method = format!("{prefix}/hierarchy.{side}");
            assert_eq!(code(&mut compat, &method, json!({ "agentId": own })).await, 1003, "{method}");
        }
    }
    let plain = compat.call("map/agents/get", json!({ "agentId": own })).await.unwrap();
    assert_eq!(plain["agent"]["id"], *own);
    let more = json!({ "agentId": own, "include": { "children": true } });
    assert_eq!(code(&mut compat, "map/agents/get", more).await, 1003);
}

#[tokio::test]
async fn only_recipients_answer_a_request_and_only_to_its_sender() {
    let office = Office::open(&["--no-auth"]).await;
    let mut asker = Client::agent(&office, "asker").await;
    let mut other = Client::agent(&office, "other").await;
    // The question is for the second of two agents; their session speaks in the name of the first.
    let mut asked = Client::agent(&office, "first").await;
    asked.call("map/agents/register", json!({ "agentId": "second" })).await.unwrap();
    let question = json!({ "to": { "agent": "second" }, "payload": "?", "meta": { "correlationId": "c" } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "map/request", "params": question });
    asker.text(&call.to_string()).await;
    assert_eq!(asked.message().await["payload"], "?");
    let say = |to: &str, payload: &str| json!({ "to": { "agent": to }, "payload": payload, "meta": { "correlationId": "c" } });
    other.call("map/send", say("asker", "from another agent")).await.unwrap();
    asked.call("map/send", say("other", "to another agent")).await.unwrap();
    asked.call("map/send", say("asker", "the answer")).await.unwrap();
    let answer = asker.next(|frame| frame["id"] == 7).await;
    assert_eq!(answer["result"]["payload"], "the answer", "{answer}");
}

#[tokio::test]
async fn request_to_another_system_is_refused() {
    let beta = Office::open(&["--no-auth", "--realm", "beta"]).await;
    let alpha = Office::open(&["--no-auth", "--realm", "alpha"]).await;
    let mut ann = Client::agent(&alpha, "ann").await;
    let away = json!({ "to": { "system": "beta", "agent": "bob" }, "payload": 1 });
    assert_eq!(code(&mut ann, "map/request", away.clone()).await, 5001, "there is no link");
    let link = json!({ "systemId": "beta", "endpoint": beta.url() });
    ann.call("map/federation/connect", link).await.unwrap();
    let refused = ann.call("map/request", away).await.unwrap_err();
    assert_eq!(refused["code"], 5000);
    assert!(refused["message"].as_str().unwrap().contains("not carried"), "{refused}");
}

#[tokio::test]
async fn event_names_recipients_that_were_left_out() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let _ok = Client::agent(&office, "ok").await;
    let mut unwilling = Client::agent(&office, "unwilling").await;
    let closed =
        json!({ "agentId": "unwilling", "permissionOverrides": { "acceptsFrom": { "agents": "none" } } });
    unwilling.call("map/agents/update", closed).await.unwrap();
    let mut deaf = Client::stranger(&office).await;
    let may = json!({ "messaging": { "canReceive": false } });
    let hello = json!({ "protocolVersion": 1, "participantType": "agent", "capabilities": may });
    deaf.call("map/connect", hello).await.unwrap();
    deaf.call("map/agents/register", json!({ "agentId": "deaf" })).await.unwrap();
    let (mut watching, _) = connect_raw(&office, full()).await;
    let filter = json!({ "filter": { "eventTypes": ["message", "message.failed"] } });
    watching.call("map/subscribe", filter.clone()).await.unwrap();
    let send = json!({ "to": { "agents": ["ok", "unwilling", "deaf"] }, "payload": 1 });
    let sent = from.call("map/send", send).await.unwrap();
    let event = next_event(&mut watching, "message").await["event"].take();
    let statuses = |of: &Value| -> Vec<Value> {
        of["receipts"].as_array().unwrap().iter().map(|one| json!([one["agentId"], one["status"]])).collect()
    };
    assert_eq!(statuses(&event)[1..], [json!(["unwilling", "failed"]), json!(["deaf", "failed"])], "{event}");
    assert_eq!(statuses(&sent)[1..], statuses(&event)[1..], "the answer says the same: {sent}");
    let replay = watching.call("map/replay", filter).await.unwrap();
    for (n, name) in ["unwilling", "deaf"].into_iter().enumerate() {
        let failed = next_event(&mut watching, "message.failed").await["event"].take();
        assert_eq!((&failed["messageId"], &failed["agentId"]), (&sent["messageId"], &json!(name)));
        assert_eq!(replay["events"][n + 1]["event"], failed, "and the history keeps it");
    }
}

#[tokio::test]
async fn registration_event_has_the_whole_entry() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut watching, _) = connect_raw(&office, full()).await;
    watching
        .call("map/subscribe", json!({ "filter": { "eventTypes": ["agent.registered"] } }))
        .await
        .unwrap();
    let mut maker = Client::agent(&office, "maker").await;
    next_event(&mut watching, "agent.registered").await;
    let register = json!({
        "agentId": "made", "name": "Made", "role": "worker", "description": "does it", "parent": "maker",
        "scopes": ["team"], "metadata": { "a": 1 }, "environment": { "type": "vm" }, "visibility": "public",
        "capabilities": { "review": true },
    });
    maker.call("map/agents/register", register).await.unwrap();
    let seen = watching.call("map/agents/get", json!({ "agentId": "made" })).await.unwrap()["agent"].take();
    let event = next_event(&mut watching, "agent.registered").await["event"].take();
    assert_eq!(event["agent"], seen);
    assert_eq!((&seen["parent"], &seen["scopes"]), (&json!("maker"), &json!(["team"])));
}

#[tokio::test]
async fn connection_keeps_its_dialect_beyond_its_session() {
    let office = Office::open(&["--no-auth"]).await;
    let _to = Client::agent(&office, "to").await;
    let (mut root, _) = connect_raw(&office, full()).await;
    let send = json!({ "to": { "agent": "to" }, "payload": 1 });
    for farewell in ["map/shutdown", "map/disconnect"] {
        root.call(farewell, json!({})).await.unwrap();
        let sent = root.call("map/send", send.clone()).await.unwrap();
        let said = (&sent["delivered"], &sent["receipts"][0]["semantic"]);
        assert_eq!(said, (&json!(1), &json!("inject")), "{farewell}: {sent}");
    }
    let (mut compat, _) = connect_raw(&office, json!({ "mode": "acp-compat" })).await;
    compat.call("map/shutdown", json!({})).await.unwrap();
    assert_eq!(code(&mut compat, "map/scopes/create", json!({ "name": "s" })).await, 1003, "nor its limits");
}

#[tokio::test]
async fn federation_is_offered_to_sessions_that_may_federate() {
    let office = Office::open(&[]).await;
    let mut admin = Client::open_with(&office, &office.admin_token()).await;
    let hello = admin.call("map/initialize", full()).await.unwrap();
    assert_eq!(hello["capabilities"]["federation"], true);
    let made = json!({ "role": "agent", "name": "ann" });
    let token = admin.call("x-posthaste/token.create", made).await.unwrap()["token"].take();
    let mut ann = Client::open_with(&office, token.as_str().unwrap()).await;
    let hello = ann.call("map/initialize", full()).await.unwrap();
    assert_eq!(hello["capabilities"]["federation"], false);
}

#[tokio::test]
async fn descent_filter_matches_messages_to_descendants() {
    let office = Office::open(&["--no-auth"]).await;
    let mut boss = Client::agent(&office, "boss").await;
    boss.call("map/agents/register", json!({ "agentId": "worker", "parent": "boss" })).await.unwrap();
    let mut other = Client::agent(&office, "other").await;
    let (mut watching, _) = connect_raw(&office, full()).await;
    for (field, value) in
        [("subtree", json!("worker")), ("descendants", json!("boss")), ("agents", json!(["worker"]))]
    {
        let asked = json!({ "filter": { field: value, "eventTypes": ["message"] } });
        let made = watching.call("map/subscribe", asked).await.unwrap()["subscriptionId"].take();
        other.call("map/send", json!({ "to": { "agent": "worker" }, "payload": field })).await.unwrap();
        let event = watching.next(|frame| frame["params"]["subscriptionId"] == made).await;
        assert_eq!(event["params"]["event"]["envelope"]["payload"], field);
    }
}
