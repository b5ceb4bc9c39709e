//! Pretty-printed JSON for files under version control: keys sorted at every level, two spaces of indentation, a final
//! newline.

use serde_json::{Map, Value};

/// The text of a value in this format.
#[must_use]
pub fn canonical(value: &Value) -> String {
    // A `Value` always serializes.
    let mut text = serde_json::to_string_pretty(&sorted(value)).unwrap_or_default();
    text.push('\n');
    text
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members: Map<String, Value> =
                members.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            Value::Object(members)
        }
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level() {
        let value = json!({ "b": [{ "z": 1, "a": "ß\n\"" }], "a": {}, "c": [] });
        let expected = "{\n  \"a\": {},\n  \"b\": [\n    {\n      \"a\": \"ß\\n\\\"\",\n      \"z\": 1\n    }\n  ],\n  \"c\": []\n}\n";
        assert_eq!(canonical(&value), expected);
    }
}
