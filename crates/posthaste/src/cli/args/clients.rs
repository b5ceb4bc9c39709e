//! Flags of the commands that say which server clients and directories use.

use super::super::help;
use super::RealmArgs;
use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueEnum;
use clap::ValueHint;
use posthaste_engine::nouns::RealmName;
use std::path::PathBuf;

#[derive(Clone, Debug, ClapArgs)]
pub struct ConnectArgs {
    /// The client to set up
    #[arg(value_enum)]
    pub client: Client,
    /// Merge it into the client's file, keeping a copy of what was there
    #[arg(long)]
    pub write: bool,
    /// The file to write, if not the client's usual one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The name that the client acts under [default: a name made of the client and the directory]
    #[arg(long, visible_alias = "agent", value_name = "NAME")]
    pub name: Option<String>,
    /// Have the client start `posthaste mcp`; this is what it does unless a server is named
    #[arg(long, conflicts_with = "http")]
    pub stdio: bool,
    /// Have the client connect over HTTP with the token in POSTHASTE_TOKEN; this is what it does if a server is named
    #[arg(long)]
    pub http: bool,
    #[command(flatten)]
    pub realm: RealmArgs,
    /// The server's address, as --url
    #[arg(long, value_name = "ADDR:PORT", hide = true, conflicts_with_all = ["url", "context"])]
    pub listen: Option<String>,
}

/// The clients whose configuration is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Client {
    /// .mcp.json in this directory
    ClaudeCode,
    /// ~/.codex/config.toml
    Codex,
    /// ~/.gemini/settings.json
    Gemini,
    /// ~/.cursor/mcp.json
    Cursor,
    /// .vscode/mcp.json in this directory
    Vscode,
}

impl Client {
    /// The client's name as it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
        }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ContextCommand {
    /// Keep a server under a name
    #[command(long_about = help::CONTEXT_ADD, after_long_help = help::CONTEXT_ADD_AFTER)]
    Add(ContextAddArgs),
    /// List the servers that are kept
    #[command(long_about = help::CONTEXT_LIST, after_long_help = help::CONTEXT_LIST_AFTER)]
    List,
    /// Choose the server that commands talk to from now on
    #[command(long_about = help::CONTEXT_USE, after_long_help = help::CONTEXT_USE_AFTER)]
    Use {
        /// The context
        #[arg(value_name = "NAME", required_unless_present = "none", conflicts_with = "none")]
        name: Option<String>,
        /// None of them: the server of the data directory
        #[arg(long)]
        none: bool,
    },
    /// Show which server commands use, and why
    #[command(long_about = help::CONTEXT_SHOW, after_long_help = help::CONTEXT_SHOW_AFTER)]
    Show {
        /// A context [default: the server that commands use now]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Forget a server
    #[command(long_about = help::CONTEXT_REMOVE, after_long_help = help::CONTEXT_REMOVE_AFTER)]
    Remove {
        /// The context
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ContextAddArgs {
    /// The name to keep it under
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The server's address
    #[arg(value_name = "URL")]
    pub address: String,
    /// The realm to ask for there [default: the server's default realm]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
    /// Replace a context of that name
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum ProjectsCommand {
    /// List the paths and addresses that stand for realms
    #[command(long_about = help::PROJECTS_LIST, after_long_help = help::PROJECTS_LIST_AFTER)]
    List(RealmArgs),
    /// Send the new sessions of a path to another realm
    #[command(long_about = help::PROJECTS_MOVE, after_long_help = help::PROJECTS_MOVE_AFTER)]
    Move {
        /// The path, or the address of a repository
        #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
        path: String,
        /// The realm that new sessions share from now on
        #[arg(value_name = "REALM", value_parser = parse_realm)]
        to: RealmName,
        #[command(flatten)]
        realm: RealmArgs,
    },
    /// Take a claim back
    #[command(long_about = help::PROJECTS_RELEASE, after_long_help = help::PROJECTS_RELEASE_AFTER)]
    Release {
        /// The path, or the address of a repository
        #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
        path: String,
        #[command(flatten)]
        realm: RealmArgs,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum RealmsCommand {
    /// List the realms with their agents, messages and sizes
    #[command(long_about = help::REALMS_LIST, after_long_help = help::REALMS_LIST_AFTER)]
    List(RealmArgs),
}

fn parse_realm(text: &str) -> Result<RealmName, String> {
    RealmName::new(text).map_err(|error| error.to_string())
}
