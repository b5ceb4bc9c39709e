//! Messages sent through the MAP door without a private flag: a plain token does not see them, a token with the observe
//! right reads them and changes nothing.

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::map::client::Client;
use crate::mcp::client::Mcp;
use crate::office::Office;
use crate::web::Visitor;

/// The word in everything that others must not see.
const SECRET: &str = "walrus";

async fn token(office: &Office, name: &str, observe: bool) -> String {
    let made = json!({ "role": "agent", "name": name, "observe": observe });
    office.call("token.create", made).await.unwrap()["token"].as_str().unwrap().to_owned()
}

fn says(found: &Value) -> bool {
    found.to_string().contains(SECRET)
}

/// A caller that takes part in nothing, connected through every door.
struct Watcher {
    token: String,
    map: Client,
    sse: reqwest::Response,
}

impl Watcher {
    async fn new(office: &Office, name: &str, observe: bool) -> Self {
        let token = token(office, name, observe).await;
        let mut map = Client::agent_at(office.url(), &token, name).await;
        map.call("map/subscribe", json!({})).await.unwrap();
        let sse = reqwest::Client::new().get(format!("{}/map/events", office.url())).bearer_auth(&token);
        let mut sse = sse.send().await.unwrap();
        assert_eq!(sse.status().as_u16(), 200);
        sse.chunk().await.unwrap().expect("a greeting");
        Self { token, map, sse }
    }

    /// Whether the live events up to the creation of a scope contain the word, on the WebSocket and by SSE.
    async fn saw_live(&mut self, scope: &str) -> (bool, bool) {
        let made = |frame: &Value| {
            let event = &frame["params"]["event"];
            event["type"] == "scope_created" && event["data"]["scopeId"] == scope
        };
        self.map.next(made).await;
        let socket = self.map.has(says);
        let mut text = String::new();
        while !text.contains(&format!("\"scopeId\":\"{scope}\"")) {
            text.push_str(&String::from_utf8_lossy(&self.sse.chunk().await.unwrap().expect("more")));
        }
        (socket, text.contains(SECRET))
    }

    /// The responses of every read, through every door.
    async fn reads(&mut self, office: &Office, conversation: &str, task: &str) -> Vec<(String, Value)> {
        let one = json!({ "conversationId": conversation });
        let calls = [
            ("map/replay", json!({})),
            ("mail/list", json!({})),
            (
                "mail/get",
                json!({ "conversationId": conversation, "include": { "recentTurns": 9, "participants": true } }),
            ),
            ("mail/turns/list", one.clone()),
            ("mail/thread/list", one.clone()),
            ("mail/summary", one.clone()),
            ("mail/replay", one.clone()),
            ("mail/presence", one),
            ("map/tasks/list", json!({})),
            ("map/tasks/get", json!({ "taskId": task })),
            ("x-posthaste/search", json!({ "query": SECRET })),
            ("x-posthaste/conversations", json!({})),
            ("x-posthaste/thread", json!({ "id": conversation })),
            ("x-posthaste/events", json!({ "after": 0 })),
        ];
        let mut found = Vec::new();
        for (method, params) in calls {
            let answer = self.map.call(method, params.clone()).await.unwrap_or_else(|error| error);
            found.push((method.to_owned(), answer));
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let url = format!("{}/map/rpc", office.url());
            let sent = reqwest::Client::new().post(url).bearer_auth(&self.token).body(call.to_string());
            let text = sent.send().await.unwrap().text().await.unwrap();
            found.push((format!("http {method}"), Value::String(text)));
        }
        let mcp = Mcp::at(&format!("{}/mcp", office.url()), Some(&self.token));
        let search = mcp.result("search_messages", json!({ "project_key": "main", "query": SECRET })).await;
        found.push(("search_messages".to_owned(), search));
        let uri = format!("resource://thread/{conversation}?project=main&include_bodies=true");
        found.push(("thread".to_owned(), mcp.method("resources/read", json!({ "uri": uri })).await));
        let page = Visitor::signed_in(office, &self.token).await;
        for path in [
            "/ui/search?q=walrus".to_owned(),
            "/ui/live".to_owned(),
            format!("/ui/conversations/{conversation}"),
        ] {
            let text = page.get(&path).await.text().replace("q=walrus", "").replace("value=\"walrus\"", "");
            found.push((path, Value::String(text)));
        }
        found
    }
}

