//! posthaste's own methods, `x-posthaste/…`: names that every JSON-RPC door shares.

/// What every method's name starts with.
pub const PREFIX: &str = "x-posthaste/";
