//! Tokens: local registration, identities without a key, renewal, and what is shown without a token.

use serde_json::{Value, json};

use crate::harness::{LONG, TestDir, eventually};
use crate::office::Office;

/// Sends a request, directly or with the headers of a proxy.
async fn post(
    office: &Office,
    path: &str,
    token: Option<&str>,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, Value) {
    let http = reqwest::Client::new();
    let mut request = http.post(format!("{}{path}", office.url())).body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

fn named(name: &str) -> Value {
    json!({ "action": "register", "username": name })
}

#[tokio::test]
async fn registration_is_local_unless_enabled() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    assert_eq!(post(&office, "/api/presence", None, &[], named("from_here")).await.0, 200);
    // Proxies add one of these headers; the peer's address is loopback all the same.
    let proxied = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "a.test"),
        ("forwarded", "for=x"),
        ("via", "1.1 p"),
    ];
    for header in proxied {
        let (status, answer) = post(&office, "/api/presence", None, &[header], named("by_proxy")).await;
        assert_eq!((status, &answer["error"]), (403, &json!("safe_mode_disabled")), "{header:?}");
        assert!(answer["message"].as_str().unwrap().contains("--safe-mode on"), "{answer}");
        let key = posthaste_wire::signing::SecretKey::from_seed(&[5; 32]);
        let body = json!({ "handle": "by_proxy", "public_key": key.public().to_string(),
            "proof": key.sign(b"by_proxy").to_string() });
        let (status, answer) = post(&office, "/identity", None, &[header], body).await;
        assert_eq!((status, &answer["error"]), (403, &json!("registration_closed")), "{header:?}");
        assert!(answer["message"].as_str().unwrap().contains("--registration on"), "{answer}");
    }
    assert_eq!(office.close(), Some(0));

    // Another host or origin means callers on other machines, whatever the listener's address.
    for flag in [["--allowed-host", "mail.test"], ["--allowed-origin", "https://app.test"]] {
        let office = Office::open_with(data.path(), &flag, &[]);
        let (status, answer) = post(&office, "/api/presence", None, &[], named("later")).await;
        assert_eq!((status, &answer["error"]), (403, &json!("safe_mode_disabled")), "{flag:?}");
        assert_eq!(office.close(), Some(0));
        let shown = data.posthaste().args(["config"]).args(flag).run().ok().stdout;
        let line = shown.lines().find(|line| line.starts_with("registration")).unwrap();
        assert!(line.contains("off: allowed_"), "{line}");
    }
    let on = ["--allowed-host", "mail.test", "--registration", "on", "--safe-mode", "on"];
    let office = Office::open_with(data.path(), &on, &[]);
    let by_name = [("host", "mail.test"), ("x-forwarded-for", "192.0.2.1")];
    assert_eq!(
        post(&office, "/api/presence", None, &by_name, named("invited")).await.0,
        200,
        "enabled by a flag"
    );
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn metrics_need_no_token_on_this_machine_only() {
    let data = TestDir::new();
    let office = Office::open_with(data.path(), &["--allowed-host", "mail.test"], &[]);
    let get = async |headers: &[(&str, &str)], token: Option<&str>| {
        let mut request = reqwest::Client::new().get(format!("{}/metrics", office.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(get(&[], None).await, 200);
    assert_eq!(get(&[("host", "mail.test")], None).await, 401, "through a proxy, by its name");
    assert_eq!(get(&[("x-forwarded-for", "192.0.2.1")], None).await, 401);
    assert_eq!(get(&[("host", "mail.test")], Some(office.token())).await, 200);
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn identity_without_a_key_is_renewed_with_its_last_token_only() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let come =
        async |token: Option<&str>, name: &str| post(&office, "/api/presence", token, &[], named(name)).await;
    let token = |answer: &Value| answer["token"].as_str().unwrap().to_owned();
    let inbox = async |token: &str| {
        let http = reqwest::Client::new().get(format!("{}/messages/inbox", office.url()));
        http.bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let first = token(&come(None, "gina").await.1);
    let mallory = token(&come(None, "mallory").await.1);
    for shown in [None, Some(mallory.as_str()), Some("ph_made_up")] {
        let (status, answer) = come(shown, "gina").await;
        assert_eq!((status, &answer["error"]), (409, &json!("handle_taken")), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("last token"), "{answer}");
        assert!(answer.get("token").is_none(), "{answer}");
    }
    assert_eq!(inbox(&first).await, 200, "nothing changed for its bearer");
    let (status, answer) = come(Some(&first), "gina").await;
    assert_eq!(status, 200, "{answer}");
    let second = token(&answer);
    assert_eq!((inbox(&first).await, inbox(&second).await), (401, 200), "the old one is revoked");
    assert_eq!(come(Some(&first), "gina").await.0, 409, "a revoked token is not the last");
    // An administrator can renew it if the token was lost.
    assert_eq!(come(Some(office.token()), "gina").await.0, 200);
    let given =
        json!({ "role": "agent", "name": "gina", "expires_at": posthaste_engine::stamp::now() + 60_000 });
    let made = office.call("token.create", given).await.unwrap();
    let given = made["token"].as_str().unwrap();
    let (status, answer) = come(Some(given), "gina").await;
    assert_eq!(
        (status, &answer["expires_at"]),
        (200, &made["expires_at"]),
        "it does not last longer than the token shown"
    );
    assert_eq!(inbox(given).await, 200, "a token created by an administrator is not revoked");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_renewed_token_has_the_same_role_rights_and_end() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let end = posthaste_engine::stamp::now() + 3_600_000;
    let given = json!({ "role": "user", "name": "uma", "observe": true, "expires_at": end });
    let made = office.call("token.create", given).await.unwrap();
    let uma = made["token"].as_str().unwrap().to_owned();
    office.as_bearer(&uma).call("register", json!({ "id": "uma" })).await.unwrap();
    let (status, renewed) = post(&office, "/auth/refresh", Some(&uma), &[], json!({})).await;
    assert_eq!((status, &renewed["expires_at"]), (200, &made["expires_at"]), "{renewed}");
    let new = renewed["token"].as_str().unwrap();
    let listed = office.call("token.list", json!({})).await.unwrap();
    let all = listed["tokens"].as_array().unwrap();
    let valid: Vec<_> =
        all.iter().filter(|one| one["name"] == "uma" && one["revoked_at"].is_null()).collect();
    assert_eq!(valid.len(), 1, "{listed}");
    for member in ["role", "door", "observe", "expires_at"] {
        assert_eq!(valid[0][member], made[member], "{member}: {listed}");
    }
    assert_eq!(office.as_bearer(new).call("whoami", json!({})).await.unwrap()["role"], "user");
    assert_eq!(post(&office, "/auth/refresh", Some(&uma), &[], json!({})).await.0, 401, "exchanged before");

    let given = json!({ "role": "user", "name": "uma", "expires_at": posthaste_engine::stamp::now() + 300 });
    let short = office.call("token.create", given).await.unwrap()["token"].as_str().unwrap().to_owned();
    eventually(LONG, "the token expires", async || {
        office.as_bearer(&short).call("whoami", json!({})).await.is_err()
    })
    .await;
    assert_eq!(post(&office, "/auth/refresh", Some(&short), &[], json!({})).await.0, 401, "expired");

    // A renewed AIRC token is valid at AIRC only, and expires no earlier.
    let (_, safe) = post(&office, "/api/presence", None, &[], named("gina")).await;
    let (status, renewed) = post(&office, "/auth/refresh", safe["token"].as_str(), &[], json!({})).await;
    assert_eq!(status, 200, "{renewed}");
    assert!(renewed["expires_at"].as_str() >= safe["expires_at"].as_str(), "{renewed}");
    let refused = office.as_bearer(renewed["token"].as_str().unwrap()).call("whoami", json!({})).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(office.close(), Some(0));
}

/// Regression: the presence of agents of other doors was shown to callers without a token.
#[tokio::test]
async fn agents_of_other_doors_are_shown_to_tokens_only() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let made = office.call("token.create", json!({ "role": "agent", "name": "mcp-ann" })).await.unwrap();
    let ann = made["token"].as_str().unwrap().to_owned();
    let come = json!({ "action": "register", "username": "airc_bob" });
    post(&office, "/api/presence", None, &[], come).await;
    let beat =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "x-posthaste/register", "params": { "id": "mcp-ann" } });
    post(&office, "/x-posthaste/rpc", Some(&ann), &[], beat).await;
    let fetch = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "fetch_inbox", "arguments": { "project_key": "main", "agent_name": "mcp-ann" } },
    });
    post(&office, "/mcp", Some(&ann), &[("accept", "application/json, text/event-stream")], fetch).await;
    for path in ["/presence", "/api/presence", "/api/v2/presence", "/api/agents"] {
        let get = async |token: Option<&str>| {
            let mut request = reqwest::Client::new().get(format!("{}{path}", office.url()));
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            request.send().await.unwrap().text().await.unwrap()
        };
        let seen = get(None).await;
        assert!(!seen.contains("mcp-ann"), "{path}: {seen}");
        if path.contains("presence") {
            assert!(seen.contains("airc_bob"), "{path}: {seen}");
            assert!(get(Some(&ann)).await.contains("mcp-ann"), "{path} with a token");
        }
    }
    assert_eq!(office.close(), Some(0));
}
