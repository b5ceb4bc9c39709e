//! Tokens that the AIRC door issues are valid at that door only, however they were issued.

use posthaste_wire::signing::SecretKey;
use serde_json::{Value, json};

use super::Got;
use super::paths::ask_elsewhere;
use super::world::{Role, World};

/// One way to get a token: its name, and the token.
type Issued = (&'static str, String);

async fn post(world: &World, path: &str, token: Option<&str>, body: Value) -> String {
    let mut request = world.http.post(world.url(path)).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.body(body.to_string()).send().await.unwrap();
    let status = answer.status();
    let body: Value = answer.json().await.unwrap();
    assert!(status.is_success(), "{path}: {status} {body}");
    body["token"].as_str().unwrap().to_owned()
}

async fn challenge(world: &World, handle: &str) -> String {
    let request =
        world.http.post(world.url("/register/challenge")).body(json!({ "handle": handle }).to_string());
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["challenge"].as_str().unwrap().to_owned()
}

async fn every_way(world: &World) -> Vec<Issued> {
    let mut issued = Vec::new();
    for path in ["/api/register", "/api/users", "/api/identity"] {
        let name = format!("by_{}", &path[5..]);
        issued.push((path, post(world, path, None, json!({ "username": name, "name": name })).await));
    }
    let presence = json!({ "action": "register", "username": "by_presence" });
    let token = post(world, "/api/presence", None, presence.clone()).await;
    issued.push(("came back", post(world, "/api/presence", Some(&token), presence).await));
    let again = json!({ "action": "register", "username": "by_refresh" });
    let token = post(world, "/api/v2/presence", None, again).await;
    issued.push(("/auth/refresh", post(world, "/auth/refresh", Some(&token), json!({})).await));

    let key = SecretKey::from_seed(&[7; 32]);
    let signed = json!({ "handle": "with_key", "public_key": key.public().to_string(),
        "proof": key.sign(b"with_key").to_string() });
    post(world, "/identity", None, signed).await;
    let word = challenge(world, "with_key").await;
    let proof = json!({ "handle": "with_key", "challenge": word, "signature": key.sign(word.as_bytes()).to_string() });
    issued.push(("/auth/refresh, signed", post(world, "/auth/refresh", None, proof).await));
    let word = challenge(world, "by_challenge").await;
    let proof = json!({ "handle": "by_challenge", "publicKey": key.public().to_string(), "challenge": word,
        "challengeSignature": key.sign(word.as_bytes()).to_string() });
    issued.push(("/register", post(world, "/register", None, proof).await));
    let signed = json!({ "handle": "rotated", "public_key": key.public().to_string(),
        "proof": key.sign(b"rotated").to_string() });
    post(world, "/identity", None, signed).await;
    let fresh = SecretKey::from_seed(&[8; 32]).public().to_string();
    let proof = json!({ "new_public_key": fresh, "proof": key.sign(fresh.as_bytes()).to_string() });
    issued.push(("rotate", post(world, "/identity/rotated/rotate", None, proof).await));
    issued
}

#[tokio::test]
async fn airc_tokens_are_valid_at_airc_only() {
    let world = World::open().await;
    for (way, token) in every_way(&world).await {
        let inbox = world.http.get(world.url("/messages/inbox")).bearer_auth(&token).send().await.unwrap();
        assert_eq!(inbox.status(), 200, "{way}: its own door");
        let opened: Vec<_> = ask_elsewhere(&world, &token).await;
        let opened: Vec<_> = opened.into_iter().filter(|(_, got)| *got != Got::Unknown).collect();
        assert!(opened.is_empty(), "{way}: {opened:?}");
        assert!(world.cookie_for(&token).await.is_none(), "{way}: the page");
        // A token in the query is treated as one in the header.
        let socket = world.http.get(world.url(&format!("/map/events?token={token}"))).send().await.unwrap();
        assert_eq!(socket.status(), 401, "{way}: in the query");
        let metrics = world.http.get(world.url("/metrics")).header("x-forwarded-for", "192.0.2.1");
        assert_eq!(metrics.bearer_auth(&token).send().await.unwrap().status(), 401, "{way}: metrics");
    }
}

/// The page's cookie and its parts are no tokens at any door.
#[tokio::test]
async fn cookie_values_are_valid_at_the_page_only() {
    let world = World::open().await;
    for role in [Role::User, Role::Admin, Role::Operator] {
        let (cookie, word) = world.cookie(role).unwrap();
        let value = cookie.split_once('=').unwrap().1;
        let token = world.token(role).unwrap();
        let hash = posthaste_host::keys::hash(token).map(|byte| format!("{byte:02x}")).concat();
        assert!(!value.contains(token) && !value.contains(&hash), "{role:?}");
        for shown in value.split('.').chain([value, word.as_str()]) {
            let opened: Vec<_> = ask_elsewhere(&world, shown).await;
            let opened: Vec<_> = opened.into_iter().filter(|(_, got)| *got != Got::Unknown).collect();
            assert!(opened.is_empty(), "{role:?}: {opened:?}");
            let airc = world.http.get(world.url("/messages/inbox")).bearer_auth(shown).send().await.unwrap();
            assert_eq!(airc.status(), 401, "{role:?}");
        }
    }
}

/// As above, for MAP's own ways to authenticate on a connection without a token.
#[tokio::test]
async fn airc_tokens_are_no_map_credentials() {
    // Each test is its own process, and rustls must not have to guess.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let office = crate::map::client::Office::open(&[]).await;
    let http = reqwest::Client::new();
    let body = json!({ "username": "by_safe_mode" }).to_string();
    let answer = http.post(format!("http://{}/api/register", office.address())).body(body);
    let answer: Value = answer.send().await.unwrap().json().await.unwrap();
    let auth = json!({ "method": "bearer", "credential": answer["token"] });
    let mut client = crate::map::client::Client::stranger(&office).await;
    for (method, params) in [
        ("map/connect", json!({ "protocolVersion": 1, "participantType": "agent", "auth": auth })),
        ("map/authenticate", auth.clone()),
        ("map/auth/refresh", auth.clone()),
    ] {
        match client.call(method, params).await {
            Err(_) => {}
            Ok(answer) => assert_eq!(answer["success"], false, "{method}: {answer}"),
        }
    }
    assert!(client.call("map/agents/list", json!({})).await.is_err());
}
