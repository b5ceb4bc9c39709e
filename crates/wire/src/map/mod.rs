//! MAP, the Multi-Agent Protocol, without sockets: addresses, event names, filters, modes, codes and event ids.
//!
//! The protocol has two vocabularies that are both in use: the draft (`map/initialize`, dotted events, `{type, id}`
//! addresses) and the SDK's (`map/connect`, underscore events, `{agent}` addresses). Everything here reads both.

mod address;
pub mod codes;
mod event_id;
mod filter;
mod glob;
mod mode;
mod names;

pub use address::{Address, AddressError, Class};
pub use event_id::{EventId, history_tag};
pub use filter::{FilterError, MailFilter, Spec, stream_pattern};
pub use glob::Glob;
pub use mode::{Mode, detect_mode};
pub use names::{EventName, NameSet, Pattern};
