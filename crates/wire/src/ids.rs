//! 128-bit ids in the text formats of the protocols: UUID, ULID, or prefixed ULID.
//!
//! There is no default format, hence no `Display`: the caller chooses the one that the protocol expects.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Crockford's base 32, without I, L, O and U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_LEN: usize = 26;
const UUID_LEN: usize = 36;

/// A 128-bit id. Ids sort in the same order as their UUID and ULID texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

/// Why a text is not an [`Id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The length matches no format.
    #[error("an id is a UUID, a ULID, or a prefix and a ULID")]
    Shape,
    /// The text has the length and first hyphen of a UUID, but is not one.
    #[error("not a UUID of hexadecimal digits in groups of 8-4-4-4-12")]
    Uuid,
    /// One of the 26 characters is not in Crockford's base 32.
    #[error("not a ULID: a character is not in Crockford's base 32")]
    Ulid,
    /// The 26 characters encode more than 128 bits.
    #[error("not a ULID: greater than 7ZZZZZZZZZZZZZZZZZZZZZZZZZ")]
    Overflow,
    /// The prefix is malformed, or not the expected one.
    #[error("the id has a wrong prefix")]
    Prefix,
}

impl Id {
    /// Formats the id as a hyphenated lower-case UUID.
    pub fn uuid(self) -> impl fmt::Display {
        Uuid::from_u128(self.0).hyphenated()
    }

    /// Formats the id as a ULID.
    pub fn ulid(self) -> impl fmt::Display {
        self.prefixed("")
    }

    /// Formats the id as `prefix` (separator included) and a ULID: `conv-01J...`.
    pub fn prefixed(self, prefix: &str) -> impl fmt::Display {
        Prefixed { prefix, id: self }
    }

    /// Parses a ULID with exactly this prefix.
    pub fn parse_prefixed(text: &str, prefix: &str) -> Result<Self, IdError> {
        parse_ulid(text.strip_prefix(prefix).ok_or(IdError::Prefix)?)
    }
}

/// Parses any format; UUIDs and ULIDs are case-insensitive.
impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // A prefixed ULID of this length ends its prefix at byte 9, and separators are never adjacent, so byte 8 is no hyphen.
        if text.len() == UUID_LEN && text.as_bytes()[8] == b'-' {
            let uuid = Uuid::try_parse(text).map_err(|_| IdError::Uuid)?;
            return Ok(Id(uuid.as_u128()));
        }
        let at = text.len().checked_sub(ULID_LEN).ok_or(IdError::Shape)?;
        let (prefix, ulid) = text.split_at_checked(at).ok_or(IdError::Shape)?;
        if !prefix.is_empty() && !is_prefix(prefix) {
            return Err(IdError::Prefix);
        }
        parse_ulid(ulid)
    }
}

/// Whether the text is one or more runs of `a-z0-9`, each followed by `-` or `_`.
fn is_prefix(text: &str) -> bool {
    text.split_inclusive(['-', '_']).all(|word| match word.strip_suffix(['-', '_']) {
        Some(word) => {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        }
        None => false,
    })
}

fn parse_ulid(text: &str) -> Result<Id, IdError> {
    if text.len() != ULID_LEN {
        return Err(IdError::Shape);
    }
    let mut value: u128 = 0;
    for (i, byte) in text.bytes().enumerate() {
        let digit = DIGITS.iter().position(|digit| *digit == byte.to_ascii_uppercase());
        let digit = digit.ok_or(IdError::Ulid)? as u128;
        // 26 digits hold 130 bits, so the first may use only three of its five.
        if i == 0 && digit > 7 {
            return Err(IdError::Overflow);
        }
        value = value << 5 | digit;
    }
    Ok(Id(value))
}

struct Prefixed<'a> {
    prefix: &'a str,
    id: Id,
}

impl fmt::Display for Prefixed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix)?;
        (0..ULID_LEN).rev().try_for_each(|position| {
            let digit = (self.id.0 >> (5 * position)) as usize & 31;
            fmt::Write::write_char(f, DIGITS[digit] as char)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the ULID specification, and the same bits as a UUID.
    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const UUID: &str = "01563e3a-b5d3-d676-4c61-efb99302bd5b";

    #[test]
    fn all_formats_parse_to_the_same_id() {
        let id: Id = ULID.parse().unwrap();
        assert_eq!(id.uuid().to_string(), UUID);
        assert_eq!(id.ulid().to_string(), ULID);
        assert_eq!(id.prefixed("conv-").to_string(), format!("conv-{ULID}"));
        for text in [
            UUID,
            &UUID.to_uppercase(),
            &ULID.to_lowercase(),
            &format!("conv-{ULID}"),
            &format!("msg_{ULID}"),
            // Same length as a UUID, with a prefix of ten characters.
            &format!("very-long-{ULID}"),
        ] {
            assert_eq!(text.parse(), Ok(id), "{text}");
        }
        assert_eq!(Id::parse_prefixed(&format!("conv-{ULID}"), "conv-"), Ok(id));
    }

    #[test]
    fn smallest_and_largest_ids_format() {
        assert_eq!(Id(0).ulid().to_string(), "00000000000000000000000000");
        assert_eq!(Id(u128::MAX).ulid().to_string(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!("8ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse::<Id>(), Err(IdError::Overflow));
    }

    #[test]
    fn invalid_ids_are_refused() {
        for (text, error) in [
            ("", IdError::Shape),
            ("conv-", IdError::Shape),
            (&UUID.replace('-', ""), IdError::Prefix),
            (&UUID.replace('e', "g"), IdError::Uuid),
            (&format!("{{{UUID}}}"), IdError::Prefix),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAU", IdError::Ulid),
            ("01ARZ3NDEKTSV4RRFFQ69G5FA ", IdError::Ulid),
            ("01ARZ3NDEKTSV4RRFFQ69G5Fé", IdError::Ulid),
            (&format!("é{}", &ULID[1..]), IdError::Shape),
            (&format!("conv{ULID}"), IdError::Prefix),
            (&format!("-{ULID}"), IdError::Prefix),
            (&format!("Conv-{ULID}"), IdError::Prefix),
            (&format!("a b-{ULID}"), IdError::Prefix),
        ] {
            assert_eq!(text.parse::<Id>(), Err(error), "{text}");
        }
        assert_eq!(Id::parse_prefixed(&format!("conv-{ULID}"), "turn-"), Err(IdError::Prefix));
        assert_eq!(Id::parse_prefixed("conv-1", "conv-"), Err(IdError::Shape));
    }
}