/// Sends one of everything that the MAP door can send. Returns a conversation and a task.
async fn write(office: &Office, ann: &mut Client, bob: &mut Client) -> (String, String) {
    let secret = json!({ "text": SECRET });
    for meta in [json!({}), json!({ "delivery": "guaranteed" }), json!({ "requireAck": true })] {
        let send = json!({ "to": { "agent": "bob" }, "payload": secret, "meta": meta });
        ann.call("map/send", send).await.unwrap();
        bob.message().await;
    }
    ann.call("map/scopes/create", json!({ "scopeId": "club", "name": "club" })).await.unwrap();
    ann.call("map/scopes/join", json!({ "scopeId": "club", "agentId": "ann" })).await.unwrap();
    bob.call("map/scopes/join", json!({ "scopeId": "club", "agentId": "bob" })).await.unwrap();
    ann.call("map/send/scope", json!({ "scopeId": "club", "payload": secret })).await.unwrap();
    bob.message().await;
    let create = json!({
        "type": "multi-agent", "subject": SECRET, "initialParticipants": [{ "id": "bob" }],
        "initialTurn": { "contentType": "text", "content": secret },
    });
    let conversation = ann.call("mail/create", create).await.unwrap()["conversation"]["id"].clone();
    let said = json!({ "conversationId": conversation, "contentType": "text", "content": secret });
    let root = bob.call("mail/turn", said).await.unwrap()["turn"]["id"].clone();
    let thread = json!({ "conversationId": conversation, "rootTurnId": root, "subject": SECRET });
    ann.call("mail/thread/create", thread).await.unwrap();
    let meta = json!({ "mail": { "conversationId": conversation } });
    ann.call("map/send", json!({ "to": { "agent": "bob" }, "payload": secret, "meta": meta })).await.unwrap();
    bob.message().await;
    let task = json!({ "task": { "title": SECRET, "description": SECRET, "assignee": "bob" } });
    let task = ann.call("map/tasks/create", task).await.unwrap()["task"]["id"].clone();
    let worked = json!({ "taskId": task, "status": "in_progress" });
    bob.call("map/tasks/update", worked).await.unwrap();
    ann.call("map/scopes/create", json!({ "scopeId": "end" })).await.unwrap();
    assert!(office.pid() > 0);
    (conversation.as_str().unwrap().to_owned(), task.as_str().unwrap().to_owned())
}

/// Changes that only participants may make.
fn changes(conversation: &str, task: &str) -> Vec<(&'static str, Value)> {
    let said = json!({ "conversationId": conversation, "contentType": "text", "content": { "text": "x" } });
    vec![
        ("mail/turn", said),
        ("mail/close", json!({ "conversationId": conversation })),
        ("mail/reopen", json!({ "conversationId": conversation })),
        ("mail/leave", json!({ "conversationId": conversation })),
        ("mail/invite", json!({ "conversationId": conversation, "participant": { "id": "out" } })),
        ("map/tasks/update", json!({ "taskId": task, "status": "completed", "result": "forged" })),
        ("map/tasks/assign", json!({ "taskId": task, "agentId": "out" })),
        ("map/tasks/create", json!({ "task": { "id": conversation, "title": "taken over" } })),
        ("map/scopes/delete", json!({ "scopeId": "club" })),
    ]
}

