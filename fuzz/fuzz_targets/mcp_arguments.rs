//! See `properties::server::mcp_arguments`.
#![no_main]

#[path = "../properties/server.rs"]
#[allow(dead_code)]
mod server;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| server::mcp_arguments(bytes));
