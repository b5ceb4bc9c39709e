//! posthaste's own methods, `x-posthaste/…`: names, paths, and the params and results of every method, for the door that
//! answers them and for clients.
//!
//! Params refuse unknown members. A member of a result that has no value is `null`, unless its type says that it is left
//! out.

mod agents;
mod attachments;
mod contacts;
mod conversations;
mod events;
mod export;
mod messages;
mod projects;
mod refusals;
mod reservations;
mod search;
mod signals;
mod status;
mod tokens;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

pub use agents::*;
pub use attachments::*;
pub use contacts::*;
pub use conversations::*;
pub use events::*;
pub use export::*;
pub use messages::*;
pub use projects::*;
pub use refusals::*;
pub use reservations::*;
pub use search::*;
pub use signals::*;
pub use status::*;
pub use tokens::*;

/// What every method's name starts with.
pub const PREFIX: &str = "x-posthaste/";
/// Where the methods are called.
pub const PATH: &str = "/x-posthaste/rpc";
/// Exports a realm as lines of JSON.
pub const EXPORT_PATH: &str = "/x-posthaste/export";
/// The server's own figures.
pub const STATUS_PATH: &str = "/x-posthaste/status";
/// Hands out a backup of one realm, or of all.
pub const BACKUP_PATH: &str = "/x-posthaste/backup";

/// The seq of an event, a message or a turn: its position in the realm's event log, counted from 1.
pub type Seq = i64;
/// Unix time in milliseconds, as params give times.
pub type Millis = i64;
/// A time in UTC as results give it: RFC 3339 with milliseconds.
pub type Timestamp = String;

/// Rows of one page; 50 if not given. The server has a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct PageSize(pub usize);

impl Default for PageSize {
    fn default() -> Self {
        Self(50)
    }
}

/// Params of a method that takes none: what is given is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NoParams {}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}

/// Whether a flag has its default, which need not be sent.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
