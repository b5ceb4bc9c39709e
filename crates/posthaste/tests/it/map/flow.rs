//! MAP subscriptions: acknowledgements, resuming, and which calls wait for others.

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

async fn subscribe(client: &mut Client, params: Value) -> Value {
    client.call("map/subscribe", params).await.unwrap()["subscriptionId"].take()
}

/// The next event of a subscription.
async fn next(client: &mut Client, subscription: &Value) -> Value {
    let id = subscription.clone();
    client.next(move |frame| frame["params"]["subscriptionId"] == id).await["params"].take()
}

/// Causes one event that no other test step causes.
async fn happen(client: &mut Client, n: usize) {
    client.call("map/tasks/create", json!({ "title": n.to_string() })).await.unwrap();
}

#[tokio::test]
async fn acknowledgement_counts_only_what_was_sent() {
    let office = Office::open(&["--no-auth"]).await;
    let mut maker = Client::agent(&office, "maker").await;
    let mut client = Client::connect(&office, "client").await;
    let asked = json!({ "filter": { "eventTypes": ["task.created"] }, "options": { "bufferSize": 2 } });
    let id = subscribe(&mut client, asked).await;
    assert_eq!(code(&mut client, "map/subscribe.ack", json!({ "subscriptionId": id })).await, -32602);
    let ack = |up_to: u64| json!({ "subscriptionId": id, "upToSequence": up_to });
    client.call("map/subscribe.ack", ack(100)).await.unwrap();
    for n in 0..6 {
        happen(&mut maker, n).await;
    }
    for number in 1..=2 {
        assert_eq!(next(&mut client, &id).await["sequenceNumber"], number);
    }
    client.call("map/subscribe.ack", ack(1)).await.unwrap();
    assert_eq!(next(&mut client, &id).await["sequenceNumber"], 3);
    // If another event were sent, it would come before the answer to a second call.
    client.call("map/agents/list", json!({})).await.unwrap();
    let all = json!({ "filter": { "eventTypes": ["x-none"] } });
    client.call("map/replay", all).await.unwrap();
    assert!(!client.has(|frame| frame["params"]["subscriptionId"] == id), "two are out, and no more");
}

