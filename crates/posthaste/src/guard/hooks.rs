//! Installing and removing the hooks. An existing hook is kept under another name and runs first.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use super::{git, git_line};
use posthaste_host::projects::git::WorkTree;
use posthaste_host::safe_open::{Folder, OpenError};

/// The most that is read of a hook to find out whether it is the guard's.
const MAX_HOOK_BYTES: u64 = 64 << 10;

/// The hooks that the guard has.
const HOOKS: [&str; 2] = ["pre-commit", "pre-push"];
/// The suffix of a hook that existed before.
const BEFORE: &str = "before-posthaste";
/// The text by which the guard's hooks are recognized.
const SIGNATURE: &str = "# posthaste guard:";

/// Settings that are written into the hooks.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The flag that says which server is asked, and its value.
    pub(crate) server: Vec<String>,
    /// The project whose reservations count.
    pub(crate) project: String,
    /// Whether a conflict stops the commit instead of warning.
    pub(crate) block: bool,
    /// The agent that commits here, unless the environment names one.
    pub(crate) agent: Option<String>,
    /// Whether the hooks may lie outside of the repository.
    pub(crate) anywhere: bool,
}

/// Installs the hooks in the repository around a directory, or renews them.
pub(crate) fn install(directory: &Path, options: &Options) -> Result<Vec<PathBuf>, String> {
    let (path, folder) = open(directory, options.anywhere)?;
    let program =
        std::env::current_exe().map_err(|error| format!("posthaste cannot find itself: {error}"))?;
    if let Some(agent) = &options.agent {
        git(directory, &["config", "posthaste.agent", agent])?;
    }
    let mut installed = Vec::new();
    for name in HOOKS {
        let (hook, before) = (OsString::from(name), OsString::from(format!("{name}.{BEFORE}")));
        let failed = |error: OpenError| format!("{}: {error}", path.join(name).display());
        if folder.has(&hook) && !is_ours(&folder, &hook) {
            if folder.has(&before) {
                return Err(format!("{} is in the way; move it and try again", path.join(before).display()));
            }
            folder.rename(&hook, &before).map_err(failed)?;
        }
        let script = script(name, &program, options);
        folder.replace(&hook, script.as_bytes(), 0o755).map_err(failed)?;
        installed.push(path.join(name));
    }
    Ok(installed)
}

/// Removes the hooks and restores those that existed before. Returns the removed ones.
pub(crate) fn uninstall(directory: &Path, anywhere: bool) -> Result<Vec<PathBuf>, String> {
    let (path, folder) = open(directory, anywhere)?;
    let mut removed = Vec::new();
    for name in HOOKS {
        let (hook, before) = (OsString::from(name), OsString::from(format!("{name}.{BEFORE}")));
        let failed = |error: OpenError| format!("{}: {error}", path.join(name).display());
        if is_ours(&folder, &hook) {
            folder.remove(&hook).map_err(failed)?;
            removed.push(path.join(name));
        }
        if folder.has(&before) && !folder.has(&hook) {
            folder.rename(&before, &hook).map_err(failed)?;
        }
    }
    Ok(removed)
}

/// Where the repository keeps its hooks, as git itself sees it: worktrees and `core.hooksPath` included. The folder must
/// lie in the repository, links resolved, unless the user says otherwise: its settings may come from others.
fn open(directory: &Path, anywhere: bool) -> Result<(PathBuf, Folder), String> {
    let outside = |why: String| format!("{} is not in a git repository: {why}", directory.display());
    let shown = git_line(directory, &["rev-parse", "--git-path", "hooks"]).map_err(outside)?;
    // Relative to where git was asked.
    let path = directory.join(shown);
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if !anywhere {
        // A folder that does not exist yet is judged by the folder it would be made in.
        let existing = path.ancestors().find(|part| part.symlink_metadata().is_ok());
        let real = existing.unwrap_or(&path).canonicalize().map_err(|error| failed(&error))?;
        let common = git_line(directory, &["rev-parse", "--git-common-dir"]).map_err(outside)?;
        let tops = [Some(directory.join(common)), WorkTree::around(directory).map(|tree| tree.top)];
        let inside = tops.into_iter().flatten().filter_map(|top| top.canonicalize().ok());
        if !inside.into_iter().any(|top| real.starts_with(top)) {
            return Err(format!(
                "the hooks of this repository lie outside of it, in {}; if you set core.hooksPath so, add --outside",
                path.display()
            ));
        }
    }
    fs::create_dir_all(&path).map_err(|error| failed(&error))?;
    let real = path.canonicalize().map_err(|error| failed(&error))?;
    let folder = Folder::open(&real).map_err(|error| failed(&error))?;
    Ok((path, folder))
}

fn is_ours(folder: &Folder, hook: &OsStr) -> bool {
    folder.read(hook, MAX_HOOK_BYTES).is_ok_and(|text| String::from_utf8_lossy(&text).contains(SIGNATURE))
}

/// The hook, in plain sh. If anything is missing, git goes on.
fn script(name: &str, program: &Path, options: &Options) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let block = if options.block { " --block" } else { "" };
    let server: Vec<String> = options.server.iter().map(|word| quoted(word)).collect();
    let guard = format!(
        "\"$posthaste\" {} guard check --hook {name} --project {}{block}",
        server.join(" "),
        quoted(&options.project)
    );
    let head = format!(
        "#!/bin/sh\n{SIGNATURE} tells of paths that another agent holds. `posthaste guard uninstall` takes it out.\n\
         before=\"$(dirname \"$0\")/{name}.{BEFORE}\"\nposthaste={}\n",
        path(program)
    );
    match name {
        // Both hooks get git's lines on standard input.
        "pre-push" => format!(
            "{head}pushed=$(cat)\n\
             if [ -x \"$before\" ]; then printf '%s\\n' \"$pushed\" | \"$before\" \"$@\" || exit $?; fi\n\
             [ -x \"$posthaste\" ] || exit 0\n\
             printf '%s\\n' \"$pushed\" | {guard}\n"
        ),
        _ => format!(
            "{head}if [ -x \"$before\" ]; then \"$before\" \"$@\" || exit $?; fi\n\
             [ -x \"$posthaste\" ] || exit 0\n\
             {guard}\n"
        ),
    }
}
