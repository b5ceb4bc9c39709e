//! Frames as a peer may send them: read without panic, each message once, and every answer readable again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use posthaste_wire::rpc::{self, Item, Message};

/// Messages in one frame.
const LIMIT: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let items = rpc::parse(text, LIMIT);
    assert!(!items.is_empty(), "every frame is answered");
    let mut answers = Vec::new();
    for item in &items {
        let messages = match item {
            Item::Single(message) => std::slice::from_ref(message),
            Item::Batch(messages) => messages,
        };
        for message in messages {
            match message {
                Message::Request { id, params, .. } => {
                    let result = params.as_deref().map_or("null", |params| params.get());
                    answers.push(rpc::write_result_text(id, result));
                }
                Message::Invalid { id, error } => answers.push(rpc::write_error(id, error)),
                Message::Notification { .. } | Message::Response { .. } => {}
            }
        }
    }
    for answer in &answers {
        assert!(!answer.contains('\n'), "an answer is one line: {answer}");
        assert!(
            matches!(rpc::parse(answer, 1).as_slice(), [Item::Single(Message::Response { .. })]),
            "an answer can be read: {answer}"
        );
    }
});
