//! MAP's rules: visibility of scope messages, sessions with fewer capabilities, and recipients that are left out.

use std::time::Duration;

use serde_json::{Value, json};

use crate::map::client::{Client, Office, connect_raw};

/// The events of a subscriber up to the message with the payload `last`, as type and payload.
async fn heard(client: &mut Client, last: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    loop {
        let mut frame = client.next(|frame| frame["method"] == "map/event").await;
        let event = frame["params"]["event"].take();
        let (kind, payload) = (event["type"].as_str().unwrap().to_owned(), event["data"]["payload"].clone());
        all.push((kind, payload.clone()));
        if payload == last {
            return all;
        }
    }
}

/// A connection with fewer capabilities than it may have.
async fn without(office: &Office, part: &str, capabilities: Value) -> Client {
    let mut client = Client::stranger(office).await;
    let hello = json!({ "protocolVersion": 1, "participantType": part, "capabilities": capabilities });
    client.call("map/connect", hello).await.unwrap();
    client
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(method, params).await.unwrap_err()["code"].clone()
}

fn statuses(answer: &Value) -> Vec<(&str, &str)> {
    let receipts = answer["receipts"].as_array().unwrap().iter();
    receipts.map(|one| (one["agentId"].as_str().unwrap(), one["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn scope_messages_are_visible_as_its_policy_says() {
    let office = Office::open(&["--no-auth"]).await;
    let mut maker = Client::agent(&office, "maker").await;
    let (mut anna, mut idle) = (Client::agent(&office, "anna").await, Client::agent(&office, "idle").await);
    let mut outside = Client::connect(&office, "client").await;
    let mut system = Client::connect(&office, "system").await;
    let unknown = json!({ "scopeId": "odd", "messageVisibility": "everyone" });
    assert_eq!(code(&mut maker, "map/scopes/create", unknown).await, -32602);
    for kept_to in ["public", "members", "system"] {
        let made = json!({ "scopeId": kept_to, "messageVisibility": kept_to });
        let made = maker.call("map/scopes/create", made).await.unwrap();
        assert_eq!(made["scope"]["messageVisibility"], kept_to);
        anna.call("map/scopes/join", json!({ "scopeId": kept_to })).await.unwrap();
        // A member that is not written to.
        idle.call("map/scopes/join", json!({ "scopeId": kept_to })).await.unwrap();
    }
    anna.call("map/agents/update", json!({ "agentId": "anna", "metadata": {} })).await.unwrap();
    let filter = json!({ "filter": { "eventTypes": ["message_sent"] } });
    for client in [&mut maker, &mut anna, &mut idle, &mut outside, &mut system] {
        client.call("map/subscribe", filter.clone()).await.unwrap();
    }
    let unwilling = json!({ "acceptsFrom": { "agents": "none" } });
    let unwilling = json!({ "agentId": "idle", "permissionOverrides": unwilling });
    idle.call("map/agents/update", unwilling).await.unwrap();
    for (meta, way) in [(json!({}), "fast"), (json!({ "delivery": "queue" }), "slow")] {
        for scope in ["public", "members", "system"] {
            let payload = format!("{scope} {way}");
            let send = json!({ "to": { "scope": scope }, "payload": payload, "meta": meta });
            let sent = maker.call("map/send", send).await.unwrap();
            assert_eq!(sent["delivered"], json!(["anna"]), "{sent}");
        }
    }
    maker.call("map/send", json!({ "to": { "agent": "anna" }, "payload": "end" })).await.unwrap();
    let said = |scopes: &[&str]| -> Vec<(String, Value)> {
        let ways = ["fast", "slow"].iter();
        let all = ways.flat_map(|way| scopes.iter().map(move |scope| json!(format!("{scope} {way}"))));
        all.chain([json!("end")]).map(|payload| ("message_sent".to_owned(), payload)).collect()
    };
    let everything = said(&["public", "members", "system"]);
    for (who, client, seen) in [
        ("the sender", &mut maker, &everything),
        ("a recipient", &mut anna, &everything),
        ("the system", &mut system, &everything),
        ("a member", &mut idle, &said(&["public", "members"])),
        ("outsider", &mut outside, &said(&["public"])),
    ] {
        assert_eq!(heard(client, "end").await, *seen, "{who}, live");
        let replay = client.call("map/replay", filter.clone()).await.unwrap();
        let replayed = replay["events"].as_array().unwrap().iter();
        let replayed: Vec<_> = replayed
            .map(|one| ("message_sent".to_owned(), one["event"]["data"]["payload"].clone()))
            .collect();
        assert_eq!(replayed, *seen, "{who}, afterwards");
    }
}

#[tokio::test]
async fn receipts_of_hidden_messages_are_hidden() {
    let office = Office::open(&["--no-auth"]).await;
    let mut maker = Client::agent(&office, "maker").await;
    let mut anna = Client::agent(&office, "anna").await;
    let mut outside = Client::connect(&office, "client").await;
    let made = json!({ "scopeId": "den", "messageVisibility": "members" });
    maker.call("map/scopes/create", made).await.unwrap();
    anna.call("map/scopes/join", json!({ "scopeId": "den" })).await.unwrap();
    outside.call("map/subscribe", json!({ "filter": { "eventTypes": ["message*"] } })).await.unwrap();
    for meta in [json!({}), json!({ "delivery": "acknowledged" })] {
        maker
            .call("map/send", json!({ "to": { "scope": "den" }, "payload": "kept", "meta": meta }))
            .await
            .unwrap();
        anna.message().await;
    }
    maker.call("map/send", json!({ "to": { "agent": "anna" }, "payload": "end" })).await.unwrap();
    assert_eq!(heard(&mut outside, "end").await, [("message_sent".to_owned(), json!("end"))]);
}

#[tokio::test]
async fn sessions_that_cannot_receive_get_nothing_and_receipts_say_so() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let mut deaf = without(&office, "agent", json!({ "messaging": { "canReceive": false } })).await;
    deaf.call("map/agents/register", json!({ "agentId": "deaf", "scopes": ["team"] })).await.unwrap();
    let mut team = Client::connect(&office, "agent").await;
    team.call("map/agents/register", json!({ "agentId": "open", "scopes": ["team"] })).await.unwrap();
    let direct = json!({ "to": { "agent": "deaf" }, "payload": "direct" });
    assert_eq!(code(&mut from, "map/send", direct.clone()).await, 1003);
    assert_eq!(code(&mut from, "map/inject", json!({ "agentId": "deaf", "content": 1 })).await, 1003);
    let group = json!({ "to": { "scope": "team" }, "payload": "group" });
    let sent = from.call("map/send", group).await.unwrap();
    assert_eq!(statuses(&sent), [("deaf", "queued"), ("open", "delivered")]);
    assert_eq!(team.message().await["payload"], "group");
    // A session is connected under the name all the same.
    let mut other = Client::connect(&office, "agent").await;
    assert_eq!(code(&mut other, "map/agents/register", json!({ "agentId": "deaf" })).await, 3000);
    let mut system = Client::connect(&office, "system").await;
    let allow =
        |may: bool| json!({ "clientId": "deaf", "permissions": { "messaging": { "canReceive": may } } });
    system.call("map/permissions/update", allow(true)).await.unwrap();
    assert_eq!(deaf.message().await["payload"], "group", "what was kept meanwhile");
    let sent = from.call("map/send", direct.clone()).await.unwrap();
    assert_eq!(statuses(&sent), [("deaf", "delivered")]);
    assert_eq!(deaf.message().await["payload"], "direct");
    for n in 0..20 {
        let sent = from.call("map/send", json!({ "to": { "agent": "deaf" }, "payload": n })).await.unwrap();
        assert_eq!(statuses(&sent), [("deaf", "delivered")]);
    }
    system.call("map/permissions/update", allow(false)).await.unwrap();
    assert_eq!(code(&mut from, "map/send", direct.clone()).await, 1003);
    for n in 0..20 {
        assert_eq!(deaf.message().await["payload"], n, "what was delivered is delivered");
    }
    // The agents that come later are treated like the first.
    deaf.call("map/agents/register", json!({ "agentId": "deaf-2" })).await.unwrap();
    let second = json!({ "to": { "agents": ["deaf-2"] }, "payload": "direct" });
    assert_eq!(code(&mut from, "map/send", second).await, 1003);
    // An agent that left is written to like any other that left.
    deaf.call("map/disconnect", json!({})).await.unwrap();
    drop(deaf);
    let sent = from.call("map/send", direct).await.unwrap();
    assert_eq!(statuses(&sent), [("deaf", "queued")]);
}

#[tokio::test]
async fn sessions_that_cannot_manage_scopes_still_join_and_leave() {
    let office = Office::open(&["--no-auth"]).await;
    let mut kept = without(&office, "agent", json!({ "scopes": { "canManageScopes": false } })).await;
    kept.call("map/agents/register", json!({ "agentId": "kept" })).await.unwrap();
    let mut other = Client::agent(&office, "other").await;
    kept.call("map/scopes/create", json!({ "scopeId": "den" })).await.unwrap();
    let own = json!({ "scopeId": "den", "agentId": "kept" });
    kept.call("map/scopes/join", own.clone()).await.unwrap();
    let others = json!({ "scopeId": "den", "agentId": "other" });
    assert_eq!(code(&mut kept, "map/scopes/join", others.clone()).await, 1003);
    other.call("map/scopes/join", others.clone()).await.unwrap();
    assert_eq!(code(&mut kept, "map/scopes/leave", others).await, 1003);
    assert_eq!(code(&mut kept, "map/scopes/delete", json!({ "scopeId": "den" })).await, 1003);
    kept.call("map/scopes/leave", own).await.unwrap();
    let left = kept.call("map/scopes/members", json!({ "scopeId": "den" })).await.unwrap();
    assert_eq!(left["members"], json!(["other"]));
}

#[tokio::test]
async fn draft_event_has_a_receipt_per_recipient() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let _here = Client::agent(&office, "here").await;
    let mut away = Client::agent(&office, "away").await;
    away.call("map/disconnect", json!({})).await.unwrap();
    let greeting = json!({ "protocolVersion": "2025-01-01", "clientInfo": { "name": "d" }, "capabilities": { "streaming": true } });
    let (mut watcher, _) = connect_raw(&office, greeting).await;
    watcher.call("map/subscribe", json!({ "filter": { "eventTypes": ["message"] } })).await.unwrap();
    let to = |name: &str, meta: Value| json!({ "to": { "agent": name }, "payload": 1, "meta": meta });
    for (name, meta, status, semantic) in [
        ("here", json!({}), "delivered", "inject"),
        ("here", json!({ "delivery": "queue" }), "queued", "queue"),
        ("away", json!({}), "queued", "inject"),
    ] {
        from.call("map/send", to(name, meta)).await.unwrap();
        let event = watcher.next(|frame| frame["params"]["event"]["type"] == "message").await;
        let event = &event["params"]["event"];
        assert_eq!(event["envelope"]["to"], json!({ "agent": name }), "{event}");
        let receipt = json!({
            "agentId": name, "status": status, "semantic": semantic, "timestamp": event["envelope"]["timestamp"],
        });
        assert_eq!(event["receipts"], json!([receipt]), "{event}");
    }
    let replay = json!({ "filter": { "eventTypes": ["message"] } });
    let replay = watcher.call("map/replay", replay).await.unwrap();
    let receipts: Vec<_> =
        replay["events"].as_array().unwrap().iter().map(|one| statuses(&one["event"])).collect();
    assert_eq!(receipts[2], [("away", "queued")]);
}

#[tokio::test]
async fn scope_send_includes_sender_and_descendants_on_request() {
    let office = Office::open(&["--no-auth"]).await;
    let mut from = Client::agent(&office, "from").await;
    let (mut top, mut low) = (Client::agent(&office, "top").await, Client::agent(&office, "low").await);
    from.call("map/scopes/create", json!({ "scopeId": "all" })).await.unwrap();
    from.call("map/scopes/create", json!({ "scopeId": "part", "parent": "all" })).await.unwrap();
    for (client, scope) in [(&mut from, "all"), (&mut top, "all"), (&mut low, "part")] {
        client.call("map/scopes/join", json!({ "scopeId": scope })).await.unwrap();
    }
    for (further, reached) in [
        (json!({}), json!(["top"])),
        (json!({ "excludeSender": true }), json!(["top"])),
        (json!({ "excludeSender": false }), json!(["from", "top"])),
        (json!({ "includeDescendants": true }), json!(["low", "top"])),
        (json!({ "excludeSender": false, "includeDescendants": true }), json!(["from", "low", "top"])),
    ] {
        for delivery in ["fire-and-forget", "queue"] {
            let mut send = json!({ "scopeId": "all", "payload": further, "meta": { "delivery": delivery } });
            for (name, value) in further.as_object().unwrap() {
                send[name] = value.clone();
            }
            let sent = from.call("map/send/scope", send).await.unwrap();
            let mut delivered: Vec<_> = sent["delivered"].as_array().unwrap().clone();
            delivered.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            assert_eq!(Value::Array(delivered), reached, "{further} {delivery}");
        }
    }
    let asked = json!({ "scopeId": "all", "payload": 1, "excludeSender": "no" });
    assert_eq!(code(&mut from, "map/send/scope", asked).await, -32602);
    let members = json!({ "scopeId": "all", "includeDescendants": true });
    let members = from.call("map/scopes/members", members).await.unwrap();
    assert_eq!(members["members"], json!(["from", "low", "top"]));
    assert!(from.call("map/scopes/delete", json!({ "scopeId": "all" })).await.is_err());
    let whole = json!({ "scopeId": "all", "deleteDescendants": true });
    from.call("map/scopes/delete", whole).await.unwrap();
    assert_eq!(code(&mut from, "map/scopes/get", json!({ "scopeId": "part" })).await, 2002);
}

#[tokio::test]
async fn subscriber_acknowledges_by_event_id() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut from, mut to) = (Client::agent(&office, "from").await, Client::agent(&office, "to").await);
    let mut watcher = Client::connect(&office, "client").await;
    let asked = json!({ "filter": { "eventTypes": ["message_sent"] }, "options": { "bufferSize": 2 } });
    let subscription = watcher.call("map/subscribe", asked).await.unwrap()["subscriptionId"].take();
    let ack = |event: &Value| json!({ "subscriptionId": subscription, "eventId": event });
    let mut sent = 0;
    let mut next = 0;
    // Each acknowledgement makes room; without it the window of two would be full after the first round.
    for _ in 0..4 {
        for _ in 0..2 {
            sent += 1;
            let send = json!({ "to": { "agent": "to" }, "payload": sent });
            from.call("map/send", send).await.unwrap();
            to.message().await;
        }
        let mut last = Value::Null;
        for _ in 0..2 {
            next += 1;
            let mut event = watcher.next(|frame| frame["method"] == "map/event").await["params"].take();
            assert_eq!(event["event"]["data"]["payload"], next, "{event}");
            last = event["eventId"].take();
        }
        watcher.call("map/ack", ack(&last)).await.unwrap();
    }
    let last = ack(&json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    assert_eq!(code(&mut watcher, "map/ack", last).await, -32602);
    // Flow control is on since the first: two are let out, and no third before they are acknowledged.
    for n in 1..=3 {
        from.call("map/send", json!({ "to": { "agent": "to" }, "payload": format!("late {n}") }))
            .await
            .unwrap();
    }
    let mut second = Value::Null;
    for n in 1..=2 {
        let mut event = watcher.next(|frame| frame["method"] == "map/event").await["params"].take();
        assert_eq!(event["event"]["data"]["payload"], format!("late {n}"));
        second = event["eventId"].take();
    }
    watcher.call("map/agents/list", json!({})).await.unwrap();
    watcher.call("map/ack", ack(&second)).await.unwrap();
    let third = watcher.next(|frame| frame["method"] == "map/event").await;
    assert_eq!(third["params"]["event"]["data"]["payload"], "late 3");
}

