//! A test that plays a second part in another process: the same test, run again by itself with a part to play.

use std::path::{Path, PathBuf};
use std::process::Command;

const PART: &str = "POSTHASTE_TEST_PART";

/// The directory given to this process, if it is the second one.
pub fn part() -> Option<PathBuf> {
    std::env::var_os(PART).map(PathBuf::from)
}

/// The command that plays the second part of a test. `before` are shell commands, run first in that process.
pub fn second_part(test: &str, directory: &Path, before: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{before}\nexec \"$0\" \"$@\""));
    command.arg(std::env::current_exe().expect("a test binary")).args([test, "--exact", "--nocapture"]);
    command.env(PART, directory);
    command
}
