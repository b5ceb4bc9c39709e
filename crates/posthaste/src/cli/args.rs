//! The command line as typed. What it means together with environment and file is `config`'s work.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use posthaste_engine::nouns::RealmName;

use super::airc::args::AircArgs;
use super::help;
use super::mail_args::{
    AckArgs, AgentCommand, ArchiveArgs, ContactsArgs, ConversationsArgs, DeskArgs, ExportArgs, ImportArgs,
    InboxArgs, ListArgs, NudgeArgs, ReadArgs, RegisterArgs, ReleaseArgs, ReplyArgs, ReservationsArgs,
    ReserveArgs, SearchArgs, SendArgs, SignalArgs, TailArgs, ThreadArgs,
};
use super::output::ColorWhen;
pub use crate::config::OfficeArgs;
use crate::config::ToolSet;
use posthaste_host::units::parse_span;

/// The post office for AI agents.
#[derive(Clone, Debug, Parser)]
#[command(name = "posthaste", version, about, long_about = help::TOP, after_long_help = help::TOP_AFTER)]
#[command(propagate_version = true, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Where help lists the flags that say which server is meant.
const SERVER: &str = "Which server";

/// Flags that every command takes.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    #[arg(long, help = crate::config::help("data"), global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// Read this file instead of posthaste.toml in the data directory [env: POSTHASTE_CONFIG]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The server's address [default: the server of the data directory] [env: POSTHASTE_URL]
    #[arg(long, global = true, value_name = "URL", conflicts_with = "context", help_heading = SERVER)]
    pub url: Option<String>,
    /// The token to show the server; the list of processes shows it, so prefer a file or the environment
    /// [default: the data directory's admin token, at its own server only] [env: POSTHASTE_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN", conflicts_with = "token_file", help_heading = SERVER)]
    pub token: Option<String>,
    /// The file that holds the token to show the server
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = SERVER)]
    pub token_file: Option<PathBuf>,
    /// A server by the name it has in `posthaste context list` [env: POSTHASTE_CONTEXT]
    #[arg(long, global = true, value_name = "NAME", help_heading = SERVER)]
    pub context: Option<String>,
    /// Answer, and complain, in JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour; NO_COLOR in the environment turns `auto` into `never`
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColorWhen,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Open the office
    #[command(long_about = help::SERVE, after_long_help = help::SERVE_AFTER)]
    Serve(OfficeArgs),
    /// Speak MAP on standard input and output
    #[command(long_about = help::MAP, after_long_help = help::MAP_AFTER)]
    Map(RealmArgs),
    /// Speak MCP on standard input and output
    #[command(long_about = help::MCP, after_long_help = help::MCP_AFTER)]
    Mcp(McpArgs),
    /// Set up a coding agent's client
    #[command(long_about = help::CONNECT, after_long_help = help::CONNECT_AFTER)]
    Connect(ConnectArgs),
    /// Say which realm the sessions of a directory share
    #[command(long_about = help::PROJECTS, after_long_help = help::PROJECTS_AFTER, subcommand_required = true)]
    Projects {
        #[command(subcommand)]
        command: ProjectsCommand,
    },
    /// List the realms of the server
    #[command(long_about = help::REALMS, after_long_help = help::REALMS_AFTER, subcommand_required = true)]
    Realms {
        #[command(subcommand)]
        command: RealmsCommand,
    },
    /// Tell of commits that touch paths another agent holds
    #[command(long_about = help::GUARD, after_long_help = help::GUARD_AFTER, subcommand_required = true)]
    Guard {
        #[command(subcommand)]
        command: GuardCommand,
    },
    /// Be an AIRC identity: signed mail, consent, file reservations
    #[command(long_about = help::AIRC, after_long_help = help::AIRC_AFTER, subcommand_required = true)]
    Airc(AircArgs),
    /// Keep servers by name, and say which one is meant
    #[command(long_about = help::CONTEXT, after_long_help = help::CONTEXT_AFTER, subcommand_required = true)]
    Context {
        #[command(subcommand)]
        command: ContextCommand,
    },
    /// Make, list and revoke access tokens
    #[command(long_about = help::TOKEN, after_long_help = help::TOKEN_AFTER, subcommand_required = true)]
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Check the health of the data directory
    #[command(long_about = help::DOCTOR, after_long_help = help::DOCTOR_AFTER)]
    Doctor(DoctorArgs),
    /// Write a realm's mail into one file
    #[command(long_about = help::BACKUP, after_long_help = help::BACKUP_AFTER)]
    Backup(BackupArgs),
    /// Bring a realm's mail back from a backup
    #[command(long_about = help::RESTORE, after_long_help = help::RESTORE_AFTER)]
    Restore(RestoreArgs),
    /// Show what is in force and where each value came from
    #[command(long_about = help::CONFIG, after_long_help = help::CONFIG_AFTER)]
    Config(ConfigArgs),
    /// Ask the running office how it is
    #[command(long_about = help::STATUS, after_long_help = help::STATUS_AFTER)]
    Status(StatusArgs),
    /// Show a small fleet at work on the page
    #[command(long_about = help::DEMO, after_long_help = help::DEMO_AFTER)]
    Demo(DemoArgs),
    /// Send a letter
    #[command(long_about = help::SEND, after_long_help = help::SEND_AFTER)]
    Send(SendArgs),
    /// List an agent's mail
    #[command(long_about = help::INBOX, after_long_help = help::INBOX_AFTER)]
    Inbox(InboxArgs),
    /// Show a letter and mark it as read
    #[command(long_about = help::READ, after_long_help = help::READ_AFTER)]
    Read(ReadArgs),
    /// Acknowledge a letter
    #[command(long_about = help::ACK, after_long_help = help::ACK_AFTER)]
    Ack(AckArgs),
    /// Answer a letter
    #[command(long_about = help::REPLY, after_long_help = help::REPLY_AFTER)]
    Reply(ReplyArgs),
    /// Show a conversation
    #[command(long_about = help::THREAD, after_long_help = help::THREAD_AFTER)]
    Thread(ThreadArgs),
    /// Find letters and turns
    #[command(long_about = help::SEARCH, after_long_help = help::SEARCH_AFTER)]
    Search(SearchArgs),
    /// Follow what happens
    #[command(long_about = help::TAIL, after_long_help = help::TAIL_AFTER)]
    Tail(TailArgs),
    /// List the address book
    #[command(long_about = help::AGENTS, after_long_help = help::AGENTS_AFTER)]
    Agents(ListArgs),
    /// Show or remove one agent
    #[command(long_about = help::AGENT, after_long_help = help::AGENT_AFTER, subcommand_required = true)]
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
    },
    /// Enter an agent into the address book
    #[command(long_about = help::REGISTER, after_long_help = help::REGISTER_AFTER)]
    Register(RegisterArgs),
    /// List conversations
    #[command(long_about = help::CONVERSATIONS, after_long_help = help::CONVERSATIONS_AFTER)]
    Conversations(ConversationsArgs),
    /// Reserve paths
    #[command(long_about = help::RESERVE, after_long_help = help::RESERVE_AFTER)]
    Reserve(ReserveArgs),
    /// Give reservations back
    #[command(long_about = help::RELEASE, after_long_help = help::RELEASE_AFTER)]
    Release(ReleaseArgs),
    /// List reservations
    #[command(long_about = help::RESERVATIONS, after_long_help = help::RESERVATIONS_AFTER)]
    Reservations(ReservationsArgs),
    /// List contacts, ask for, accept, block and end them
    #[command(long_about = help::CONTACTS, after_long_help = help::CONTACTS_AFTER)]
    Contacts(ContactsArgs),
    /// Say whom the office takes you for
    #[command(long_about = help::WHOAMI, after_long_help = help::WHOAMI_AFTER)]
    Whoami(DeskArgs),
    /// Write a whole realm as JSON lines
    #[command(long_about = help::EXPORT, after_long_help = help::EXPORT_AFTER)]
    Export(ExportArgs),
    /// Make a realm from JSON lines
    #[command(long_about = help::IMPORT, after_long_help = help::IMPORT_AFTER)]
    Import(ImportArgs),
    /// Move old mail of a mail directory into its archives
    #[command(long_about = help::ARCHIVE, after_long_help = help::ARCHIVE_AFTER)]
    Archive(ArchiveArgs),
    /// Signal an agent of a mail directory
    #[command(long_about = help::NUDGE, after_long_help = help::NUDGE_AFTER)]
    Nudge(NudgeArgs),
    /// Show what the agents of a mail directory are to work on
    #[command(long_about = help::HOOKS, after_long_help = help::HOOKS_AFTER)]
    Hooks(SignalArgs),
    /// Print the reference of the server's own methods
    #[command(long_about = help::API, after_long_help = help::API_AFTER, subcommand_required = true)]
    Api {
        #[command(subcommand)]
        command: ApiCommand,
    },
    /// Print a shell's completion script
    #[command(long_about = help::COMPLETIONS, after_long_help = help::COMPLETIONS_AFTER)]
    Completions {
        /// The shell to complete for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print a manual page
    #[command(long_about = help::MAN, after_long_help = help::MAN_AFTER)]
    Man {
        /// The command to describe, like `serve` or `token create`; without one, posthaste itself
        #[arg(conflicts_with = "out")]
        command: Vec<String>,
        /// Write the pages of all commands into this directory
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
    /// Print the version
    #[command(long_about = help::VERSION, after_long_help = help::VERSION_AFTER)]
    Version,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub settings: OfficeArgs,
    /// Print a JSON schema of posthaste.toml instead
    #[arg(long)]
    pub schema: bool,
    /// Print docs/configuration.md instead
    #[arg(long, hide = true, conflicts_with = "schema")]
    pub markdown: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct McpArgs {
    #[command(flatten)]
    pub realm: RealmArgs,
    #[arg(long, help = crate::config::help("tools"), value_name = "SET", value_enum)]
    pub tools: Option<ToolSet>,
    /// A path, repository address or key that stands for the default realm; may be repeated
    #[arg(long, value_name = "PATH")]
    pub project: Vec<String>,
    /// The client that starts it; each client has a token of its own in each directory
    #[arg(long, value_name = "CLIENT", default_value = "mcp")]
    pub client: String,
}

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
    /// Whom the client's token speaks as [default: a name made of the client and the directory]
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

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ApiCommand {
    /// Print a JSON schema of all methods
    #[command(long_about = help::API_SCHEMA, after_long_help = help::API_SCHEMA_AFTER)]
    Schema,
    /// Print the reference of all methods in Markdown
    #[command(long_about = help::API_MARKDOWN, after_long_help = help::API_MARKDOWN_AFTER)]
    Markdown,
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
    /// Say which server is meant, and why
    #[command(long_about = help::CONTEXT_SHOW, after_long_help = help::CONTEXT_SHOW_AFTER)]
    Show {
        /// A context [default: what commands talk to as things stand]
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
    List(DeskArgs),
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
        desk: DeskArgs,
    },
    /// Take a claim back
    #[command(long_about = help::PROJECTS_RELEASE, after_long_help = help::PROJECTS_RELEASE_AFTER)]
    Release {
        /// The path, or the address of a repository
        #[arg(value_name = "PATH", value_hint = ValueHint::DirPath)]
        path: String,
        #[command(flatten)]
        desk: DeskArgs,
    },
}

#[derive(Clone, Debug, Subcommand)]
pub enum RealmsCommand {
    /// List the realms with their agents, messages and sizes
    #[command(long_about = help::REALMS_LIST, after_long_help = help::REALMS_LIST_AFTER)]
    List(DeskArgs),
}

fn parse_realm(text: &str) -> Result<RealmName, String> {
    RealmName::new(text).map_err(|error| error.to_string())
}

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

/// The moments at which the guard looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum GuardHook {
    /// What is staged
    PreCommit,
    /// What git says on standard input is about to be pushed
    PrePush,
}

#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once
    #[command(long_about = help::TOKEN_CREATE, after_long_help = help::TOKEN_CREATE_AFTER)]
    Create(TokenCreateArgs),
    /// List tokens, without their secrets
    #[command(long_about = help::TOKEN_LIST, after_long_help = help::TOKEN_LIST_AFTER)]
    List(RealmArgs),
    /// Make a token useless from now on
    #[command(long_about = help::TOKEN_REVOKE, after_long_help = help::TOKEN_REVOKE_AFTER)]
    Revoke {
        /// The id that `token list` shows, or its beginning
        #[arg(value_name = "ID", required_unless_present = "name")]
        id: Option<String>,
        /// Every valid token of this name
        #[arg(long, value_name = "NAME", conflicts_with = "id")]
        name: Option<String>,
        /// Also if there are several of that name
        #[arg(long, requires = "name")]
        yes: bool,
        #[command(flatten)]
        realm: RealmArgs,
    },
}