#[tokio::test]
async fn map_messages_are_visible_to_participants_and_observers_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (ann, bob) = (token(&office, "ann", false).await, token(&office, "bob", false).await);
    let mut ann = Client::agent_at(office.url(), &ann, "ann").await;
    let mut bob = Client::agent_at(office.url(), &bob, "bob").await;
    let mut out = Watcher::new(&office, "out", false).await;
    let mut eye = Watcher::new(&office, "eye", true).await;
    let (conversation, task) = write(&office, &mut ann, &mut bob).await;

    assert_eq!(out.saw_live("end").await, (false, false), "a plain token, live");
    assert_eq!(eye.saw_live("end").await, (true, true), "an observer, live");
    for (name, found) in out.reads(&office, &conversation, &task).await {
        assert!(!says(&found), "a plain token through {name}: {found}");
    }
    let silent = ["mail/presence", "http mail/presence"];
    let mut blind: Vec<String> = Vec::new();
    for (name, found) in eye.reads(&office, &conversation, &task).await {
        let whole = found.to_string();
        if !whole.contains(SECRET) && !silent.contains(&name.as_str()) {
            blind.push(format!("{name}: {whole}"));
        }
    }
    assert!(blind.is_empty(), "an observer sees nothing through {blind:#?}");

    let mut join = changes(&conversation, &task);
    join.push(("mail/join", json!({ "conversationId": conversation })));
    for (method, params) in join {
        let answer = out.map.call(method, params).await;
        assert!(answer.is_err(), "a plain token by {method}: {answer:?}");
    }
    for (method, params) in changes(&conversation, &task) {
        let answer = eye.map.call(method, params).await;
        assert!(answer.is_err(), "an observer by {method}: {answer:?}");
    }
    // An observer may join and add turns under its own name, and no more.
    eye.map.call("mail/join", json!({ "conversationId": conversation, "role": "moderator" })).await.unwrap();
    for (method, params) in changes(&conversation, &task) {
        let answer = eye.map.call(method, params).await;
        let may = matches!(method, "mail/turn");
        assert!(answer.is_ok() == may || method == "mail/leave", "a guest by {method}: {answer:?}");
        if method == "mail/leave" {
            eye.map.call("mail/join", json!({ "conversationId": conversation })).await.unwrap();
        }
    }
    let found = bob.call("map/tasks/get", json!({ "taskId": task })).await.unwrap();
    assert_eq!(found["task"]["status"], "in_progress", "{found}");
    let found = ann.call("mail/get", json!({ "conversationId": conversation })).await.unwrap();
    assert_eq!(found["conversation"]["status"], "active", "{found}");
}

#[tokio::test]
async fn session_receives_events_of_all_its_agents() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let (ann, bob) = (token(&office, "ann", false).await, token(&office, "bob", false).await);
    let mut ann = Client::agent_at(office.url(), &ann, "ann").await;
    ann.call("map/subscribe", json!({ "filter": { "eventTypes": ["message_sent"] } })).await.unwrap();
    ann.call("map/agents/register", json!({ "agentId": "ann-2" })).await.unwrap();
    let mut bob = Client::agent_at(office.url(), &bob, "bob").await;
    bob.call("map/agents/register", json!({ "agentId": "bob-2" })).await.unwrap();
    for to in ["bob-2", "ann-2"] {
        bob.call("map/send", json!({ "to": { "agent": to }, "payload": to })).await.unwrap();
    }
    let sent = |frame: &Value| frame["params"]["event"]["type"] == "message_sent";
    assert_eq!(ann.next(sent).await["params"]["event"]["data"]["to"], json!({ "agent": "ann-2" }));
    let replay = json!({ "filter": { "eventTypes": ["message_sent"] } });
    let events = ann.call("map/replay", replay).await.unwrap()["events"].clone();
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
}

/// The rights to administer and to observe a realm end at the realm, although the MCP door opens other projects to the same
/// tokens.
#[tokio::test]
async fn admin_and_observe_rights_hold_in_their_own_realm_only() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let operator = Mcp::operator(&office);
    operator.project("/srv/elsewhere", &["Ann", "Bob"]).await;
    operator.send("/srv/elsewhere", "Ann", "Bob", SECRET).await;
    let search = json!({ "project_key": "/srv/elsewhere", "query": SECRET });
    assert!(says(&operator.result("search_messages", search.clone()).await), "the operator finds it");
    let admin = json!({ "role": "admin", "name": "chief" });
    let admin = office.call("token.create", admin).await.unwrap()["token"].as_str().unwrap().to_owned();
    for (who, token) in [("an administrator", admin), ("an observer", token(&office, "eye", true).await)] {
        let mcp = Mcp::at(&format!("{}/mcp", office.url()), Some(&token));
        let found = mcp.result("search_messages", search.clone()).await;
        assert!(!says(&found), "{who} of another realm: {found}");
        let given =
            json!({ "project_key": "/srv/elsewhere", "program": "test", "model": "m", "name": "Ann" });
        let (code, _) = mcp.fails("register_agent", given).await;
        assert!(!code.is_empty(), "{who} of another realm takes an agent over");
    }
}
