//! Flags of the commands for the server and its data directory.

use super::super::help;
use crate::config::OfficeArgs;
use crate::config::ToolSet;
use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueHint;
use std::path::PathBuf;

/// The realm that a command works in. The global flags choose the server.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Which server")]
pub struct RealmArgs {
    /// The realm [default: the server's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
}

impl RealmArgs {
    /// As the settings that `Config::load` takes, for commands that need nothing but the realm.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { realm: self.realm.clone(), ..OfficeArgs::default() }
    }
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
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ExportArgs {
    /// The file to write; `-` is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace what is there already
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ImportArgs {
    /// The file to read; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The realm to make [default: the server's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
    /// Replace what is there already
    #[arg(long)]
    pub force: bool,
    /// Leave out the file's tokens: their bearers, administrators too, are not let in
    #[arg(long)]
    pub without_tokens: bool,
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
    /// Where a server that is started for the demo listens [default: what is configured] [env: POSTHASTE_LISTEN]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Milliseconds between two acts, once the page is full
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub pace: u64,
    /// End after this many pieces of work [default: go on until Ctrl-C]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
}

impl DemoArgs {
    /// As the settings that `Config::load` takes.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { listen: self.listen.clone(), ..OfficeArgs::default() }
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