#[derive(Clone, Debug, ClapArgs)]
pub struct TokenCreateArgs {
    /// What the bearer may do
    #[arg(long, value_enum)]
    pub role: TokenRole,
    /// Whom the bearer speaks as
    #[arg(long, visible_alias = "agent", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub realm: RealmArgs,
    /// Let the bearer observe messages, conversations and tasks between others that are not marked private
    #[arg(long)]
    pub observe: bool,
    /// How long the token is good for, like 12h or 30d [default: until revoked]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum TokenRole {
    /// Everything, tokens included
    Admin,
    /// A person's own mail
    User,
    /// One agent's mail
    Agent,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct RealmArgs {
    /// The realm [default: the office's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct DoctorArgs {
    /// Look at this directory of mailboxes, too [env: POSTHASTE_MAIL_DIR]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: Option<PathBuf>,
    /// Deliver the messages that a power cut left undelivered in the mail directory
    #[arg(long)]
    pub restore: bool,
    /// Go on with what is left of a realm that has lost acknowledged mail; its damaged log is kept beside it
    #[arg(long)]
    pub accept_loss: bool,
    #[command(flatten)]
    pub realm: RealmArgs,
}

impl DoctorArgs {
    /// As the settings that `Config::load` takes.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { mail_dir: self.mail_dir.clone(), ..self.realm.office() }
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub struct RestoreArgs {
    /// The backup file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The realm to bring back [default: the one in the backup]
    #[command(flatten)]
    pub realm: RealmArgs,
    /// Bring back every realm of the backup
    #[arg(long, conflicts_with_all = ["realm", "new_name"])]
    pub all: bool,
    /// The name that the realm gets [default: the name it has in the backup]
    #[arg(long = "as", value_name = "NAME")]
    pub new_name: Option<String>,
    /// Replace realms and keys that are there already
    #[arg(long)]
    pub force: bool,
    /// Leave out the backup's tokens: their bearers, administrators too, are not let in
    #[arg(long)]
    pub without_tokens: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct BackupArgs {
    /// The backup file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Every realm of the data directory
    #[arg(long, conflicts_with = "realm")]
    pub all: bool,
    /// The keys of the data directory, too (admin.token and others): the file is a secret then
    #[arg(long)]
    pub with_keys: bool,
    /// Replace what is there already, once the new backup is written and checked
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct StatusArgs {
    /// The server's address, as --url
    #[arg(long, value_name = "ADDR:PORT", hide = true, conflicts_with_all = ["url", "context"])]
    pub listen: Option<String>,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct DemoArgs {
    /// The realm to fill; made if it is not there [default: demo]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
    /// Where an office that is opened for the demo listens [default: what is configured] [env: POSTHASTE_LISTEN]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Milliseconds between two acts, once the page is full
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub pace: u64,
    /// End after so many pieces of work [default: go on until Ctrl-C]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
}

impl DemoArgs {
    /// As the settings that `Config::load` takes.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { listen: self.listen.clone(), ..OfficeArgs::default() }
    }
}

impl RealmArgs {
    /// As the settings that `Config::load` takes, for commands that need nothing but the realm.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { realm: self.realm.clone(), ..OfficeArgs::default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::AllowRemote;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn look(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{path} has no example");
            assert!(command.get_long_about().is_some(), "{path} has no description");
            command.get_subcommands().for_each(|inner| look(inner, &path));
        }
        look(&Args::command(), "");
    }

    #[test]
    fn allow_remote_takes_its_value_only_after_an_equals_sign() {
        let parse = |args: &[&str]| match Args::try_parse_from(args).map(|args| args.command) {
            Ok(Command::Serve(office)) => office.allow_remote,
            other => panic!("{other:?}"),
        };
        assert_eq!(parse(&["posthaste", "serve"]), None);
        assert_eq!(parse(&["posthaste", "serve", "--allow-remote"]), Some(AllowRemote::Tls));
        assert_eq!(parse(&["posthaste", "serve", "--allow-remote=plaintext"]), Some(AllowRemote::Plaintext));
        assert!(Args::try_parse_from(["posthaste", "serve", "--allow-remote", "plaintext"]).is_err());
    }

    #[test]
    fn the_contract_of_the_drivers_parses() {
        for line in [
            "posthaste serve --data D --listen 127.0.0.1:0",
            "posthaste serve --data D --listen 127.0.0.1:0 --no-auth --no-mail",
            "posthaste --data D serve --realm r --tls-cert c --tls-key k --allow-remote --log json",
            "posthaste serve --data D --listen 127.0.0.1:0 --swarm S",
            "posthaste token create --data D --realm R --role admin --name N",
            "posthaste token create --role agent --name N --expires 30d",
            "posthaste token revoke 17 --realm R",
            "posthaste restore f --force",
            "posthaste restore f --without-tokens",
        ] {
            let parsed = Args::try_parse_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
