//! The MAP door from outside: invalid input, limits and misbehaving clients.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::map::client::{Client, Office, connect_raw};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_huge_frame_closes_its_own_connection_with_1009() {
    let office = Office::open(&["--no-auth"]).await;
    let mut rude = Client::connect(&office, "client").await;
    let mut other = Client::connect(&office, "client").await;
    rude.text(&format!("\"{}\"", "x".repeat((1 << 20) + 1))).await;
    assert_eq!(rude.close_code().await, Some(1009));
    assert!(other.call("map/agents/list", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_binary_frame_closes_its_own_connection() {
    let office = Office::open(&["--no-auth"]).await;
    let mut rude = Client::connect(&office, "client").await;
    rude.binary(b"{}").await;
    assert_eq!(rude.close_code().await, Some(1003));
}

#[tokio::test]
async fn malformed_input_is_answered_and_the_connection_stays() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    for (text, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("5", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"map/send"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"map/send"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"map/send","params":[1]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"map/send","params":{"to":{"agent":5}}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"map/send","params":{"to":{"agent":"a"},"meta":5}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"map/subscribe","params":{"filter":[]}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"map/nothing"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/nothing"}"#, -32601),
    ] {
        client.text(text).await;
        let answer = client.next(|frame| frame.get("error").is_some()).await;
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
    }
    assert!(client.call("map/agents/list", json!({})).await.is_ok());
}

#[tokio::test]
async fn thousands_of_unread_answers_do_not_harm_other_clients() {
    let office = Office::open(&["--no-auth"]).await;
    let mut rude = Client::connect(&office, "client").await;
    for id in 0..3000 {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "map/agents/list" }).to_string();
        // Sending waits once the server has stopped reading.
        if timeout(Duration::from_millis(200), rude.text(&call)).await.is_err() {
            break;
        }
    }
    let mut other = Client::connect(&office, "client").await;
    assert!(other.call("map/agents/list", json!({})).await.is_ok());
}

#[tokio::test]
async fn one_subscription_too_many_is_refused() {
    let office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    for _ in 0..100 {
        client.call("map/subscribe", json!({ "filter": { "eventTypes": ["task.*"] } })).await.unwrap();
    }
    let refused = client.call("map/subscribe", json!({})).await.unwrap_err();
    assert_eq!(refused["code"], 4002);
    let (mut one, answer) = connect_raw(&office, json!({ "mode": "acp-compat" })).await;
    assert_eq!(answer["capabilities"]["maxSubscriptions"], 1);
    one.call("_map/subscribe", json!({})).await.unwrap();
    assert_eq!(one.call("_map/subscribe", json!({})).await.unwrap_err()["code"], 4002);
    assert_eq!(one.call("map/scopes/create", json!({ "name": "s" })).await.unwrap_err()["code"], 1003);
}

#[tokio::test]
async fn a_subscriber_that_never_reads_does_not_slow_others() {
    let office = Office::open(&["--no-auth"]).await;
    let mut deaf = Client::connect(&office, "client").await;
    deaf.call("map/subscribe", json!({})).await.unwrap();
    let mut from = Client::agent(&office, "from").await;
    let mut to = Client::agent(&office, "to").await;
    let payload = "x".repeat(32 << 10);
    for n in 0..200 {
        let sent = json!({ "to": { "agent": "to" }, "payload": { "n": n, "text": payload } });
        timeout(SOON, from.call("map/send", sent)).await.expect("an answer in time").unwrap();
    }
    for n in 0..200 {
        let got = timeout(SOON, to.message()).await.expect("a message in time");
        assert_eq!(got["payload"]["n"], n, "in order");
    }
}

#[tokio::test]
async fn fast_and_slow_messages_keep_their_order() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let mut to = Client::agent(&office, "to").await;
    for n in 0..300 {
        // Every third one asks for an acknowledgement, so it is in the database first; the others are written behind.
        let meta = match n % 3 {
            0 => json!({ "requireAck": true }),
            _ => json!({ "delivery": "fire-and-forget" }),
        };
        let send = json!({ "to": { "agent": "to" }, "payload": n, "meta": meta });
        from.text(&json!({ "jsonrpc": "2.0", "id": n, "method": "map/send", "params": send }).to_string())
            .await;
    }
    for n in 0..300 {
        assert_eq!(timeout(SOON, to.message()).await.expect("a message")["payload"], n);
    }
}

#[tokio::test]
async fn a_receipt_claims_only_what_happened() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let to = Client::agent(&office, "to").await;
    let send = |meta: Value| json!({ "to": { "agent": "to" }, "payload": 1, "meta": meta });
    let fast = from.call("map/send", send(json!({}))).await.unwrap();
    assert_eq!((&fast["delivered"], &fast["receipts"][0]["status"]), (&json!(["to"]), &json!("delivered")));
    drop(to);
    // Until the server knows that the connection is gone, it delivers.
    let lost = timeout(SOON, async {
        loop {
            let sent = from.call("map/send", send(json!({ "delivery": "best-effort" }))).await.unwrap();
            if sent["receipts"][0]["status"] != "delivered" {
                return sent;
            }
        }
    });
    let lost = lost.await.expect("the end of the connection is noticed");
    assert_eq!((&lost["delivered"], &lost["receipts"][0]["status"]), (&json!([]), &json!("failed")));
    let kept = from.call("map/send", send(json!({}))).await.unwrap();
    assert_eq!((&kept["delivered"], &kept["receipts"][0]["status"]), (&json!([]), &json!("queued")));
    let mut back = Client::agent(&office, "to").await;
    assert_eq!(back.message().await["id"], kept["messageId"], "what was queued, and only that");
}

