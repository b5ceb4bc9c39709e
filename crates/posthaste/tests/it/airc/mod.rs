//! The AIRC door through the real program: signed messages are delivered once, verbatim, and to their recipients only.

mod clients;

use posthaste_wire::signing::{SecretKey, sign_envelope};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Posthaste, TestDir};
use crate::office::Office;

/// An identity with a key and a token.
pub(crate) struct Agent {
    url: String,
    http: reqwest::Client,
    pub(crate) handle: String,
    key: SecretKey,
    recovery: SecretKey,
    pub(crate) token: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) text: String,
    headers: reqwest::header::HeaderMap,
}

impl Reply {
    fn code(&self) -> (u16, &str) {
        (self.status, self.body["error"].as_str().unwrap_or("-"))
    }
}

pub(crate) async fn ask(
    url: &str,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<Vec<u8>>,
) -> Reply {
    let mut request = reqwest::Client::new().request(method, format!("{url}{path}"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body);
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    Reply { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::Null), text }
}

fn now() -> i64 {
    posthaste_engine::stamp::now() / 1_000
}

pub(crate) fn soon(seconds: i64) -> String {
    posthaste_wire::time::to_rfc3339((now() + seconds) * 1_000)
}

/// A random word.
pub(crate) fn word() -> String {
    posthaste_engine::stamp::secret()[..32].to_owned()
}

impl Agent {
    pub(crate) async fn new(url: &str, handle: &str) -> Self {
        let seed = |n: u8| {
            let mut seed = [n; 32];
            seed[..handle.len()].copy_from_slice(handle.as_bytes());
            SecretKey::from_seed(&seed)
        };
        let (key, recovery) = (seed(1), seed(2));
        let body = json!({
            "handle": handle,
            "public_key": key.public().to_string(),
            "recovery_key": recovery.public().to_string(),
            "proof": key.sign(handle.as_bytes()).to_string(),
        });
        let reply = ask(url, Method::POST, "/identity", None, Some(body.to_string().into())).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        let token = reply.body["session_token"].as_str().unwrap().to_owned();
        let http = reqwest::Client::new();
        Self { url: url.to_owned(), http, handle: handle.to_owned(), key, recovery, token }
    }

    /// Two identities that accept each other.
    async fn pair(url: &str, one: &str, other: &str) -> (Self, Self) {
        let (a, b) = (Self::new(url, one).await, Self::new(url, other).await);
        a.befriend(&b).await;
        (a, b)
    }

    pub(crate) async fn befriend(&self, other: &Self) {
        let asked = self.post("/consent", json!({ "action": "request", "handle": other.handle })).await;
        assert_eq!(asked.status, 200, "{}", asked.text);
        let given = other.post("/consent", json!({ "action": "accept", "handle": self.handle })).await;
        assert_eq!(given.status, 200, "{}", given.text);
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.raw(path, body.to_string().into()).await
    }

    async fn raw(&self, path: &str, body: Vec<u8>) -> Reply {
        ask(&self.url, Method::POST, path, Some(&self.token), Some(body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        ask(&self.url, Method::GET, path, Some(&self.token), None).await
    }

    pub(crate) fn envelope(&self, to: &str, payload: Value) -> Value {
        let mut envelope = json!({
            "v": "0.2", "id": format!("msg_{}", word()), "from": self.handle, "to": to,
            "timestamp": now(), "nonce": word(), "payload": payload,
        });
        self.sign(&mut envelope);
        envelope
    }

    pub(crate) fn sign(&self, envelope: &mut Value) {
        let signature = sign_envelope(&envelope.to_string(), &self.key).unwrap();
        envelope["signature"] = json!(signature.to_string());
    }

    pub(crate) async fn send(&self, to: &str, payload: Value) -> Reply {
        self.post("/messages", self.envelope(to, payload)).await
    }

    pub(crate) async fn inbox(&self) -> Vec<Value> {
        let reply = self.get("/messages/inbox?limit=200").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.body["messages"].as_array().unwrap().clone()
    }
}

fn reservation(id: &str, path: &str) -> Value {
    json!({
        "type": "context:file_reservation", "reservation_id": id, "scope": "repo:github.com/example/app",
        "paths": [path], "status": "active", "ttl_seconds": 3600, "issued_ts": soon(0), "expires_ts": soon(3600),
    })
}

#[tokio::test]
async fn parallel_replays_are_accepted_once_and_refused_after_a_restart() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (a, b) = Agent::pair(office.url(), "rep_a", "rep_b").await;
    let envelope = a.envelope("rep_b", json!({ "type": "text", "content": "once" }));
    let tries = (0..16).map(|_| {
        let request =
            a.http.post(format!("{}/messages", a.url)).bearer_auth(&a.token).body(envelope.to_string());
        tokio::spawn(async move { request.send().await.unwrap().status() })
    });
    let mut seen = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        seen.push(one.await.unwrap());
    }
    assert_eq!(seen.iter().filter(|status| **status == StatusCode::CREATED).count(), 1, "{seen:?}");
    assert_eq!(seen.iter().filter(|status| **status == StatusCode::CONFLICT).count(), 15, "{seen:?}");
    assert_eq!(b.inbox().await.len(), 1);

