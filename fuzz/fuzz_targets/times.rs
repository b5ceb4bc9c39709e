//! See `properties::times`.
#![no_main]

#[path = "../properties/mod.rs"]
#[allow(dead_code)]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| properties::times(bytes));
