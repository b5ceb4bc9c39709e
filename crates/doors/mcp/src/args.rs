//! A tool's arguments: how the table writes them down, the schema that clients see, and what was given, checked.

use serde_json::{Map, Value, json};

use super::errors::{DoorError, did_you_mean, nearest};
use super::parameters;

/// What an argument may be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Texts,
    Flag,
    Whole,
    Wholes,
    Object,
    /// Files with their bytes.
    Files,
    Choice(Vec<&'static str>),
}

/// One argument of a tool.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    name: &'static str,
    kind: Kind,
    required: bool,
    default: Option<&'static str>,
}

/// Taken by every tool and shown by none.
const EVERYWHERE: [&str; 3] = ["format", "registration_token", "sender_token"];

/// Optional arguments for which an empty text says something: a reply without a prefix.
const EMPTY_IS_MEANT: [&str; 1] = ["subject_prefix"];

impl Spec {
    /// Reads arguments as the table has them, parted by white space: `name`, `name!` if it must be given, then `:kind`
    /// (`texts`, `flag`, `int`, `ints`, `object`, `files`, or words parted by `|`), then `=default`.
    pub(super) fn parse(takes: &'static str) -> Vec<Self> {
        takes.split_whitespace().map(Self::one).collect()
    }

    fn one(word: &'static str) -> Self {
        let (word, default) = match word.split_once('=') {
            Some((word, default)) => (word, Some(default)),
            None => (word, None),
        };
        let (name, kind) = match word.split_once(':') {
            None => (word, Kind::Text),
            Some((name, "texts")) => (name, Kind::Texts),
            Some((name, "flag")) => (name, Kind::Flag),
            Some((name, "int")) => (name, Kind::Whole),
            Some((name, "ints")) => (name, Kind::Wholes),
            Some((name, "object")) => (name, Kind::Object),
            Some((name, "files")) => (name, Kind::Files),
            Some((name, words)) => (name, Kind::Choice(words.split('|').collect())),
        };
        Self { name: name.trim_end_matches('!'), required: name.ends_with('!'), kind, default }
    }

