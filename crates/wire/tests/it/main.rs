//! Property tests of all parsers, and test vectors of other implementations.

mod airc;
mod canonical;
mod control;
mod ids;
mod mail;
mod rpc;
mod signing;
mod sse;
