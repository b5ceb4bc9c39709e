//! The server under test, its callers, and objects of Ann's that others try to read or change.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{CALLERS, Caller};
use crate::harness::TestDir;
use crate::office::Office;

/// Far enough ahead that no reservation ends during the test.
/// An hour from now: reservations end within days.
pub(super) fn later() -> i64 {
    posthaste_engine::stamp::now() + 3_600_000
}

/// What kind of object a method touches, as SECURITY.md names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Message,
    Conversation,
    Task,
    Reservation,
    Agent,
    Scope,
    Contact,
    Token,
}

impl Class {
    pub(super) const ALL: [Self; 8] = [
        Self::Message,
        Self::Conversation,
        Self::Task,
        Self::Reservation,
        Self::Agent,
        Self::Scope,
        Self::Contact,
        Self::Token,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Conversation => "conversation",
            Self::Task => "task",
            Self::Reservation => "reservation",
            Self::Agent => "agent entry",
            Self::Scope => "scope",
            Self::Contact => "contacts",
            Self::Token => "tokens, rules, realms",
        }
    }
}

/// One object and what refers to it.
#[derive(Debug)]
pub(super) struct Thing {
    pub(super) class: Class,
    /// Its id; a message's UUID.
    pub(super) id: String,
    /// Its number, where it has one.
    pub(super) number: i64,
    /// A further id: a conversation's first turn.
    pub(super) part: String,
    /// A word that is in its content and nowhere else.
    pub(super) marker: String,
    /// A time before it was made.
    pub(super) before: i64,
}

/// The doors whose methods are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Control,
    Map,
    Mcp,
}

impl Door {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Control => "x-posthaste",
            Self::Map => "map",
            Self::Mcp => "mcp",
        }
    }
}

pub(super) struct Answer {
    pub(super) text: String,
}

pub(super) struct World {
    office: Office,
    _dir: TestDir,
    http: reqwest::Client,
    key: String,
    tokens: Vec<Option<String>>,
    made: AtomicU64,
}

/// The project that the MCP door is asked for: the server's own realm.
pub(super) const PROJECT: &str = "/srv/ownership";
/// The file that every message here carries, in base64, and its SHA-256.
const FILE: &str = "eA==";
pub(super) const FILE_HASH: &str = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";

