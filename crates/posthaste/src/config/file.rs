//! `posthaste.toml`: flat keys, none of them unknown.

use std::io;
use std::path::{Path, PathBuf};

use posthaste_engine::names::edit_distance;

use super::ConfigError;

/// A configuration file that was read, or the absence of one.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    table: toml::Table,
}

impl File {
    /// Reads the file; `Ok(None)` if there is none.
    pub(super) fn read(path: &Path, known: &[&str]) -> Result<Option<Self>, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ConfigError::new(path.display(), error)),
        };
        Self::parse(path, &text, known).map(Some)
    }

    /// Reads a file's text.
    pub(super) fn parse(path: &Path, text: &str, known: &[&str]) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error| syntax_error(path, text, &error))?;
        for key in table.keys() {
            if !known.contains(&key.as_str()) {
                let hint = match nearest(key, known) {
                    Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
                    None => format!("unknown key `{key}`; known are {}", known.join(", ")),
                };
                return Err(ConfigError::new(path.display(), hint));
            }
        }
        Ok(Self { path: path.to_owned(), table })
    }

    pub(super) fn get(&self, key: &str) -> Option<&toml::Value> {
        self.table.get(key)
    }

    /// What relative paths in the file are relative to.
    pub(super) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

// The parser's own rendering quotes the line, and a line of a configuration file may hold a secret.
fn syntax_error(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::new(format_args!("{}:{line}", path.display()), error.message())
}

/// The known key that a typo most likely meant.
fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let (distance, key) = known.iter().map(|key| (edit_distance(&typed, key), *key)).min()?;
    // With more than a third of the characters changed it is another word, not a typo.
    (distance <= key.len().max(typed.chars().count()).div_ceil(3)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_key() {
        let known = ["listen", "log", "log_level", "max_connections", "tls_cert", "tls_key"];
        let table = [
            ("lisen", Some("listen")),
            ("log-level", Some("log_level")),
            ("LOG_LEVEL", Some("log_level")),
            ("max_conections", Some("max_connections")),
            ("tls_kee", Some("tls_key")),
            ("colour_scheme", None),
        ];
        for (typed, expected) in table {
            assert_eq!(nearest(typed, &known), expected, "{typed}");
        }
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("log", "log", 0)]
        {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
        }
    }
}
