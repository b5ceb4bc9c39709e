//! The command line as typed. `config` combines it with the environment and the file.

mod agents;
mod clients;
mod guard;
mod mail;
mod server;
mod tokens;

pub use self::agents::*;
pub use self::clients::*;
pub use self::guard::*;
pub use self::mail::*;
pub use self::server::*;
pub use self::tokens::*;
use super::airc::args::AircArgs;
use super::help;
use super::output::ColorWhen;
pub use crate::config::OfficeArgs;
use clap::Args as ClapArgs;
use clap::Parser;
use clap::Subcommand;
use clap::ValueHint;
use clap_complete::Shell;
use std::path::PathBuf;

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
    /// Print answers and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour; NO_COLOR in the environment turns `auto` into `never`
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: ColorWhen,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run the server
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
    /// Show and change which realm the sessions of a directory share
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
    /// Warn of commits that touch paths another agent holds
    #[command(long_about = help::GUARD, after_long_help = help::GUARD_AFTER, subcommand_required = true)]
    Guard {
        #[command(subcommand)]
        command: GuardCommand,
    },
    /// An AIRC client: signed mail, consent, file reservations
    #[command(long_about = help::AIRC, after_long_help = help::AIRC_AFTER, subcommand_required = true)]
    Airc(AircArgs),
    /// Keep servers by name, and show which one commands use
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
    /// Show the health and the figures of the running server
    #[command(long_about = help::STATUS, after_long_help = help::STATUS_AFTER)]
    Status(StatusArgs),
    /// Show a small fleet at work on the page
    #[command(long_about = help::DEMO, after_long_help = help::DEMO_AFTER)]
    Demo(DemoArgs),
    /// Send a message
    #[command(long_about = help::SEND, after_long_help = help::SEND_AFTER)]
    Send(SendArgs),
    /// List an agent's mail
    #[command(long_about = help::INBOX, after_long_help = help::INBOX_AFTER)]
    Inbox(InboxArgs),
    /// Show a message and mark it as read
    #[command(long_about = help::READ, after_long_help = help::READ_AFTER)]
    Read(ReadArgs),
    /// Acknowledge a message
    #[command(long_about = help::ACK, after_long_help = help::ACK_AFTER)]
    Ack(AckArgs),
    /// Answer a message
    #[command(long_about = help::REPLY, after_long_help = help::REPLY_AFTER)]
    Reply(ReplyArgs),
    /// Show a conversation
    #[command(long_about = help::THREAD, after_long_help = help::THREAD_AFTER)]
    Thread(ThreadArgs),
    /// Find messages and turns
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
    /// Show the name and role that the server knows you by
    #[command(long_about = help::WHOAMI, after_long_help = help::WHOAMI_AFTER)]
    Whoami(RealmArgs),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::AllowRemote;

    #[test]
    fn the_definition_is_valid() {
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
            Ok(Command::Serve(flags)) => flags.allow_remote,
            other => panic!("{other:?}"),
        };
        assert_eq!(parse(&["posthaste", "serve"]), None);
        assert_eq!(parse(&["posthaste", "serve", "--allow-remote"]), Some(AllowRemote::Tls));
        assert_eq!(parse(&["posthaste", "serve", "--allow-remote=plaintext"]), Some(AllowRemote::Plaintext));
        assert!(Args::try_parse_from(["posthaste", "serve", "--allow-remote", "plaintext"]).is_err());
    }

    #[test]
    fn documented_command_lines_parse() {
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
