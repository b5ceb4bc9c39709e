//! Mail as files: what a mailbox's file is called, what stands in it, and its exact bytes.
//!
//! - [`id`]: names of agents that are safe as one part of a path.
//! - [`stamp`]: moments to the nanosecond, as they stand in names and in the field `timestamp`.
//! - [`name`]: `{timestamp}-{from}.json`, read in every spelling there is, written in one.
//! - [`message`]: the eight fields, read in three dialects, written in one.
//! - [`text`]: sorted keys, two spaces, a final newline.
//! - [`flag`]: where `read` stands in a file's text, and the text with only that changed.
//! - [`signals`]: the neighbours of mail: hooks and nudges.

pub mod flag;
pub mod id;
pub mod message;
pub mod name;
pub mod signals;
pub mod stamp;
pub mod text;

pub use id::{BadAgent, check_agent};
pub use message::{FileMessage, Kind, NotAMessage, Urgency};
pub use name::FileName;
pub use stamp::Stamp;
