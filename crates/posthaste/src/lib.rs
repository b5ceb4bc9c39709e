//! The program `posthaste`: command line, configuration, listener and doors around the engine.

pub mod http;
pub mod observe;
pub mod signals;
