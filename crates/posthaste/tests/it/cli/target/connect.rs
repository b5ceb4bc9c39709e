//! `posthaste connect`: files of other programs, changed with care and without secrets.

use std::path::Path;

use serde_json::{Value, json};

use super::stdio::Stdio;
use super::{at_home, names_in};
use crate::harness::{Ran, TestDir};
use crate::office::Office;

const CLIENTS: [(&str, &str); 5] = [
    ("claude-code", ".mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("codex", ".codex/config.toml"),
];

/// `posthaste connect` in a directory of a home directory.
fn connect(data: Option<&TestDir>, home: &TestDir, directory: &Path, words: &[&str]) -> Ran {
    let mut posthaste = at_home(home);
    if let Some(data) = data {
        posthaste.command.arg("--data").arg(data.path());
    }
    posthaste = posthaste.args(["connect"]).args(words.iter().copied());
    posthaste.command.current_dir(directory);
    posthaste.run()
}

async fn tokens(office: &Office) -> Vec<Value> {
    let list = office.call("token.list", json!({})).await.unwrap()["tokens"].take();
    let all = list.as_array().unwrap().clone();
    all.into_iter().filter(|token| token["revoked_at"].is_null()).collect()
}

/// Our entry of a client's file, as JSON.
fn entry_of(text: &str) -> Value {
    let whole: Value = match serde_json::from_str(text) {
        Ok(whole) => whole,
        Err(_) => serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap(),
    };
    let lists = ["mcpServers", "servers", "mcp_servers"];
    lists.iter().map(|list| whole[list]["posthaste"].clone()).find(|entry| !entry.is_null()).unwrap()
}

// F10, F11: no file of a client holds a token; a dry run makes none; a second run makes no other.
#[tokio::test]
async fn a_client_is_connected_without_a_token_in_its_file() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    for (number, (client, file)) in CLIENTS.into_iter().enumerate() {
        let run = |flags: &[&str]| connect(Some(&dir), &home, home.path(), &[&[client], flags].concat()).ok();
        let shown = run(&[]).stdout;
        let path = home.path().join(file);
        assert!(!path.exists(), "{client}: printing writes nothing");
        assert_eq!(tokens(&office).await.len(), number, "{client}: printing makes no token");
        run(&["--write"]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim(), shown.trim(), "{client}: what is printed is what is written");
        assert!(!text.contains("ph_"), "{client}: {text}");
        let again = run(&["--write", "--json"]).json();
        assert_eq!(again["backup"], Value::Null, "{client}: nothing changed, so nothing is kept");
        assert_eq!(
            tokens(&office).await.len(),
            number + 1,
            "{client}: one token for each client and directory"
        );
        // The file works as it stands.
        let mut stdio = Stdio::of_entry(&entry_of(&text), home.path());
        let health = stdio.tool("health_check", json!({}));
        assert_eq!(health["status"], "ok", "{client}: {health}");
        assert_eq!(health["database_url"], Value::Null, "{client}: not the operator");
        stdio.end();
    }
    let listed = dir.posthaste().args(["token", "list"]).run().ok().stdout;
    let place = format!("claude-code in {}", home.path().canonicalize().unwrap().display());
    assert!(listed.contains(&place), "{listed}");
    for (name, mode) in [(".mcp.json", 0o600), (".gemini/settings.json", 0o600)] {
        let file = home.path().join(name);
        let found = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(found & 0o777, mode, "{name}");
    }
    assert_eq!(office.close(), Some(0));
}

// F11: directories of the same name have tokens of different names, and neither reads the other's mail.
#[tokio::test]
async fn directories_of_the_same_name_are_kept_apart() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    let mut clients = Vec::new();
    for parent in ["one", "two"] {
        let top = home.path().join(parent).join("app");
        std::fs::create_dir_all(top.join(".git")).unwrap();
        connect(Some(&dir), &home, &top, &["claude-code", "--write"]).ok();
        let text = std::fs::read_to_string(top.join(".mcp.json")).unwrap();
        clients.push(Stdio::of_entry(&entry_of(&text), &top));
    }
    let names: Vec<Value> = tokens(&office).await.iter().map(|token| token["name"].clone()).collect();
    assert_eq!(names.len(), 2);
    assert_ne!(names[0], names[1]);
    let [one, two] = &mut clients[..] else { panic!() };
    let start = json!({ "human_key": "/srv/app", "program": "p", "model": "m", "agent_name": "BlueLake" });
    one.tool("macro_start_session", start);
    let inbox = json!({ "project_key": "/srv/app", "agent_name": "BlueLake" });
    assert!(one.tool("fetch_inbox", inbox.clone())["error"].is_null());
    assert!(two.tool("fetch_inbox", inbox)["error"].is_object(), "another's mail");
    clients.into_iter().for_each(Stdio::end);
    assert_eq!(office.close(), Some(0));
}

