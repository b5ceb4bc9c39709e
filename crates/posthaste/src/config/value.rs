//! How each kind of value is read from text (flags, environment) and from TOML, and how it is shown.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use posthaste_engine::nouns::RealmName;
use serde_json::{Value as Json, json};

use super::{AllowRemote, Opening, ToolSet};
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
}

impl Value for Option<PathBuf> {
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Some(PathBuf::from(text)))
    }

    fn from_os(text: &OsStr) -> Result<Self, String> {
        Ok(Some(PathBuf::from(text)))
    }

    // A path in a file means the same wherever the program is started.
    fn from_toml(value: &toml::Value, base: &Path) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("expected a path, found {}", kind(value)))?;
        Ok(Some(base.join(text)))
    }

    fn to_json(&self) -> Json {
        json!(self)
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
}

impl Value for LogForm {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
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
}

impl Value for AllowRemote {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for ToolSet {
    fn from_text(text: &str) -> Result<Self, String> {
        choice(text)
    }

    fn to_json(&self) -> Json {
        json!(self)
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
}

impl Value for Quota {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }
}

/// A span of time, kept as typed as well.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    text: String,
    span: Duration,
}

impl Span {
    /// An hour.
    pub fn hour() -> Self {
        Self { text: "1h".to_owned(), span: Duration::from_secs(3_600) }
    }

    /// Half a minute.
    pub fn half_minute() -> Self {
        Self { text: "30s".to_owned(), span: Duration::from_secs(30) }
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
    T::from_str(text, true).map_err(|_| {
        let names: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|variant| variant.to_possible_value())
            .map(|value| value.get_name().to_owned())
            .collect();
        format!("`{text}` is not one of {}", names.join(", "))
    })
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
