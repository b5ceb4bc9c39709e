//! Flags of the commands for mail.

use super::RealmArgs;
use clap::Args as ClapArgs;
use clap::ValueEnum;
use clap::ValueHint;
use posthaste_host::units::parse_span;
use std::path::PathBuf;
use std::time::Duration;

/// A directory of mailboxes to work on instead of a server.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct MailDirArgs {
    /// Work on this directory of mailboxes (mail-async); no server is needed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: Option<PathBuf>,
}

/// The text of a message.
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
    /// Who gets a copy, unseen by other recipients; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub bcc: Vec<String>,
    /// The heading
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub subject: Option<String>,
    /// The kind of message; in a mail directory work_assignment, completion_report, merge_notification,
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
    /// The message it answers
    #[arg(long, value_name = "MESSAGE")]
    pub in_reply_to: Option<String>,
    /// How long it is worth delivering, like 12h
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires: Option<Duration>,
    /// Your own name for it: the same message under the same key is sent once
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
    pub realm: RealmArgs,
}

/// The priority of a message, by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Priority {
    Urgent,
    High,
    Normal,
    Low,
    Bulk,
}

impl Priority {
    /// Its number, 1 (urgent) to 5.
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

#[derive(Clone, Debug, ClapArgs)]
pub struct InboxArgs {
    /// Whose mail [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT", allow_hyphen_values = true)]
    pub agent: Option<String>,
    /// Only what has not been read
    #[arg(long)]
    pub unread: bool,
    /// Only this kind; may be repeated
    #[arg(long = "type", visible_alias = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// The most urgent first; only what has not been read
    #[arg(long)]
    pub by_priority: bool,
    /// How many; in a mail directory all unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Only those before this number: the `next` of the page before
    #[arg(long, visible_alias = "next", value_name = "NUMBER")]
    pub before: Option<i64>,
    /// Stay, and print messages as they arrive, one line each
    #[arg(long, short)]
    pub watch: bool,
    /// With --watch: end when the server stops answering, instead of waiting until it is back
    #[arg(long, requires = "watch")]
    pub no_retry: bool,
    #[command(flatten)]
    pub mail_dir: MailDirArgs,
    #[command(flatten)]
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReadArgs {
    /// The message's number or id, or the beginning of its id; with --mail-dir its file's name
    #[arg(value_name = "MESSAGE", allow_hyphen_values = true)]
    pub message: String,
    /// Whose copy [default: the name on the token] [env: POSTHASTE_AGENT]
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
    pub realm: RealmArgs,
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
    /// Whose copy [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// A word to the sender
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub response: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
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
    pub realm: RealmArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ThreadArgs {
    /// A conversation's id, or the number or id of any message in it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Whose view [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
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
    /// Whose view [default: the name on the token] [env: POSTHASTE_AGENT]
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub realm: RealmArgs,
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
    pub realm: RealmArgs,
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
    /// The mail directory; hooks and nudges lie beside it. Without one, the server that has a mail directory is asked
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub mail_dir: Option<PathBuf>,
    #[command(flatten)]
    pub realm: RealmArgs,
}
