//! Arguments of `posthaste airc …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, ValueHint};

use super::super::help;
use posthaste_host::units::parse_span;

/// Which registry, and as whom.
#[derive(Clone, Debug, ClapArgs)]
pub struct AircArgs {
    /// The registry, as --url [default: the one that the identity is registered at, else the server of the data
    /// directory] [env: POSTHASTE_REGISTRY]
    #[arg(long, value_name = "URL", global = true, conflicts_with_all = ["url", "context"])]
    pub registry: Option<String>,
    /// The identity to act as [default: the only one in the data directory]
    #[arg(long = "as", visible_alias = "agent", value_name = "HANDLE", global = true)]
    pub identity: Option<String>,
    #[command(subcommand)]
    pub command: AircCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub enum AircCommand {
    /// Make a key and register a handle with it
    #[command(long_about = help::AIRC_REGISTER, after_long_help = help::AIRC_REGISTER_AFTER)]
    Register(RegisterArgs),
    /// Send a signed message
    #[command(long_about = help::AIRC_SEND, after_long_help = help::AIRC_SEND_AFTER)]
    Send(SendArgs),
    /// Read the inbox, and acknowledge
    #[command(long_about = help::AIRC_INBOX, after_long_help = help::AIRC_INBOX_AFTER)]
    Inbox(InboxArgs),
    /// Ask for consent, give it or refuse it
    #[command(long_about = help::AIRC_CONSENT, after_long_help = help::AIRC_CONSENT_AFTER)]
    Consent(ConsentArgs),
    /// Tell others which files you are about to edit
    #[command(long_about = help::AIRC_RESERVE, after_long_help = help::AIRC_RESERVE_AFTER)]
    Reserve(ReserveArgs),
    /// Give reservations back
    #[command(long_about = help::AIRC_RELEASE, after_long_help = help::AIRC_RELEASE_AFTER)]
    Release(ReleaseArgs),
    /// Check the signature of a message
    #[command(long_about = help::AIRC_VERIFY, after_long_help = help::AIRC_VERIFY_AFTER)]
    Verify(VerifyArgs),
}

#[derive(Clone, Debug, ClapArgs)]
pub struct RegisterArgs {
    /// 3 to 32 of a-z, 0-9 and _
    pub handle: String,
    /// What people call it
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How widely it shows itself and may broadcast
    #[arg(long, value_name = "TIER", value_enum)]
    pub privacy: Option<Tier>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Tier {
    Public,
    Contacts,
    Invisible,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct SendArgs {
    /// A handle, @contacts or @public
    pub to: String,
    /// What to say; read from standard input if absent
    pub text: Option<String>,
    /// Send mailbox mail with this heading
    #[arg(long, value_name = "TEXT")]
    pub subject: Option<String>,
    /// The thread it belongs to
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Ask for an acknowledgement; makes it mailbox mail
    #[arg(long)]
    pub ack: bool,
    /// How pressing mailbox mail is
    #[arg(long, value_name = "HOW", default_value = "normal")]
    #[arg(value_parser = ["low", "normal", "high", "urgent"])]
    pub priority: String,
    /// When mailbox mail is to be hidden, like 12h
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires: Option<Duration>,
    /// Send this JSON object as the payload instead
    #[arg(long, value_name = "JSON", conflicts_with_all = ["subject", "ack", "expires"])]
    pub payload: Option<String>,
    /// Say yes to telling everyone, where `to` is @public
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct InboxArgs {
    /// Only payloads of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only what came after this time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Acknowledge what asks for it, with this answer if one is given
    #[arg(long, value_name = "ANSWER", num_args = 0..=1, default_missing_value = "")]
    pub ack: Option<String>,
    /// Go on where the page before ended: its `next`
    #[arg(long, value_name = "NEXT")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ConsentArgs {
    /// What to do
    #[arg(value_enum)]
    pub action: ConsentAction,
    /// With whom; not for `list`
    pub handle: Option<String>,
    /// What to say when asking
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ConsentAction {
    /// Show who asks
    List,
    Request,
    Accept,
    Block,
    Unblock,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReserveArgs {
    /// Paths or patterns, relative to the scope; without any, what is reserved by whom is shown
    pub paths: Vec<String>,
    /// repo:REMOTE, project:KEY or local [default: this work tree's remote]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// For how long
    #[arg(long, value_name = "SPAN", default_value = "1h", value_parser = parse_span)]
    pub ttl: Duration,
    /// What for
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The thread it belongs to
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Others may edit too
    #[arg(long)]
    pub shared: bool,
    /// Whom to tell
    #[arg(long, value_name = "TARGET", default_value = "@contacts")]
    pub to: String,
    /// Say yes to telling everyone, where `to` is @public
    #[arg(long)]
    pub yes: bool,
    /// Prolong this reservation instead of taking another
    #[arg(long, value_name = "ID", conflicts_with_all = ["reason", "shared"])]
    pub renew: Option<String>,
    /// Only say what would overlap; exits with 6 if something does
    #[arg(long)]
    pub check: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct ReleaseArgs {
    /// Which reservations; all of yours if absent
    pub ids: Vec<String>,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct VerifyArgs {
    /// A file with one message, or a list of them; standard input if absent
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The sender's key; asked from the registry if absent
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}
