//! The guard: hooks in a git repository that tell of commits and pushes touching paths which another agent holds. Made
//! to be fast and never in the way: when the office is down, or anything else goes wrong, work goes on.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod hooks;

use std::path::Path;
use std::process::Command;

/// What git answers in a directory; an error is what it complained of.
fn git(directory: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let done = Command::new("git").arg("-C").arg(directory).args(args).output();
    let done = done.map_err(|error| format!("git cannot be run: {error}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
}

/// One line that git answers.
fn git_line(directory: &Path, args: &[&str]) -> Result<String, String> {
    git(directory, args).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}
