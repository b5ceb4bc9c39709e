//! The post office behind every door.
//!
//! - [`nouns`]: what is talked about. [`verbs`]: what a caller can ask to change. [`views`]: what a caller can read.
//! - [`Engine`]: the handle to one realm. Every write goes through [`Engine::submit`], every read through
//!   [`Engine::read`], and whoever wants to know what happens follows with [`Engine::follow`] or [`Engine::attach`].
//! - [`Office`]: many realms in one data directory, held by one process.
//!
//! The engine knows no protocol. A door turns its wire form into a verb or a view and renders what comes back.

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
mod disk;
mod engine;
mod error;
mod fast_path;
mod files;
mod hub;
mod lock;
mod log;
mod near;
mod office;
mod overlaps;
mod quota;
mod relay;
mod sight;
mod skeleton;
mod usage;
mod versioned;
mod vitals;

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
