//! AIRC as its published clients use it: Safe Mode's requests and responses, and registration by challenge.

use posthaste_wire::signing::SecretKey;
use reqwest::Method;
use serde_json::{Value, json};

use crate::airc::{Agent, Reply, ask};
use crate::harness::TestDir;
use crate::office::Office;

/// A Safe Mode client without a key.
struct Safe {
    url: String,
    name: &'static str,
    token: String,
}

impl Safe {
    async fn new(url: &str, name: &'static str) -> Self {
        let body = json!({ "action": "register", "username": name, "workingOn": "tests" });
        let reply = ask(url, Method::POST, "/api/presence", None, Some(body.to_string().into())).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        Self { url: url.to_owned(), name, token: reply.body["token"].as_str().unwrap().to_owned() }
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        ask(&self.url, Method::POST, path, Some(&self.token), Some(body.to_string().into())).await
    }

    async fn get(&self, path: &str) -> Value {
        ask(&self.url, Method::GET, path, Some(&self.token), None).await.body
    }

    async fn befriend(&self, other: &Self) {
        self.post("/api/consent", json!({ "action": "request", "handle": other.name })).await;
        let given = other.post("/api/consent", json!({ "action": "accept", "handle": self.name })).await;
        assert_eq!(given.status, 200, "{}", given.text);
    }
}

async fn befriended_pair(url: &str) -> (Safe, Safe) {
    let (a, b) = (Safe::new(url, "alice").await, Safe::new(url, "bobby").await);
    a.befriend(&b).await;
    (a, b)
}

/// `aud` may name the registry as its discovery document does, whatever the Host header says.
#[tokio::test]
async fn audience_may_be_the_registry_id() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let by_address = office.url().to_owned();
    let by_name = by_address.replace("127.0.0.1", "localhost");
    let agent = Agent::new(&by_address, "alice").await;
    let known = agent.get("/.well-known/airc").await.body;
    let id = known["registry_id"].as_str().unwrap();
    for url in [&by_address, &by_name] {
        for (audience, status) in [(id, 201), ("localhost.example", 403), ("elsewhere", 403)] {
            let mut envelope = agent.envelope("alice", json!({ "type": "text", "content": "x" }));
            envelope["aud"] = json!(audience);
            envelope.as_object_mut().unwrap().remove("signature");
            agent.sign(&mut envelope);
            let token = Some(agent.token.as_str());
            let sent = ask(url, Method::POST, "/messages", token, Some(envelope.to_string().into())).await;
            let good = if status == 201 { sent.status < 300 } else { sent.status == status };
            assert!(good, "{audience} at {url}: {} {}", sent.status, sent.text);
        }
    }
}

/// An attempt with another handle or key does not use up a challenge.
#[tokio::test]
async fn failed_attempt_does_not_use_up_a_challenge() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let url = office.url();
    let post = async |path: &str, body: Value| {
        ask(url, Method::POST, path, None, Some(body.to_string().into())).await
    };
    let (owner, thief) = (SecretKey::from_seed(&[3; 32]), SecretKey::from_seed(&[4; 32]));
    let given = post("/register/challenge", json!({ "handle": "carol" })).await;
    let challenge = given.body["challenge"].as_str().unwrap();
    let claim = |handle: &str, key: &SecretKey, signer: &SecretKey| {
        json!({
            "handle": handle, "publicKey": key.public().to_string(), "challenge": challenge,
            "challengeSignature": signer.sign(challenge.as_bytes()).to_string(),
        })
    };
    assert_eq!(post("/register", claim("mallory", &thief, &thief)).await.status, 401, "another handle");
    assert_eq!(post("/register", claim("carol", &owner, &thief)).await.status, 401, "another key");
    let other = json!({
        "handle": "carol", "public_key": thief.public().to_string(), "challenge": challenge,
        "proof": owner.sign(b"nothing").to_string(),
    });
    assert_eq!(post("/identity", other).await.status, 401, "another proof");
    let taken = post("/register", claim("carol", &owner, &owner)).await;
    assert_eq!(taken.status, 201, "{}", taken.text);
    assert_eq!(post("/register", claim("carol", &owner, &owner)).await.status, 401, "a good try uses it up");
}

