//! File-based mail: names, contents and exact bytes of the files in a mailbox directory.
//!
//! - [`agent_name`]: agent names that are safe as one path component.
//! - [`stamp`]: nanosecond timestamps, as used in file names and in the field `timestamp`.
//! - [`name`]: file names, `{timestamp}-{from}.json`.
//! - [`message`]: the eight fields of a message; three variants are parsed, one is written.
//! - [`text`]: pretty-printed JSON with sorted keys.
//! - [`flag`]: sets `read` in a file's text without changing any other byte.
//! - [`signals`]: hooks and nudges, kept next to the mail directory.

pub mod agent_name;
pub mod flag;
pub mod message;
pub mod name;
pub mod signals;
pub mod stamp;
pub mod text;

pub use agent_name::{InvalidAgentName, check_agent};
pub use message::{FileMessage, Kind, NotAMessage, Urgency};
pub use name::FileName;
pub use stamp::Stamp;
