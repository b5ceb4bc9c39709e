//! The guard: hooks in a git repository that warn of commits and pushes touching paths which another agent has reserved.
//! They are fast and never block work by accident: if the server is down, or anything else fails, git goes on.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod hooks;

use std::path::Path;
use std::process::Command;

/// Runs git in a directory; the error is what git printed.
fn git(directory: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    let done = Command::new("git").arg("-C").arg(directory).args(args).output();
    let done = done.map_err(|error| format!("git cannot be run: {error}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
}

/// The same, for one line of output.
fn git_line(directory: &Path, args: &[&str]) -> Result<String, String> {
    git(directory, args).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}
