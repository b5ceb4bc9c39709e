//! `posthaste guard`: git hooks that warn of paths which another agent has reserved.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{GlobalArgs, GuardCheckArgs, GuardCommand, GuardHook, GuardInstallArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::output::Output;
use super::target::{Source, Target};
use crate::config::Config;
use crate::guard::check::{self, Answer, Held, Hook, Question};
use crate::guard::hooks;
use posthaste_host::projects::git::WorkTree;

/// Environment variables that turn the guard off for one command.
const BYPASS: [&str; 2] = ["POSTHASTE_BYPASS", "AGENT_MAIL_BYPASS"];
/// Holders for which the line to export is shown.
const MAX_HOLDERS_SHOWN: usize = 5;
/// Environment variables with the name of the agent that commits.
const AGENT: [&str; 2] = ["POSTHASTE_AGENT", "AGENT_NAME"];

pub(super) fn run(global: &GlobalArgs, command: &GuardCommand, output: &Output) -> Result<(), Failure> {
    match command {
        GuardCommand::Install(given) => install(global, given, output),
        GuardCommand::Uninstall { path, outside } => uninstall(path.as_deref(), *outside, output),
        GuardCommand::Check(given) => check(global, given, output),
    }
}

/// The installed hooks as JSON.
#[derive(Serialize)]
struct Installed<'a> {
    hooks: &'a [PathBuf],
    project: &'a str,
    block: bool,
}

/// The removed hooks as JSON.
#[derive(Serialize)]
struct Removed<'a> {
    removed: &'a [PathBuf],
}

/// The outcome of a check as JSON.
#[derive(Serialize)]
struct Conflicts<'a> {
    conflicts: Vec<ConflictRow<'a>>,
    working_here: &'a [String],
}

#[derive(Serialize)]
struct ConflictRow<'a> {
    path: &'a str,
    path_pattern: &'a str,
    agent: &'a str,
    until: &'a str,
    may_be_yours: bool,
}

impl<'a> ConflictRow<'a> {
    fn new(held: &'a Held, answer: &Answer) -> Self {
        Self {
            path: &held.path,
            path_pattern: &held.pattern,
            agent: &held.agent,
            until: &held.until,
            may_be_yours: answer.may_be_own(held),
        }
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
        return output.json(&Installed { hooks: &installed, project: &project, block: given.block });
    }
    for hook in &installed {
        output.line(&format!("installed {}", hook.display()))?;
    }
    Ok(())
}

/// The flags by which the hooks find the server: as it was named here, without its token.
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
        return output.json(&Removed { removed: &removed });
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
        let conflicts = answer.held.iter().map(|held| ConflictRow::new(held, &answer)).collect();
        output.json(&Conflicts { conflicts, working_here: &answer.here })?;
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
    for holder in holders.into_iter().take(MAX_HOLDERS_SHOWN) {
        eprintln!("posthaste guard: if you are {holder}, say so: export POSTHASTE_AGENT={holder}");
    }
}
