//! Property tests of all parsers, and test vectors of other implementations.

mod airc;
mod airc_answers;
mod canonical;
mod control;
mod ids;
mod mail;
mod mail_bytes;
mod map_entries;
mod map_messages;
mod mcp;
mod rpc;
mod signing;
mod sse;
