//! The methods of the doors that speak JSON-RPC: MAP's in both vocabularies, and the server's own.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::world::{ROLES, Role, World};
use super::{Got, Line, Who, compare};

/// An hour from now: reservations end within days.
fn later() -> i64 {
    posthaste_engine::stamp::now() + 3_600_000
}

const MESSAGE_ID: &str = "0190163d-8694-739b-aea5-966c26f8ad90";

/// The server's own methods: name, allowed callers, and parameters that reach the check of the caller.
fn control() -> Vec<(&'static str, Who, Value)> {
    vec![
        ("whoami", Who::Bearer, json!({})),
        ("register", Who::Bearer, json!({ "id": "newcomer" })),
        ("agents", Who::Bearer, json!({})),
        ("agent", Who::Bearer, json!({ "agent": "victim" })),
        ("agent.remove", Who::Admin, json!({ "agent": "none" })),
        ("send", Who::Bearer, json!({ "to": ["victim"], "body": "hello" })),
        ("inbox", Who::Bearer, json!({})),
        ("read", Who::Bearer, json!({ "message": MESSAGE_ID })),
        ("ack", Who::Bearer, json!({ "message": MESSAGE_ID })),
        ("search", Who::Bearer, json!({ "query": "x" })),
        ("attachment", Who::Bearer, json!({ "message": MESSAGE_ID, "sha256": "00" })),
        ("message", Who::Bearer, json!({ "message": MESSAGE_ID })),
        ("thread", Who::Bearer, json!({ "id": "none" })),
        ("conversations", Who::Bearer, json!({})),
        ("events", Who::Bearer, json!({})),
        ("reserve", Who::Bearer, json!({ "scope": "x", "paths": ["a"], "expires_at": later() })),
        ("release", Who::Bearer, json!({})),
        ("reservations", Who::Bearer, json!({})),
        ("contacts", Who::Bearer, json!({})),
        ("contact.ask", Who::Bearer, json!({ "other": "victim" })),
        ("contact.accept", Who::Bearer, json!({ "other": "victim" })),
        ("contact.block", Who::Bearer, json!({ "other": "victim" })),
        ("contact.end", Who::Bearer, json!({ "other": "victim" })),
        ("nudge", Who::Bearer, json!({ "to": "victim", "type": "check", "message": "x" })),
        ("hooks", Who::Bearer, json!({})),
        ("rules", Who::Bearer, json!({})),
        ("realm.open", Who::Admin, json!({ "name": "third" })),
        ("realm.list", Who::Admin, json!({})),
        ("project.claim", Who::Admin, json!({ "names": ["/srv/authority"] })),
        ("project.list", Who::Admin, json!({})),
        ("project.move", Who::Admin, json!({ "path": "/srv/authority", "realm": "nowhere" })),
        ("project.release", Who::Admin, json!({ "path": "/srv/unclaimed" })),
        ("token.create", Who::Admin, json!({ "role": "agent", "name": "more" })),
        ("token.list", Who::Admin, json!({})),
        ("token.revoke", Who::Admin, json!({ "id": "none" })),
    ]
}

/// MAP's methods that take more than a token; every other one takes any token of the realm.
fn special(method: &str) -> Option<(Who, Value)> {
    let victim = || json!({ "agentId": "victim" });
    Some(match method {
        "map/inject" => (Who::Admin, json!({ "agentId": "victim", "content": "x" })),
        "map/agents/stop" | "map/agent.stop" | "map/agents/suspend" | "map/agent.suspend" => {
            (Who::Admin, victim())
        }
        "map/agents/resume" | "map/agent.resume" => (Who::Admin, victim()),
        "map/agents/update"
        | "map/agents/update/state"
        | "map/agents/update/metadata"
        | "map/agent.update" => (Who::Owner, json!({ "agentId": "victim", "state": "busy" })),
        "map/agents/unregister" => (Who::Owner, json!({ "agentId": "spare-a" })),
        "map/agent.unregister" => (Who::Owner, json!({ "agentId": "spare-b" })),
        "map/agents/register" | "map/agent.register" | "map/agents/spawn" | "map/agent.spawn" => {
            (Who::Connected, json!({}))
        }
        "map/subscribe" => (Who::Connected, json!({})),
        "map/permissions/update" => (Who::Connected, json!({ "clientId": "victim", "permissions": {} })),
        "map/federation/connect" => (Who::Admin, json!({ "systemId": "x", "endpoint": "nowhere" })),
        "map/federation/route" => (Who::Admin, json!({})),
        _ => return None,
    })
}

