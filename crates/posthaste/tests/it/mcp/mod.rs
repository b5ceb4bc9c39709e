//! The MCP door from outside, through the real program.

pub(crate) mod client;
mod compat;
mod guard;
mod load;
mod rights;
mod sessions;
mod streams;
