//! Tokens that end: whatever they hold open ends with them, and nothing brings them back.

use std::time::Duration;

use futures_util::StreamExt;
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, RealmName, TokenRole};
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};
use posthaste_host::caller::AuthError;
use posthaste_host::http::rate::Rates;
use posthaste_host::http::reach::Reaches;
use posthaste_host::keys::{AdminKey, hash};
use posthaste_host::{Features, Host, Offer};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::harness::{LONG, TestDir};
use crate::map::client::{Client, Office as MapOffice};
use crate::mcp::client::Mcp;
use crate::office::Office;
use crate::swarm::{Swarm, boss, team};

async fn token(office: &Office, role: &str) -> (String, String) {
    let made = office.call("token.create", json!({ "role": role, "name": "ann" })).await.unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

/// Waits for a stream's end; what comes meanwhile is of no interest.
async fn ends(what: &str, answer: reqwest::Response) {
    let mut chunks = answer.bytes_stream();
    let end = async { while let Some(Ok(_)) = chunks.next().await {} };
    timeout(LONG, end).await.unwrap_or_else(|_| panic!("the stream of {what} goes on"));
}

/// The first piece, so that the stream is known to be open.
async fn first(answer: &mut reqwest::Response) {
    assert_eq!(answer.status().as_u16(), 200);
    timeout(LONG, answer.chunk()).await.expect("a first piece").unwrap().expect("a first piece");
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
    // The swarm's tasks: one that waits for somebody.
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
    let goes_on = timeout(Duration::from_millis(300), others.chunk()).await;
    assert!(!matches!(goes_on, Ok(Ok(None))), "another's stream goes on");
    let again = get("/map/events", &secret).send().await.unwrap();
    assert_eq!(again.status().as_u16(), 401);
}

#[tokio::test]
async fn a_socket_that_never_greeted_ends_with_its_token_too() {
    let office = MapOffice::open(&[]).await;
    let mut operator = Client::connect_with(&office, &office.admin_token(), "client").await;
    let made = json!({ "role": "agent", "name": "ann" });
    let made = operator.call("x-posthaste/token.create", made).await.unwrap();
    // The office's own methods need no session, so there is none that would be watched over.
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
async fn a_web_token_that_lapses_closes_its_socket() {
    let dir = TestDir::new();
    let key = "0123456789abcdef0123456789abcdef";
    let path = dir.write("jwt.key", key);
    let office = MapOffice::open(&["--jwt-key", path.to_str().unwrap()]).await;
    #[expect(clippy::disallowed_methods, reason = "a test may ask the time")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // Validation grants a minute of leeway to clocks that differ, the end of a connection does not.
    let claims = json!({ "sub": "ann", "role": "agent", "exp": now + 2 });
    let mut ann = Client::open_with(&office, &sign(&claims, key.as_bytes())).await;
    ann.call("x-posthaste/whoami", json!({})).await.unwrap();
    assert_eq!(ann.close_code().await, Some(1008));
}

/// A realm that nobody uses is closed, and counts from nothing when it is opened again. What was remembered of a token
/// must not be taken for fresh then.
#[tokio::test]
async fn a_revoked_token_stays_revoked_when_its_realm_is_opened_again() {
    let dir = TestDir::new();
    let limits = Limits { realm_idle: Duration::ZERO, ..Limits::default() };
    let (books, guard) = posthaste_engine::Office::open(dir.path(), limits).unwrap();
    let admin = AdminKey::open(dir.path()).unwrap();
    let switches = Features {
        auth: true,
        mail: true,
        rates: Rates::default(),
        reaches: Reaches::ANYWHERE,
        safe_mode: Offer::Off,
        registration: Offer::Off,
        ping_every: Duration::from_secs(30),
    };
    let shared = Host::new(books, RealmName::main(), admin, switches, CancellationToken::new());
    let away = RealmName::new("away").unwrap();
    let office = Caller::office();
    let engine = shared.office().realm(&away).await.unwrap();
    let verb = CreateToken {
        hash: hash("secret").to_vec(),
        role: TokenRole::Agent,
        name: "ann".to_owned(),
        door: None,
        observe: false,
        expires_at: None,
    };
    let token = engine.submit(&office, verb).await.unwrap();
    // Opened again, so that the counters stand at nothing while the token is looked up.
    drop(engine);
    tokio::time::sleep(Duration::from_millis(5)).await;
    shared.office().tidy().await;
    assert!(shared.office().open_realms().await.is_empty(), "nobody uses it");
    let engine = shared.office().realm(&away).await.unwrap();
    assert_eq!(shared.identify(&engine, Some("secret"), "map").await.unwrap().name.as_str(), "ann");
    engine.submit(&office, RevokeToken { id: token.id }).await.unwrap();
    drop(engine);
    tokio::time::sleep(Duration::from_millis(5)).await;
    shared.office().tidy().await;
    assert!(shared.office().open_realms().await.is_empty(), "nobody uses it");
    let engine = shared.office().realm(&away).await.unwrap();
    let answer = shared.identify(&engine, Some("secret"), "map").await;
    assert!(matches!(answer, Err(AuthError::Invalid)), "{answer:?}");
    drop((engine, shared));
    guard.close().await;
}