    office.kill();
    let office = Office::open(data.path());
    let again =
        ask(office.url(), Method::POST, "/messages", Some(&a.token), Some(envelope.to_string().into())).await;
    assert_eq!(again.code(), (409, "duplicate_message"));
    let mut fresh = a.envelope("rep_b", json!({ "type": "text", "content": "same nonce" }));
    fresh["nonce"] = envelope["nonce"].clone();
    a.sign(&mut fresh);
    let again =
        ask(office.url(), Method::POST, "/messages", Some(&a.token), Some(fresh.to_string().into())).await;
    assert_eq!(again.code(), (409, "replay_detected"));
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn envelopes_are_delivered_byte_for_byte() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (a, b) = Agent::pair(office.url(), "ver_a", "ver_b").await;
    let unsigned = format!(
        "{{ \"to\":\"@ver_b\",\"from\" : \"ver_a\", \"timestamp\":{}, \"id\":\"odd-1\", \"x\":[1.0,-0,1e2,\"\\u00fc\"],\n \"payload\":{{\"type\":\"com.example:odd\",\"z\":1,\"a\":null}} }}",
        now()
    );
    let signature = sign_envelope(&unsigned, &a.key).unwrap();
    let sent = format!("{},\"signature\":\"{signature}\" }}", unsigned.trim_end_matches('}').trim_end());
    let reply = a.raw("/messages", sent.clone().into()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let page = b.get("/messages/inbox").await;
    let verbatim = sent.trim_end().trim_end_matches('}');
    assert!(page.text.contains(verbatim), "{}", page.text);
    assert_eq!(page.body["messages"][0]["delivery"]["to"], "ver_b");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn invalid_input_is_refused_and_nothing_is_kept() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (a, b) = Agent::pair(office.url(), "bad_a", "bad_b").await;
    let text = |content: &str| json!({ "type": "text", "content": content });

    let good = a.envelope("bad_b", text("x")).to_string();
    let twice = good.replacen("{\"v\"", "{\"v\":\"0.2\",\"v\"", 1);
    assert_eq!(a.raw("/messages", twice.into()).await.code(), (400, "invalid_envelope"));
    let inside = good.replacen("\"content\"", "\"content\":\"y\",\"content\"", 1);
    assert_eq!(a.raw("/messages", inside.into()).await.code(), (400, "invalid_envelope"));
    assert_eq!(a.raw("/messages", b"{\"to\":\"\xff\"}".to_vec()).await.code(), (400, "invalid_json"));
    assert_eq!(a.raw("/messages", good.replace("\"x\"", "\"\\ud800\"").into()).await.status, 400);
    assert_eq!(a.raw("/messages", good.replace("\"x\"", "1e400").into()).await.status, 400);
    assert_eq!(a.send("bad_b", text(&"x".repeat(70_000))).await.code(), (413, "payload_too_large"));
    assert_eq!(a.raw("/messages", vec![b' '; 3 << 20]).await.status, 413);
    assert_eq!(a.send("@thread:bd-1", text("x")).await.code(), (400, "unsupported_target"));
    let late = |seconds: i64| {
        let mut envelope = a.envelope("bad_b", text("x"));
        envelope["timestamp"] = json!(now() + seconds);
        a.sign(&mut envelope);
        envelope
    };
    for seconds in [-310, 310] {
        assert_eq!(a.post("/messages", late(seconds)).await.code(), (401, "invalid_timestamp"));
    }
    for (member, value) in [("timestamp", Value::Null), ("from", Value::Null), ("v", json!("2.0"))] {
        let mut envelope = a.envelope("bad_b", text("x"));
        envelope[member] = value;
        a.sign(&mut envelope);
        assert_eq!(a.post("/messages", envelope).await.code(), (400, "invalid_envelope"), "{member}");
    }
    let mut other = a.envelope("bad_b", text("x"));
    other["aud"] = json!("elsewhere.example");
    a.sign(&mut other);
    assert_eq!(a.post("/messages", other).await.code(), (403, "audience_mismatch"));
    assert!(b.inbox().await.is_empty(), "no message was kept");

    let url = office.url();
    let with_key = |handle: &str, key: &str| {
        let body = json!({ "handle": handle, "public_key": key, "proof": a.key.sign(handle.as_bytes()).to_string() });
        ask(url, Method::POST, "/identity", None, Some(body.to_string().into()))
    };
    // Too short, too long, of small order, no point of the curve.
    for key in [
        "ed25519:AAAA".to_owned(),
        format!("ed25519:{}", "A".repeat(88)),
        "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned(),
        "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned(),
    ] {
        assert_eq!(with_key("weak_key", &key).await.code(), (400, "invalid_key"), "{key}");
    }
    let public = a.key.public().to_string();
    assert_eq!(with_key("BAD_A", &public).await.code(), (409, "handle_taken"));
    assert_eq!(with_key("\u{430}lice", &public).await.code(), (400, "invalid_handle"));
    assert_eq!(with_key("public", &public).await.code(), (400, "invalid_handle"));
    // A name that another door uses in another case is taken, too.
    office.register("Worker").await;
    assert_eq!(with_key("worker", &public).await.code(), (409, "handle_taken"));
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn mail_and_reservations_reach_other_doors() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (a, b) = Agent::pair(office.url(), "bri_a", "bri_b").await;
    let mail = json!({
        "type": "context:mailbox", "message_id": "m1", "subject": "Handoff", "body_md": "Done.",
        "thread_id": "bd-1", "ack_required": true, "priority": "urgent",
    });
    assert_eq!(a.send("bri_b", mail).await.status, 201);
    let messages = office.inbox("bri_b", 0).await;
    let message = &messages[0];
    assert_eq!((&message["subject"], &message["body"]), (&json!("Handoff"), &json!("Done.")));
    assert_eq!((&message["priority"], &message["ack_required"]), (&json!(1), &json!(true)));
    assert_eq!(message["conversation"], "bd-1");
    let ack = json!({ "type": "context:mailbox_ack", "message_id": "m1", "ack_ts": soon(0), "response": "Got it." });
    assert_eq!(b.send("bri_a", ack).await.status, 201);
    let messages = office.inbox("bri_b", 0).await;
    assert_eq!(messages[0]["delivery"]["state"], "acked");
    assert_eq!(messages[0]["delivery"]["note"], "Got it.");

    // A message from another door waits for consent like any other, then shows as mailbox mail that can be acknowledged.
    office.register("worker").await;
    let params = json!({ "from": "worker", "to": ["bri_b"], "subject": "Build", "body": "green", "ack_required": true });
    assert!(office.call("send", params.clone()).await.is_err(), "a stranger's first message asks");
    let accept = b.post("/consent", json!({ "action": "accept", "handle": "worker" })).await;
    assert_eq!(accept.status, 200, "{}", accept.text);
    office.call("send", params).await.unwrap();
    let page = b.get("/messages/inbox?payload_type=context:mailbox").await;
    let shown =
        page.body["messages"].as_array().unwrap().iter().find(|one| one["from"] == "worker").unwrap().clone();
    assert_eq!(shown["payload"]["body_md"], "green");
    let id = shown["payload"]["message_id"].clone();
    let ack = json!({ "type": "context:mailbox_ack", "message_id": id, "ack_ts": soon(0) });
    let reply = b.send("worker", ack).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let messages = office.inbox("bri_b", 0).await;
    let acked = messages.iter().find(|message| message["from"] == "worker").unwrap();
    assert_eq!(acked["delivery"]["state"], "acked");

    // The same for a message whose kind only another door knows: neither its subject nor its request for an acknowledgement is lost.
    let params = json!({
        "from": "worker", "to": ["bri_b"], "kind": "coordination", "subject": "Build 2", "body": "red", "ack_required": true,
    });
    office.call("send", params).await.unwrap();
    let page = b.get("/messages/inbox?payload_type=context:mailbox").await;
    let messages = page.body["messages"].as_array().unwrap();
    let shown = messages.iter().find(|one| one["payload"]["kind"] == "coordination").unwrap();
    let payload = &shown["payload"];
    assert_eq!((&payload["body_md"], &payload["subject"]), (&json!("red"), &json!("Build 2")));
    assert_eq!(payload["ack_required"], true);
    let ack =
        json!({ "type": "context:mailbox_ack", "message_id": payload["message_id"], "ack_ts": soon(0) });
    assert_eq!(b.send("worker", ack).await.status, 201);
    let messages = office.inbox("bri_b", 0).await;
    let acked = messages.iter().find(|message| message["subject"] == "Build 2").unwrap();
    assert_eq!(acked["delivery"]["state"], "acked");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn reservations_are_limited_owned_and_reported() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let (a, b) = Agent::pair(office.url(), "res_a", "res_b").await;
    let first = a.send("@contacts", reservation("r0", "src/**/*.rs")).await;
    assert_eq!((first.status, first.body["delivered"].as_i64()), (201, Some(1)), "{}", first.text);
    let overlap = b.send("@contacts", reservation("s0", "src/lib.rs")).await;
    let conflict = &overlap.body["conflicts"][0];
    assert_eq!((&conflict["reservation_id"], &conflict["owner"]), (&json!("r0"), &json!("res_a")));
    assert_eq!(conflict["paths"], json!(["src/**/*.rs"]));
    // Another spelling of the same repository is the same scope.
    let mut spelled = reservation("s1", "src/lib.rs");
    spelled["scope"] = json!("repo:git@github.com:example/app.git");
    assert_eq!(b.send("@contacts", spelled).await.body["conflicts"].as_array().unwrap().len(), 1);
    for n in 1..10 {
        assert_eq!(
            a.send("@contacts", reservation(&format!("r{n}"), &format!("lib/{n}"))).await.status,
            201,
            "{n}"
        );
    }
    let limit = a.send("res_b", reservation("r10", "lib/10")).await;
    assert_eq!(limit.code(), (409, "reservation_limit"));
    office.call("rules", json!({ "reservations_per_scope": 11 })).await.unwrap();
    assert_eq!(
        a.send("res_b", reservation("r10", "lib/10")).await.status,
        201,
        "it is a rule that can be changed"
    );

    let renewed = json!({ "type": "context:file_reservation", "reservation_id": "r0", "status": "renewed",
        "ttl_seconds": 60, "expires_ts": soon(60) });
    assert_eq!(b.send("res_a", renewed.clone()).await.code(), (403, "not_owner"));
    let (c, d) = Agent::pair(office.url(), "res_c", "res_d").await;
    assert_eq!(c.send("res_d", renewed).await.code(), (404, "reservation_not_found"));
    drop(d);
    let mut stale = reservation("old", "docs/a.md");
    stale["issued_ts"] = json!(soon(-600));
    stale["scope"] = json!("project:other");
    let reply = a.send("res_b", stale).await;
    assert_eq!(reply.body["warnings"][0]["code"], "stale_reservation", "{}", reply.text);
    let mut local = reservation("loc", "a");
    local["scope"] = json!("local");
    assert_eq!(b.send("@contacts", local).await.code(), (400, "invalid_payload"));
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn keys_are_rotated_and_revoked_once() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let url = office.url();
    let mut a = Agent::new(url, "rot_a").await;
    let rotate = |proof: Value, key: &SecretKey| {
        let body = json!({ "new_public_key": key.public().to_string(), "proof": proof });
        ask(url, Method::POST, "/identity/rot_a/rotate", None, Some(body.to_string().into()))
    };
    let note = || json!({ "type": "text", "content": "to myself" });
    assert_eq!(a.send("rot_a", note()).await.status, 201);
    let fresh = SecretKey::from_seed(&[9; 32]);
    let text = fresh.public().to_string();
    // The signing key alone is not enough where there is a recovery key.
    let own = json!(a.key.sign(text.as_bytes()).to_string());
    assert_eq!(rotate(own, &fresh).await.code(), (401, "invalid_proof"));
    let proof = json!(a.recovery.sign(text.as_bytes()).to_string());
    let done = rotate(proof.clone(), &fresh).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(ask(url, Method::GET, "/messages/inbox", Some(&a.token), None).await.status, 401);
    assert_eq!(
        a.send("rot_a", note()).await.code(),
        (401, "unauthorized"),
        "the cached identity ends with its token"
    );
    let soon_again = rotate(proof, &fresh).await;
    assert_eq!(soon_again.status, 409, "{}", soon_again.text);
    let third = SecretKey::from_seed(&[8; 32]);
    let early = json!(a.recovery.sign(third.public().to_string().as_bytes()).to_string());
    let early = rotate(early, &third).await;
    assert_eq!(early.code(), (429, "rate_limited"));
    assert!(early.headers.contains_key("retry-after"));
    a.token = done.body["session_token"].as_str().unwrap().to_owned();
    assert_eq!(a.get("/messages/inbox").await.status, 200);
    assert_eq!(a.send("rot_a", note()).await.code(), (401, "invalid_signature"), "signed with the old key");

    let mut body = json!({ "v": "0.2", "handle": "rot_a", "action": "revoke", "reason": "lost", "timestamp": now(), "nonce": word() });
    let signed = posthaste_wire::canonical::canonicalize(&body.to_string()).unwrap();
    body["proof"] = json!(a.recovery.sign(signed.as_bytes()).to_string());
    let gone = ask(url, Method::POST, "/api/identity/revoke", None, Some(body.to_string().into())).await;
    assert_eq!((gone.status, &gone.body["status"]), (200, &json!("revoked")), "{}", gone.text);
    assert_eq!(office.close(), Some(0));
    // The revocation holds after a restart, too.
    let office = Office::open(data.path());
    let shown = ask(office.url(), Method::GET, "/identity/rot_a", None, None).await;
    assert_eq!(shown.body["status"], "revoked");
    let body = json!({ "handle": "rot_a", "public_key": a.key.public().to_string(),
        "proof": a.key.sign(b"rot_a").to_string() });
    let taken = ask(office.url(), Method::POST, "/identity", None, Some(body.to_string().into())).await;
    assert_eq!(taken.code(), (409, "handle_taken"));
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn web_pages_realms_and_safe_mode_switch() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let url = office.url();
    let preflight = |origin: &'static str| {
        let request = reqwest::Client::new().request(Method::OPTIONS, format!("{url}/messages"));
        request.header("origin", origin).header("access-control-request-method", "POST").send()
    };
    let foreign = preflight("http://evil.test").await.unwrap();
    assert_eq!(foreign.status(), StatusCode::NO_CONTENT);
    assert!(!foreign.headers().contains_key("access-control-allow-origin"), "it is not told that it may");
    let ours = preflight("http://localhost:5173").await.unwrap();
    assert_eq!(ours.headers()["access-control-allow-origin"], "http://localhost:5173");
    let used = reqwest::Client::new().get(format!("{url}/presence")).header("origin", "http://evil.test");
    assert_eq!(used.send().await.unwrap().status(), StatusCode::FORBIDDEN);

    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    let shop = format!("{url}/r/shop");
    let found = ask(&shop, Method::GET, "/.well-known/airc", None, None).await;
    assert_eq!(found.body["endpoints"]["messages"], "/r/shop/messages");
    let (a, b) = Agent::pair(&shop, "shop_a", "shop_b").await;
    assert_eq!(a.send("shop_b", json!({ "type": "text", "content": "hi" })).await.status, 201);
    assert_eq!(b.inbox().await.len(), 1);
    assert_eq!(ask(url, Method::GET, "/identity/shop_a", None, None).await.status, 404, "realms are apart");
    let health = ask(url, Method::GET, "/health", None, None).await;
    assert_eq!((&health.body["status"], &health.body["protocol"]), (&json!("healthy"), &json!("AIRC")));
    assert_eq!(office.close(), Some(0));