    /// The arguments of a tool as JSON Schema.
    pub(super) fn schema(tool: &str, specs: &[Self]) -> Map<String, Value> {
        let mut properties = Map::new();
        for spec in specs {
            let mut shape = match &spec.kind {
                Kind::Text => json!({ "type": "string" }),
                Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
                Kind::Flag => json!({ "type": "boolean" }),
                Kind::Whole => json!({ "type": "integer" }),
                Kind::Wholes => json!({ "type": "array", "items": { "type": "integer" } }),
                Kind::Object => json!({ "type": "object" }),
                Kind::Files => json!({ "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string" },
                        "media_type": { "type": "string" },
                        "data": { "type": "string", "description": "base64" },
                    },
                    "required": ["name", "data"],
                } }),
                Kind::Choice(words) => json!({ "type": "string", "enum": words }),
            };
            if let Some(default) = spec.default {
                shape["default"] = match spec.kind {
                    Kind::Whole => default.parse::<i64>().map_or(Value::Null, Value::from),
                    Kind::Flag => Value::Bool(default == "true"),
                    _ => Value::from(default),
                };
            }
            if let Some(about) = parameters::about(tool, spec.name) {
                shape["description"] = about.into();
            }
            properties.insert(spec.name.to_owned(), shape);
        }
        let required: Vec<&str> = specs.iter().filter(|spec| spec.required).map(|spec| spec.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema
    }

    /// Whether an optional argument was given only because the client gives every argument, as strict modes do: null, an
    /// empty text or an empty list then mean that it was left out.
    fn is_left_empty(&self, value: &Value) -> bool {
        let empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        empty && !self.required && !EMPTY_IS_MEANT.contains(&self.name)
    }

    /// The value as it is meant, or what it should have been. Numbers and truths written as text are understood, as is
    /// one text where a list is wanted.
    fn read(&self, value: Value) -> Result<Value, String> {
        let numeral = |value: &Value| match value {
            Value::Number(number) => number
                .as_i64()
                .or_else(|| number.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i64)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let wanted = match (&self.kind, &value) {
            (Kind::Text, Value::String(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::Object, Value::Object(_)) => {
                return Ok(value);
            }
            // Thread and message ids are often numbers.
            (Kind::Text, Value::Number(number)) => return Ok(Value::from(number.to_string())),
            (Kind::Choice(words), Value::String(text)) => {
                match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                    Some(word) => return Ok(Value::from(*word)),
                    None => format!("one of {}", words.join(", ")),
                }
            }
            (Kind::Flag, Value::String(text)) if matches!(text.as_str(), "true" | "false") => {
                return Ok(Value::Bool(text == "true"));
            }
            (Kind::Whole, value) if numeral(value).is_some() => return Ok(json!(numeral(value))),
            (Kind::Texts, Value::String(text)) => return Ok(json!([text])),
            (Kind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => return Ok(value),
            (Kind::Files, Value::Array(items)) if items.iter().all(Value::is_object) => return Ok(value),
            (Kind::Wholes, Value::Array(items)) if items.iter().all(|item| numeral(item).is_some()) => {
                return Ok(items.iter().map(|item| json!(numeral(item))).collect());
            }
            (Kind::Text, _) => "a string".to_owned(),
            (Kind::Texts, _) => "a list of strings".to_owned(),
            (Kind::Flag, _) => "true or false".to_owned(),
            (Kind::Whole, _) => "a whole number".to_owned(),
            (Kind::Wholes, _) => "a list of whole numbers".to_owned(),
            (Kind::Object, _) => "an object".to_owned(),
            (Kind::Files, _) => "a list of {name, media_type, data}, with the bytes in base64".to_owned(),
            (Kind::Choice(words), _) => format!("one of {}", words.join(", ")),
        };
        Err(wanted)
    }
}

/// What was given, known to be of the right kinds. Defaults are filled in.
#[derive(Debug, Default)]
pub(super) struct Args(Map<String, Value>);

impl Args {
    pub(super) fn check(specs: &[Spec], given: Map<String, Value>) -> Result<Self, DoorError> {
        let mut known = Map::new();
        for (name, value) in given {
            if value.is_null() {
                continue;
            }
            let spec = specs.iter().find(|spec| spec.name == name);
            if spec.is_some_and(|spec| spec.is_left_empty(&value)) {
                continue;
            }
            let Some(spec) = spec else {
                if EVERYWHERE.contains(&name.as_str()) {
                    if value != "" {
                        known.insert(name, value);
                    }
                    continue;
                }
                let names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
                let near = nearest(&name, names.iter().copied());
                let hint = if near.is_empty() {
                    format!("; it takes {}", names.join(", "))
                } else {
                    did_you_mean(&near)
                };
                return Err(DoorError::new("INVALID_ARGUMENT", format!("there is no argument '{name}'{hint}")));
            };
            let found = value_kind(&value);
            let value = spec.read(value).map_err(|wanted| {
                DoorError::new("INVALID_ARGUMENT", format!("argument '{name}' must be {wanted}, not {found}"))
            })?;
            known.insert(name, value);
        }
        let missing: Vec<&str> = specs
            .iter()
            .filter(|spec| spec.required && !known.contains_key(spec.name))
            .map(|spec| spec.name)
            .collect();
        if !missing.is_empty() {
            let all: Vec<&str> = specs.iter().filter(|spec| spec.required).map(|spec| spec.name).collect();
            let text = format!("missing argument {}; needed are {}", missing.join(", "), all.join(", "));
            return Err(DoorError::new("MISSING_ARGUMENT", text));
        }
        if let Some(format) =
            known.get("format").filter(|format| !matches!(format.as_str(), Some("json" | "toon")))
        {
            return Err(DoorError::new(
                "INVALID_ARGUMENT",
                format!("argument 'format' must be json or toon, not {format}"),
            ));
        }
        for spec in specs {
            if let Some(default) = spec.default
                && !known.contains_key(spec.name)
            {
                let value = spec.read(Value::from(default)).unwrap_or(Value::Null);
                known.insert(spec.name.to_owned(), value);
            }
        }
        Ok(Self(known))
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// A text that the table says must be given; empty if that is what was given.
    pub(super) fn need(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let items = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    pub(super) fn objects(&self, name: &str) -> Vec<Map<String, Value>> {
        let items = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_object).cloned().collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn whole(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    /// An optional id of a message or a place. Ids begin at 1; 0 is what clients fill in for none.
    pub(super) fn id(&self, name: &str) -> Option<i64> {
        self.whole(name).filter(|id| *id != 0)
    }

    /// A whole number that must lie within bounds.
    pub(super) fn within(&self, name: &str, low: i64, high: i64) -> Result<Option<i64>, DoorError> {
        match self.whole(name) {
            Some(number) if !(low..=high).contains(&number) => {
                let code = if name.contains("limit") { "INVALID_LIMIT" } else { "INVALID_ARGUMENT" };
                Err(DoorError::new(code, format!("argument '{name}' must be {low} to {high}, not {number}")))
            }
            number => Ok(number),
        }
    }

    pub(super) fn wholes(&self, name: &str) -> Vec<i64> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_i64).collect()
    }

    /// The agent's own secret, under either of its names.
    pub(super) fn token(&self) -> Option<&str> {
        self.text("sender_token").or_else(|| self.text("registration_token"))
    }
}

fn value_kind(value: &Value) -> &'static str {
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
    use super::*;

    fn check(takes: &'static str, given: Value) -> Result<Args, String> {
        let Value::Object(given) = given else { panic!("{given}") };
        Args::check(&Spec::parse(takes), given).map_err(|problem| problem.message)
    }

    #[test]
    fn what_is_given_is_checked_and_what_is_not_is_filled_in() {
        let takes = "who! to!:texts limit:int=20 loud:flag how:low|high=low ids:ints";
        let args =
            check(takes, json!({"who": "a", "to": "b", "ids": [1, "2"], "loud": null, "format": "json"}))
                .unwrap();
        assert_eq!(
            (args.need("who"), args.texts("to"), args.whole("limit")),
            ("a", vec!["b".to_owned()], Some(20))
        );
        assert_eq!((args.flag("loud"), args.need("how"), args.wholes("ids")), (false, "low", vec![1, 2]));
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
            match check(takes, given.clone()) {
                Ok(_) => assert_eq!(part, "", "{given}"),
                Err(why) => assert!(!part.is_empty() && why.contains(part), "{given}: {why}"),
            }
        }
    }
}
