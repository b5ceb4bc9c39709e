//! Runs a test again in a child process, where it plays another part.

use std::path::{Path, PathBuf};
use std::process::Command;

const DIRECTORY: &str = "POSTHASTE_TEST_DIRECTORY";

/// The directory assigned to this process, if it is the child.
pub fn assigned_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// The command that runs a test in a child process. `before` are shell commands that run first in that process.
pub fn command(test: &str, directory: &Path, before: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{before}\nexec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().expect("a test binary")).args([test, "--exact", "--nocapture"]);
    command.env(DIRECTORY, directory);
    command
}
