//! Putting the hooks in and taking them out. A hook that is there already is kept beside ours and runs first.

use std::fs;
use std::path::{Path, PathBuf};

use super::{git, git_line};

/// The hooks that the guard has.
const HOOKS: [&str; 2] = ["pre-commit", "pre-push"];
/// What a hook that was there before is called now.
const BEFORE: &str = "before-posthaste";
/// By which our own hooks are known.
const MARK: &str = "# posthaste guard:";

/// What the hooks have to know.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The office's data directory.
    pub(crate) data: PathBuf,
    /// The project whose reservations count.
    pub(crate) project: String,
    /// Whether a conflict stops the commit instead of warning.
    pub(crate) block: bool,
    /// The agent that commits here, where the environment does not say.
    pub(crate) agent: Option<String>,
}

/// Puts the hooks into the repository around a directory. Doing it again only renews them.
pub(crate) fn install(directory: &Path, options: &Options) -> Result<Vec<PathBuf>, String> {
    let folder = folder(directory)?;
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program =
        std::env::current_exe().map_err(|error| format!("posthaste cannot find itself: {error}"))?;
    if let Some(agent) = &options.agent {
        git(directory, &["config", "posthaste.agent", agent])?;
    }
    let mut installed = Vec::new();
    for name in HOOKS {
        let (hook, before) = (folder.join(name), folder.join(format!("{name}.{BEFORE}")));
        if hook.symlink_metadata().is_ok() && !is_ours(&hook) {
            if before.symlink_metadata().is_ok() {
                return Err(format!("{} is in the way; move it and try again", before.display()));
            }
            fs::rename(&hook, &before).map_err(|error| format!("{}: {error}", hook.display()))?;
        }
        write(&hook, &script(name, &program, options))?;
        installed.push(hook);
    }
    Ok(installed)
}

/// Takes the hooks out again and puts back what was there before. Says which were there.
pub(crate) fn uninstall(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = folder(directory)?;
    let mut removed = Vec::new();
    for name in HOOKS {
        let (hook, before) = (folder.join(name), folder.join(format!("{name}.{BEFORE}")));
        let failed = |error: std::io::Error| format!("{}: {error}", hook.display());
        if is_ours(&hook) {
            fs::remove_file(&hook).map_err(failed)?;
            removed.push(hook.clone());
        }
        if before.symlink_metadata().is_ok() && hook.symlink_metadata().is_err() {
            fs::rename(&before, &hook).map_err(failed)?;
        }
    }
    Ok(removed)
}

/// Where the repository keeps its hooks, as git itself sees it: worktrees and `core.hooksPath` included.
fn folder(directory: &Path) -> Result<PathBuf, String> {
    let shown = git_line(directory, &["rev-parse", "--git-path", "hooks"])
        .map_err(|why| format!("{} is not in a git repository: {why}", directory.display()))?;
    // Relative to where git was asked.
    Ok(directory.join(shown))
}

fn is_ours(hook: &Path) -> bool {
    fs::read_to_string(hook).is_ok_and(|text| text.contains(MARK))
}

fn write(hook: &Path, script: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", hook.display());
    let fresh = hook.with_extension("posthaste-new");
    fs::write(&fresh, script).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    fs::rename(&fresh, hook).map_err(failed)
}

/// The hook. Plain sh; whatever is missing lets the work go on.
fn script(name: &str, program: &Path, options: &Options) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let block = if options.block { " --block" } else { "" };
    let guard = format!(
        "\"$posthaste\" --data {} guard check --hook {name} --project {}{block}",
        path(&options.data),
        quoted(&options.project)
    );
    let head = format!(
        "#!/bin/sh\n{MARK} tells of paths that another agent holds. `posthaste guard uninstall` takes it out.\n\
         before=\"$(dirname \"$0\")/{name}.{BEFORE}\"\nposthaste={}\n",
        path(program)
    );
    match name {
        // Both hooks get what git says on standard input.
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
