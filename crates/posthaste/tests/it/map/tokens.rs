//! Tokens over MAP: warned before they lapse, cut off when they do or are revoked; and sessions taken up again.

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

/// A token of its own for an agent called ann, and its id.
async fn token(office: &Office, lasts: Option<i64>) -> (String, String) {
    let mut operator = Client::connect_with(office, &office.admin_token(), "client").await;
    let expires_at = lasts.map(|lasts| now() + lasts);
    let made = json!({ "role": "agent", "name": "ann", "expires_at": expires_at });
    let made = operator.call("x-posthaste/token.create", made).await.unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

fn now() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a test may ask the time")]
    let now = std::time::SystemTime::now();
    i64::try_from(now.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn notice(frame: &Value, method: &str) -> bool {
    frame["method"] == method
}

#[tokio::test]
async fn a_revoked_token_closes_the_sockets_it_opened_and_no_others() {
    let office = Office::open(&[]).await;
    let (secret, id) = token(&office, None).await;
    let (other_secret, _) = token(&office, None).await;
    let mut ann = Client::connect_with(&office, &secret, "agent").await;
    let mut again = Client::connect_with(&office, &secret, "client").await;
    let mut other = Client::connect_with(&office, &other_secret, "client").await;
    let mut operator = Client::connect_with(&office, &office.admin_token(), "client").await;
    operator.call("x-posthaste/token.revoke", json!({ "id": id })).await.unwrap();
    for client in [&mut ann, &mut again] {
        let told = client.next(|frame| notice(frame, "map/auth/revoked")).await;
        assert_eq!(told["params"]["reason"], "revoked");
        assert_eq!(client.close_code().await, Some(1008));
    }
    assert!(other.call("map/agents/list", json!({})).await.is_ok());
    assert!(operator.call("map/agents/list", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_token_that_lapses_is_announced_and_then_closes_its_socket() {
    let office = Office::open(&[]).await;
    let (secret, _) = token(&office, Some(1_500)).await;
    let mut ann = Client::open_with(&office, &secret).await;
    let hello = json!({ "protocolVersion": 1, "participantType": "agent" });
    let hello = ann.call("map/connect", hello).await.unwrap();
    let end = hello["principal"]["expiresAt"].as_i64().expect("when it ends");
    let told = ann.next(|frame| notice(frame, "map/auth/expiring")).await;
    assert_eq!(told["params"]["expiresAt"], end);
    let left = told["params"]["expiresInMs"].as_i64().unwrap();
    assert!((1..=1_500).contains(&left), "{left}");
    let told = ann.next(|frame| notice(frame, "map/auth/revoked")).await;
    assert_eq!(told["params"]["reason"], "expired");
    assert_eq!(ann.close_code().await, Some(1008));
    assert!(now() >= end, "not before its time");

    let mut late = Client::stranger(&office).await;
    let auth = json!({ "method": "bearer", "credential": secret });
    let refused = late.call("map/connect", json!({ "protocolVersion": 1, "auth": auth })).await.unwrap_err();
    assert_eq!((&refused["code"], &refused["data"]["retryable"]), (&json!(1002), &json!(true)), "{refused}");
    let told = late.call("map/authenticate", auth).await.unwrap();
    assert_eq!((&told["success"], &told["error"]["code"]), (&json!(false), &json!("expired")), "{told}");
    for (auth, code) in
        [(json!({ "method": "bearer", "token": "made up" }), 1001), (json!({ "method": "mtls" }), 1005)]
    {
        let refused = late.call("map/connect", json!({ "auth": auth })).await.unwrap_err();
        assert_eq!(refused["code"], code, "{refused}");
    }
}

#[tokio::test]
async fn a_refreshed_token_keeps_its_socket_open() {
    let office = Office::open(&[]).await;
    let (short, _) = token(&office, Some(1_500)).await;
    let (long, _) = token(&office, None).await;
    let mut old = Client::connect_with(&office, &short, "client").await;
    let mut ann = Client::connect_with(&office, &short, "agent").await;
    ann.next(|frame| notice(frame, "map/auth/expiring")).await;
    let fresh = json!({ "method": "bearer", "credential": long });
    let fresh = ann.call("map/auth/refresh", fresh).await.unwrap();
    assert_eq!((&fresh["success"], &fresh["principal"]["expiresAt"]), (&json!(true), &Value::Null));
    assert_eq!(old.close_code().await, Some(1008), "the old token has expired");
    assert!(ann.call("map/agents/list", json!({})).await.is_ok(), "the old token's end is not its end");
}

#[tokio::test]
async fn a_session_without_a_connection_can_be_loaded_with_everything_it_had() {
    let office = Office::open(&["--no-auth"]).await;
    let mut first = Client::agent(&office, "ann").await;
    first.call("map/subscribe", json!({ "filter": { "eventTypes": ["scope.*"] } })).await.unwrap();
    let known = first.call("map/session/info", json!({})).await.unwrap();
    let id = known["session"]["id"].clone();

    let mut second = Client::connect(&office, "agent").await;
    let busy = second.call("map/session/load", json!({ "sessionId": id })).await.unwrap();
    assert_eq!(busy["restored"], false, "another connection has it");
    drop(first);
    let loaded = loop {
        let loaded = second.call("map/session/load", json!({ "sessionId": id })).await.unwrap();
        if loaded["restored"] == true {
            break loaded;
        }
    };
    assert_eq!((&loaded["sessionId"], &loaded["ownedAgents"]), (&id, &json!(["ann"])));
    let mut other = Client::agent(&office, "bob").await;
    other.call("map/send", json!({ "to": { "agent": "ann" }, "payload": "here?" })).await.unwrap();
    assert_eq!(second.message().await["payload"], "here?", "the mail comes to the new connection");
    other.call("map/scopes/create", json!({ "name": "s" })).await.unwrap();
    let event = second.next(|frame| frame["method"] == "map/event").await;
    assert_eq!(event["params"]["event"]["type"], "scope_created", "and so do the events");
    let again = second.call("map/session/load", json!({ "sessionId": id })).await.unwrap();
    assert_eq!(again["restored"], true);
    let nothing = second.call("map/session/load", json!({ "sessionId": "session-none" })).await;
    assert_eq!(nothing.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn participants_cannot_take_names_of_others() {
    let mut office = Office::open(&[]).await;
    let mut operator = Client::connect_with(&office, &office.admin_token(), "client").await;
    let mut secrets = Vec::new();
    for name in ["ann", "bob", "mallory"] {
        let made = json!({ "role": "agent", "name": name });
        let made = operator.call("x-posthaste/token.create", made).await.unwrap();
        secrets.push(made["token"].as_str().unwrap().to_owned());
    }
    let greet = async |office: &Office, secret: &str, part: &str, name: &str| {
        let mut client = Client::open_with(office, secret).await;
        let hello = json!({ "protocolVersion": 1, "participantType": part, "participantId": name });
        let hello = client.call("map/connect", hello).await.unwrap();
        (client, hello["participantId"] == name)
    };
    let (mut desk, got) = greet(&office, &secrets[0], "client", "desk").await;
    assert!(got, "the name was free");
    let (mut fleet, got) = greet(&office, &secrets[0], "agent", "fleet").await;
    assert!(got, "the name was free");
    fleet.call("map/agents/register", json!({ "agentId": "worker" })).await.unwrap();
    desk.call("map/agents/list", json!({})).await.unwrap();
    office.restart().await;
    // A desk and a fleet that an earlier run left behind, and a name on a token that has no entry.
    for (part, name) in [("client", "desk"), ("agent", "fleet"), ("client", "bob"), ("agent", "bob")] {
        let (mut mallory, got) = greet(&office, &secrets[2], part, name).await;
        assert!(!got, "{part} {name}");
        let change = json!({ "agentId": "worker", "metadata": { "whose": "mallory" } });
        assert_eq!(mallory.call("map/agents/update", change).await.unwrap_err()["code"], 1003);
    }
    for (secret, part, name) in [(0, "client", "desk"), (0, "agent", "fleet"), (1, "client", "bob")] {
        assert!(greet(&office, &secrets[secret], part, name).await.1, "{part} {name}");
    }
}