#[tokio::test]
async fn named_recipients_that_cannot_receive_are_left_out() {
    let office = Office::open(&["--no-auth"]).await;
    let (mut from, mut open) = (Client::agent(&office, "from").await, Client::agent(&office, "open").await);
    let mut shut = Client::agent(&office, "shut").await;
    let bounds = json!({ "acceptsFrom": { "agents": "none" } });
    shut.call("map/agents/update", json!({ "agentId": "shut", "permissionOverrides": bounds }))
        .await
        .unwrap();
    for delivery in ["fire-and-forget", "queue"] {
        let send = |to: Value| json!({ "to": to, "payload": delivery, "meta": { "delivery": delivery } });
        let sent = from.call("map/send", send(json!({ "agents": ["shut", "open"] }))).await.unwrap();
        assert_eq!(sent["delivered"], json!(["open"]));
        assert_eq!(statuses(&sent), [("open", "delivered"), ("shut", "failed")]);
        assert_eq!(open.message().await["payload"], delivery);
        for refused in [json!({ "agents": ["shut"] }), json!({ "agents": ["shut", "shut"] })] {
            assert_eq!(code(&mut from, "map/send", send(refused)).await, 1003);
        }
        let unknown = send(json!({ "agents": ["open", "unknown"] }));
        assert_eq!(code(&mut from, "map/send", unknown).await, 2001);
    }
    open.call("map/send", json!({ "to": { "agent": "open" }, "payload": "end" })).await.unwrap();
    assert_eq!(open.message().await["payload"], "end", "nothing of what was refused");
}

