//! A message as a heading and a text, the same at every door that shows them.

use posthaste_engine::nouns::{Body, Message};
use serde_json::Value;

/// A message's heading; its kind if it has none.
pub fn heading(message: &Message) -> String {
    match (&message.subject, &message.body) {
        (Some(subject), _) => subject.clone(),
        (None, Body::Json(json)) => {
            let subject = json.value().get("subject").and_then(Value::as_str).map(str::to_owned);
            subject.unwrap_or_else(|| message.kind.clone())
        }
        (None, Body::Text(_)) => message.kind.clone(),
    }
}

/// A message's text. For a JSON object that has only a heading, a kind and a text, this is the text. Any other value is
/// returned whole, as compact JSON, so that nothing is lost.
pub fn text(message: &Message) -> String {
    match &message.body {
        Body::Text(text) => text.clone(),
        Body::Json(json) => {
            let value = json.value();
            spoken(&value).map_or_else(|| compact(json.as_str()), str::to_owned)
        }
    }
}

/// The text of a JSON value that has only a heading, a kind and a text.
pub fn spoken(value: &Value) -> Option<&str> {
    let object = match value {
        Value::String(text) => return Some(text),
        Value::Object(object) => object,
        _ => return None,
    };
    let mut found = None;
    for (name, value) in object {
        match (name.as_str(), value.as_str()) {
            ("subject" | "type", Some(_)) => {}
            // Of two texts one would be lost.
            ("body" | "body_md" | "text", Some(text)) if found.is_none() => found = Some(text),
            _ => return None,
        }
    }
    found
}

/// JSON without white space between tokens, and otherwise as it was written: numbers keep every digit.
pub fn compact(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if !quoted && c.is_ascii_whitespace() {
            continue;
        }
        out.push(c);
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_without_other_members_are_shortened_to_their_text() {
        for (value, text) in [
            (json!({ "subject": "s", "body": "b" }), Some("b")),
            (json!({ "type": "note", "text": "b" }), Some("b")),
            (json!("b"), Some("b")),
            (json!({ "subject": "s", "body": "b", "n": 1 }), None),
            (json!({ "body": "b", "text": "c" }), None),
            (json!({ "subject": 7, "body": "b" }), None),
            (json!({ "body": { "deep": true } }), None),
            (json!({ "subject": "s" }), None),
            (json!([1]), None),
            (json!(null), None),
        ] {
            assert_eq!(spoken(&value), text, "{value}");
        }
    }

    #[test]
    fn only_white_space_between_tokens_is_removed() {
        let written = "{ \"a b\" :\n [1.0, 12345678901234567890123 ,\t\"x \\\" y\\\\\" ] , \"z\": \" \"}";
        let meant = "{\"a b\":[1.0,12345678901234567890123,\"x \\\" y\\\\\"],\"z\":\" \"}";
        assert_eq!(compact(written), meant);
    }
}
