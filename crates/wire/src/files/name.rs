//! File names of messages, `{timestamp}-{from}.json`: several timestamp formats are parsed, one is written.

use super::agent_name::check_agent;
use super::stamp::{self, Stamp};

/// Suffix of every message file.
pub const JSON_SUFFIX: &str = ".json";
/// Subdirectory for messages older than a day.
pub const ARCHIVE: &str = "archive";
/// Temporary file name that the protocol text prescribes for senders. Files of this name belong to peers and are never
/// modified.
pub const FOREIGN_TEMP: &str = ".msg.tmp";
/// Prefix of our own temporary files; peers, which look for `.json`, ignore them.
pub const TEMP_PREFIX: &str = ".ph-";
/// Suffix of our own temporary files.
pub const TEMP_SUFFIX: &str = ".tmp";

/// A parsed file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The timestamp. It determines age and order, not the `timestamp` field of the file.
    pub stamp: Stamp,
    /// The sender according to the name; the `from` field of the file takes precedence.
    pub from: String,
}

impl FileName {
    /// The name of a new file.
    #[must_use]
    pub fn write(stamp: Stamp, from: &str) -> String {
        format!("{}-{from}{JSON_SUFFIX}", stamp.in_name())
    }

    /// Parses a name. The time has colons or dashes, optional decimals, and `Z` or an offset. `None` for all other names;
    /// their files have no age and are never archived.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(JSON_SUFFIX)?;
        let (parsed, rest) = stamp::parse_prefix(stem)?;
        let from = rest.strip_prefix('-').filter(|from| !from.is_empty())?;
        Some(Self { stamp: parsed.stamp, from: from.to_owned() })
    }
}

/// Whether a file may be a message: its name ends in `.json` and is not hidden.
#[must_use]
pub fn is_candidate(name: &str) -> bool {
    name.ends_with(JSON_SUFFIX) && !name.starts_with('.') && name.len() > JSON_SUFFIX.len()
}

/// Whether a text from a caller is safe as the name of a message file: no path separators, not hidden.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    let is_unsafe = |c: char| c == '/' || c == '\\' || c.is_control();
    is_candidate(name) && name.len() <= 255 && !name.contains(is_unsafe)
}

/// Whether the name is one of our own temporary files.
#[must_use]
pub fn is_own_temp(name: &str) -> bool {
    name.starts_with(TEMP_PREFIX) && name.ends_with(TEMP_SUFFIX)
}

/// The sender in a file name, if it is a valid agent name.
#[must_use]
pub fn sender_in(name: &str) -> Option<String> {
    FileName::parse(name).map(|name| name.from).filter(|from| check_agent(from).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_is_parsed_from_the_start_of_the_name() {
        for (name, from) in [
            ("2026-03-05T10-30-00Z-mayor-a1b2c.json", "mayor-a1b2c"),
            ("2026-03-05T10:30:00Z-witness-01.json", "witness-01"),
            ("2026-03-05T10-30-00.123456789Z-x.json", "x"),
            ("2026-03-05T10-30-00.5Z-x-y-z.json", "x-y-z"),
            ("2026-03-05T10-30-00Z-2026-03-05T10-30-00Z-impostor.json", "2026-03-05T10-30-00Z-impostor"),
            ("2026-03-05T10-30-00-05-00-mayor.json", "mayor"),
        ] {
            assert_eq!(FileName::parse(name).map(|name| name.from).as_deref(), Some(from), "{name}");
        }
        for other in [
            "notes.json",
            "1-2-3-x.json",
            "2026-03-05T10-30-00Z.json",
            "2026-03-05T10-30-00Z-.json",
            "2026-03-05T10-30-00-mayor.json",
            "2026-03-05T10-30-00Z-x.json.tmp",
            "x2026-03-05T10-30-00Z-x.json",
        ] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn file_names_round_trip_and_sort_by_time() {
        let early = Stamp::parse("2026-03-05T10:30:00.000000009Z").unwrap().stamp;
        let (a, b) = (FileName::write(early, "z"), FileName::write(early.next(), "a"));
        assert_eq!(a, "2026-03-05T10-30-00.000000009Z-z.json");
        assert_eq!(FileName::parse(&a), Some(FileName { stamp: early, from: "z".into() }));
        assert!(a < b);
    }

    #[test]
    fn unsafe_file_names_are_refused() {
        for bad in
            ["../x.json", "a/b.json", "/x.json", ".x.json", ".json", "x.txt", "a\0.json", "a\n.json", ""]
        {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(is_plain("2026-03-05T10-30-00Z-mayor.json"));
    }
}