/// The first `last` server-sent events of a stream.
async fn streamed(office: &Office, query: &str, last: u64) -> Vec<Value> {
    // One of another test may be there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = office.url().replacen("ws", "http", 1) + "/events?" + query;
    let mut stream = reqwest::get(url).await.unwrap();
    let (mut text, mut all) = (String::new(), Vec::new());
    while let Some(chunk) = stream.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                let mut event_of: Value = serde_json::from_str(data).unwrap();
                event_of["id"] = event.lines().any(|line| line.starts_with("id:")).into();
                all.push(event_of);
            }
            text = rest.to_owned();
        }
        if all.last().is_some_and(|event| event["sequenceNumber"].as_u64() >= Some(last)) {
            break;
        }
    }
    all
}

#[tokio::test]
async fn heartbeats_come_over_server_sent_events_on_request() {
    let office = Office::open(&["--no-auth"]).await;
    let signs = streamed(&office, "eventTypes=system.heartbeat,system.capacity", 2).await;
    let kinds: Vec<_> = signs.iter().map(|sign| sign["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system.heartbeat", "system.capacity"]);
    assert!(signs.iter().all(|sign| sign["id"] == false), "unlogged events have no id to resume from");
    let mut busy = Client::agent(&office, "busy").await;
    let one = streamed(&office, "", 1);
    tokio::pin!(one);
    let mut count = 0;
    let one = loop {
        tokio::select! {
            one = &mut one => break one,
            // Causes events until the stream receives one.
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                count += 1;
                let metadata = json!({ "agentId": "busy", "metadata": { "count": count } });
                busy.call("map/agents/update", metadata).await.unwrap();
            }
        }
    };
    assert_ne!(one[0]["event"]["type"], "system.heartbeat", "heartbeats are sent on request only");
    assert_eq!(one[0]["id"], true);
}