    data.write("posthaste.toml", "safe_mode = 'off'\nregistration = 'off'\n");
    let office = Office::open(data.path());
    let off = json!({ "action": "register", "username": "new_agent_1" }).to_string();
    let off = ask(office.url(), Method::POST, "/api/presence", None, Some(off.into())).await;
    assert_eq!(off.code(), (403, "safe_mode_disabled"));
    let key = SecretKey::from_seed(&[3; 32]);
    let body = json!({ "handle": "guest_1", "public_key": key.public().to_string(),
        "proof": key.sign(b"guest_1").to_string() })
    .to_string();
    let closed = ask(office.url(), Method::POST, "/identity", None, Some(body.clone().into())).await;
    assert_eq!(closed.code(), (403, "registration_closed"));
    let token = std::fs::read_to_string(data.path().join("admin.token")).unwrap();
    let invited = ask(office.url(), Method::POST, "/identity", Some(token.trim()), Some(body.into())).await;
    assert_eq!(invited.status, 201, "{}", invited.text);
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn command_line_is_a_client() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let url = office.url().to_owned();
    let run = |who: &str, words: &[&str]| {
        let mut posthaste: Posthaste = data.posthaste();
        posthaste.command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        posthaste.args(["airc", "--registry", &url, "--as", who]).args(words.iter().copied()).run()
    };
    for name in ["cli_ann", "cli_bob"] {
        let made = data.posthaste().args(["airc", "--registry", &url, "register", name]).run().ok();
        assert!(made.stdout.contains("ed25519:"), "{}", made.stdout);
    }
    #[cfg(unix)]
    for file in ["key", "recovery.key", "session.json"] {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            std::fs::metadata(data.path().join("airc/cli_ann").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let refused = run("cli_ann", &["send", "cli_bob", "hello"]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(run("cli_bob", &["consent", "list"]).ok().stdout.contains("cli_ann"));
    run("cli_bob", &["consent", "accept", "cli_ann"]).ok();
    run("cli_ann", &["send", "cli_bob", "Please look.", "--subject", "Review", "--ack"]).ok();
    let read = run("cli_bob", &["inbox", "--ack", "On it."]).ok();
    // The text is shown, not only the subject.
    let expected = "cli_ann (context:mailbox, signed, acknowledged) Review\nPlease look.\n";
    assert!(read.stdout.contains(expected), "{}", read.stdout);
    let acks = &run("cli_ann", &["inbox", "--type", "context:mailbox_ack", "--json"]).ok().json()["messages"];
    assert_eq!(acks[0]["message"]["payload"]["response"], "On it.");
    assert_eq!(acks[0]["verified"], true);

    let scope = "repo:github.com/example/app";
    let made = run("cli_ann", &["reserve", "api/auth.ts", "--scope", scope, "--reason", "race"]).ok();
    let id = made.stdout.trim().to_owned();
    assert!(made.stderr.contains("warning:"), "a scope that is not this work tree's: {}", made.stderr);
    let check =
        run("cli_bob", &["reserve", "--check", "api", "--scope", "repo:https://github.com/example/app.git"]);
    assert_eq!(check.code, 6, "{}", check.stderr);
    assert!(check.stderr.contains("cli_ann holds api/auth.ts"), "{}", check.stderr);
    let anyway = run("cli_bob", &["reserve", "api/auth.ts", "--scope", scope]).ok();
    assert!(anyway.stderr.contains("overlaps with cli_ann's"), "advisory: {}", anyway.stderr);
    run("cli_ann", &["reserve", "--renew", &id, "--ttl", "2h"]).ok();
    run("cli_ann", &["release", &id]).ok();
    assert_eq!(run("cli_bob", &["reserve", "--check", "api", "--scope", scope]).ok().code, 0);
    let kept = run("cli_bob", &["reserve", "--json"]).ok().json();
    let entry =
        kept["reservations"].as_array().unwrap().iter().find(|one| one["owner"] == "cli_ann").unwrap();
    assert_eq!((&entry["reservation_id"], &entry["status"]), (&json!(id), &json!("released")));
    assert_eq!(run("cli_ann", &["reserve", "/etc/passwd", "--scope", scope]).code, 2);
    assert_eq!(run("cli_ann", &["send", "@public", "all"]).code, 2, "@public wants a word more");

    let page = &run("cli_bob", &["inbox", "--json"]).ok().json()["messages"];
    let message = data.write("message.json", &page[0]["message"].to_string());
    run("cli_bob", &["verify", message.to_str().unwrap()]).ok();
    let forged =
        data.write("forged.json", &page[0]["message"].to_string().replace("Please look.", "Please pay."));
    assert_eq!(run("cli_bob", &["verify", forged.to_str().unwrap()]).code, 6);
    // A lost or expired token is replaced by a proof of the key.
    std::fs::remove_file(data.path().join("airc/cli_ann/session.json")).unwrap();
    run("cli_ann", &["inbox"]).ok();
    assert_eq!(office.close(), Some(0));
}
