//! See `properties::office::path_patterns`.
#![no_main]

#[path = "../properties/office.rs"]
#[allow(dead_code)]
mod office;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| office::path_patterns(bytes));