#[tokio::test]
async fn resuming_from_the_last_event_id_misses_nothing() {
    let office = Office::open(&["--no-auth"]).await;
    let mut maker = Client::agent(&office, "maker").await;
    let mut client = Client::connect(&office, "client").await;
    let kinds = json!({ "eventTypes": ["task.created"] });
    let id = subscribe(&mut client, json!({ "filter": kinds, "options": { "bufferSize": 1 } })).await;
    client.call("map/pause", json!({ "subscriptionId": id })).await.unwrap();
    for n in 0..4 {
        happen(&mut maker, n).await;
    }
    client.call("map/resume", json!({ "subscriptionId": id })).await.unwrap();
    let kept = next(&mut client, &id).await;
    let overflow = next(&mut client, &id).await;
    assert_eq!(overflow["event"]["type"], "subscription.overflow", "{overflow}");
    assert_eq!(overflow["event"]["data"]["eventsDropped"], 3);
    assert_ne!(overflow["eventId"], kept["eventId"], "each has its own name");
    let after = json!({ "afterEventId": overflow["eventId"], "filter": kinds });
    let missed = client.call("map/replay", after).await.unwrap();
    let missed: Vec<&Value> = missed["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["event"]["data"]["task"]["title"])
        .collect();
    assert_eq!(missed, ["1", "2", "3"]);
    let again = subscribe(&mut client, json!({ "filter": kinds, "replayFrom": overflow["eventId"] })).await;
    assert_eq!(next(&mut client, &again).await["event"]["data"]["task"]["title"], "1");
    let ack = json!({ "subscriptionId": id, "eventId": overflow["eventId"] });
    client.call("map/ack", ack).await.unwrap();
    let signs = json!({ "filter": { "eventTypes": ["system.heartbeat", "system.capacity"] } });
    let signs = subscribe(&mut client, signs).await;
    for kind in ["system.heartbeat", "system.capacity"] {
        let sign = next(&mut client, &signs).await;
        assert_eq!(sign["event"]["type"], kind);
        client.call("map/replay", json!({ "afterEventId": sign["eventId"] })).await.unwrap();
    }
}

#[tokio::test]
async fn capacity_event_counts_agents() {
    let office = Office::open(&["--no-auth"]).await;
    let _maker = Client::agent(&office, "maker").await;
    let mut client = Client::connect(&office, "client").await;
    let id = subscribe(&mut client, json!({ "filter": { "eventTypes": ["system.capacity"] } })).await;
    let event = next(&mut client, &id).await["event"].take();
    assert_eq!((&event["agents"], &event["maxAgents"]), (&json!(1), &json!(20_000)), "{event}");
}

#[tokio::test]
async fn acps_extension_method_gives_a_session_one_subscription() {
    let office = Office::open(&["--no-auth"]).await;
    let full = json!({ "protocolVersion": "2025-01-01", "capabilities": { "streaming": true } });
    let (mut client, _) = connect_raw(&office, full).await;
    let first = client.call("_map/subscribe", json!({})).await.unwrap()["subscriptionId"].take();
    assert_eq!(code(&mut client, "_map/subscribe", json!({})).await, 4002);
    client.call("map/subscribe", json!({})).await.unwrap();
    client.call("map/unsubscribe", json!({ "subscriptionId": first })).await.unwrap();
    client.call("_map/subscribe", json!({})).await.unwrap();
}

#[tokio::test]
async fn end_of_a_session_is_announced_once() {
    let office = Office::open(&["--no-auth"]).await;
    let mut watching = Client::connect(&office, "client").await;
    let kinds = json!({ "eventTypes": ["participant_disconnected", "task.created"] });
    let id = subscribe(&mut watching, json!({ "filter": kinds })).await;
    let mut maker = Client::agent(&office, "maker").await;
    for (n, farewell) in ["map/shutdown", "map/session/close", "map/disconnect"].into_iter().enumerate() {
        let mut client = Client::stranger(&office).await;
        let hello = json!({ "protocolVersion": 1, "participantType": "agent" });
        let hello = client.call("map/connect", hello).await.unwrap();
        client.call("map/agents/register", json!({ "agentId": format!("gone-{n}") })).await.unwrap();
        client.call(farewell, json!({})).await.unwrap();
        drop(client);
        let event = next(&mut watching, &id).await["event"].take();
        assert_eq!(event["data"]["participantId"], hello["participantId"], "{farewell}");
        happen(&mut maker, n).await;
        assert_eq!(next(&mut watching, &id).await["event"]["type"], "task.created", "once: {farewell}");
    }
}

#[tokio::test]
async fn batch_with_a_request_delays_no_other_call() {
    let office = Office::open(&["--no-auth"]).await;
    let mut asker = Client::agent(&office, "asker").await;
    let mut asked = Client::agent(&office, "asked").await;
    let question = json!({ "to": { "agent": "asked" }, "payload": "?", "meta": { "correlationId": "c" } });
    let call = |id: u64, method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let batch = json!([
        call(1, "map/agents/list", &json!({})),
        call(2, "map/request", &question),
        call(3, "map/session/info", &json!({})),
    ]);
    asker.text(&batch.to_string()).await;
    assert_eq!(asked.message().await["payload"], "?");
    asker.call("map/agents/list", json!({})).await.expect("an answer before the batch's");
    let answer = json!({ "to": { "agent": "asker" }, "payload": "!", "meta": { "correlationId": "c" } });
    asked.call("map/send", answer).await.unwrap();
    let answers = asker.next(Value::is_array).await;
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!((ids, &answers[1]["result"]["payload"]), (vec![&json!(1), &json!(2), &json!(3)], &json!("!")));
}