// F10: for a server that is named, the file refers to the variable in the client's own way.
#[tokio::test]
async fn a_remote_server_is_reached_with_the_token_of_the_environment() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    for (client, file) in CLIENTS {
        let ran = connect(None, &home, home.path(), &[client, "--write", "--url", office.url()]).ok();
        assert!(
            ran.stdout.contains("export POSTHASTE_TOKEN=\"$(posthaste --url"),
            "{client}: {}",
            ran.stdout
        );
        let entry = entry_of(&std::fs::read_to_string(home.path().join(file)).unwrap());
        let url = entry.get("url").or_else(|| entry.get("httpUrl")).unwrap();
        assert_eq!(*url, format!("{}/mcp", office.url()), "{client}");
        let shown =
            entry.get("headers").map_or(&entry["bearer_token_env_var"], |headers| &headers["Authorization"]);
        let expected = match client {
            "claude-code" => "Bearer ${POSTHASTE_TOKEN}",
            "vscode" | "cursor" => "Bearer ${env:POSTHASTE_TOKEN}",
            "gemini" => "Bearer $POSTHASTE_TOKEN",
            _ => "POSTHASTE_TOKEN",
        };
        assert_eq!(shown, expected, "{client}");
    }
    assert!(tokens(&office).await.is_empty(), "no token was made");
    assert!(!super::data_of(&home).exists());
    // The older flag means the same.
    let address = office.url().trim_start_matches("http://").to_owned();
    let listen = connect(None, &home, home.path(), &["cursor", "--listen", &address]).ok();
    assert!(listen.stdout.contains(&format!("{}/mcp", office.url())), "{}", listen.stdout);
    assert_eq!(office.close(), Some(0));
}

// F10: tokens that an earlier version wrote are ended, and no copy of the file holds them.
#[tokio::test]
async fn tokens_of_an_earlier_entry_are_ended() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    let made = office.call("token.create", json!({ "role": "user", "name": "claude-code" })).await.unwrap();
    let token = made["token"].as_str().unwrap();
    let old = json!({ "mcpServers": { "posthaste": { "type": "http", "url": "http://x/mcp",
        "headers": { "Authorization": format!("Bearer {token}") } }, "other": { "command": "x" } } });
    home.write(".mcp.json", &old.to_string());
    connect(Some(&dir), &home, home.path(), &["claude-code", "--write"]).ok();
    for name in names_in(home.path()) {
        if let Ok(text) = std::fs::read_to_string(home.path().join(&name)) {
            assert!(!text.contains(token), "{name}: {text}");
        }
    }
    let text = std::fs::read_to_string(home.path().join(".mcp.json")).unwrap();
    assert!(text.contains("\"other\""), "{text}");
    let left = tokens(&office).await;
    assert!(left.iter().all(|left| left["id"] != made["id"]), "{left:?}");
    assert_eq!(left.len(), 1);
    // A file that is not what it should be is named and left alone, and costs no token.
    let broken = home.write("broken.json", "{ // mine");
    let ran = connect(Some(&dir), &home, home.path(), &["cursor", "--write", "--file", "broken.json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("broken.json") && ran.stderr.contains("not plain JSON"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "{ // mine");
    assert_eq!(tokens(&office).await.len(), 1);
    assert_eq!(office.close(), Some(0));
}

// F10: without a server running, the file works as well, and also on the machine of someone who only got the file.
#[tokio::test]
async fn a_committed_file_works_on_another_machine() {
    let (home, colleague) = (TestDir::new(), TestDir::new());
    let top = home.path().join("app");
    std::fs::create_dir_all(top.join(".git")).unwrap();
    connect(None, &home, &top, &["claude-code", "--write"]).ok();
    let text = std::fs::read_to_string(top.join(".mcp.json")).unwrap();
    assert!(!text.contains(home.path().to_str().unwrap()), "no path of this machine: {text}");
    let mut stdio = Stdio::of_entry_at(&entry_of(&text), colleague.path(), colleague.path());
    let health = stdio.tool("health_check", json!({}));
    assert_eq!((&health["status"], &health["database_url"]), (&json!("ok"), &Value::Null), "{health}");
    stdio.end();
}

/// Started in a work tree, it reads the files to attach itself; the server knows nothing of that tree.
#[tokio::test]
async fn files_of_the_work_tree_are_attached() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    let top = home.path().canonicalize().unwrap().join("app");
    std::fs::create_dir_all(top.join(".git")).unwrap();
    home.write("secret.txt", "hush");
    connect(Some(&dir), &home, &top, &["claude-code", "--write"]).ok();
    let text = std::fs::read_to_string(top.join(".mcp.json")).unwrap();
    let mut stdio = Stdio::of_entry_at(&entry_of(&text), &top, home.path());
    stdio.tool("ensure_project", json!({ "human_key": top }));
    for name in ["ann", "bob"] {
        stdio.tool(
            "register_agent",
            json!({ "project_key": top, "program": "p", "model": "m", "name": name }),
        );
    }
    std::fs::write(top.join("notes.txt"), "hello").unwrap();
    let mut send = |file: &str| {
        let given = json!({ "project_key": top, "sender_name": "ann", "to": ["bob"], "subject": "s", "body_md": "b",
            "attachment_paths": [file] });
        stdio.tool("send_message", given)
    };
    assert_eq!(send("notes.txt")["attachments"][0]["size"], 5);
    assert_eq!(send("../secret.txt")["error"]["code"], "ATTACHMENT_REFUSED");
    stdio.end();
    assert_eq!(office.close(), Some(0));
}
