//! What is said on the wire, without who carries it: types, parsing, and exact bytes.
//!
//! - [`canonical`]: the one spelling of a JSON value that can be signed (RFC 8785).
//! - [`signing`]: Ed25519 keys, signatures, and envelopes signed with them.
//! - [`files`]: mail as files: names, stamps, fields and exact bytes.
//! - [`ids`]: one 128-bit id, spelled as UUID, as ULID, or with a prefix.
//! - [`time`]: Unix milliseconds, RFC 3339, and durations.
//! - [`airc`]: AIRC's handles, envelopes, payloads and proofs.
//! - [`mail`]: MAIL's messages, wrappers between swarms, request bodies, tools and words.
//! - [`map`]: MAP's addresses, event names, filters, codes and event ids.
//! - [`rpc`]: JSON-RPC 2.0 frames, messages and answers.
//! - [`sse`]: server-sent events, written and read.
//!
//! Bytes go in and values come out, and back. Not here: sockets, files, a runtime, a clock, or random
//! numbers (callers bring the time and the seeds), and any rule about what mail may do.
//!
//! Input is somebody else's, so reading it never panics, and memory and depth are bounded by what the caller allows.

#![warn(missing_docs)]

pub mod airc;
pub mod canonical;
pub mod files;
pub mod ids;
pub mod mail;
pub mod map;
pub mod rpc;
pub mod signing;
pub mod sse;
pub mod time;

pub use ids::Id;
