//! A tool's arguments as a caller gave them: read leniently by the tool's schema, then into its struct.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::errors::{DoorError, did_you_mean, nearest};

/// The form of the answer, which every tool takes and none shows; all answer in JSON.
const FORMAT: &str = "format";
/// The names under which every tool takes the agent's own secret; the first counts if both are given.
const SECRETS: [&str; 2] = ["sender_token", "registration_token"];

/// Optional arguments for which an empty text says something: a reply without a prefix.
const EMPTY_IS_MEANT: [&str; 1] = ["subject_prefix"];

/// Reads checked arguments into a tool's struct.
pub(super) fn read<A: DeserializeOwned>(checked: Map<String, Value>) -> Result<A, DoorError> {
    serde_json::from_value(Value::Object(checked))
        .map_err(|error| DoorError::new("INVALID_ARGUMENT", error.to_string()))
}

/// A number that must lie within bounds.
pub(super) fn within(name: &str, number: i64, low: i64, high: i64) -> Result<i64, DoorError> {
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    let code = if name.contains("limit") { "INVALID_LIMIT" } else { "INVALID_ARGUMENT" };
    Err(DoorError::new(code, format!("argument '{name}' must be {low} to {high}, not {number}")))
}

/// How many rows are wanted.
pub(super) fn limit(number: i64) -> Result<usize, DoorError> {
    within("limit", number, 1, 1_000).map(|number| usize::try_from(number).unwrap_or(1))
}

/// An optional id. Ids begin at 1; 0 is what clients fill in for none.
pub(super) fn id(number: Option<i64>) -> Option<i64> {
    number.filter(|id| *id != 0)
}

/// The default of an integer argument, for serde.
pub(super) fn int<const N: i64>() -> i64 {
    N
}

/// The default of a flag that is set unless it is given, for serde.
pub(super) fn yes() -> bool {
    true
}

/// Checks what was given by the tool's schema: every argument is known and of its type, and all that must be given are. What is
/// meant but spelled otherwise is put right. Arguments that were left empty are left out.
pub(super) fn check(
    schema: &Map<String, Value>,
    given: Map<String, Value>,
) -> Result<Map<String, Value>, DoorError> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).collect());
    let (mut checked, mut secrets, mut format) = (Map::new(), Map::new(), None);
    for (name, value) in given {
        if value.is_null() {
            continue;
        }
        let Some(shape) = properties.and_then(|properties| properties.get(&name)) else {
            match name.as_str() {
                FORMAT => format = Some(value).filter(|value| value != ""),
                secret if SECRETS.contains(&secret) => drop(secrets.insert(name, value)),
                _ => return Err(unknown(&name, properties)),
            }
            continue;
        };
        if is_empty(&value) && !required.contains(&name.as_str()) && !EMPTY_IS_MEANT.contains(&name.as_str())
        {
            continue;
        }
        let found = kind_of(&value);
        let value = put_right(shape, value).map_err(|wanted| {
            DoorError::new("INVALID_ARGUMENT", format!("argument '{name}' must be {wanted}, not {found}"))
        })?;
        checked.insert(name, value);
    }
    let missing: Vec<&str> = required.iter().copied().filter(|name| !checked.contains_key(*name)).collect();
    if !missing.is_empty() {
        let text = format!("missing argument {}; needed are {}", missing.join(", "), required.join(", "));
        return Err(DoorError::new("MISSING_ARGUMENT", text));
    }
    if let Some(format) = format.filter(|format| !matches!(format.as_str(), Some("json" | "toon"))) {
        let text = format!("argument 'format' must be json or toon, not {format}");
        return Err(DoorError::new("INVALID_ARGUMENT", text));
    }
    take_secret(properties, &mut checked, secrets);
    Ok(checked)
}

/// Puts a secret that came under the name that the tool does not show under the one that it shows, if it shows one.
fn take_secret(
    properties: Option<&Map<String, Value>>,
    checked: &mut Map<String, Value>,
    mut secrets: Map<String, Value>,
) {
    let is_shown = |name: &&str| properties.is_some_and(|properties| properties.contains_key(*name));
    let Some(shown) = SECRETS.into_iter().find(is_shown) else { return };
    for name in SECRETS {
        if name == shown && checked.contains_key(name) {
            return;
        }
        if let Some(secret) =
            secrets.remove(name).filter(|secret| secret.as_str().is_some_and(|s| !s.is_empty()))
        {
            checked.insert(shown.to_owned(), secret);
            return;
        }
    }
}

fn unknown(name: &str, properties: Option<&Map<String, Value>>) -> DoorError {
    let names: Vec<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let near = nearest(name, names.iter().copied());
    let hint = if near.is_empty() { format!("; it takes {}", names.join(", ")) } else { did_you_mean(&near) };
    DoorError::new("INVALID_ARGUMENT", format!("there is no argument '{name}'{hint}"))
}

