//! How each kind of value is read from text (flags, environment) and from TOML, and how it is shown.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use posthaste_engine::nouns::RealmName;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{AllowRemote, Config, Opening, ToolSet};
use crate::logs::{LogForm, parse_filter};
use posthaste_host::http::rate::Quota;
use posthaste_host::units::parse_span;

/// A type that a setting can have. Errors are the part after "where: "; the caller says where.
pub(super) trait Value: Sized {
    fn from_text(text: &str) -> Result<Self, String>;

    /// Only a path may be other than UTF-8.
    fn from_os(text: &OsStr) -> Result<Self, String> {
        Self::from_text(text.to_str().ok_or_else(|| "not valid UTF-8".to_owned())?)
    }

    /// Most settings are strings in the file; the others override this.
    fn from_toml(value: &toml::Value, _base: &Path) -> Result<Self, String> {
        match value {
            toml::Value::String(text) => Self::from_text(text),
            other => Err(format!("expected a string, found {}", kind(other))),
        }
    }

    fn to_json(&self) -> Json;

    /// The values that posthaste.toml takes.
    fn accepts() -> Accepts {
        Accepts::text()
    }

    /// The value that `auto` has under the other settings, and why.
    fn effect(&self, _settings: &Config) -> Option<String> {
        None
    }
}

/// The values that a setting takes in posthaste.toml, as a JSON schema says it.
#[derive(Clone, Debug, Serialize)]
pub struct Accepts {
    #[serde(rename = "type")]
    kinds: Kinds,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    choices: Option<Vec<Choice>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Accepts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    examples: &'static [&'static str],
    /// The type in words, for a table.
    #[serde(skip)]
    words: &'static str,
}

/// One type, or several.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Kinds {
    One(&'static str),
    Several(&'static [&'static str]),
}

/// One of the values that can be chosen.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Choice {
    Name(String),
    Switch(bool),
}

impl Accepts {
    fn of(kind: &'static str, words: &'static str) -> Self {
        Self { kinds: Kinds::One(kind), choices: None, items: None, minimum: None, examples: &[], words }
    }

    fn text() -> Self {
        Self::of("string", "text")
    }

    fn like(examples: &'static [&'static str]) -> Self {
        Self { examples, ..Self::text() }
    }

    fn names<T: ValueEnum>() -> Self {
        Self { choices: Some(names::<T>().into_iter().map(Choice::Name).collect()), ..Self::text() }
    }

    /// In words, for a table.
    pub(super) fn in_words(&self) -> String {
        let name = |choice: &Choice| match choice {
            Choice::Name(name) => Some(format!("`{name}`")),
            Choice::Switch(_) => None,
        };
        match (&self.choices, self.examples.first()) {
            (Some(choices), _) => choices.iter().filter_map(name).collect::<Vec<_>>().join(", "),
            (None, Some(example)) => format!("like `{example}`"),
            (None, None) => self.words.to_owned(),
        }
    }
}

impl Value for bool {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err(format!("`{text}` is neither on nor off")),
        }
    }

    fn from_toml(value: &toml::Value, _base: &Path) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("expected true or false, found {}", kind(value)))
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts::of("boolean", "true or false")
    }
}

impl Value for usize {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("`{text}` is not a whole number"))
    }

    fn from_toml(value: &toml::Value, _base: &Path) -> Result<Self, String> {
        let number = value.as_integer().ok_or_else(|| format!("expected a number, found {}", kind(value)))?;
        Self::try_from(number).map_err(|_| format!("{number} is out of range"))
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts { minimum: Some(0), ..Accepts::of("integer", "number") }
    }
}

impl Value for SocketAddr {
    fn from_text(text: &str) -> Result<Self, String> {
        // `localhost` is spelled out because it must mean the same on machines that resolve it to ::1.
        if let Some(port) = text.strip_prefix("localhost:") {
            let port = port.parse().map_err(|_| format!("`{port}` is not a port"))?;
            return Ok(Self::from((Ipv4Addr::LOCALHOST, port)));
        }
        text.parse().map_err(|_| format!("`{text}` is not ADDR:PORT, like 127.0.0.1:7678 or [::1]:7678"))
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }

    fn accepts() -> Accepts {
        Accepts::like(&["127.0.0.1:7678", "[::1]:7678", "localhost:0"])
    }
}

impl Value for PathBuf {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    fn from_os(text: &OsStr) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    // A path in a file means the same wherever the program is started.
    fn from_toml(value: &toml::Value, base: &Path) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("expected a path, found {}", kind(value)))?;
        Ok(base.join(text))
    }

    fn to_json(&self) -> Json {
        Json::from(self.to_string_lossy())
    }

    fn accepts() -> Accepts {
        Accepts::of("string", "path")
    }
}

