//! The load generators from outside. They start the `posthaste` program that was built beside them.

mod bench;
mod soak;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The program under test, without settings of the user who runs the tests.
fn load(args: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_posthaste-load");
    let mut command = Command::new(program);
    command.env_clear().args(args);
    command
}

/// `posthaste`, which `cargo test --workspace` and `cargo build -p posthaste` put beside the load generators.
fn posthaste() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_posthaste-load")).with_file_name("posthaste")
}

#[track_caller]
fn json(output: &Output) -> Value {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

#[test]
fn wrong_usage_is_refused() {
    for args in [
        &["bench", "--in-flight", "0"][..],
        &["soak", "--minutes", "0"],
        &["soak", "--agents", "1"],
        &["other"],
    ] {
        assert_eq!(load(args).output().unwrap().status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn missing_program_is_named() {
    let ran = load(&["--bin", "/nowhere/posthaste", "bench"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("/nowhere/posthaste") && said.contains("--bin"), "{said}");
}
