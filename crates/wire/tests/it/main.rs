//! Property tests of all parsers, and test vectors of other implementations.

mod airc;
mod canonical;
mod ids;
mod mail;
mod mcp;
mod rpc;
mod signing;
mod sse;
