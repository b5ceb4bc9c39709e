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
        let token = text.split("Bearer ").nth(1).unwrap().split('"').next().unwrap();
        let mcp = Mcp::at(&format!("{}/mcp", office.url()), Some(token));
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
