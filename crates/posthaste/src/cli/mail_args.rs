//! The flags of the commands for people's and scripts' own mail.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, ValueHint};

use super::args::OfficeArgs;
use super::exit::{Exit, Failure};
use super::help;
use posthaste_host::units::parse_span;

/// Which realm is meant. Which server is the global flags' matter.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Which server")]
pub struct DeskArgs {
    /// The realm [default: the server's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
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

impl DeskArgs {
    /// As the settings that `Config::load` takes.
    pub fn office(&self) -> OfficeArgs {
        OfficeArgs { realm: self.realm.clone(), ..OfficeArgs::default() }
    }
}

/// A directory of mailboxes to work on instead of an office.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct MailDirArgs {
    /// Work on this directory of mailboxes (mail-async); no office is needed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: Option<PathBuf>,
}

/// What a letter says, and where that comes from.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct BodyArgs {
    /// What to say [default: standard input, or $EDITOR at a terminal]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "body_file")]
    pub body: Option<String>,
    /// Read what to say from this file; `-` is standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub body_file: Option<PathBuf>,
    /// Send it even if there is nothing in it
    #[arg(long)]
    pub allow_empty: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct SendArgs {
    /// Who sends [default: the token's own name] [env: POSTHASTE_AGENT]
    #[arg(long, visible_alias = "agent", alias = "as", value_name = "AGENT", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// For whom: `ann`, `ann@realm`, `role:reviewer`, `scope:team`, `all`, `operator` (the person
    /// who runs the server), …; may be repeated
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    pub to: Vec<String>,
    /// Who gets a copy; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub cc: Vec<String>,
    /// Who gets a copy that nobody else sees; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub bcc: Vec<String>,
    /// The heading
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub subject: Option<String>,
    /// What kind of letter; in a mail directory work_assignment, completion_report, merge_notification,
    /// health_escalation or coordination [default there: coordination]
    #[arg(long = "type", visible_alias = "kind", value_name = "KIND", allow_hyphen_values = true)]
    pub kind: Option<String>,
    /// urgent, high, normal, low or bulk; in a mail directory urgent, normal or low [default: normal]
    #[arg(long, value_name = "PRIORITY", allow_hyphen_values = true)]
    pub priority: Option<String>,
    #[command(flatten)]
    pub body: BodyArgs,
    /// A file that goes with it; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,
    /// Ask each recipient to acknowledge it
    #[arg(long)]
    pub ack: bool,
    /// The conversation it belongs to; opened if need be
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// The letter it answers
    #[arg(long, value_name = "MESSAGE")]
    pub in_reply_to: Option<String>,
    /// How long it is worth delivering, like 12h
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires: Option<Duration>,
    /// Your own name for it: the same letter under the same key is sent once
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// With --mail-dir: when it was written, if not now; decimals that are left out are filled in
    #[arg(long, value_name = "TIME", requires = "mail_dir")]
    pub timestamp: Option<String>,
    /// With --mail-dir: read messages as JSON lines from standard input, print one line for each that is durable
    #[arg(long, requires = "mail_dir", conflicts_with_all = ["from", "to", "subject", "body", "body_file"])]
    pub batch: bool,
    #[command(flatten)]
    pub mail_dir: MailDirArgs,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct InboxArgs {
    /// Whose mail [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT", allow_hyphen_values = true)]
    pub agent: Option<String>,
    /// Only what has not been read
    #[arg(long)]
    pub unread: bool,
    /// Only this kind; may be repeated
    #[arg(long = "type", visible_alias = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// The most pressing first; only what has not been read
    #[arg(long)]
    pub by_priority: bool,
    /// How many; in a mail directory all unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Only those before this number: the `next` of the page before
    #[arg(long, visible_alias = "next", value_name = "NUMBER")]
    pub before: Option<i64>,
    /// Stay, and print letters as they come, one line each
    #[arg(long, short)]
    pub watch: bool,
    /// With --watch: end when the server stops answering, instead of waiting until it is back
    #[arg(long, requires = "watch")]
    pub no_retry: bool,
    #[command(flatten)]
    pub mail_dir: MailDirArgs,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReadArgs {
    /// The message's number or id, or the beginning of its id; with --mail-dir its file's name
    #[arg(value_name = "MESSAGE", allow_hyphen_values = true)]
    pub message: String,
    /// Whose copy [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT", allow_hyphen_values = true)]
    pub agent: Option<String>,
    /// Show it without marking it as read
    #[arg(long)]
    pub peek: bool,
    /// Save its attachments in this directory, under names that are not taken there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "mail_dir")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub mail_dir: MailDirArgs,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ArchiveArgs {
    /// The directory of mailboxes
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: PathBuf,
    /// Whose mailbox [default: every one]
    #[arg(long, value_name = "AGENT", allow_hyphen_values = true)]
    pub agent: Option<String>,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct AckArgs {
    /// The message's number or id, or the beginning of its id
    #[arg(value_name = "MESSAGE")]
    pub message: String,
    /// Whose copy [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// A word to the sender
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub response: Option<String>,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReplyArgs {
    /// The number or id of the message to answer, or the beginning of its id
    #[arg(value_name = "MESSAGE")]
    pub message: String,
    /// Who answers [default: the token's own name] [env: POSTHASTE_AGENT]
    #[arg(long, visible_alias = "agent", alias = "as", value_name = "AGENT")]
    pub from: Option<String>,
    /// Answer everyone the message went to, not only its sender
    #[arg(long)]
    pub all: bool,
    /// Another heading than `Re: …`
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub subject: Option<String>,
    /// A file that goes with it; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub attach: Vec<PathBuf>,
    #[command(flatten)]
    pub body: BodyArgs,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadArgs {
    /// A conversation's id, or the number or id of any message in it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Whose view [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct SearchArgs {
    /// Words, "phrases", prefix*, AND, OR, NOT, -word, subject:word, from:agent
    #[arg(value_name = "QUERY", required = true)]
    pub query: Vec<String>,
    /// Only from this agent
    #[arg(long, value_name = "AGENT")]
    pub from: Option<String>,
    /// Only in this conversation
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// The latest first instead of the best match
    #[arg(long)]
    pub newest: bool,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Only those before this number: the `next` of the page before, with --newest
    #[arg(long, value_name = "NUMBER")]
    pub next: Option<i64>,
    /// Whose view [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct TailArgs {
    /// Only events of this kind, like message.sent or agent.*; may be repeated
    #[arg(long = "type", visible_alias = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Only events that this agent caused or that are about it; may be repeated
    #[arg(long, value_name = "AGENT")]
    pub agent: Vec<String>,
    /// Only events of this conversation
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Begin after this event; 0 is the beginning of the log [default: with what happens next]
    #[arg(long, value_name = "SEQ")]
    pub after: Option<i64>,
    /// Show the last N events that match first
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "after")]
    pub last: Option<u32>,
    /// Stop at the end of the log instead of waiting for more
    #[arg(long)]
    pub no_follow: bool,
    /// End when the server stops answering, instead of waiting until it is back
    #[arg(long)]
    pub no_retry: bool,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ListArgs {
    /// How many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on where the page before ended: its `next`
    #[arg(long, value_name = "NEXT")]
    pub next: Option<String>,
    #[command(flatten)]
    pub desk: DeskArgs,
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
    pub fn say_more(&self, answer: &serde_json::Value) {
        if !answer["next"].is_null() {
            let next = super::output::text_of(&answer["next"]);
            eprintln!("There is more: --next {}", super::output::printable(&next));
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
        desk: DeskArgs,
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
        desk: DeskArgs,
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
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ConversationsArgs {
    /// Whose view [default: whoever the token is for] [env: POSTHASTE_AGENT]
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
    /// Who reserves [default: whoever the token is for] [env: POSTHASTE_AGENT]
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
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReleaseArgs {
    /// The reservations' numbers; without any, all of the agent's in the scope
    #[arg(value_name = "ID")]
    pub ids: Vec<i64>,
    /// Whose [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Where the paths live
    #[arg(long, value_name = "SCOPE", default_value = "project")]
    pub scope: String,
    #[command(flatten)]
    pub desk: DeskArgs,
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
    /// Whose contacts [default: whoever the token is for] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT", global = true)]
    pub agent: Option<String>,
    /// The realm [default: the server's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME", global = true)]
    pub realm: Option<String>,
}

impl ContactsArgs {
    /// Which realm is meant. The flag may stand before and after the inner command.
    pub fn desk(&self) -> DeskArgs {
        DeskArgs { realm: self.realm.clone() }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ContactCommand {
    /// Ask somebody to take your letters
    #[command(long_about = help::CONTACTS_ASK, after_long_help = help::CONTACTS_ASK_AFTER)]
    Ask {
        /// Whom
        #[arg(value_name = "AGENT")]
        other: String,
        /// What for
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Take somebody's letters from now on
    #[command(long_about = help::CONTACTS_ACCEPT, after_long_help = help::CONTACTS_ACCEPT_AFTER)]
    Accept {
        /// Whose
        #[arg(value_name = "AGENT")]
        other: String,
    },
    /// Take no more letters from somebody
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

#[derive(Clone, Debug, ClapArgs)]
pub struct ExportArgs {
    /// The file to write; `-` is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Replace what is there already
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub desk: DeskArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ImportArgs {
    /// The file to read; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The realm to make [default: the office's default realm] [env: POSTHASTE_REALM]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
    /// Replace what is there already
    #[arg(long)]
    pub force: bool,
    /// Leave out the file's tokens: their bearers, administrators too, are not let in
    #[arg(long)]
    pub without_tokens: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct NudgeArgs {
    /// Who nudges
    #[arg(long, visible_alias = "agent", alias = "as", value_name = "AGENT", allow_hyphen_values = true)]
    pub from: String,
    /// Whom
    #[arg(long, value_name = "AGENT", allow_hyphen_values = true)]
    pub to: String,
    /// What kind of signal
    #[arg(long = "type", value_name = "KIND", default_value = "health_check")]
    pub kind: String,
    /// What it says
    #[arg(long, short, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub message: String,
    /// Ask for an answer
    #[arg(long)]
    pub requires_response: bool,
    #[command(flatten)]
    pub place: SignalArgs,
}

#[derive(Clone, Debug, Default, ClapArgs)]
pub struct SignalArgs {
    /// The mail directory; hooks and nudges lie beside it. Without one, the office that has a mail directory is asked
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: Option<PathBuf>,
    #[command(flatten)]
    pub desk: DeskArgs,
}

/// How pressing a letter is, as people say it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Pressing {
    Urgent,
    High,
    Normal,
    Low,
    Bulk,
}

impl Pressing {
    /// The engine's tier.
    pub fn tier(self) -> u8 {
        match self {
            Self::Urgent => 1,
            Self::High => 2,
            Self::Normal => 3,
            Self::Low => 4,
            Self::Bulk => 5,
        }
    }
}
