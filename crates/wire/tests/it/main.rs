//! Property tests of all parsers, and test vectors of other implementations.

mod airc;
mod canonical;
mod ids;
mod mail;
mod map_entries;
mod map_messages;
mod rpc;
mod signing;
mod sse;
