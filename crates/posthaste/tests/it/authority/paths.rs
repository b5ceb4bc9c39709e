//! The paths of every door that is reached by HTTP.

use std::collections::BTreeSet;

use super::world::{ROLES, Role, World};
use super::{Got, Line, Who, compare, source};

/// Source files with routers.
const ROUTERS: [(&str, &str); 7] = [
    ("operators", "host/src/operators.rs"),
    ("control", "doors/control/src/lib.rs"),
    ("map", "doors/map/src/lib.rs"),
    ("airc", "doors/airc/src/lib.rs"),
    ("swarm", "doors/swarm/src/lib.rs"),
    ("mcp", "doors/mcp/src/lib.rs"),
    ("web", "doors/web/src/lib.rs"),
];

/// One path: door, method, path as the router has it, allowed callers, requested path, and body.
type Row = (&'static str, &'static str, &'static str, Who, &'static str, &'static str);

const LAST: &str = "/auth/refresh";
const RPC: &str = r#"{"jsonrpc":"2.0","id":1,"method":"x-posthaste/whoami"}"#;
const MAP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"map/agents/list"}"#;
const MCP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("operators", "GET", "/metrics", Who::Anyone, "/metrics", ""),
    ("control", "POST", "/x-posthaste/rpc", Who::Bearer, "/x-posthaste/rpc", RPC),
    ("control", "GET", "/x-posthaste/export", Who::Admin, "/x-posthaste/export", ""),
    ("control", "GET", "/x-posthaste/status", Who::Person, "/x-posthaste/status", ""),
    ("control", "GET", "/x-posthaste/backup", Who::Admin, "/x-posthaste/backup", ""),
    ("control", "GET", "/x-posthaste/attachments/{message}/{sha256}", Who::Bearer, "/x-posthaste/attachments/none/none", ""),
    ("map", "ANY", "/map", Who::AnyoneHonest, "/map", "upgrade"),
    ("map", "ANY", "/map/", Who::AnyoneHonest, "/map/", "upgrade"),
    ("map", "POST", "/map/rpc", Who::Bearer, "/map/rpc", MAP),
    ("map", "POST", "/map/batch", Who::Bearer, "/map/batch", MAP),
    ("map", "GET", "/map/events", Who::Bearer, "/map/events", ""),
    ("map", "ANY", "/map/{*rest}", Who::AnyoneHonest, "/map/some/where", "upgrade"),
    ("airc", "GET", "/.well-known/airc", Who::Anyone, "/.well-known/airc", ""),
    ("airc", "POST", "/identity", Who::Signer, "/identity", r#"{"handle":"eve","public_key":"ed25519:AAAA"}"#),
    ("airc", "GET", "/identity/{handle}", Who::AnyoneHonest, "/identity/victim", ""),
    ("airc", "POST", "/identity/{handle}/rotate", Who::Signer, "/identity/victim/rotate", "{}"),
    ("airc", "POST", "/identity/{handle}/revoke", Who::Signer, "/identity/victim/revoke", "{}"),
    ("airc", "POST", "/register/challenge", Who::Anyone, "/register/challenge", r#"{"handle":"eve"}"#),
    ("airc", "POST", "/register", Who::Signer, "/register", r#"{"handle":"eve"}"#),
    ("airc", "POST", "/auth/refresh", Who::Bearer, "/auth/refresh", "{}"),
    ("airc", "GET", "/presence", Who::AnyoneHonest, "/presence", ""),
    ("airc", "POST", "/presence", Who::Bearer, "/presence", r#"{"status":"available"}"#),
    ("airc", "GET", "/messages", Who::Bearer, "/messages", ""),
    ("airc", "POST", "/messages", Who::Signer, "/messages", "{}"),
    ("airc", "GET", "/messages/inbox", Who::Bearer, "/messages/inbox", ""),
    ("airc", "GET", "/messages/thread/{handle}", Who::Bearer, "/messages/thread/victim", ""),
    ("airc", "POST", "/messages/{id}/ack", Who::Bearer, "/messages/x/ack", "{}"),
    ("airc", "DELETE", "/messages/{id}", Who::Bearer, "/messages/x", ""),
    ("airc", "GET", "/messages/{id}/attachments/{sha256}", Who::Bearer, "/messages/x/attachments/none", ""),
    ("airc", "GET", "/consent", Who::Bearer, "/consent", ""),
    ("airc", "POST", "/consent", Who::Bearer, "/consent", r#"{"action":"request","to":"victim"}"#),
    ("airc", "GET", "/api/health", Who::Anyone, "/api/health", ""),
    ("airc", "GET", "/api/presence", Who::AnyoneHonest, "/api/presence", ""),
    ("airc", "POST", "/api/presence", Who::Bearer, "/api/presence", r#"{"status":"available"}"#),
    ("airc", "GET", "/api/v2/presence", Who::AnyoneHonest, "/api/v2/presence", ""),
    ("airc", "POST", "/api/v2/presence", Who::Bearer, "/api/v2/presence", r#"{"status":"available"}"#),
    ("airc", "GET", "/api/messages", Who::Bearer, "/api/messages", ""),
    ("airc", "POST", "/api/messages", Who::Bearer, "/api/messages", r#"{"to":"victim","text":"hello"}"#),
    ("airc", "GET", "/api/v2/messages", Who::Bearer, "/api/v2/messages", ""),
    ("airc", "POST", "/api/v2/messages", Who::Bearer, "/api/v2/messages", r#"{"to":"victim","text":"hello"}"#),
    ("airc", "GET", "/api/consent", Who::Bearer, "/api/consent", ""),
    ("airc", "POST", "/api/consent", Who::Bearer, "/api/consent", r#"{"action":"request","to":"victim"}"#),
    ("airc", "POST", "/api/users", Who::Anyone, "/api/users", "{}"),
    ("airc", "POST", "/api/register", Who::Anyone, "/api/register", "{}"),
    ("airc", "POST", "/api/identity", Who::Anyone, "/api/identity", "{}"),
    ("airc", "POST", "/api/identity/revoke", Who::Signer, "/api/identity/revoke", "{}"),
    ("airc", "GET", "/api/identity/{handle}", Who::AnyoneHonest, "/api/identity/victim", ""),
    ("airc", "GET", "/api/identity/{handle}/capabilities", Who::AnyoneHonest, "/api/identity/victim/capabilities", ""),
    ("airc", "POST", "/api/identity/{handle}/rotate", Who::Signer, "/api/identity/victim/rotate", "{}"),
    ("airc", "GET", "/api/agents", Who::AnyoneHonest, "/api/agents", ""),
    ("swarm", "GET", "/", Who::Anyone, "/", ""),
    ("swarm", "GET", "/health", Who::Anyone, "/health", ""),
    ("swarm", "POST", "/health", Who::Admin, "/health", r#"{"status":"healthy"}"#),
    ("swarm", "GET", "/status", Who::Person, "/status", ""),
    ("swarm", "GET", "/whoami", Who::Person, "/whoami", ""),
    ("swarm", "POST", "/message", Who::Person, "/message", r#"{"body":"hello"}"#),
    ("swarm", "GET", "/tasks", Who::Person, "/tasks", ""),
    ("swarm", "GET", "/task", Who::Person, "/task", ""),
    ("swarm", "POST", "/task/cancel", Who::Person, "/task/cancel", "{}"),
    ("swarm", "GET", "/tasks/{task_id}/events", Who::Person, "/tasks/none/events", ""),
    ("swarm", "GET", "/swarms", Who::Anyone, "/swarms", ""),
    ("swarm", "POST", "/swarms", Who::Admin, "/swarms", "{}"),
    ("swarm", "POST", "/swarms/register", Who::Admin, "/swarms/register", "{}"),
    ("swarm", "GET", "/swarms/dump", Who::Admin, "/swarms/dump", ""),
    ("swarm", "POST", "/swarms/load", Who::Admin, "/swarms/load", "{}"),
    ("swarm", "POST", "/interswarm/forward", Who::Peer, "/interswarm/forward", "{}"),
    ("swarm", "POST", "/interswarm/back", Who::Peer, "/interswarm/back", "{}"),
    ("swarm", "POST", "/interswarm/message", Who::Person, "/interswarm/message", "{}"),
    ("swarm", "GET", "/openapi.json", Who::Anyone, "/openapi.json", ""),
    ("mcp", "ANY", "/mcp", Who::Bearer, "/mcp", MCP),
    ("mcp", "ANY", "/mcp/", Who::Bearer, "/mcp/", MCP),
    ("mcp", "ANY", "/api", Who::Bearer, "/api", MCP),
    ("mcp", "ANY", "/api/", Who::Bearer, "/api/", MCP),
    ("mcp", "GET", "/health/liveness", Who::Anyone, "/health/liveness", ""),
    ("mcp", "GET", "/health/readiness", Who::Anyone, "/health/readiness", ""),
    ("mcp", "GET", "/.well-known/oauth-authorization-server", Who::Anyone, "/.well-known/oauth-authorization-server", ""),
    ("mcp", "GET", "/.well-known/oauth-authorization-server/{*rest}", Who::Anyone, "/.well-known/oauth-authorization-server/mcp", ""),
    ("mcp", "GET", "/.well-known/oauth-protected-resource", Who::Anyone, "/.well-known/oauth-protected-resource", ""),
    ("mcp", "GET", "/.well-known/oauth-protected-resource/{*rest}", Who::Anyone, "/.well-known/oauth-protected-resource/mcp", ""),
    ("web", "GET", "/ui", Who::Bearer, "/ui", ""),
    ("web", "GET", "/ui/", Who::Bearer, "/ui/", ""),
    ("web", "GET", "/ui/pulse", Who::Bearer, "/ui/pulse", ""),
    ("web", "GET", "/ui/live", Who::Bearer, "/ui/live", ""),
    ("web", "GET", "/ui/live/stream", Who::Bearer, "/ui/live/stream", ""),
    ("web", "GET", "/ui/inbox", Who::Bearer, "/ui/inbox", ""),
    ("web", "GET", "/ui/messages/{id}", Who::Bearer, "/ui/messages/none", ""),
    ("web", "GET", "/ui/messages/{id}/attachments/{sha256}", Who::Bearer, "/ui/messages/none/attachments/none", ""),
    ("web", "GET", "/ui/conversations", Who::Bearer, "/ui/conversations", ""),
    ("web", "GET", "/ui/conversations/{id}", Who::Bearer, "/ui/conversations/none", ""),
    ("web", "GET", "/ui/conversations/{id}/export", Who::Bearer, "/ui/conversations/none/export", ""),
    ("web", "GET", "/ui/tasks", Who::Bearer, "/ui/tasks", ""),
    ("web", "GET", "/ui/tasks/{id}", Who::Bearer, "/ui/tasks/none", ""),
    ("web", "GET", "/ui/reservations", Who::Bearer, "/ui/reservations", ""),
    ("web", "GET", "/ui/agents", Who::Bearer, "/ui/agents", ""),
    ("web", "GET", "/ui/agents/{id}", Who::Bearer, "/ui/agents/victim", ""),
    ("web", "GET", "/ui/search", Who::Bearer, "/ui/search?q=x", ""),
    ("web", "GET", "/ui/settings", Who::Bearer, "/ui/settings", ""),
    ("web", "GET", "/ui/write", Who::Bearer, "/ui/write", ""),
    ("web", "GET", "/ui/complete", Who::Bearer, "/ui/complete?q=v", ""),
    ("web", "POST", "/ui/preview", Who::Bearer, "/ui/preview", "text=x"),
    ("web", "GET", "/ui/sign-in", Who::Anyone, "/ui/sign-in", ""),
    ("web", "POST", "/ui/sign-in", Who::Signer, "/ui/sign-in", "token=x"),
    ("web", "POST", "/ui/sign-out", Who::Bearer, "/ui/sign-out", ""),
    ("web", "POST", "/ui/theme", Who::Bearer, "/ui/theme", "theme=light"),
    ("web", "POST", "/ui/do/{action}", Who::Bearer, "/ui/do/nothing", ""),
    ("web", "GET", "/ui/assets/{name}", Who::Anyone, "/ui/assets/page.css", ""),
    ("web", "GET", "/ui/{*rest}", Who::Bearer, "/ui/nowhere", ""),
];

/// The actions of the page: allowed callers and form; the engine checks whose object it is.
#[rustfmt::skip]
const ACTIONS: &[(&str, Who, &str)] = &[
    ("send", Who::Bearer, "to=victim&text=hello"),
    ("token", Who::Admin, "name=more&role=agent"),
    ("interrupt", Who::Admin, "agent=victim&text=stop&pause=on"),
    ("ack", Who::Bearer, "message=0190163d-8694-739b-aea5-966c26f8ad90"),
    ("read", Who::Bearer, "message=0190163d-8694-739b-aea5-966c26f8ad90"),
    ("say", Who::Bearer, "conversation=none&text=x"),
    ("invite", Who::Bearer, "conversation=none&agent=victim"),
    ("close", Who::Bearer, "conversation=none"),
    ("reopen", Who::Bearer, "conversation=none"),
    ("release", Who::Bearer, "reservation=1"),
    ("resume", Who::Admin, "agent=victim"),
    ("contact", Who::Bearer, "from=victim&answer=accept"),
    ("revoke", Who::Admin, "token=none"),
    ("realm", Who::Admin, "name=third"),
    ("peer", Who::Admin, "name=far&url=http://far.test"),
    ("forget", Who::Admin, "peer=far"),
];

/// The paths that the routers have, as `METHOD PATH`.
fn routes(door: &str, text: &str) -> BTreeSet<String> {
    let text = text.replace("PATH, post(answer)", "\"/x-posthaste/rpc\", post(answer)");
    let text = text.replace("EXPORT_PATH, get(", "\"/x-posthaste/export\", get(");
    let text = text.replace("STATUS_PATH, get(", "\"/x-posthaste/status\", get(");
    let text = text.replace("BACKUP_PATH, get(", "\"/x-posthaste/backup\", get(");
    let mut found = BTreeSet::new();
    let mut add = |path: &str, handler: &str| {
        let mut any = false;
        for (word, method) in
            [("get(", "GET"), ("post(", "POST"), ("delete(", "DELETE"), ("put(", "PUT"), ("any(", "ANY")]
        {
            let called = handler
                .match_indices(word)
                .any(|(at, _)| !handler[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            if called {
                found.insert(format!("{method} {path}"));
                any = true;
            }
        }
        assert!(any, "{door}: what does {path} take? {handler}");
    };
    for piece in text.split(".route(").skip(1) {
        // Up to the parenthesis that closes the call.
        let mut depth = 1;
        let end = piece.find(|c: char| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0
        });
        let piece = &piece[..end.unwrap()];
        let (path, handler) = piece.split_once(',').unwrap();
        match path.trim().strip_prefix('"').and_then(|path| path.strip_suffix('"')) {
            Some(path) => add(path, handler),
            // The MCP door names its four paths in a loop.
            None => ["/mcp", "/mcp/", "/api", "/api/"].iter().for_each(|path| add(path, handler)),
        }
    }
    found
}

fn check_complete() {
    let mounted = source("posthaste/src/doors.rs");
    for line in mounted.lines().filter(|line| line.trim_start().starts_with(".merge(")) {
        let door = line.trim().trim_start_matches(".merge(").split("::").next().unwrap();
        let known = ROUTERS.iter().any(|(name, _)| *name == door) || door == "doors)" || door == "doors";
        assert!(known, "the door {door} is not asked");
    }
    for (door, path) in ROUTERS {
        let mut found = routes(door, &source(path));
        // The program mounts the swarm's card, because WebSockets at the same path are MAP's.
        if door == "swarm" && mounted.contains(r#".route("/", card)"#) {
            found.insert("GET /".to_owned());
        }
        let rows =
            ROWS.iter().filter(|row| row.0 == door).map(|row| format!("{} {}", row.1, row.2)).collect();
        compare(&format!("paths of {door}"), &found, &rows);
    }
    let actions = source("doors/web/src/actions.rs");
    let table = &actions[actions.find("let said = match action {").unwrap()..];
    let table = &table[..table.find("_ => return").unwrap()];
    let found = table.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    compare(
        "actions of the page",
        &found.map(str::to_owned).collect(),
        &ACTIONS.iter().map(|(name, ..)| (*name).to_owned()).collect(),
    );
}

pub(super) async fn ask(world: &World) -> Vec<Line> {
    check_complete();
    let mut lines = Vec::new();
    for (door, method, path, who, address, body) in ROWS.iter().filter(|row| row.2 != LAST) {
        let mut got = Vec::new();
        for role in ROLES {
            got.push(match *door {
                "web" => of_page(world, role, method, address, body, *who).await,
                _ => of_path(world, role, method, address, body, *who).await,
            });
        }
        lines.push(Line { door, what: format!("{method} {path}"), who: *who, got });
    }
    for (action, who, body) in ACTIONS {
        let mut got = Vec::new();
        for role in ROLES {
            got.push(of_page(world, role, "POST", &format!("/ui/do/{action}"), body, *who).await);
        }
        lines.push(Line { door: "web", what: format!("POST /ui/do/{action}"), who: *who, got });
    }
    lines
}

/// A token that was exchanged for another is void, so this is called last.
pub(super) async fn ask_last(world: &World) -> Line {
    let (_, method, path, who, address, body) = ROWS.iter().find(|row| row.2 == LAST).unwrap();
    let mut got = Vec::new();
    for role in ROLES {
        got.push(of_path(world, role, method, address, body, *who).await);
    }
    Line {
        door: "airc, asked last: it exchanges the token",
        what: format!("{method} {path}"),
        who: *who,
        got,
    }
}

/// How a token that is valid at AIRC only was answered by the other doors, where a token is needed.
pub(super) async fn ask_elsewhere(world: &World, token: &str) -> Vec<(String, Got)> {
    let mut got = Vec::new();
    for (door, method, path, who, address, body) in ROWS {
        if *door == "airc" || matches!(who, Who::Anyone | Who::Signer) {
            continue;
        }
        let request = |method: &str| world.http.request(method.parse().unwrap(), world.url(address));
        let answer = asked(|method| request(method).bearer_auth(token), method, body).await;
        let led =
            answer.headers().get("location").is_some_and(|to| to.as_bytes().starts_with(b"/ui/sign-in"));
        let verdict = if led { Got::Unknown } else { verdict(answer.status().as_u16(), *who) };
        got.push((format!("{door} {method} {path}"), verdict));
    }
    got
}

async fn of_path(world: &World, role: Role, method: &str, address: &str, body: &str, who: Who) -> Got {
    let answer = asked(|method| world.request(role, method, address), method, body).await;
    verdict(answer.status().as_u16(), who)
}

/// Sends a row's request.
async fn asked(
    request: impl FnOnce(&str) -> reqwest::RequestBuilder,
    method: &str,
    body: &str,
) -> reqwest::Response {
    let upgrade = body == "upgrade";
    let spoken = match (method, upgrade) {
        ("ANY", true) => "GET",
        ("ANY", false) => "POST",
        (method, _) => method,
    };
    let mut request = request(spoken);
    if upgrade {
        request = request
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    } else if !body.is_empty() {
        request = request.header("content-type", "application/json").body(body.to_owned());
    }
    request.send().await.unwrap()
}

fn verdict(status: u16, who: Who) -> Got {
    match status {
        401 if who == Who::Signer => Got::Refused,
        401 => Got::Unknown,
        403 => Got::Refused,
        // Without a valid signature any refusal will do.
        400..500 if who == Who::Signer => Got::Refused,
        500.. if status != 503 => panic!("{status}"),
        _ => Got::In,
    }
}

async fn of_page(world: &World, role: Role, method: &str, address: &str, body: &str, who: Who) -> Got {
    let mut request = world.http.request(method.parse().unwrap(), world.url(address));
    let mut form = body.to_owned();
    if let Some((cookie, word)) = world.cookie(role) {
        request = request.header("cookie", cookie);
        form = format!("{body}&word={word}");
    }
    if method == "POST" && who != Who::Signer {
        request = request.body(form);
    } else if method == "POST" {
        request = request.body(body.to_owned());
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let led = answer.headers().get("location").map(|to| to.to_str().unwrap().to_owned()).unwrap_or_default();
    // Signing out redirects there too, but was admitted.
    if led.contains("/ui/sign-in") && address != "/ui/sign-out" {
        return Got::Unknown;
    }
    verdict(status, who)
}
