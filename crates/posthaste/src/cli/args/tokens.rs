//! Flags of `posthaste token`, and reading a token from a file.

use super::super::exit::Exit;
use super::super::exit::Failure;
use super::super::help;
use super::RealmArgs;
use clap::Args as ClapArgs;
use clap::Subcommand;
use clap::ValueEnum;
use posthaste_host::units::parse_span;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it, once
    #[command(long_about = help::TOKEN_CREATE, after_long_help = help::TOKEN_CREATE_AFTER)]
    Create(TokenCreateArgs),
    /// List tokens, without their secrets
    #[command(long_about = help::TOKEN_LIST, after_long_help = help::TOKEN_LIST_AFTER)]
    List(RealmArgs),
    /// Revoke a token
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
    /// The name that the bearer acts under
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

/// The token in a file, which is one line; `-` is standard input.
pub fn read_token(file: &Path) -> Result<String, Failure> {
    // Links are followed: secrets are often mounted as such, and the user named the file.
    let text = match file == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin().lock()),
        false => std::fs::read_to_string(file),
    };
    let text = text.map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", file.display())))?;
    match text.trim() {
        "" => {
            Err(Failure::new(Exit::Usage, format!("{} is empty; a token is expected in it", file.display())))
        }
        token => Ok(token.to_owned()),
    }
}
