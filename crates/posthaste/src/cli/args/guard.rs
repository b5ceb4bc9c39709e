//! Flags of `posthaste guard`.

use super::super::help;
use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueEnum;
use clap::ValueHint;
use std::path::PathBuf;

#[derive(Clone, Debug, Subcommand)]
pub enum GuardCommand {
    /// Put the hooks into a repository
    #[command(long_about = help::GUARD_INSTALL, after_long_help = help::GUARD_INSTALL_AFTER)]
    Install(GuardInstallArgs),
    /// Take the hooks out again
    #[command(long_about = help::GUARD_UNINSTALL, after_long_help = help::GUARD_UNINSTALL_AFTER)]
    Uninstall {
        /// A directory in the repository [default: this one]
        #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
        path: Option<PathBuf>,
        /// Also if core.hooksPath leads out of the repository
        #[arg(long)]
        outside: bool,
    },
    /// What the hooks run
    #[command(long_about = help::GUARD_CHECK, after_long_help = help::GUARD_CHECK_AFTER)]
    Check(GuardCheckArgs),
}

#[derive(Clone, Debug, ClapArgs)]
pub struct GuardInstallArgs {
    /// A directory in the repository [default: this one]
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub path: Option<PathBuf>,
    /// The project whose reservations count [default: the repository's first work tree]
    #[arg(long, value_name = "KEY")]
    pub project: Option<String>,
    /// Stop commits and pushes instead of warning
    #[arg(long)]
    pub block: bool,
    /// The agent that commits here, where POSTHASTE_AGENT does not say
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Also if core.hooksPath leads out of the repository
    #[arg(long)]
    pub outside: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct GuardCheckArgs {
    /// A directory in the repository [default: this one]
    #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
    pub path: Option<PathBuf>,
    /// What is about to happen
    #[arg(long, value_enum, default_value_t = GuardHook::PreCommit)]
    pub hook: GuardHook,
    /// The project whose reservations count [default: the repository's first work tree]
    #[arg(long, value_name = "KEY")]
    pub project: Option<String>,
    /// Fail if something is held, instead of warning
    #[arg(long)]
    pub block: bool,
    /// Who commits [env: POSTHASTE_AGENT, AGENT_NAME]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Say so if nothing could be checked
    #[arg(long)]
    pub verbose: bool,
}

/// The git hooks that run the guard.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum GuardHook {
    /// What is staged
    PreCommit,
    /// What git says on standard input is about to be pushed
    PrePush,
}
