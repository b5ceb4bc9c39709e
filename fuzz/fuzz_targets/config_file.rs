//! See `properties::office::config_file`.
#![no_main]

#[path = "../properties/office.rs"]
#[allow(dead_code)]
mod office;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| office::config_file(bytes));