/// A lookup of one user reports whether it exists, and `workingOn` is a string.
#[tokio::test]
async fn lookup_of_an_unknown_handle_fails() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (url, alice) = (office.url(), Safe::new(office.url(), "alice").await);
    for path in ["/api/presence?user=unknown", "/api/v2/presence?user=unknown"] {
        let reply = ask(url, Method::GET, path, None, None).await;
        assert_eq!((reply.status, &reply.body["success"]), (404, &json!(false)), "{}", reply.text);
    }
    let found = alice.get("/api/presence?user=@Alice").await;
    assert_eq!(
        (&found["success"], &found["presence"]["username"]),
        (&json!(true), &json!("alice")),
        "{found}"
    );
    // A user that is hidden from the caller is shown as offline.
    alice
        .post("/api/presence", json!({ "username": "alice", "privacy": "invisible", "status": "available" }))
        .await;
    let hidden = ask(url, Method::GET, "/api/presence?user=alice", None, None).await.body;
    assert_eq!((&hidden["presence"]["status"], &hidden["counts"]["total"]), (&json!("offline"), &json!(0)));
    let quiet = json!({ "action": "register", "username": "quiet" });
    ask(url, Method::POST, "/api/presence", None, Some(quiet.to_string().into())).await;
    let listed = ask(url, Method::GET, "/api/presence", None, None).await.body;
    let users = listed["users"].as_array().unwrap();
    assert!(!users.is_empty() && users.iter().all(|user| user["workingOn"].is_string()), "{listed}");
}

/// AIRC's own channel shows any payload as structured content, so plain texts have none.
#[tokio::test]
async fn plain_texts_have_no_payload_in_safe_mode() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (alice, bob) = befriended_pair(office.url()).await;
    let given = json!({ "type": "handoff", "data": { "n": 1 } });
    for body in [
        json!({ "to": "bobby", "text": "plain" }),
        json!({ "to": "bobby", "text": "with a type", "type": "code_review" }),
        json!({ "to": "bobby", "body": "structured", "payload": given }),
    ] {
        let sent = alice.post("/api/messages", body).await;
        assert!(sent.status < 300, "{}", sent.text);
    }
    for path in
        ["/api/messages?user=bobby", "/api/messages?user=bobby&with=alice", "/api/v2/messages?user=bobby"]
    {
        let messages = bob.get(path).await["messages"].clone();
        let payloads: Vec<&Value> = messages.as_array().unwrap().iter().map(|one| &one["payload"]).collect();
        assert_eq!(payloads, [&Value::Null, &Value::Null, &given], "{path}");
        assert_eq!(messages[0]["text"], "plain");
        assert_eq!(messages[1]["type"], "code_review");
    }
    // The full protocol's envelope has the payload that the specification asks for.
    let whole = bob.get("/messages/inbox").await;
    assert_eq!(whole["messages"][0]["payload"], json!({ "type": "text", "content": "plain" }));
}