impl World {
    pub(super) async fn open() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = TestDir::new();
        let office = Office::open_with(&dir.path().join("data"), &["--project", PROJECT], &[]);
        let key = std::fs::read_to_string(dir.path().join("data/admin.token")).unwrap().trim().to_owned();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
        let mut world = Self { office, _dir: dir, http, key, tokens: Vec::new(), made: AtomicU64::new(0) };
        world.operator("", "realm.open", json!({ "name": "away" })).await;
        for caller in CALLERS {
            let token = world.token(caller).await;
            world.tokens.push(token);
        }
        for caller in [Caller::Owner, Caller::Party, Caller::OtherAgent, Caller::Observer] {
            let own = json!({ "id": world.name(caller) });
            let answer = world.call(caller, Door::Control, "register", &own).await;
            assert!(!answer.text.contains("\"error\""), "{}", answer.text);
        }
        world
    }

    /// Under which name a caller speaks.
    pub(super) fn name(&self, caller: Caller) -> &'static str {
        match caller {
            Caller::Owner | Caller::OtherRealm => "ann",
            Caller::Party => "bob",
            Caller::OtherAgent => "mallory",
            Caller::Observer => "oscar",
            Caller::Airc | Caller::NoToken => "stray",
            Caller::Administrator => "root",
        }
    }

    async fn token(&self, caller: Caller) -> Option<String> {
        let name = self.name(caller);
        let (realm, given) = match caller {
            Caller::NoToken => return None,
            Caller::Airc => {
                let request = self.http.post(format!("{}/api/register", self.office.url()));
                let answer = request.json(&json!({ "username": name })).send().await.unwrap();
                let answer: Value = answer.json().await.unwrap();
                return Some(answer["token"].as_str().expect("an AIRC token").to_owned());
            }
            Caller::OtherRealm => ("/r/away", json!({ "role": "agent", "name": name })),
            Caller::Administrator => ("", json!({ "role": "admin", "name": name })),
            Caller::Observer => ("", json!({ "role": "agent", "name": name, "observe": true })),
            Caller::Owner | Caller::Party | Caller::OtherAgent => {
                ("", json!({ "role": "agent", "name": name }))
            }
        };
        Some(self.operator(realm, "token.create", given).await["token"].as_str().unwrap().to_owned())
    }

    /// A call of the server's own methods with its key.
    async fn operator(&self, realm: &str, method: &str, params: Value) -> Value {
        let text = self
            .post(Some(&self.key), realm, "/x-posthaste/rpc", &rpc("x-posthaste/", method, &params))
            .await;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    /// A call of MAP's methods with the server's key.
    async fn operator_map(&self, method: &str, params: Value) -> Value {
        let text = self.post(Some(&self.key), "", "/map/rpc", &rpc("", method, &params)).await;
        serde_json::from_str(&text).unwrap()
    }

    async fn post(&self, token: Option<&str>, realm: &str, path: &str, body: &Value) -> String {
        let mut request = self.http.post(format!("{}{realm}{path}", self.office.url()));
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request.json(body).send().await.unwrap().text().await.unwrap()
    }

    /// Calls a method as one of the callers; an agent of another realm tries the door of this realm and that of its own.
    pub(super) async fn call(&self, caller: Caller, door: Door, method: &str, params: &Value) -> Answer {
        let token = self.tokens[caller as usize].as_deref();
        let (path, body) = match door {
            Door::Control => ("/x-posthaste/rpc", rpc("x-posthaste/", method, params)),
            Door::Map => ("/map/rpc", rpc("", method, params)),
            Door::Mcp => ("/mcp", rpc("", "tools/call", &json!({ "name": method, "arguments": params }))),
        };
        let mut text = self.post(token, "", path, &body).await;
        if caller == Caller::OtherRealm {
            text.push_str(&self.post(token, "/r/away", path, &body).await);
        }
        Answer { text }
    }

    /// A result that Ann gets at one of the doors.
    async fn ann(&self, door: Door, method: &str, params: Value) -> Value {
        let text = self.call(Caller::Owner, door, method, &params).await.text;
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].is_null(), "{method} as the owner: {answer}");
        answer["result"].take()
    }

    /// Makes an object that is Ann's, with Bob as its other party.
    pub(super) async fn make(&self, class: Class) -> Thing {
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let (marker, id) = (format!("zebra{n}x"), format!("thing{n}x"));
        let before = posthaste_engine::stamp::now() - 1;
        let mut thing = Thing {
            class,
            id: String::new(),
            number: 0,
            part: String::new(),
            marker: marker.clone(),
            before,
        };
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("a string: {value}")).to_owned();
        match class {
            Class::Message => {
                let file = json!({ "name": marker, "data": FILE });
                let given = json!({
                    "to": ["bob"], "subject": "s", "body": marker, "ack_required": true, "attachments": [file],
                });
                let sent = self.ann(Door::Control, "send", given).await;
                thing.id = text(&sent["id"]);
                thing.number = sent["seq"].as_i64().unwrap_or_default();
            }
            Class::Conversation => {
                let given = json!({
                    "subject": marker,
                    "initialParticipants": [{ "id": "bob" }],
                    "initialTurn": { "contentType": "text", "content": { "text": marker } },
                });
                let made = self.ann(Door::Map, "mail/create", given).await;
                thing.id = text(&made["conversation"]["id"]);
                thing.part = text(&made["initialTurn"]["id"]);
            }
            Class::Task => {
                let made = self
                    .ann(Door::Map, "map/tasks/create", json!({ "title": marker, "assignee": "bob" }))
                    .await;
                thing.id = text(&made["task"]["id"]);
            }
            Class::Reservation => {
                let given =
                    json!({ "key": id, "scope": id, "paths": [id], "reason": marker, "expires_at": later() });
                let made = self.ann(Door::Control, "reserve", given).await;
                thing.number =
                    made["reservation"]["id"].as_i64().or_else(|| made["id"].as_i64()).unwrap_or_default();
                thing.id = id;
            }
            Class::Agent => {
                let given = json!({ "id": id, "name": marker });
                self.ann(Door::Control, "register", given).await;
                thing.id = id;
            }
            Class::Scope => {
                let given = json!({ "scopeId": id, "name": marker, "joinPolicy": "invite", "visibility": "members", "sendPolicy": "members" });
                let made = self.ann(Door::Map, "map/scopes/create", given).await;
                thing.id = text(&made["scope"]["id"]);
            }
            Class::Contact => {
                let given = json!({ "id": id });
                self.operator("", "register", given).await;
                self.ann(Door::Control, "contact.ask", json!({ "other": id, "reason": marker })).await;
                thing.id = id;
            }
            Class::Token => {
                let made = self.operator("", "token.create", json!({ "role": "user", "name": marker })).await;
                thing.id = text(&made["id"]);
            }
        }
        thing
    }

    /// All that can change about an object, as the operator sees it.
    pub(super) async fn state(&self, thing: &Thing) -> Value {
        let id = thing.id.as_str();
        match thing.class {
            Class::Message => json!([
                self.operator("", "message", json!({ "message": id })).await,
                self.operator("", "inbox", json!({ "agent": "bob", "limit": 1 })).await["messages"][0]["delivery"],
            ]),
            Class::Conversation => json!([
                self.operator_map("mail/get", json!({ "conversationId": id, "include": { "participants": true, "threads": true, "stats": true } })).await["result"],
                self.operator_map("mail/turns/list", json!({ "conversationId": id })).await["result"],
            ]),
            Class::Task => self.operator_map("map/tasks/get", json!({ "taskId": id })).await["result"].take(),
            Class::Reservation => {
                let asked = json!({ "scope": id, "after": thing.number - 1, "ended": true, "limit": 1 });
                self.operator("", "reservations", asked).await["reservations"].take()
            }
            Class::Agent => json!([
                self.operator_map("map/agents/get", json!({ "agentId": id })).await["result"]["agent"],
                self.operator("", "inbox", json!({ "agent": "ann", "limit": 1 })).await["messages"].as_array().map(Vec::len),
            ]),
            // A scope that only its members see is not shown to the operator either.
            Class::Scope => json!([
                self.call(Caller::Owner, Door::Map, "map/scopes/get", &json!({ "scopeId": id })).await.text,
                self.call(Caller::Owner, Door::Map, "map/scopes/members", &json!({ "scopeId": id })).await.text,
            ]),
            Class::Contact => json!([
                self.operator("", "contacts", json!({ "agent": "ann" })).await["contacts"]
                    .as_array().into_iter().flatten().filter(|it| it.to_string().contains(id)).collect::<Vec<_>>(),
            ]),
            Class::Token => json!([
                self.operator("", "token.list", json!({})).await["tokens"].as_array().map(Vec::len),
                self.operator("", "token.list", json!({})).await["tokens"].as_array().into_iter().flatten().find(|it| it["id"] == id),
                self.operator("", "rules", json!({})).await,
            ]),
        }
    }
}

fn rpc(prefix: &str, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": format!("{prefix}{method}"), "params": params })
}
