//! Wire formats of every protocol: types, parsers and serializers, independent of transport.
//!
//! - [`canonical`]: canonical JSON (RFC 8785), the input of signatures.
//! - [`control`]: posthaste's own methods, `x-posthaste/…`.
//! - [`signing`]: Ed25519 keys, signatures and signed envelopes.
//! - [`files`]: file-based mail: file names, timestamps, fields and exact bytes.
//! - [`ids`]: 128-bit ids, formatted as UUID, ULID or prefixed ULID.
//! - [`time`]: Unix milliseconds, RFC 3339 and durations.
//! - [`airc`]: AIRC handles, envelopes, payloads and proofs.
//! - [`mail`]: MAIL messages, interswarm messages, request bodies, tools and reserved names.
//! - [`model`]: chat completions of language models.
//! - [`map`]: MAP addresses, event names, filters, error codes and event ids.
//! - [`mcp`]: MCP requests, results, notifications and headers, and what the mail tools answer.
//! - [`rpc`]: JSON-RPC 2.0 frames, messages and responses.
//! - [`sse`]: server-sent events, writer and parser.
//!
//! This crate does no I/O and reads no clock and no random numbers (callers pass times and seeds). It checks form
//! only; rules about what a message may do belong to the engine.
//!
//! Input is untrusted: parsers never panic, and memory and nesting depth are bounded by limits that the caller sets.

#![warn(missing_docs)]

pub mod airc;
pub mod canonical;
pub mod control;
pub mod files;
pub mod ids;
pub mod mail;
pub mod map;
pub mod mcp;
pub mod model;
pub mod rpc;
pub mod signing;
pub mod sse;
pub mod time;

pub use ids::Id;
