//! Revoked and expired tokens: their streams and sockets end, and they stay invalid.

use std::time::Duration;

use futures_util::StreamExt;
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, RealmName, TokenRole};
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_host::caller::AuthError;
use posthaste_host::http::egress_policy::EgressPolicy;
use posthaste_host::http::rate::Rates;
use posthaste_host::keys::{AdminKey, hash};
use posthaste_host::{Features, Host, Offer};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::{Client, Office as MapOffice};
use crate::mcp::client::Mcp;
use crate::office::Office;
use crate::swarm::{Swarm, boss, team};

async fn token(office: &Office, role: &str) -> (String, String) {
    let made = office.call("token.create", json!({ "role": role, "name": "ann" })).await.unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

/// Waits for the end of a stream, ignoring its content.
async fn ends(what: &str, answer: reqwest::Response) {
    let mut chunks = answer.bytes_stream();
    let end = async { while let Some(Ok(_)) = chunks.next().await {} };
    timeout(LONG, end).await.unwrap_or_else(|_| panic!("the stream of {what} stays open"));
}

/// Waits for the first chunk, so that the stream is known to be open.
async fn first(answer: &mut reqwest::Response) {
    assert_eq!(answer.status().as_u16(), 200);
    timeout(LONG, answer.chunk()).await.expect("a first chunk").unwrap().expect("a first chunk");
}

#[tokio::test]
async fn a_revoked_token_ends_the_streams_of_every_door() {
    let echo = json!({ "builtin": "script" });
    let swarm = Swarm::open(&team("team", json!([boss(echo, &["boss"])])), &[], &[]);
    let office = swarm.office.as_ref().unwrap();
    let (secret, id) = token(office, "user").await;
    let (other, _) = token(office, "user").await;
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let get = |path: &str, token: &str| http.get(format!("{}{path}", office.url())).bearer_auth(token);

    // MAP's events.
    let mut map = get("/map/events", &secret).send().await.unwrap();
    first(&mut map).await;
    let mut others = get("/map/events", &other).send().await.unwrap();
    first(&mut others).await;
    // MCP's notifications.
    let mcp = Mcp::at(&format!("{}/mcp", office.url()), Some(&secret));
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let session = mcp.post(&hello).await.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let notes = mcp.request(reqwest::Method::GET).header("mcp-session-id", &session);
    let notes = notes.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(notes.status().as_u16(), 200);
    // A task of the swarm that waits for input.
    let task = json!({ "body": "[]", "stream": true });
    let task = http.post(format!("{}/message", office.url())).bearer_auth(&secret).json(&task);
    let mut task = task.send().await.unwrap();
    first(&mut task).await;
    // The page.
    let page = http.get(format!("{}/ui/sign-in", office.url())).send().await.unwrap().text().await.unwrap();
    let word = page.split("name=\"word\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let signed =
        http.post(format!("{}/ui/sign-in", office.url())).body(format!("word={word}&token={secret}"));
    let signed = signed.send().await.unwrap();
    let cookie = signed.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let live = http.get(format!("{}/ui/live/stream", office.url())).header("cookie", &cookie);
    let mut live = live.send().await.unwrap();
    first(&mut live).await;

    office.call("token.revoke", json!({ "id": id })).await.unwrap();
    ends("map", map).await;
    ends("mcp", notes).await;
    ends("swarm", task).await;
    ends("web", live).await;
    // The stream of another token stays open: it still gets events.
    office.register("witness").await;
    let mut text = String::new();
    while !text.contains("witness") {
        let chunk = timeout(LONG, others.chunk()).await.expect("an event").unwrap().expect("an open stream");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    let again = get("/map/events", &secret).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 401);
}

#[tokio::test]
async fn socket_without_a_session_closes_when_its_token_is_revoked() {
    let office = MapOffice::open(&[]).await;
    let mut operator = Client::connect_with(&office, &office.admin_token(), "client").await;
    let made = json!({ "role": "agent", "name": "ann" });
    let made = operator.call("x-posthaste/token.create", made).await.unwrap();
    // The server's own methods need no session, so the token is not watched for a session's sake.
    let mut ann = Client::open_with(&office, made["token"].as_str().unwrap()).await;
    ann.call("x-posthaste/whoami", json!({})).await.unwrap();
    operator.call("x-posthaste/token.revoke", json!({ "id": made["id"] })).await.unwrap();
    assert_eq!(ann.close_code().await, Some(1008));
}

fn sign(claims: &Value, key: &[u8]) -> String {
    use base64::Engine as _;
    use hmac::{KeyInit, Mac};
    let encode = |text: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let head = encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let text = format!("{head}.{}", encode(claims.to_string().as_bytes()));
    let mut mac = <hmac::Hmac<sha2::Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    format!("{text}.{}", encode(&mac.finalize().into_bytes()))
}

#[tokio::test]
async fn expired_json_web_token_closes_its_socket() {
    let dir = TestDir::new();
    let key = "0123456789abcdef0123456789abcdef";
    let path = dir.write("jwt.key", key);
    let office = MapOffice::open(&["--jwt-key", path.to_str().unwrap()]).await;
    #[expect(clippy::disallowed_methods, reason = "a test may ask the time")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // Validation allows a minute of clock difference, the end of a connection does not.
    let claims = json!({ "sub": "ann", "role": "agent", "exp": now + 2 });
    let mut ann = Client::open_with(&office, &sign(&claims, key.as_bytes())).await;
    ann.call("x-posthaste/whoami", json!({})).await.unwrap();
    assert_eq!(ann.close_code().await, Some(1008));
}

/// Waits until the server has closed every idle realm.
async fn close_idle_realms(host: &Host) {
    eventually(LONG, "the idle realm is closed", async || {
        host.office().tidy().await;
        host.office().open_realms().await.is_empty()
    })
    .await;
}

/// An idle realm is closed, and its directory version starts at zero when it is opened again. A token cached before that
/// must not count as current.
#[tokio::test]
async fn a_revoked_token_stays_revoked_when_its_realm_is_opened_again() {
    let dir = TestDir::new();
    let limits = Limits { realm_idle: Duration::ZERO, ..Limits::default() };
    let (realms, guard) = posthaste_engine::Office::open(dir.path(), limits).unwrap();
    let admin = AdminKey::open(dir.path()).unwrap();
    let features = Features {
        auth: true,
        mail: true,
        rates: Rates::default(),
        egress_policy: EgressPolicy::ANYWHERE,
        safe_mode: Offer::Off,
        registration: Offer::Off,
        ping_every: Duration::from_secs(30),
    };
    let host = Host::new(realms, RealmName::main(), admin, features, CancellationToken::new());
    let away = RealmName::new("away").unwrap();
    let office = Caller::office();
    let engine = host.office().realm(&away).await.unwrap();
    let verb = CreateToken {
        hash: hash("secret").to_vec(),
        role: TokenRole::Agent,
        name: "ann".to_owned(),
        door: None,
        observe: false,
        expires_at: None,
    };
    let token = engine.submit(&office, verb).await.unwrap();
    // Opened again, so that the version is zero while the token is looked up.
    drop(engine);
    close_idle_realms(&host).await;
    let engine = host.office().realm(&away).await.unwrap();
    assert_eq!(host.identify(&engine, Some("secret"), "map").await.unwrap().name.as_str(), "ann");
    engine.submit(&office, RevokeToken { id: token.id }).await.unwrap();
    drop(engine);
    close_idle_realms(&host).await;
    let engine = host.office().realm(&away).await.unwrap();
    let answer = host.identify(&engine, Some("secret"), "map").await;
    assert!(matches!(answer, Err(AuthError::Invalid)), "{answer:?}");
    drop((engine, host));
    guard.close().await;
}
