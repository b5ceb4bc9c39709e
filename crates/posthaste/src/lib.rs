//! The program `posthaste`: command line, configuration, and the server with every door mounted.
//!
//! `main.rs` is one call into [`cli`]; everything lives here so that the tests can link it.

pub mod cli;
pub mod config;
pub mod doors;
mod guard;
pub mod logs;
pub mod serve;
