//! The guard's tools. Hooks are put into a repository by the command line, as the user whose repository it is; the server
//! writes to no path that a caller names. These tools answer with the command to run.

use posthaste_wire::mcp::answers::{GuardInstallation, GuardRemoval};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::answer::Answer;
use super::super::call::Call;
use super::super::errors::DoorError;
use super::super::table::{Line, tool};

pub(in super::super) const LINES: &[Line] = &[
    tool!(install_precommit_guard(InstallPrecommitGuardArgs), full, READS),
    tool!(uninstall_precommit_guard(UninstallPrecommitGuardArgs), full, READS),
];

/// The command that puts hooks into a git repository which warn of commits and pushes touching paths others hold. Run it yourself.
#[derive(Debug, Deserialize, JsonSchema)]
struct InstallPrecommitGuardArgs {
    /// absolute path or slug
    project_key: String,
    code_repo_path: String,
    /// refuse the commit instead of warning
    #[serde(default)]
    block: bool,
}

/// The command that takes the guard's hooks out of a git repository again. Run it yourself.
#[derive(Debug, Deserialize, JsonSchema)]
struct UninstallPrecommitGuardArgs {
    code_repo_path: String,
}

async fn install_precommit_guard(call: &Call, args: InstallPrecommitGuardArgs) -> Result<Answer, DoorError> {
    let project = call.project(&args.project_key).await?;
    let repo = repository(&args.code_repo_path)?;
    let block = if args.block { " --block" } else { "" };
    let key = quoted(&project.human_key)?;
    let command = format!("posthaste guard install --project {key}{block} -- {}", quoted(repo)?);
    let project = project.human_key;
    let note = NOTE.to_owned();
    Ok(Answer::one(&GuardInstallation { installed: false, hook: None, hooks: [], project, command, note }))
}

async fn uninstall_precommit_guard(_: &Call, args: UninstallPrecommitGuardArgs) -> Result<Answer, DoorError> {
    let command = format!("posthaste guard uninstall -- {}", quoted(repository(&args.code_repo_path)?)?);
    Ok(Answer::one(&GuardRemoval { removed: false, hooks: [], command, note: NOTE.to_owned() }))
}

const NOTE: &str = "nothing was changed: the server does not write into repositories; run the command where the \
    repository is, as its user";

fn repository(path: &str) -> Result<&str, DoorError> {
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
