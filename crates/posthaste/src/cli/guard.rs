//! `posthaste guard`: hooks that tell of paths which another agent holds.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::{GlobalArgs, GuardCheckArgs, GuardCommand, GuardHook, GuardInstallArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::output::Output;
use super::target::{Source, Target};
use crate::config::Config;
use crate::guard::check::{self, Answer, Held, Hook, Question};
use crate::guard::hooks;
use posthaste_host::projects::git::WorkTree;

/// What turns the guard off for one command, in both worlds' words.
const BYPASS: [&str; 2] = ["POSTHASTE_BYPASS", "AGENT_MAIL_BYPASS"];
/// Holders whose line to export is shown.
const MOST_TOLD: usize = 5;
/// What names the agent that commits.
const AGENT: [&str; 2] = ["POSTHASTE_AGENT", "AGENT_NAME"];

pub(super) fn run(global: &GlobalArgs, command: &GuardCommand, output: &Output) -> Result<(), Failure> {
    match command {
        GuardCommand::Install(given) => install(global, given, output),
        GuardCommand::Uninstall { path, outside } => uninstall(path.as_deref(), *outside, output),
        GuardCommand::Check(given) => check(global, given, output),
    }
}

fn directory(path: Option<&Path>) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(path.unwrap_or(Path::new(".")))?)
}

fn install(global: &GlobalArgs, given: &GuardInstallArgs, output: &Output) -> Result<(), Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, &OfficeArgs::default(), &|name| std::env::var_os(name))?;
    let directory = directory(given.path.as_deref())?;
    let Some(tree) = WorkTree::around(&directory) else {
        return Err(Failure::new(Exit::Usage, format!("{} is not in a git work tree", directory.display())));
    };
    let project = given.project.clone().unwrap_or_else(|| tree.main.to_string_lossy().into_owned());
    let options = hooks::Options {
        server: server_flags(&target, &config),
        project: project.clone(),
        block: given.block,
        agent: given.agent.clone(),
        anywhere: given.outside,
    };
    let installed = hooks::install(&directory, &options).map_err(|why| Failure::new(Exit::Failed, why))?;
    if output.is_json() {
        return output.json(&json!({ "hooks": installed, "project": project, "block": given.block }));
    }
    for hook in &installed {
        output.line(&format!("installed {}", hook.display()))?;
    }
    Ok(())
}

/// How the hooks are to find the server: by what was named here, without its token.
fn server_flags(target: &Target, config: &Config) -> Vec<String> {
    let (flag, value) = match (&target.url_from, &target.url) {
        (Source::Context { name, .. }, _) => ("--context", name.clone()),
        (_, Some(url)) => ("--url", url.clone()),
        (_, None) => ("--data", config.data.value.to_string_lossy().into_owned()),
    };
    vec![flag.to_owned(), value]
}

fn uninstall(path: Option<&Path>, outside: bool, output: &Output) -> Result<(), Failure> {
    let removed = hooks::uninstall(&directory(path)?, outside);
    let removed = removed.map_err(|why| Failure::new(Exit::Failed, why))?;
    if output.is_json() {
        return output.json(&json!({ "removed": removed }));
    }
    if removed.is_empty() {
        return Ok(output.line("there was no guard here")?);
    }
    for hook in &removed {
        output.line(&format!("removed {}", hook.display()))?;
    }
    Ok(())
}

fn check(global: &GlobalArgs, given: &GuardCheckArgs, output: &Output) -> Result<(), Failure> {
    let variable = |names: [&str; 2]| {
        names.into_iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    };
    if variable(BYPASS).is_some_and(|value| value != "0") {
        return Ok(());
    }
    let target = Target::of(global)?;
    let config = Config::load(global, &OfficeArgs::default(), &|name| std::env::var_os(name))?;
    let server = target.server(&config.data.value)?;
    let mut input = String::new();
    if given.hook == GuardHook::PrePush {
        std::io::stdin().take(1 << 20).read_to_string(&mut input)?;
    }
    let directory = directory(given.path.as_deref())?;
    let question = Question {
        url: server.as_ref().map(|server| server.url.as_str()),
        directory: &directory,
        hook: if given.hook == GuardHook::PrePush { Hook::PrePush } else { Hook::PreCommit },
        input: &input,
        project: given.project.as_deref(),
        agent: given.agent.clone().or_else(|| variable(AGENT)),
        token: server.as_ref().and_then(|server| server.token.clone()),
    };
    let answer = match check::ask(&question) {
        Ok(answer) => answer,
        Err(why) => {
            if given.verbose {
                eprintln!("posthaste guard: nothing was checked: {why}");
            }
            return Ok(());
        }
    };
    if output.is_json() {
        let row = |held: &Held| {
            json!({
                "path": held.path, "path_pattern": held.pattern, "agent": held.agent, "until": held.until,
                "may_be_yours": answer.may_be_own(held),
            })
        };
        let rows: Vec<_> = answer.held.iter().map(row).collect();
        output.json(&json!({ "conflicts": rows, "working_here": answer.here }))?;
    } else {
        tell(&answer);
    }
    // An agent that may be the holder itself is warned and not stopped.
    if !given.block || answer.held.iter().all(|held| answer.may_be_own(held)) {
        return Ok(());
    }
    let text = "paths are reserved by others; talk to them, or set POSTHASTE_BYPASS=1 to go on anyway";
    Err(Failure::new(Exit::Failed, text))
}

fn tell(answer: &Answer) {
    for held in &answer.held {
        eprintln!(
            "posthaste guard: {} is reserved by {} ({}) until {}",
            held.path, held.agent, held.pattern, held.until
        );
    }
    if answer.named || answer.held.is_empty() {
        return;
    }
    let may_be_own = answer.held.iter().any(|held| answer.may_be_own(held));
    if may_be_own {
        eprintln!("posthaste guard: several agents work in this directory: {}", answer.here.join(", "));
    }
    let mut holders: Vec<&str> = answer.held.iter().map(|held| held.agent.as_str()).collect();
    holders.sort_unstable();
    holders.dedup();
    for holder in holders.into_iter().take(MOST_TOLD) {
        eprintln!("posthaste guard: if you are {holder}, say so: export POSTHASTE_AGENT={holder}");
    }
}
