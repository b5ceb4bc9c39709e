//! Putting the guard into a repository and taking it out again, for agents that ask for it.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::answer::Answer;
use super::super::args::Args;
use super::super::call::Call;
use super::super::errors::Problem;
use super::super::table::{Line, tool};
use crate::guard::hooks;

pub(in super::super) const LINES: &[Line] = &[
    tool!(
        install_precommit_guard,
        full,
        "Put hooks into a git repository that warn of commits and pushes touching paths others hold. Existing hooks are kept and run first.",
        "project_key! code_repo_path! block:flag=false"
    ),
    tool!(
        uninstall_precommit_guard,
        full,
        "Take the guard's hooks out of a git repository again.",
        "code_repo_path!"
    ),
];

async fn install_precommit_guard(call: &Call, args: Args) -> Result<Answer, Problem> {
    let project = call.project(args.need("project_key")).await?;
    let repo = repository(call, &args)?;
    let data = data_of(call);
    let options =
        hooks::Options { data, project: project.human_key.clone(), block: args.flag("block"), agent: None };
    let done = tokio::task::spawn_blocking(move || hooks::install(&repo, &options)).await;
    let installed = done.map_err(|_| failed("it stopped"))?.map_err(|why| failed(&why))?;
    let hook = installed.first().map(|path| path.display().to_string());
    Ok(json!({ "hook": hook, "hooks": installed, "project": project.human_key }).into())
}

async fn uninstall_precommit_guard(call: &Call, args: Args) -> Result<Answer, Problem> {
    let repo = repository(call, &args)?;
    let done = tokio::task::spawn_blocking(move || hooks::uninstall(&repo)).await;
    let removed = done.map_err(|_| failed("it stopped"))?.map_err(|why| failed(&why))?;
    Ok(json!({ "removed": !removed.is_empty(), "hooks": removed }).into())
}

/// The repository, which must be on this machine and named by somebody on it.
fn repository(call: &Call, args: &Args) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(args.need("code_repo_path"));
    if !call.visitor.local {
        return Err(failed("only agents on the office's own machine can have hooks installed there"));
    }
    if !path.is_absolute() {
        return Err(failed("code_repo_path must be an absolute path"));
    }
    Ok(path)
}

fn data_of(call: &Call) -> PathBuf {
    let books = call.shared.office().path_of(call.shared.default_realm());
    books.parent().and_then(Path::parent).unwrap_or(Path::new(".")).to_owned()
}

fn failed(why: &str) -> Problem {
    Problem::new("GUARD_FAILED", format!("the guard: {why}"))
}
