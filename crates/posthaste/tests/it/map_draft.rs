//! The draft's side of MAP from outside: what acp-compat mode leaves out, whose answer counts, and what events say.

use serde_json::{Value, json};

use crate::map_client::{Client, Office, connect_raw};

fn full() -> Value {
    json!({ "protocolVersion": "2025-01-01", "clientInfo": { "name": "root" }, "capabilities": { "streaming": true } })
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

/// The next event of one type, with what the subscription wrote around it.
async fn told(client: &mut Client, kind: &str) -> Value {
    let kind = kind.to_owned();
    client.next(move |frame| frame["params"]["event"]["type"] == kind.as_str()).await["params"].take()
}

#[tokio::test]
async fn whoever_wants_no_payloads_gets_none_in_the_envelope_either() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut watching, _) = connect_raw(&office, full()).await;
    let asked = json!({ "filter": { "eventTypes": ["message"] }, "options": { "includeMessagePayloads": false } });
    watching.call("map/subscribe", asked.clone()).await.unwrap();
    let mut from = Client::agent(&office, "from").await;
    let _to = Client::agent(&office, "to").await;
    from.call("map/send", json!({ "to": { "agent": "to" }, "payload": "kept" })).await.unwrap();
    let live = told(&mut watching, "message").await;
    let replay = watching.call("map/replay", asked).await.unwrap();
    for event in [&live["event"], &replay["events"][0]["event"]] {
        assert_eq!((&event["envelope"]["from"], event["envelope"].get("payload")), (&json!("from"), None));
        assert!(!event.to_string().contains("kept"), "{event}");
    }
}

#[tokio::test]
async fn acp_compat_mode_has_no_way_to_other_systems_and_no_tree() {
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
async fn only_the_one_who_was_asked_answers_and_only_to_the_asker() {
    let office = Office::open(&["--no-auth"]).await;
    let mut asker = Client::agent(&office, "asker").await;
    let mut other = Client::agent(&office, "other").await;
    // The question is for the second of two agents; whoever is behind them speaks in the name of the first.
    let mut asked = Client::agent(&office, "first").await;
    asked.call("map/agents/register", json!({ "agentId": "second" })).await.unwrap();
    let question = json!({ "to": { "agent": "second" }, "payload": "?", "meta": { "correlationId": "c" } });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "map/request", "params": question });
    asker.text(&call.to_string()).await;
    assert_eq!(asked.message().await["payload"], "?");
    let say = |to: &str, payload: &str| json!({ "to": { "agent": to }, "payload": payload, "meta": { "correlationId": "c" } });
    other.call("map/send", say("asker", "from somebody else")).await.unwrap();
    asked.call("map/send", say("other", "to somebody else")).await.unwrap();
    asked.call("map/send", say("asker", "the answer")).await.unwrap();
    let answer = asker.next(|frame| frame["id"] == 7).await;
    assert_eq!(answer["result"]["payload"], "the answer", "{answer}");
}

#[tokio::test]
async fn a_request_to_another_system_is_refused_for_what_it_is() {
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
