//! The guard at a server on another machine.

use std::process::Command;

use serde_json::json;

use super::{at_home, data_of};
use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

// F7: `guard check` ignored a server that was named.
#[tokio::test]
async fn hooks_ask_the_server_that_was_named_when_they_were_installed() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    let top = home.path().canonicalize().unwrap().join("app");
    std::fs::create_dir_all(&top).unwrap();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path());
        command.env("POSTHASTE_AGENT", "GreenHill").env("POSTHASTE_TOKEN", office.token());
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).arg("-C").arg(&top).args(words);
        command.output().unwrap()
    };
    assert!(git(&["init", "-q"]).status.success());
    let mcp = Mcp::operator(&office);
    let start = |name: &str| json!({ "human_key": top, "program": "p", "model": "m", "agent_name": name });
    mcp.call("macro_start_session", start("BlueLake")).await;
    mcp.call("macro_start_session", start("GreenHill")).await;
    let held =
        json!({ "project_key": top, "agent_name": "BlueLake", "paths": ["held.txt"], "ttl_seconds": 600 });
    mcp.call("file_reservation_paths", held).await;
    let mut install = at_home(&home).args(["guard", "install", "--block", "--url", office.url()]);
    install.command.current_dir(&top);
    install.run().ok();
    let hook = std::fs::read_to_string(top.join(".git/hooks/pre-commit")).unwrap();
    assert!(
        hook.contains(office.url()) && !hook.contains(office.token()) && !hook.contains("--data"),
        "{hook}"
    );
    for (file, may) in [("free.txt", true), ("held.txt", false)] {
        std::fs::write(top.join(file), "x").unwrap();
        assert!(git(&["add", file]).status.success());
        let done = git(&["commit", "-q", "-m", file]);
        assert_eq!(done.status.success(), may, "{file}: {}", String::from_utf8_lossy(&done.stderr));
    }
    assert!(!data_of(&home).exists());
    assert_eq!(office.close(), Some(0));
}
