//! What the README tells a newcomer to type does what it says.

use std::path::Path;
use std::process::Command;

use crate::harness::TestDir;
use crate::office::Office;

/// The shell lines that make a first call, as they stand in the README.
fn first_calls() -> String {
    blocks_with("call send")
}

/// The shell lines of the blocks that contain something.
fn blocks_with(mark: &str) -> String {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let blocks = readme.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    blocks.filter(|block| block.contains(mark)).collect()
}

#[tokio::test]
async fn the_first_calls_of_the_readme_work_as_written() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let script = first_calls();
    assert!(script.contains("http://127.0.0.1:7678"), "{script}");
    let program = Path::new(env!("CARGO_BIN_EXE_posthaste")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-euc", &script.replace("http://127.0.0.1:7678", office.url())])
        .env("PATH", path)
        .env("POSTHASTE_DATA", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let answers: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [sent, inbox, found] = answers.as_slice() else { panic!("three answers: {said}") };
    assert_eq!(sent["result"]["receipts"][0]["agent"], "bob");
    assert_eq!(inbox["result"]["messages"][0]["body"], "The branch is up.");
    assert_eq!(found["result"]["hits"][0]["from"], "bob");
    assert_eq!(office.close(), Some(0));
}

/// The lines for people at a terminal and for files need no server.
#[test]
fn the_first_commands_of_the_readme_work_as_written() {
    let dir = TestDir::new();
    let script = blocks_with("posthaste tail") + &blocks_with("--mail-dir mail");
    assert!(script.contains("--mail-dir mail") && script.contains("posthaste tail"), "{script}");
    let program = Path::new(env!("CARGO_BIN_EXE_posthaste")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-euc", &script])
        .current_dir(dir.path())
        .env("PATH", path)
        .env("POSTHASTE_DATA", dir.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for expected in ["Ready", "message.sent", "{\"posthaste\":\"realm\"", "Bead gt-1"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
