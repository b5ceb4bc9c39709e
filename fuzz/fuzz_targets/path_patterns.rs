//! See `properties::server::path_patterns`.
#![no_main]

#[path = "../properties/server.rs"]
#[allow(dead_code)]
mod server;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| server::path_patterns(bytes));