#[tokio::test]
async fn a_cursor_outlives_a_restart_but_not_another_history() {
    let mut office = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&office, "client").await;
    Client::agent(&office, "early").await;
    let replay =
        client.call("map/replay", json!({ "filter": { "eventTypes": ["agent.registered"] } })).await.unwrap();
    let cursor = replay["events"][0]["eventId"].clone();
    office.restart().await;
    let mut client = Client::connect(&office, "client").await;
    Client::agent(&office, "late").await;
    let asked = json!({ "afterEventId": cursor, "filter": { "eventTypes": ["agent.registered"] } });
    let after = client.call("map/replay", asked.clone()).await.unwrap();
    assert_eq!(after["events"][0]["event"]["data"]["agentId"], "late");
    let other = Office::open(&["--no-auth"]).await;
    let mut client = Client::connect(&other, "client").await;
    assert_eq!(client.call("map/replay", asked).await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn two_servers_exchange_messages_and_refuse_loops() {
    let alpha = Office::open(&["--no-auth", "--realm", "alpha"]).await;
    let beta = Office::open(&["--no-auth", "--realm", "beta"]).await;
    let mut ann = Client::agent(&alpha, "ann").await;
    let mut bob = Client::agent(&beta, "bob").await;
    let unknown =
        ann.call("map/send", json!({ "to": { "system": "beta", "agent": "bob" }, "payload": 1 })).await;
    assert_eq!(unknown.unwrap_err()["code"], 5001);
    let link = json!({ "systemId": "beta", "endpoint": beta.url() });
    assert_eq!(ann.call("map/federation/connect", link).await.unwrap()["connected"], true);
    let link = json!({ "systemId": "alpha", "endpoint": alpha.url() });
    assert_eq!(bob.call("map/federation/connect", link).await.unwrap()["connected"], true);
    let sent = json!({ "to": { "system": "beta", "agent": "bob" }, "payload": "hello", "meta": { "x": 1 } });
    let sent = ann.call("map/send", sent).await.unwrap();
    assert_eq!(sent["delivered"], json!(["beta:agent:bob"]));
    let got = bob.message().await;
    assert_eq!(
        (&got["from"], &got["payload"], &got["meta"]["x"]),
        (&json!("alpha:agent:ann"), &json!("hello"), &json!(1))
    );
    bob.call("map/send", json!({ "to": { "agent": got["from"] }, "payload": "back" })).await.unwrap();
    assert_eq!(ann.message().await["payload"], "back");
    let message = json!({ "id": "m", "from": "x", "to": { "agent": "bob" }, "timestamp": 1, "payload": 1 });
    for (way, code) in [
        (json!({ "targetSystem": "beta", "hopCount": 10 }), 5011),
        (json!({ "targetSystem": "beta", "hopCount": 1, "path": ["alpha"] }), 5010),
        (json!({ "targetSystem": "gamma" }), 5001),
    ] {
        let route = json!({ "systemId": "beta", "envelope": { "payload": message, "federation": way } });
        assert_eq!(ann.call("map/federation/route", route).await.unwrap_err()["code"], code, "{way}");
    }
    let absent = json!({ "systemId": "delta", "endpoint": "ws://127.0.0.1:1/map" });
    assert_eq!(ann.call("map/federation/connect", absent).await.unwrap_err()["code"], 5000);
}

#[tokio::test]
async fn permission_overrides_apply_to_lists_sends_and_streams() {
    let office = Office::open(&["--no-auth"]).await;
    let mut kept = Client::agent(&office, "kept").await;
    let mut other = Client::agent(&office, "other").await;
    let bounds = json!({ "canSee": { "agents": "direct" }, "acceptsFrom": { "agents": "none" } });
    kept.call("map/agents/update", json!({ "agentId": "kept", "permissionOverrides": bounds }))
        .await
        .unwrap();
    let seen = kept.call("map/agents/list", json!({})).await.unwrap();
    assert_eq!(seen["agents"].as_array().unwrap().len(), 1, "itself: {seen}");
    let refused =
        other.call("map/send", json!({ "to": { "agent": "kept" }, "payload": 1 })).await.unwrap_err();
    assert_eq!(refused["code"], 1003);
    let unseen =
        kept.call("map/send", json!({ "to": { "agent": "other" }, "payload": 1 })).await.unwrap_err();
    assert_eq!(unseen["code"], 2001);
    kept.call("map/subscribe", json!({ "filter": { "eventTypes": ["agent.*"] } })).await.unwrap();
    let _late = Client::agent(&office, "late").await;
    kept.call("map/agents/update", json!({ "agentId": "kept", "state": "busy" })).await.unwrap();
    let event = kept.next(|frame| frame["method"] == "map/event").await;
    assert_eq!(event["params"]["event"]["data"]["agentId"], "kept", "nothing of the other: {event}");
}
