//! What a letter says in words, the same at every door that shows a heading and a text.

use posthaste_engine::nouns::{Body, Message};
use serde_json::Value;

/// A letter's heading; its kind where it has none.
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

/// A letter's text. A JSON object that says nothing but a heading, a kind and a text is taken at its word; any other
/// value is shown whole, as compact JSON, so that nothing is dropped.
pub fn text(message: &Message) -> String {
    match &message.body {
        Body::Text(text) => text.clone(),
        Body::Json(json) => {
            let value = json.value();
            spoken(&value).map_or_else(|| compact(json.as_str()), str::to_owned)
        }
    }
}

/// The text of a JSON value that says nothing but a heading, a kind and a text.
pub fn spoken(value: &Value) -> Option<&str> {
    let object = match value {
        Value::String(text) => return Some(text),
        Value::Object(object) => object,
        _ => return None,
    };
    let mut said = None;
    for (name, value) in object {
        match (name.as_str(), value.as_str()) {
            ("subject" | "type", Some(_)) => {}
            // Two texts are more than one can show.
            ("body" | "body_md" | "text", Some(text)) if said.is_none() => said = Some(text),
            _ => return None,
        }
    }
    said
}

/// JSON without the blanks between its parts, and otherwise as it was written: numbers keep every digit.
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
    fn only_what_is_nothing_else_is_shortened_to_its_text() {
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
    fn blanks_between_the_parts_go_and_nothing_else() {
        let written = "{ \"a b\" :\n [1.0, 12345678901234567890123 ,\t\"x \\\" y\\\\\" ] , \"z\": \" \"}";
        let meant = "{\"a b\":[1.0,12345678901234567890123,\"x \\\" y\\\\\"],\"z\":\" \"}";
        assert_eq!(compact(written), meant);
    }
}
