//! Shapes of MAP's answers and frames that clients of several versions look for.

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

// outside F1, F2
#[tokio::test]
async fn a_goodbye_is_answered_and_text_that_is_no_text_has_its_own_code() {
    let office = Office::open(&["--no-auth"]).await;
    let mut quiet = Client::stranger(&office).await;
    assert_eq!(quiet.goodbye(1000).await, Some(1000));
    let mut agent = Client::agent(&office, "ann").await;
    agent.call("map/subscribe", json!({})).await.unwrap();
    assert_eq!(agent.goodbye(1000).await, Some(1000));
    let mut rude = Client::connect(&office, "client").await;
    rude.raw_text(&[0xff, 0xfe]).await;
    assert_eq!(rude.close_code().await, Some(1007));
}

// outside F11
#[tokio::test]
async fn answers_have_the_members_that_the_schema_requires() {
    let office = Office::open(&[]).await;
    let token = office.admin_token();
    let mut ann = Client::connect_with(&office, &token, "agent").await;
    ann.call("map/agents/register", json!({ "agentId": "ann" })).await.unwrap();
    ann.call("map/scopes/create", json!({ "scopeId": "team" })).await.unwrap();
    let member = json!({ "scopeId": "team", "agentId": "ann" });
    let subscription = ann.call("map/subscribe", json!({})).await.unwrap()["subscriptionId"].take();
    for (method, asked, member) in [
        ("map/scopes/join", member.clone(), "joined"),
        ("map/scopes/leave", member, "left"),
        ("map/scopes/delete", json!({ "scopeId": "team" }), "deleted"),
        ("map/unsubscribe", json!({ "subscriptionId": subscription }), "unsubscribed"),
        ("map/agents/unregister", json!({ "agentId": "ann" }), "unregistered"),
        ("map/session/close", json!({}), "closed"),
    ] {
        let answer = ann.call(method, asked).await.unwrap();
        assert_eq!((&answer[member], &answer["success"]), (&json!(true), &json!(true)), "{method}: {answer}");
    }
    let end = 9_000_000_000_000_i64;
    let made = json!({ "role": "agent", "name": "bob", "expires_at": end });
    let made = ann.call("x-posthaste/token.create", made).await.unwrap();
    let mut bob = Client::connect_with(&office, made["token"].as_str().unwrap(), "agent").await;
    let fresh = bob
        .call("map/auth/refresh", json!({ "method": "bearer", "credential": made["token"] }))
        .await
        .unwrap();
    assert_eq!((&fresh["accessToken"], &fresh["expiresAt"]), (&made["token"], &json!(end)), "{fresh}");
    assert_eq!((&fresh["success"], &fresh["principal"]["id"]), (&json!(true), &json!("bob")));
}

// outside F10
#[tokio::test]
async fn an_agent_that_is_told_to_stop_is_stopping_and_then_stopped() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let mut boss = Client::connect(&office, "client").await;
    boss.call("map/subscribe", json!({ "filter": { "eventTypes": ["agent_state_changed"] } })).await.unwrap();
    let answer = boss.call("map/agents/stop", json!({ "agentId": "ann" })).await.unwrap();
    assert_eq!(
        (&answer["stopping"], &answer["agent"]["state"]),
        (&json!(true), &json!("stopped")),
        "{answer}"
    );
    for state in ["stopping", "stopped"] {
        let told = boss.next(|frame| frame["method"] == "map/event").await["params"]["event"]["data"].take();
        assert_eq!(told["newState"], state, "{told}");
    }
    // What the SDK's done() does.
    let done = json!({ "agentId": "ann", "state": "stopped", "metadata": { "exitReason": "told" } });
    ann.call("map/agents/update", done).await.unwrap();
}

async fn registered(client: &mut Client, filter: Value, office: &Office, name: &str) -> Value {
    let id =
        client.call("map/subscribe", json!({ "filter": filter })).await.unwrap()["subscriptionId"].take();
    let _agent = Client::agent(office, name).await;
    let told =
        client.next(|frame| frame["method"] == "map/event" && frame["params"]["subscriptionId"] == id).await;
    client.call("map/unsubscribe", json!({ "subscriptionId": id })).await.unwrap();
    told["params"]["event"]["type"].clone()
}

// outside F17
#[tokio::test]
async fn events_are_spelled_as_the_filter_spells_them() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    for (index, (filter, wanted)) in [
        (json!({ "eventTypes": ["agent.registered"] }), "agent.registered"),
        (json!({ "eventTypes": ["agent_registered"] }), "agent_registered"),
        (json!({ "eventTypes": ["agent.*"] }), "agent_registered"),
        (json!({ "eventTypes": ["scope.created", "agent.registered"] }), "agent.registered"),
        (json!({ "eventTypes": ["*"], "fromAgents": ["a4"] }), "agent_registered"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("a{index}");
        assert_eq!(registered(&mut client, filter.clone(), &office, &name).await, wanted, "{filter}");
    }
    let replay = json!({ "filter": { "eventTypes": ["agent.registered"] } });
    let replay = client.call("map/replay", replay).await.unwrap();
    assert_eq!(replay["events"][0]["event"]["type"], "agent.registered");
}

// Issue 23, line 14
#[tokio::test]
async fn subscriptions_by_the_extension_method_get_extension_notifications() {
    let office = Office::open(&["--no-auth"]).await;
    let greeting = json!({ "mode": "acp-compat", "clientInfo": { "name": "acp" } });
    let (mut compat, _) = connect_raw(&office, greeting.clone()).await;
    compat.call("_map/subscribe", json!({})).await.unwrap();
    let _ann = Client::agent(&office, "ann").await;
    let named = |method: &'static str| move |frame: &Value| frame["method"] == method;
    let told = compat.next(named("_map/event")).await;
    let plain = compat.next(named("map/event")).await;
    assert_eq!(told["params"], plain["params"]);
    assert!(!compat.has(named("session/update")));
    // A client of MAP's own greeting that subscribes by MAP's own method gets updates of its session, as the seed says.
    let (mut other, _) = connect_raw(&office, greeting).await;
    other.call("map/subscribe", json!({})).await.unwrap();
    let _bob = Client::agent(&office, "bob").await;
    assert_eq!(other.next(named("session/update")).await["params"]["update"]["sessionUpdate"], "_map/event");
}

// Issue 23, line 14
#[tokio::test]
async fn a_client_may_ask_for_compatibility_after_another_call() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::stranger(&office).await;
    client.call("map/agents/list", json!({})).await.unwrap();
    let greeting = json!({ "mode": "acp-compat", "clientInfo": { "name": "late" } });
    let answer = client.call("map/initialize", greeting).await.unwrap();
    assert_eq!((&answer["mode"], &answer["agentId"]), (&json!("acp-compat"), &json!("late")), "{answer}");
    assert_eq!(answer["capabilities"]["maxSubscriptions"], 1);
    // And it is held to it.
    assert_eq!(client.call("map/scopes/create", json!({ "name": "s" })).await.unwrap_err()["code"], 1003);
}
