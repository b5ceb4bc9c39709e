//! `{timestamp}-{from}.json`, read in every spelling there is, written in one.

use super::id::check_agent;
use super::stamp::{self, Stamp};

/// How the name of every message ends.
pub const TAIL: &str = ".json";
/// Where messages go that have lain for a day.
pub const ARCHIVE: &str = "archive";
/// What a sender that follows the text to the letter writes into first. It is never ours to touch.
pub const FOREIGN_TEMP: &str = ".msg.tmp";
/// How our own temporary files begin; a peer that looks for `.json` passes them over.
pub const TEMP_HEAD: &str = ".ph-";
/// How our own temporary files end.
pub const TEMP_TAIL: &str = ".tmp";

/// What a file's name tells: when, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The moment in the name. Age and order go by it, whatever the file says inside.
    pub stamp: Stamp,
    /// The rest: the sender, if the name is what it looks like. What stands inside the file is believed rather.
    pub from: String,
}

impl FileName {
    /// The name of a new file.
    #[must_use]
    pub fn write(stamp: Stamp, from: &str) -> String {
        format!("{}-{from}{TAIL}", stamp.in_name())
    }

    /// Reads a name: colons or dashes within the time, with and without decimals, with `Z` or an offset. Nothing for
    /// any other name, whose file has no age and is left where it is.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(TAIL)?;
        let (written, rest) = stamp::read(stem)?;
        let from = rest.strip_prefix('-').filter(|from| !from.is_empty())?;
        Some(Self { stamp: written.stamp, from: from.to_owned() })
    }
}

/// Whether a name could be that of a message at all: it ends in `.json` and is not hidden.
#[must_use]
pub fn is_candidate(name: &str) -> bool {
    name.ends_with(TAIL) && !name.starts_with('.') && name.len() > TAIL.len()
}

/// Whether a text is a plain file name of a message: no path, nothing hidden. Whoever names a file is held to this.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    let unsafe_letter = |c: char| c == '/' || c == '\\' || c.is_control();
    is_candidate(name) && name.len() <= 255 && !name.contains(unsafe_letter)
}

/// Whether a name is that of one of our own temporary files.
#[must_use]
pub fn is_own_temp(name: &str) -> bool {
    name.starts_with(TEMP_HEAD) && name.ends_with(TEMP_TAIL)
}

/// The sender of a name, if it could be an agent's.
#[must_use]
pub fn sender_in(name: &str) -> Option<String> {
    FileName::parse(name).map(|name| name.from).filter(|from| check_agent(from).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_from_the_left() {
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
    fn a_name_that_is_written_is_read_again_and_sorts_by_time() {
        let early = Stamp::parse("2026-03-05T10:30:00.000000009Z").unwrap().stamp;
        let (a, b) = (FileName::write(early, "z"), FileName::write(early.next(), "a"));
        assert_eq!(a, "2026-03-05T10-30-00.000000009Z-z.json");
        assert_eq!(FileName::parse(&a), Some(FileName { stamp: early, from: "z".into() }));
        assert!(a < b);
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for bad in
            ["../x.json", "a/b.json", "/x.json", ".x.json", ".json", "x.txt", "a\0.json", "a\n.json", ""]
        {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(is_plain("2026-03-05T10-30-00Z-mayor.json"));
    }
}
