//! The messaging engine behind every door: nouns, verbs, views, the database and the event feed.
//!
//! - [`nouns`]: the data. [`verbs`]: the changes that a caller can request. [`views`]: what a caller can read.
//! - [`Engine`]: the handle to one realm. Every write goes through [`Engine::submit`], every read through
//!   [`Engine::read`]; subscribers receive events with [`Engine::follow`] and deliveries with [`Engine::attach`].
//! - [`Office`]: all realms of one data directory, locked by one process.
//!
//! The engine knows no protocol. A door converts its wire format into a verb or a view and renders the result.

pub mod globs;
pub mod limits;
pub mod meter;
pub mod names;
pub mod nouns;
pub mod presence;
pub mod stamp;
pub mod store;
pub mod summary;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
pub mod verbs;
pub mod views;

mod account;
mod acl;
mod budget;
mod commit;
mod confusables;
mod disk;
mod engine;
mod error;
mod fast_path;
mod file_identity;
mod hub;
mod liveness;
mod lock;
mod log;
mod office;
mod overlaps;
mod quota;
mod relay;
mod sight;
mod similar_names;
mod usage;
mod versioned;

pub use budget::{OneRequest, Request, one_request};
pub use engine::{Engine, EngineGuard, Patterns, Pending};
pub use error::{EngineError, Fault, Refusal, RefusalClass};
pub use fast_path::Dispatch;
pub use hub::{AgentTest, Feed, Filter, MailboxStream, Overflow, Start, Step, Test};
pub use lock::{DirectoryLock, lock_holder, lock_path};
pub use log::{RECORD_VERSION, Record, RecordError};
pub use office::{Office, OfficeGuard, database_path, list_realms, realms_in};
pub use quota::CallerQuota;
pub use versioned::{VerifiedAt, Versioned};
