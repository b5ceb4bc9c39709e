//! The program `posthaste`: command line, configuration, listener and doors around the engine.
//!
//! `main.rs` is one call into [`cli`]; everything lives here so that the tests can link it.

pub mod caller;
pub mod cli;
pub mod config;
pub mod doors;
pub mod http;
pub mod jwt;
pub mod keys;
pub mod observe;
pub mod runtime;
pub mod serve;
pub mod shared;
pub mod signals;
