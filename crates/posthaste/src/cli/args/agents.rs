//! Flags of the commands for agents, conversations, reservations and contacts.

use super::super::exit::Exit;
use super::super::exit::Failure;
use super::super::help;
use super::super::output::printable;
use super::RealmArgs;
use clap::Args as ClapArgs;
use clap::Subcommand;
use posthaste_host::units::parse_span;
use std::time::Duration;

#[derive(Clone, Debug, ClapArgs)]
pub struct ListArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on where the page before ended: its `next`
    #[arg(long, value_name = "NEXT")]
    pub next: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
}

impl ListArgs {
    /// The place to go on from, in lists that are ordered by number.
    pub fn next_number(&self) -> Result<Option<i64>, Failure> {
        let number = |text: &String| {
            text.parse().map_err(|_| Failure::new(Exit::Usage, format!("--next {text}: not a number")))
        };
        self.next.as_ref().map(number).transpose()
    }

    /// Says on standard error how to see the next page, if there is one.
    pub fn say_more(&self, next: Option<&impl ToString>) {
        if let Some(next) = next {
            eprintln!("There is more: --next {}", printable(&next.to_string()));
        }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum AgentCommand {
    /// Show an agent's entry, whether it is connected, and how much mail waits for it
    #[command(long_about = help::AGENT_SHOW, after_long_help = help::AGENT_SHOW_AFTER)]
    Show {
        /// The agent's id
        name: String,
        #[command(flatten)]
        realm: RealmArgs,
    },
    /// Take an agent out of the address book
    #[command(long_about = help::AGENT_REMOVE, after_long_help = help::AGENT_REMOVE_AFTER)]
    Remove {
        /// The agent's id
        name: String,
        /// Remove it even if it is connected
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        realm: RealmArgs,
    },
}

#[derive(Clone, Debug, ClapArgs)]
pub struct RegisterArgs {
    /// The id to enter [default: the name on the token]
    pub name: Option<String>,
    /// The role by which it can be addressed, as in `--to role:reviewer`
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// A name to show beside the id
    #[arg(long, value_name = "TEXT")]
    pub display_name: Option<String>,
    /// Whether it is a program or a person
    #[arg(long, value_name = "KIND", value_parser = ["agent", "user"])]
    pub kind: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ConversationsArgs {
    /// Whose view [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only those that are open
    #[arg(long)]
    pub active: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReserveArgs {
    /// Path patterns, relative to the scope
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<String>,
    /// Who reserves [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Where the paths live; `project` is the project of this directory, or the realm's own
    #[arg(long, value_name = "SCOPE", default_value = "project")]
    pub scope: String,
    /// Share the paths with others who share them
    #[arg(long)]
    pub shared: bool,
    /// How long, like 30m or 2h
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = parse_span)]
    pub ttl: Duration,
    /// What for
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReleaseArgs {
    /// The reservations' numbers; without any, all of the agent's in the scope
    #[arg(value_name = "ID")]
    pub ids: Vec<i64>,
    /// Whose [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Where the paths live
    #[arg(long, value_name = "SCOPE", default_value = "project")]
    pub scope: String,
    #[command(flatten)]
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReservationsArgs {
    /// Only in this scope
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Only this agent's
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Those that ended as well
    #[arg(long)]
    pub ended: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = false)]
pub struct ContactsArgs {
    #[command(subcommand)]
    pub command: Option<ContactCommand>,
    /// Whose contacts [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT", global = true)]
    pub agent: Option<String>,
    /// The realm [default: the server's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME", global = true)]
    pub realm: Option<String>,
}

impl ContactsArgs {
    /// Which realm is meant. The flag may stand before and after the inner command.
    pub fn realm_args(&self) -> RealmArgs {
        RealmArgs { realm: self.realm.clone() }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ContactCommand {
    /// Ask an agent to accept your messages
    #[command(long_about = help::CONTACTS_ASK, after_long_help = help::CONTACTS_ASK_AFTER)]
    Ask {
        /// Whom
        #[arg(value_name = "AGENT")]
        other: String,
        /// What for
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Accept an agent's messages from now on
    #[command(long_about = help::CONTACTS_ACCEPT, after_long_help = help::CONTACTS_ACCEPT_AFTER)]
    Accept {
        /// Whose
        #[arg(value_name = "AGENT")]
        other: String,
    },
    /// Accept no more messages from an agent
    #[command(long_about = help::CONTACTS_BLOCK, after_long_help = help::CONTACTS_BLOCK_AFTER)]
    Block {
        /// Whose
        #[arg(value_name = "AGENT")]
        other: String,
    },
    /// Forget that there was a contact
    #[command(long_about = help::CONTACTS_END, after_long_help = help::CONTACTS_END_AFTER)]
    End {
        /// With whom
        #[arg(value_name = "AGENT")]
        other: String,
    },
}
