//! Params of the wrong type are refused and change nothing.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

async fn refused(client: &mut Client, method: &str, params: Value) {
    let answer = client.call(method, params.clone()).await;
    assert_eq!(answer.unwrap_err()["code"], -32602, "{method} {params}");
}

#[tokio::test]
async fn arrays_are_not_accepted_as_objects() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::agent(&office, "ann").await;
    let id = ann.call("mail/create", json!({})).await.unwrap()["conversation"]["id"].take();
    let invite = |participant: Value| json!({ "conversationId": id, "participant": participant });
    for (method, params) in [
        ("mail/create", json!({ "initialParticipants": [["bob", "worker"]] })),
        ("mail/create", json!({ "initialParticipants": [{ "id": "bob", "permissions": [false] }] })),
        ("mail/create", json!({ "initialParticipants": { "id": "bob" } })),
        ("mail/create", json!({ "initialTurn": ["text", { "text": "hi" }] })),
        ("mail/create", json!({ "metadata": [] })),
        ("mail/get", json!({ "conversationId": id, "include": [true] })),
        ("mail/list", json!({ "filter": [] })),
        ("mail/join", json!({ "conversationId": id, "catchUp": ["recent"] })),
        ("mail/invite", invite(json!(["bob", "observer"]))),
        ("mail/invite", invite(json!({ "id": "bob", "permissions": [false] }))),
        ("mail/invite", invite(Value::Null)),
        ("mail/turns/list", json!({ "conversationId": id, "filter": [] })),
        ("mail/summary", json!({ "conversationId": id, "scope": [] })),
        ("mail/summary", json!({ "conversationId": id, "include": [] })),
        ("map/connect", json!({ "protocolVersion": 1, "capabilities": [] })),
        ("map/connect", json!({ "protocolVersion": 1, "disconnectPolicy": ["orphan"] })),
        ("map/connect", json!({ "protocolVersion": 1, "auth": ["bearer", "secret"] })),
        ("map/subscribe", json!({ "filter": [] })),
        ("map/subscribe", json!({ "options": [] })),
        ("map/replay", json!({ "options": [] })),
        ("map/agents/list", json!({ "filter": [["idle"]] })),
        ("map/agents/get", json!({ "agentId": "ann", "include": [true] })),
        ("map/agents/update", json!({ "agentId": "ann", "permissionOverrides": { "canSee": ["all"] } })),
        ("map/tasks/create", json!({ "task": ["one", "a title"] })),
        ("map/tasks/list", json!({ "filter": [] })),
        ("map/federation/route", json!({ "systemId": "x", "envelope": [{ "to": "ann" }] })),
        (
            "map/federation/route",
            json!({ "systemId": "x", "envelope": { "payload": {}, "federation": ["y"] } }),
        ),
    ] {
        refused(&mut ann, method, params).await;
    }
    let mut stranger = Client::stranger(&office).await;
    refused(&mut stranger, "map/initialize", json!({ "auth": ["none"] })).await;
    let get = json!({ "conversationId": id, "include": { "participants": true } });
    let got = ann.call("mail/get", get).await.unwrap();
    assert_eq!(got["conversation"]["participantCount"], 1, "no participant was added");
    let list = ann.call("mail/list", json!({})).await.unwrap();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1, "nothing was opened");
    assert_eq!(ann.call("map/tasks/list", json!({})).await.unwrap()["tasks"], json!([]));
}

#[tokio::test]
async fn null_objects_count_as_absent() {
    let office = Office::open(&["--no-auth"]).await;
    let mut ann = Client::stranger(&office).await;
    let hello = json!({
        "protocolVersion": 1, "participantType": "agent", "capabilities": null, "disconnectPolicy": null, "auth": null,
    });
    ann.call("map/connect", hello).await.unwrap();
    ann.call("map/agents/register", json!({ "agentId": "ann" })).await.unwrap();
    let create = json!({ "initialParticipants": null, "initialTurn": null, "metadata": null });
    let id = ann.call("mail/create", create).await.unwrap()["conversation"]["id"].take();
    let bob = json!({ "id": "bob", "permissions": null });
    for (method, params) in [
        ("mail/invite", json!({ "conversationId": id, "participant": bob })),
        ("map/subscribe", json!({ "filter": null, "options": null })),
        ("map/replay", json!({ "filter": null, "options": null })),
        ("map/agents/list", json!({ "filter": null })),
        ("map/agents/get", json!({ "agentId": "ann", "include": null })),
        ("map/tasks/create", json!({ "task": null, "title": "one" })),
        ("map/tasks/list", json!({ "filter": null })),
    ] {
        let answer = ann.call(method, params.clone()).await;
        assert!(answer.is_ok(), "{method} {params}: {answer:?}");
    }
    ann.call("mail/leave", json!({ "conversationId": id })).await.unwrap();
    ann.call("mail/join", json!({ "conversationId": id, "catchUp": null })).await.unwrap();
}