pub(crate) fn control_methods() -> BTreeSet<String> {
    let schema = posthaste_control::schema();
    let names = schema["properties"].as_object().unwrap().keys();
    names.map(|name| name.trim_start_matches("x-posthaste/").to_owned()).collect()
}

pub(crate) fn map_methods() -> BTreeSet<String> {
    posthaste_map::method_names().map(str::to_owned).collect()
}

pub(super) async fn ask(world: &World) -> Vec<Line> {
    let rows = control();
    compare(
        "the server's own methods",
        &control_methods(),
        &rows.iter().map(|row| row.0.to_owned()).collect(),
    );
    let mut lines = Vec::new();
    for (name, who, params) in rows {
        let name = format!("x-posthaste/{name}");
        // The same methods at both doors that offer them.
        for path in ["/x-posthaste/rpc", "/map/rpc"] {
            let mut got = Vec::new();
            for role in ROLES {
                got.push(call(world, role, path, &name, &params).await);
            }
            lines.push(Line {
                door: "the server's own methods",
                what: format!("{name} at {path}"),
                who,
                got,
            });
        }
    }
    let methods = map_methods();
    for method in methods {
        // Authentication methods are admitted too: over HTTP the request has authenticated already.
        let (who, params) = special(&method).unwrap_or((Who::Bearer, json!({})));
        let mut got = Vec::new();
        for role in ROLES {
            got.push(call(world, role, "/map/rpc", &method, &params).await);
        }
        lines.push(Line { door: "MAP's methods", what: method, who, got });
    }
    lines
}

async fn call(world: &World, role: Role, path: &str, method: &str, params: &Value) -> Got {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = world.request(role, "POST", path).body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    let answer: Value = answer.json().await.unwrap_or_default();
    let error = &answer["error"];
    if status == 401 || matches!(error["code"].as_i64(), Some(-32_001 | 1000 | 1001 | 1002)) {
        return Got::Unknown;
    }
    let text = error["message"].as_str().unwrap_or_default();
    // Admitted, although there is no directory to signal in.
    if text.contains("no mail directory") {
        return Got::In;
    }
    let refused = error["data"]["refusal"] == "not_allowed"
        || matches!(error["code"].as_i64(), Some(1003 | 10_003))
        || text.starts_with("not allowed")
        || ["only administrators", "only the operator"].iter().any(|words| text.contains(words));
    if refused { Got::Refused } else { Got::In }
}

/// A bearer acts under its own name in the server's own methods; only administrators act for others.
pub(super) async fn callers_cannot_act_for_others(world: &World) {
    let cases = [
        ("send", json!({ "from": "victim", "to": ["uma"], "body": "not from me" })),
        ("inbox", json!({ "agent": "victim" })),
        ("read", json!({ "agent": "victim", "message": MESSAGE_ID })),
        ("ack", json!({ "agent": "victim", "message": MESSAGE_ID })),
        ("search", json!({ "agent": "victim", "query": "x" })),
        ("reserve", json!({ "agent": "victim", "scope": "x", "paths": ["a"], "expires_at": later() })),
        ("contacts", json!({ "agent": "victim" })),
        ("contact.ask", json!({ "agent": "victim", "other": "uma" })),
        ("contact.accept", json!({ "agent": "victim", "other": "uma" })),
    ];
    for (name, params) in cases {
        let name = format!("x-posthaste/{name}");
        for (role, expected) in
            [(Role::Agent, Got::Refused), (Role::User, Got::Refused), (Role::Admin, Got::In)]
        {
            let got = call(world, role, "/x-posthaste/rpc", &name, &params).await;
            assert_eq!(got, expected, "{name} as {role:?}");
        }
    }
    // MAP over HTTP: the sender is the token's name, whatever the call says.
    let send = json!({ "from": "victim", "to": "uma", "payload": { "text": "whose is it" } });
    call(world, Role::Agent, "/map/rpc", "map/send", &send).await;
    let inbox =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "x-posthaste/inbox", "params": { "agent": "uma" } });
    let inbox = world.request(Role::Admin, "POST", "/x-posthaste/rpc").body(inbox.to_string());
    let inbox: Value = inbox.send().await.unwrap().json().await.unwrap();
    let messages = inbox["result"]["messages"].as_array().unwrap();
    let it = messages.iter().find(|message| message["body"]["text"] == "whose is it").expect("it arrived");
    assert_eq!(it["from"], "ann");
}
