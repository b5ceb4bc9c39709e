//! Rate limits: counted per token across all doors, and refused in each door's own form.

use serde_json::{Value, json};

use crate::swarm::{Swarm, boss, team};

#[tokio::test]
async fn every_door_counts_by_token_and_refuses_in_its_own_form() {
    let file = team("team", json!([boss(json!({ "builtin": "echo" }), &["boss"])]));
    let mut swarm = Swarm::open(&file, &[], &[]);
    // Tokens are created without rate limits, because that takes calls too.
    let mut tokens: Vec<String> = (0..3).map(|n| swarm.token("team", "user", &format!("u{n}"))).collect();
    swarm.office.take().unwrap().close();
    swarm.start(&[], &[("POSTHASTE_RATE_CALLS", "4/h"), ("POSTHASTE_RATE_REQUESTS", "4/h")]);
    let office = swarm.office.as_ref().unwrap();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let mut fresh = || tokens.pop().unwrap();
    let call = |method: &str| json!({ "jsonrpc": "2.0", "id": 7, "method": method }).to_string();
    let exhausted = async |path: &str, body: Option<String>, token: &str| {
        let mut last = None;
        for _ in 0..5 {
            let url = format!("{}{path}", office.url());
            let request = match &body {
                Some(body) => http.post(url).body(body.clone()),
                None => http.get(url),
            };
            let answer = request.bearer_auth(token).send().await.unwrap();
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            last = Some((status, headers, answer.text().await.unwrap()));
        }
        last.unwrap()
    };

    let token = fresh();
    let (status, _, text) = exhausted("/x-posthaste/rpc", Some(call("x-posthaste/whoami")), &token).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &answer["error"]["data"]["refusal"]), (200, &json!("too_many_requests")), "{text}");
    // The same bucket at every door.
    let (_, _, text) = exhausted("/map/rpc", Some(call("map/agents/list")), &token).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(4001)), "{text}");
    assert_eq!(answer["error"]["data"]["retryable"], true, "{text}");
    assert!(answer["error"]["data"]["retryAfterMs"].as_u64() > Some(0), "{text}");
    let (status, headers, text) = exhausted("/mcp", Some(call("ping")), &token).await;
    assert_eq!(status, 429, "{text}");
    assert!(headers.contains_key("retry-after") && text.contains("\"jsonrpc\""), "{text}");
    let (status, headers, text) = exhausted("/whoami", None, &token).await;
    assert_eq!(status, 429, "{text}");
    assert!(headers.contains_key("retry-after") && text.contains("\"detail\""), "{text}");
    let (status, headers, _) = exhausted("/map/events", None, &token).await;
    assert_eq!(status, 429);
    assert!(headers.contains_key("retry-after"));
    let (status, _, text) = exhausted("/messages", None, &token).await;
    assert_eq!(status, 429, "{text}");
    assert!(text.contains("\"success\":false"), "{text}");
    // Another token is not affected.
    let other = fresh();
    let answer = http.get(format!("{}/whoami", office.url())).bearer_auth(&other).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    // Every call of a batch counts.
    let batch: Vec<Value> =
        (0..6).map(|n| json!({ "jsonrpc": "2.0", "id": n, "method": "x-posthaste/whoami" })).collect();
    let answer = http.post(format!("{}/x-posthaste/rpc", office.url())).bearer_auth(fresh());
    let answer: Value = answer.body(json!(batch).to_string()).send().await.unwrap().json().await.unwrap();
    let refused = answer.as_array().unwrap().iter().filter(|one| one["error"].is_object()).count();
    assert_eq!(refused, 2, "{answer}");
}
