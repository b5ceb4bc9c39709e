//! The guard's tools. Hooks are put into a repository by the command line, as the user whose repository it is; the server
//! writes to no path that a caller names. These tools answer with the command to run.

use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        install_precommit_guard,
        full,
        READS,
        "The command that puts hooks into a git repository which warn of commits and pushes touching paths others hold. Run it yourself.",
        "project_key! code_repo_path! block:flag=false"
    ),
    tool!(
        uninstall_precommit_guard,
        full,
        READS,
        "The command that takes the guard's hooks out of a git repository again. Run it yourself.",
        "code_repo_path!"
    ),
];

async fn install_precommit_guard(call: &Call, args: Args) -> Result<Answer, DoorError> {
    let project = call.project(args.need("project_key")).await?;
    let repo = repository(&args)?;
    let block = if args.flag("block") { " --block" } else { "" };
    let key = quoted(&project.human_key)?;
    let command = format!("posthaste guard install --project {key}{block} -- {}", quoted(repo)?);
    Ok(json!({
        "installed": false,
        "hook": null,
        "hooks": [],
        "project": project.human_key,
        "command": command,
        "note": NOTE,
    })
    .into())
}

async fn uninstall_precommit_guard(_: &Call, args: Args) -> Result<Answer, DoorError> {
    let command = format!("posthaste guard uninstall -- {}", quoted(repository(&args)?)?);
    Ok(json!({ "removed": false, "hooks": [], "command": command, "note": NOTE }).into())
}

const NOTE: &str = "nothing was changed: the server does not write into repositories; run the command where the \
    repository is, as its user";

fn repository(args: &Args) -> Result<&str, DoorError> {
    let path = args.need("code_repo_path");
    if !path.starts_with('/') {
        return Err(failed("code_repo_path must be an absolute path"));
    }
    Ok(path)
}

/// As one word of a shell command.
fn quoted(text: &str) -> Result<String, DoorError> {
    if text.chars().any(char::is_control) {
        return Err(failed("a path must not have control characters"));
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

fn failed(why: &str) -> DoorError {
    DoorError::new("GUARD_FAILED", format!("the guard: {why}"))
}
