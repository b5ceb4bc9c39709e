//! `posthaste connect`: files of other programs, changed with care.

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp_client::Mcp;
use crate::office::Office;

#[tokio::test]
async fn a_client_is_connected_with_a_token_of_its_own() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("gemini", ".gemini/settings.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("codex", ".codex/config.toml"),
    ] {
        let connect = |flags: &[&'static str]| {
            let mut posthaste = dir.posthaste().args(["connect", client]).env("HOME", home.path());
            posthaste.command.args(flags).current_dir(home.path());
            posthaste.run().ok()
        };
        let shown = connect(&[]).stdout;
        assert!(shown.contains(&format!("{}/mcp", office.url())), "{client}: {shown}");
        let path = home.path().join(file);
        assert!(!path.exists(), "{client}: printing writes nothing");
        connect(&["--write"]);
        let first = std::fs::read_to_string(&path).unwrap();
        let written = connect(&["--write", "--json"]).json();
        let backup = std::fs::read_to_string(written["backup"].as_str().unwrap()).unwrap();
        assert_eq!(backup, first, "{client}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_ne!(text, first, "each has a token of its own");
        let in_project = matches!(client, "claude-code" | "vscode");
        assert_eq!(text.contains("ph_"), !in_project, "{client}: a project's file holds no token");
        let token = match in_project {
            true => {
                let entry: Value = serde_json::from_str(&text).unwrap();
                let list = if client == "vscode" { "servers" } else { "mcpServers" };
                let args = entry[list]["posthaste"]["args"].as_array().unwrap().clone();
                assert_eq!(args[3], "--token-file");
                let file = std::path::PathBuf::from(args[4].as_str().unwrap());
                let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
                assert_eq!(mode & 0o777, 0o600);
                std::fs::read_to_string(file).unwrap().trim().to_owned()
            }
            false => text.split("Bearer ").nth(1).unwrap().split('"').next().unwrap().to_owned(),
        };
        let mcp = Mcp::at(&format!("{}/mcp", office.url()), Some(&token));
        mcp.call("ensure_project", json!({ "human_key": "/srv/app" })).await;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{client}");
        }
    }
    // A file that cannot be read as what it should be is left alone, and no token is spent on it.
    let tokens = office.call("token.list", json!({})).await.unwrap()["tokens"].as_array().unwrap().len();
    let broken = home.write("broken.json", "{ // mine");
    let ran =
        dir.posthaste().args(["connect", "cursor", "--write", "--file", broken.to_str().unwrap()]).run();
    assert_eq!(
        (ran.code, std::fs::read_to_string(&broken).unwrap()),
        (1, "{ // mine".to_owned()),
        "{}",
        ran.stderr
    );
    let stdio = dir
        .posthaste()
        .args(["connect", "claude-code", "--stdio", "--json"])
        .env("HOME", home.path())
        .run()
        .ok();
    let entry: Value = serde_json::from_str(stdio.json()["configuration"].as_str().unwrap()).unwrap();
    assert_eq!(entry["mcpServers"]["posthaste"]["args"][2], "mcp");
    let after = office.call("token.list", json!({})).await.unwrap()["tokens"].as_array().unwrap().len();
    assert_eq!(after, tokens + 1, "the broken file cost one, starting posthaste oneself none");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_file_in_a_work_tree_never_holds_a_token() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let (dir, work) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    std::fs::create_dir_all(work.path().join("app/.git")).unwrap();
    let top = work.path().canonicalize().unwrap().join("app");
    work.write("secret.txt", "hush");
    let connect = |client: &'static str| {
        let mut posthaste = dir.posthaste().args(["connect", client, "--write", "--file", "dotfile"]);
        posthaste.command.current_dir(&top).env("HOME", work.path());
        posthaste.run().ok();
        std::fs::read_to_string(top.join("dotfile")).unwrap()
    };
    for client in ["codex", "claude-code", "gemini", "cursor", "vscode"] {
        let text = connect(client);
        std::fs::remove_file(top.join("dotfile")).unwrap();
        assert!(!text.contains("ph_") && text.contains("--token-file"), "{client}: {text}");
    }
    // Tokens are named for the work tree, and the entry works.
    let names = office.call("token.list", json!({})).await.unwrap().to_string();
    assert!(names.contains("\"claude-code-app\""), "{names}");
    let entry: Value = serde_json::from_str(&connect("claude-code")).unwrap();
    let args: Vec<String> = serde_json::from_value(entry["mcpServers"]["posthaste"]["args"].clone()).unwrap();
    let mut bridge = std::process::Command::new(env!("CARGO_BIN_EXE_posthaste"))
        .args(args)
        .env_clear()
        .current_dir(&top)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) =
        (bridge.stdin.take().unwrap(), BufReader::new(bridge.stdout.take().unwrap()));
    let mut call = |tool: &str, arguments: Value| {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } });
        writeln!(input, "{call}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["result"]["structuredContent"].take()
    };
    let health = call("health_check", json!({}));
    assert_eq!(health["status"], "ok", "{health}");
    assert_eq!(health["database_url"], Value::Null, "not the operator");
    // Started in a work tree, it reads the files to attach itself; the server knows nothing of that tree.
    call("ensure_project", json!({ "human_key": top }));
    for name in ["ann", "bob"] {
        call("register_agent", json!({ "project_key": top, "program": "p", "model": "m", "name": name }));
    }
    std::fs::write(top.join("notes.txt"), "hello").unwrap();
    let mut send = |file: &str| {
        let given = json!({ "project_key": top, "sender_name": "ann", "to": ["bob"], "subject": "s", "body_md": "b",
            "attachment_paths": [file] });
        call("send_message", given)
    };
    assert_eq!(send("notes.txt")["attachments"][0]["size"], 5);
    assert_eq!(send("../secret.txt")["error"]["code"], "ATTACHMENT_REFUSED");
    drop(input);
    assert!(bridge.wait().unwrap().success());
    assert_eq!(office.close(), Some(0));
}
