//! The files door (mail-async): a directory of mailboxes that anybody can write to. Without an office the commands work
//! on the directory alone; with one, the bridge joins it with the realm, both ways.

mod archive;
mod bridge;
mod directory;
mod errors;
mod look;
mod mark;
mod orphans;
mod post;
mod signals;

pub use bridge::{Bridge, BridgeError, BridgeOptions};
pub use directory::{MailDir, Mailbox};
pub use errors::FilesError;
pub use look::{Entry, Inbox, Odd};
pub use mark::Marked;
pub use orphans::Orphan;
pub use post::{Draft, LARGEST, Placed};
pub use signals::{StateDir, nudge_now};