impl<T: Value> Value for Option<T> {
    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
    }

    fn from_os(text: &OsStr) -> Result<Self, String> {
        T::from_os(text).map(Some)
    }

    fn from_toml(value: &toml::Value, base: &Path) -> Result<Self, String> {
        T::from_toml(value, base).map(Some)
    }

    fn to_json(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::to_json)
    }

    fn accepts() -> Accepts {
        T::accepts()
    }
}

impl Value for Vec<String> {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect())
    }

    fn from_toml(value: &toml::Value, _base: &Path) -> Result<Self, String> {
        let list = value.as_array().ok_or_else(|| format!("expected a list, found {}", kind(value)))?;
        let text = |item: &toml::Value| match item {
            toml::Value::String(text) => Ok(text.clone()),
            other => Err(format!("expected a list of strings, found {} in it", kind(other))),
        };
        list.iter().map(text).collect()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts { items: Some(Box::new(Accepts::text())), ..Accepts::of("array", "list") }
    }
}

impl Value for LogForm {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts::names::<Self>()
    }
}

impl Value for Opening {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    /// In a file, true and false are as good as on and off.
    fn from_toml(value: &toml::Value, _base: &Path) -> Result<Self, String> {
        match value {
            toml::Value::Boolean(true) => Ok(Self::On),
            toml::Value::Boolean(false) => Ok(Self::Off),
            toml::Value::String(text) => Self::from_text(text),
            other => Err(format!("expected auto, on or off, found {}", kind(other))),
        }
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        let names = Accepts::names::<Self>().choices.into_iter().flatten();
        let switches = [Choice::Switch(true), Choice::Switch(false)];
        Accepts {
            kinds: Kinds::Several(&["string", "boolean"]),
            choices: Some(names.chain(switches).collect()),
            ..Accepts::text()
        }
    }

    fn effect(&self, settings: &Config) -> Option<String> {
        settings.effect(*self)
    }
}

impl Value for AllowRemote {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts::names::<Self>()
    }
}

impl Value for ToolSet {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn accepts() -> Accepts {
        Accepts::names::<Self>()
    }
}

/// The filter of log lines, kept as typed but known to be valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogLevel(String);

impl LogLevel {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl Value for LogLevel {
    fn from_text(text: &str) -> Result<Self, String> {
        parse_filter(text).map(|_| Self(text.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }

    fn accepts() -> Accepts {
        Accepts::like(&["info", "info,posthaste=debug"])
    }
}

impl Value for Quota {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }

    fn accepts() -> Accepts {
        Accepts::like(&["60/m", "100000/s", "off"])
    }
}

/// A span of time, kept as typed as well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    text: String,
    span: Duration,
}

impl Span {
    /// A span by its text and its seconds, which are the same.
    pub(super) fn of(text: &str, seconds: u64) -> Self {
        Self { text: text.to_owned(), span: Duration::from_secs(seconds) }
    }

    pub fn duration(&self) -> Duration {
        self.span
    }
}

impl Value for Span {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), span: parse_span(text)? })
    }

    fn to_json(&self) -> Json {
        json!(self.text)
    }

    fn accepts() -> Accepts {
        Accepts::like(&["30s", "1h", "1d12h"])
    }
}

impl Value for RealmName {
    fn from_text(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| format!("`{text}` cannot name a realm: {error}"))
    }

    fn to_json(&self) -> Json {
        json!(self.as_str())
    }
}

fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, true).map_err(|_| format!("`{text}` is not one of {}", names::<T>().join(", ")))
}

fn names<T: ValueEnum>() -> Vec<String> {
    let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

fn kind(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) => "a string",
        toml::Value::Integer(_) => "a whole number",
        toml::Value::Float(_) => "a fraction",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Datetime(_) => "a date",
        toml::Value::Array(_) => "a list",
        toml::Value::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(SocketAddr::from_text("localhost:0").unwrap().to_string(), "127.0.0.1:0");
        assert_eq!(SocketAddr::from_text("[::1]:80").unwrap().to_string(), "[::1]:80");
        for bad in ["", "7678", ":7678", "localhost:x", "example.com:80", "127.0.0.1:99999"] {
            assert!(SocketAddr::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_skip_blanks() {
        let list = <Vec<String>>::from_text(" a.example ,, b.example,").unwrap();
        assert_eq!(list, ["a.example", "b.example"]);
    }
}
