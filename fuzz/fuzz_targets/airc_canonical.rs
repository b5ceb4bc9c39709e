//! Canonical bytes: every text is spelled or refused, and what is spelled is its own spelling.
#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_wire::canonical::{canonicalize, canonicalize_value, canonicalize_without};

fuzz_target!(|text: &str| {
    let Ok(once) = canonicalize(text) else { return };
    assert_eq!(canonicalize(&once).expect("canonical text is JSON"), once);
    // The other way in, over a parsed value, agrees.
    let value: serde_json::Value = serde_json::from_str(&once).expect("canonical text is JSON");
    assert_eq!(canonicalize_value(&value).expect("it was spelled before"), once);
    if value.is_object() {
        let without = canonicalize_without(text, "signature").expect("an object");
        let again: serde_json::Value = serde_json::from_str(&without).expect("canonical text is JSON");
        assert!(again.get("signature").is_none());
    }
});