/// slashvibe-mcp counts unread messages and looks for new ones; it marks a thread as read by fetching it.
#[tokio::test]
async fn unread_messages_are_counted() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (alice, bob) = befriended_pair(office.url()).await;
    for text in ["one", "two"] {
        alice.post("/api/messages", json!({ "to": "bobby", "text": text })).await;
    }
    let seen = bob.get("/api/messages?user=bobby").await;
    assert_eq!((&seen["unread"], &seen["threads"][0]["unread"]), (&json!(2), &json!(2)), "{seen}");
    let inbox: Vec<&Value> = seen["inbox"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    assert_eq!(inbox, ["one", "two"]);
    assert!(seen["inbox"][0]["createdAt"].is_string() && seen["inbox"][0]["read"] == false);
    // Reading as an administrator changes nothing.
    let by_operator = "/api/messages?user=bobby&with=alice";
    ask(office.url(), Method::GET, by_operator, Some(office.token()), None).await;
    assert_eq!(bob.get("/api/messages?user=bobby").await["unread"], 2);
    bob.get("/api/messages?user=bobby&with=alice").await;
    let seen = bob.get("/api/messages?user=bobby").await;
    assert_eq!(
        (&seen["unread"], &seen["threads"][0]["unread"], &seen["inbox"]),
        (&json!(0), &json!(0), &json!([]))
    );
    assert_eq!(seen["messages"].as_array().unwrap().len(), 2, "they are still there");
}

/// airc-ts registers without an action; the rules of registration hold all the same.
#[tokio::test]
async fn presence_without_action_registers_a_new_name_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let url = office.url();
    let bare = async |name: &str| {
        let body = json!({ "username": name, "workingOn": "tests" });
        ask(url, Method::POST, "/api/presence", None, Some(body.to_string().into())).await
    };
    let new = bare("dora").await;
    assert!(new.status == 200 && new.body["token"].is_string(), "{}", new.text);
    let again = bare("dora").await;
    assert_eq!(again.status, 401, "a name that is taken is not handed out: {}", again.text);
    assert!(again.body.get("token").is_none());
    let token = new.body["token"].as_str().unwrap();
    let body = json!({ "username": "dora", "workingOn": "more" });
    let beat = ask(url, Method::POST, "/api/presence", Some(token), Some(body.to_string().into())).await;
    assert!(
        beat.status == 200 && beat.body.get("token").is_none(),
        "with a token it is a heartbeat: {}",
        beat.text
    );
    // Where registration without a token is off, this is refused, too.
    let closed_dir = TestDir::new();
    let closed = Office::open_with(closed_dir.path(), &["--registration", "off"], &[]);
    let body = json!({ "username": "dora", "workingOn": "tests" });
    let refused = ask(closed.url(), Method::POST, "/api/presence", None, Some(body.to_string().into())).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
}

/// Invalid bodies are refused in each door's own form.
#[tokio::test]
async fn bodies_that_are_not_utf8_are_refused_in_each_doors_form() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let agent = Agent::new(office.url(), "alice").await;
    let broken = b"{\"a\": \"\xff\xfe\"}".to_vec();
    let post = async |path: &str, token: &str| {
        ask(office.url(), Method::POST, path, Some(token), Some(broken.clone())).await
    };
    for path in ["/x-posthaste/rpc", "/map/rpc"] {
        let reply = post(path, office.token()).await;
        assert_eq!(reply.body["error"]["code"], -32700, "{path}: {} {}", reply.status, reply.text);
        assert_eq!((&reply.body["jsonrpc"], &reply.body["id"]), (&json!("2.0"), &Value::Null), "{path}");
    }
    for path in [
        "/identity",
        "/register",
        "/register/challenge",
        "/auth/refresh",
        "/presence",
        "/messages",
        "/consent",
        "/api/presence",
        "/api/messages",
        "/api/v2/messages",
        "/api/consent",
        "/api/users",
        "/api/register",
        "/api/identity",
        "/identity/alice/rotate",
        "/identity/alice/revoke",
    ] {
        let reply = post(path, &agent.token).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text);
        assert_eq!(reply.body["success"], false, "{path}: {}", reply.text);
    }
    for path in [
        "/message",
        "/swarms",
        "/swarms/register",
        "/swarms/load",
        "/interswarm/message",
        "/task/cancel",
        "/health",
    ] {
        let reply = post(path, office.token()).await;
        assert!(reply.status == 400 || reply.status == 503, "{path}: {} {}", reply.status, reply.text);
        assert!(reply.body["detail"].is_string(), "{path}: {}", reply.text);
    }
}
