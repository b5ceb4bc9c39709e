//! Single requests that cost much: patterns, groups, quotas of names and mail, JSON that readers cannot parse.

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::map::client::Client;
use crate::office::{Bearer, Office, Trouble};

const FAR: i64 = 4_000_000_000_000;

async fn plain_token(office: &Office, name: &str) -> Bearer {
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    let bearer = office.as_bearer(made["token"].as_str().unwrap());
    bearer.call("register", json!({ "id": name })).await.unwrap();
    bearer
}

fn word(answer: Result<Value, Trouble>) -> String {
    match answer {
        Err(Trouble::Refused(word)) => word,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn costly_patterns_and_groups_are_refused() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let mallory = plain_token(&office, "mallory").await;
    let reserve = |paths: Vec<String>| json!({ "scope": "repo", "paths": paths, "expires_at": FAR });
    let many_stars = vec!["*a".repeat(200) + "b"; 100];
    assert_eq!(word(mallory.call("reserve", reserve(many_stars)).await), "bad_path");
    let long = vec!["a/".repeat(200)];
    assert_eq!(word(mallory.call("reserve", reserve(long)).await), "bad_path");
    // An address that is repeated counts once.
    office.register("ann").await;
    let all: Vec<&str> = vec!["all"; 1_000];
    let sent = mallory.call("send", json!({ "to": all, "body": "x" })).await.unwrap();
    assert_eq!(sent["receipts"].as_array().map(Vec::len), Some(1), "{sent}");
    let roles: Vec<String> = (0..17).map(|n| format!("role:r{n}")).collect();
    assert_eq!(word(mallory.call("send", json!({ "to": roles, "body": "x" })).await), "too_many");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn names_and_mail_of_one_token_have_a_quota() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let rules = json!({ "agents_per_owner": 3, "mail_bytes_per_sender": 100_000 });
    office.call("rules", rules).await.unwrap();
    let mallory = plain_token(&office, "mallory").await;
    for n in 0..3 {
        mallory.call("register", json!({ "id": format!("m{n}") })).await.unwrap();
    }
    assert_eq!(word(mallory.call("register", json!({ "id": "m3" })).await), "too_many");
    let message = json!({ "to": ["m0"], "body": "x".repeat(40_000) });
    mallory.call("send", message.clone()).await.unwrap();
    mallory.call("send", message.clone()).await.unwrap();
    assert_eq!(word(mallory.call("send", message.clone()).await), "quota_exceeded");
    // Others are not affected.
    let ann = plain_token(&office, "ann").await;
    ann.call("send", json!({ "to": ["mallory"], "body": "x".repeat(40_000) })).await.unwrap();
    office.call("rules", json!({ "mail_bytes_per_sender": 0 })).await.unwrap();
    mallory.call("send", message).await.unwrap();
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn json_that_readers_cannot_parse_is_refused_at_every_door() {
    let dir = TestDir::new();
    let office = Office::open_with(dir.path(), &["--no-auth"], &[]);
    office.register("ann").await;
    let deep = format!("{}1{}", "[".repeat(400_000), "]".repeat(400_000));
    let mut map = Client::agent_at(office.url(), office.token(), "map-ann").await;
    let made = json!({ "conversationId": "c1", "type": "user-session" });
    map.call("mail/create", made).await.unwrap();
    for value in [deep.as_str(), r#"{"n":1e400}"#, r#"{"s":"\ud800"}"#] {
        let shown = &value[..value.len().min(20)];
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x-posthaste/send","params":{{"from":"ann","to":["ann"],"body":{value}}}}}"#
        );
        let answer = office.post(&body).await;
        assert!(answer["error"]["message"].is_string(), "{shown}: {answer}");
        for (method, params) in [
            ("map/send", format!(r#"{{"to":"ann","payload":{value}}}"#)),
            ("map/send", format!(r#"{{"to":"ann","payload":1,"meta":{{"x":{value}}}}}"#)),
            ("mail/turn", format!(r#"{{"conversationId":"c1","contentType":"data","content":{value}}}"#)),
        ] {
            map.text(&format!(r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{params}}}"#)).await;
            let answer = map.next(|frame| frame["id"] == "x").await;
            assert!(answer["error"]["code"].is_i64(), "{method} {shown}: {answer}");
        }
    }
    assert!(office.inbox("ann", 0).await.is_empty());
    drop(map);
    assert_eq!(office.close(), Some(0));
}
