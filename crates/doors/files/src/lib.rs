//! The files door (mail-async): a directory of mailboxes that any program can write to. Without a server the commands work
//! on the directory alone; with one, the bridge keeps the directory and a realm in step, both ways.

mod archive;
mod bridge;
mod directory;
mod errors;
mod mark_read;
mod orphans;
mod reader;
mod signals;
mod writer;

pub use bridge::{Bridge, BridgeError, BridgeOptions};
pub use directory::{MailDir, Mailbox};
pub use errors::FilesError;
pub use mark_read::MarkOutcome;
pub use orphans::Orphan;
pub use reader::{Entry, Inbox, SkipReason};
pub use signals::{StateDir, nudge_now};
pub use writer::{Draft, MAX_MESSAGE_BYTES, SentFile};
