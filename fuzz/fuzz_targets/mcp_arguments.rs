//! See `properties::office::mcp_arguments`.
#![no_main]

#[path = "../properties/office.rs"]
#[allow(dead_code)]
mod office;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| office::mcp_arguments(bytes));
