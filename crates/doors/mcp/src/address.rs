//! Addresses of resources: the parts of the path, and the query.

use super::errors::{DoorError, did_you_mean, nearest};
use super::resources::{FIXED, TEMPLATES};

/// The error of an address at which there is nothing.
pub(super) fn unknown(uri: &str) -> DoorError {
    let near = nearest(uri, FIXED.iter().chain(TEMPLATES).map(|(uri, _)| *uri));
    DoorError::new("RESOURCE_NOT_FOUND", format!("there is no resource {uri}{}", did_you_mean(&near)))
}

/// An address taken apart.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) path: Vec<String>,
    query: Vec<(String, String)>,
}

impl Address {
    pub(super) fn parse(uri: &str) -> Result<Self, DoorError> {
        let unknown = || unknown(uri);
        let rest = uri.strip_prefix("resource://").ok_or_else(unknown)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path: Vec<String> = match path.split_once('/') {
            // A directory's path is one part, however many it has itself.
            Some(("identity", rest)) => {
                vec!["identity".to_owned(), format!("/{}", decoded(rest).trim_start_matches('/'))]
            }
            _ => path.split('/').filter(|part| !part.is_empty()).map(decoded).collect(),
        };
        if path.is_empty() {
            return Err(unknown());
        }
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = query.map(|(name, value)| (decoded(name), decoded(value))).collect();
        Ok(Self { path, query })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .map_or(default, |value| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes"))
    }

    pub(super) fn number(&self, name: &str, default: i64, most: i64) -> Result<i64, DoorError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            DoorError::new("INVALID_ARGUMENT", format!("{name} must be 1 to {most}, not '{text}'"))
        })
    }

    pub(super) fn limit(&self, default: i64) -> Result<usize, DoorError> {
        Ok(usize::try_from(self.number("limit", default, 1_000)?).unwrap_or(20))
    }

    pub(super) fn agent(&self) -> Option<&str> {
        self.get("agent")
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.get("agent_token").or_else(|| self.get("registration_token"))
    }

    /// The project it is about: named in the query, or the last part of the path where that is one.
    pub(super) fn project(&self) -> Result<&str, DoorError> {
        let in_path = match self.path.as_slice() {
            [kind, key] if matches!(kind.as_str(), "agents" | "file_reservations" | "project") => {
                Some(key.as_str())
            }
            _ => None,
        };
        in_path.or_else(|| self.get("project")).ok_or_else(|| {
            DoorError::new("MISSING_ARGUMENT", "name the project: ?project=<absolute path or slug>")
        })
    }
}

/// Text in which `%2F` and the like stand for characters.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let pair = after.get(..2).filter(|_| *byte == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address =
            Address::parse("resource://inbox/BlueLake?project=/srv/a%20b&limit=5&include_bodies=true")
                .unwrap();
        assert_eq!(address.path, ["inbox", "BlueLake"]);
        assert_eq!(address.project().unwrap(), "/srv/a b");
        assert_eq!((address.limit(20).unwrap(), address.flag("include_bodies", false)), (5, true));
        let address = Address::parse("resource://identity//srv/app").unwrap();
        assert_eq!(address.path, ["identity", "/srv/app"]);
        for bad in ["", "http://inbox/x", "resource://", "resource:inbox"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        assert!(Address::parse("resource://inbox/x?limit=0").unwrap().limit(20).is_err());
        assert_eq!(decoded("%E6%BC%A2%zz%"), "漢%zz%");
    }
}
