//! The program `posthaste`: command line, configuration, listener and doors around the engine.
//!
//! `main.rs` is one call into [`cli`]; everything lives here so that the tests can link it.

mod attachments;
mod backup;
pub mod caller;
pub mod cli;
pub mod config;
pub mod doors;
mod guard;
pub mod http;
pub mod jwt;
pub mod keys;
pub mod observe;
mod projects;
pub mod runtime;
mod safe_open;
pub mod serve;
pub mod shared;
pub mod signals;
mod warden;