/// Whether an optional argument was given only because the client gives every argument, as strict modes do: null, an empty
/// text or an empty list then mean that it was left out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// The value as it is meant, or what it should have been. Numbers and flags written as text are understood, as is one text
/// where a list is wanted.
fn put_right(shape: &Value, value: Value) -> Result<Value, String> {
    let words = shape["enum"].as_array();
    let choice = || {
        let words = words.into_iter().flatten().filter_map(Value::as_str);
        format!("one of {}", words.collect::<Vec<_>>().join(", "))
    };
    let kind = shape["type"].as_str().unwrap_or_default();
    let items = shape["items"]["type"].as_str().unwrap_or_default();
    let wanted = match (kind, items, value) {
        ("string", _, Value::String(text)) => match words {
            None => return Ok(Value::String(text)),
            Some(words) => {
                let is_meant =
                    |word: &&Value| word.as_str().is_some_and(|word| word.eq_ignore_ascii_case(&text));
                match words.iter().find(is_meant) {
                    Some(word) => return Ok(word.clone()),
                    None => choice(),
                }
            }
        },
        // Thread and message ids are often numbers.
        ("string", _, Value::Number(number)) if words.is_none() => return Ok(number.to_string().into()),
        ("string", _, _) if words.is_some() => choice(),
        ("string", ..) => "a string".to_owned(),
        ("boolean", _, value @ Value::Bool(_)) => return Ok(value),
        ("boolean", _, Value::String(text)) if matches!(text.as_str(), "true" | "false") => {
            return Ok((text == "true").into());
        }
        ("boolean", ..) => "true or false".to_owned(),
        ("integer", _, value) => match integer(&value) {
            Some(number) => return Ok(number.into()),
            None => "a whole number".to_owned(),
        },
        ("array", "string", Value::String(text)) => return Ok(Value::Array(vec![text.into()])),
        ("array", "string", Value::Array(items)) if items.iter().all(Value::is_string) => {
            return Ok(items.into());
        }
        ("array", "string", _) => "a list of strings".to_owned(),
        ("array", "object", Value::Array(items)) if items.iter().all(Value::is_object) => {
            return Ok(items.into());
        }
        ("array", "object", _) => "a list of {name, media_type, data}, with the bytes in base64".to_owned(),
        ("array", _, Value::Array(items)) if items.iter().all(|item| integer(item).is_some()) => {
            return Ok(items.iter().filter_map(integer).collect());
        }
        _ => "a list of whole numbers".to_owned(),
    };
    Err(wanted)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < 9e15)
                .map(|float| float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::super::schema;
    use super::*;

    /// A tool for tests.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Example {
        who: String,
        to: Vec<String>,
        #[serde(default = "int::<20>")]
        limit: i64,
        #[serde(default)]
        loud: bool,
        #[serde(default)]
        how: How,
        #[serde(default)]
        ids: Vec<i64>,
        sender_token: Option<String>,
    }

    #[derive(Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    #[serde(rename_all = "snake_case")]
    enum How {
        #[default]
        Low,
        High,
    }

    fn example(given: Value) -> Result<Example, String> {
        let Value::Object(given) = given else { panic!("{given}") };
        let checked = check(&schema::of::<Example>().schema, given);
        checked.and_then(read).map_err(|error| error.message)
    }

    #[test]
    fn what_is_given_is_checked_and_what_is_not_is_filled_in() {
        let given =
            json!({"who": "a", "to": "b", "ids": [1, "2"], "loud": null, "format": "json", "how": "LOW"});
        let read = example(given).unwrap();
        assert_eq!((read.who.as_str(), read.to, read.limit), ("a", vec!["b".to_owned()], 20));
        assert_eq!((read.loud, read.how, read.ids, read.sender_token), (false, How::Low, vec![1, 2], None));
        for (given, part) in [
            (json!({"who": "a"}), "missing argument to"),
            (json!({"who": 1.5, "to": []}), ""),
            (json!({"who": [], "to": []}), "'who' must be a string, not a list"),
            (json!({"who": "a", "to": [1]}), "'to' must be a list of strings"),
            (json!({"who": "a", "to": [], "limit": "many"}), "'limit' must be a whole number, not a string"),
            (json!({"who": "a", "to": [], "how": "mid"}), "'how' must be one of low, high"),
            (json!({"who": "a", "to": [], "limmit": 1}), "did you mean limit?"),
            (json!({"who": "a", "to": [], "format": "xml"}), "'format' must be json or toon"),
        ] {
            match example(given.clone()) {
                Ok(_) => assert_eq!(part, "", "{given}"),
                Err(why) => assert!(!part.is_empty() && why.contains(part), "{given}: {why}"),
            }
        }
    }

    #[test]
    fn the_secret_is_taken_under_both_names() {
        let secret = |more: Value| {
            let mut given = json!({ "who": "a", "to": [] });
            given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            example(given).unwrap().sender_token
        };
        assert_eq!(secret(json!({ "registration_token": "r" })).as_deref(), Some("r"));
        assert_eq!(secret(json!({ "sender_token": "s", "registration_token": "r" })).as_deref(), Some("s"));
        assert_eq!(secret(json!({ "sender_token": "", "registration_token": "r" })).as_deref(), Some("r"));
        assert_eq!(secret(json!({ "sender_token": "", "registration_token": 5 })), None);
    }
}
