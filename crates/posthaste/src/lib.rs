//! The program `posthaste`: command line, configuration, listener and doors around the engine.
//!
//! `main.rs` is one call into [`cli`]; everything lives here so that the tests can link it.

pub mod cli;
pub mod config;
pub mod http;
pub mod observe;
pub mod signals;
