//! MAP, the Multi-Agent Protocol: params, results and notifications, addresses, event names, filters, modes, error codes and
//! event ids.
//!
//! Two versions of the protocol are in use: the draft (`map/initialize`, dotted event names, `{type, id}` addresses) and
//! the SDK's (`map/connect`, event names with underscores, `{agent}` addresses). All parsers here accept both.

mod address;
pub mod agent;
pub mod capabilities;
pub mod codes;
pub mod connect;
pub mod conversation;
pub mod error;
pub mod event;
mod event_data;
mod event_id;
pub mod federation;
mod filter;
mod glob;
pub mod lenient;
pub mod message;
mod mode;
mod names;
pub mod permissions;
pub mod scope;
pub mod session;
pub mod subscription;
pub mod task;
pub mod turn;

pub use address::{Address, AddressError, Class};
pub use capabilities::{Capabilities, Switch};
pub use event_id::{EventId, log_tag};
pub use filter::{FilterError, MailFilter, Spec, stream_pattern};
pub use glob::Glob;
pub use mode::{Mode, detect_mode};
pub use names::{EventName, NameSet, Pattern};
