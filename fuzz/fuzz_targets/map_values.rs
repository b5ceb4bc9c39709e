//! What stands inside a call: addresses, filters, modes, event ids and names, in whatever JSON a peer makes up.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_wire::map::{Address, EventName, Pattern, Spec, detect_mode, stream_pattern};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let pattern = Pattern::new(text);
    let _ = (pattern, stream_pattern(text), EventName::parse(text));
    let Ok(value) = serde_json::from_str::<serde_json::Value>(text) else { return };
    let found = Address::parse(&value);
    if let Ok(found) = &found {
        assert!(!found.is_empty(), "an address that is taken names somebody");
    }
    let _ = (Spec::parse(&value), detect_mode(&value));
});
