//! See `properties::server::swarm_file`.
#![no_main]

#[path = "../properties/server.rs"]
#[allow(dead_code)]
mod server;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| server::swarm_file(bytes));
