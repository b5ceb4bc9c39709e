//! The tools, resources and prompts of the MCP door.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::world::{ROLES, Role, World};
use super::{Got, Line, Who, compare, source};

/// MCP's own methods.
const METHODS: [&str; 7] = [
    "initialize",
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "tools/call",
];

/// Arguments that name the agent for which a tool acts.
const ACTING: [&str; 5] = ["agent_name", "sender_name", "from_agent", "requester", "agent"];

/// Tools whose argument names an agent to look up or to create, not to act for; each with its reason.
const LOOKING: [&str; 5] = [
    // Agents are listed in the directory.
    "whois",
    // Creates an agent; a taken name is refused on its own.
    "register_agent",
    "create_agent_identity",
    "macro_start_session",
    // Leaves that agent's reservations out of a list that all callers may read.
    "check_file_reservation_conflicts",
];

async fn method(world: &World, role: Role, method: &str, params: Value) -> (u16, Value) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let answer = world.request(role, "POST", "/mcp").body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or_default())
}

async fn tools(world: &World) -> Vec<Value> {
    let (_, listed) = method(world, Role::Operator, "tools/list", json!({})).await;
    listed["result"]["tools"].as_array().unwrap().clone()
}

/// Names in the source: the list that is shown must be all there are.
pub(crate) fn in_source() -> BTreeSet<String> {
    let families = [
        "identity",
        "mail",
        "inbox",
        "threads",
        "reservations",
        "macros",
        "contacts",
        "wait",
        "talk",
        "tasks",
        "guard",
    ];
    let mut found = BTreeSet::new();
    for family in families {
        let text = source(&format!("doors/mcp/src/tools/{family}.rs"));
        for piece in text.split("tool!(").skip(1) {
            found.insert(piece.trim_start().split([',', ' ', '(']).next().unwrap().to_owned());
        }
    }
    found
}

/// Values for every required argument, and `actor` for every argument that names who acts.
fn arguments(world: &World, tool: &Value, actor: &str) -> Value {
    let mut given = Map::new();
    let required: Vec<&str> =
        tool["inputSchema"]["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, shape) in tool["inputSchema"]["properties"].as_object().unwrap() {
        let acts = ACTING.contains(&name.as_str());
        if !required.contains(&name.as_str()) && !acts && name != "target" {
            continue;
        }
        let value = match name.as_str() {
            "project_key" | "human_key" => json!(world.project),
            _ if acts => json!(actor),
            "to_agent" | "target" => json!("root"),
            "to" => json!(["uma"]),
            "message_id" => json!(1),
            _ => match (shape["type"].as_str(), &shape["enum"]) {
                (_, Value::Array(words)) => words[0].clone(),
                (Some("integer"), _) => json!(1),
                (Some("boolean"), _) => json!(true),
                (Some("array"), _) => json!(["a"]),
                (Some("object"), _) => json!({}),
                _ => json!("x"),
            },
        };
        given.insert(name.clone(), value);
    }
    Value::Object(given)
}

pub(super) async fn ask(world: &World) -> Vec<Line> {
    let tools = tools(world).await;
    let shown = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    compare("tools", &in_source(), &shown);
    let mut lines = Vec::new();
    for name in METHODS {
        let mut got = Vec::new();
        for role in ROLES {
            let (status, _) = method(world, role, name, json!({})).await;
            got.push(if status == 401 { Got::Unknown } else { Got::In });
        }
        lines.push(Line { door: "MCP's methods", what: name.to_owned(), who: Who::Bearer, got });
    }
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let mut got = Vec::new();
        for role in ROLES {
            // Without arguments, a tool answers admitted callers that they are missing.
            let (status, _) =
                method(world, role, "tools/call", json!({ "name": name, "arguments": {} })).await;
            got.push(if status == 401 { Got::Unknown } else { Got::In });
        }
        lines.push(Line { door: "MCP's tools", what: name.to_owned(), who: Who::Bearer, got });
    }
    lines
}

/// A token acts for its own name and its agents only, at every tool that acts for an agent.
pub(super) async fn callers_cannot_act_for_others(world: &World) {
    let mut asked = 0;
    for tool in tools(world).await {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        if LOOKING.contains(&name) || !ACTING.iter().any(|word| properties.contains_key(*word)) {
            continue;
        }
        asked += 1;
        for role in [Role::Agent, Role::User] {
            let given = arguments(world, &tool, "victim");
            let (_, answer) =
                method(world, role, "tools/call", json!({ "name": name, "arguments": given })).await;
            let error = &answer["result"]["structuredContent"]["error"];
            let code = error["code"].as_str().unwrap_or_default();
            let refused = matches!(code, "AUTHENTICATION_REQUIRED" | "NAME_TAKEN");
            assert!(refused, "{name} as {role:?} with {given}: {answer}");
            // A secret that is not the agent's does not help.
            let mut given = given;
            let secret =
                if properties.contains_key("sender_token") { "sender_token" } else { "registration_token" };
            given[secret] = json!("pha_0000000000000000000000000000000000000000000000000000000000000000");
            let (_, answer) =
                method(world, role, "tools/call", json!({ "name": name, "arguments": given })).await;
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["code"], "AUTHENTICATION_REQUIRED", "{name} with a made-up secret: {answer}");
        }
    }
    assert!(asked >= 20, "only {asked} tools act for an agent?");
    // An administrator of another realm has no rights in this one, through that realm's door either.
    let foreign = json!({ "name": "fetch_inbox", "arguments": { "project_key": world.project, "agent_name": "victim" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": foreign }).to_string();
    let answer = world.request(Role::ForeignAdmin, "POST", "/r/away/mcp").body(body).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "PROJECT_NOT_FOUND", "{answer}");
}
