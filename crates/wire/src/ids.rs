//! One 128-bit id in the spellings protocols want: UUID, ULID, or a ULID behind a prefix.
//!
//! There is no default spelling: whoever writes an id says which one its reader expects.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Crockford's base 32: no I, L, O or U.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ULID_LEN: usize = 26;
const UUID_LEN: usize = 36;

/// A 128-bit id; ids, their UUIDs and their ULIDs all sort alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

/// Why a text is no [`Id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text has the length of no spelling.
    #[error("an id is a UUID, a ULID, or a prefix and a ULID")]
    Shape,
    /// The text is as long as a UUID and starts like one, but is none.
    #[error("not a UUID of hexadecimal digits in groups of 8-4-4-4-12")]
    Uuid,
    /// The 26 characters hold something other than Crockford's base 32.
    #[error("not a ULID: a character is not of Crockford's base 32")]
    Ulid,
    /// The 26 characters spell a number of more than 128 bits.
    #[error("not a ULID: greater than 7ZZZZZZZZZZZZZZZZZZZZZZZZZ")]
    Overflow,
    /// What stands before the ULID is not the prefix wanted, or not a prefix at all.
    #[error("the id has a wrong prefix")]
    Prefix,
}

impl Id {
    /// Spells the id as a hyphenated UUID in lower case.
    pub fn uuid(self) -> impl fmt::Display {
        Uuid::from_u128(self.0).hyphenated()
    }

    /// Spells the id as a ULID.
    pub fn ulid(self) -> impl fmt::Display {
        self.prefixed("")
    }

    /// Spells the id as `prefix`, which brings its own separator, and a ULID: `conv-01J...`.
    pub fn prefixed(self, prefix: &str) -> impl fmt::Display {
        Prefixed { prefix, id: self }
    }

    /// Reads a ULID behind exactly this prefix.
    pub fn parse_prefixed(text: &str, prefix: &str) -> Result<Self, IdError> {
        parse_ulid(text.strip_prefix(prefix).ok_or(IdError::Prefix)?)
    }
}

/// Reads any spelling; letters of UUIDs and ULIDs may be of either case.
impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        // A prefix that makes a ULID as long as a UUID has its separator at byte 9, and no other beside it.
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

/// Words of lower-case letters and digits, each followed by `-` or `_`.
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
        (0..ULID_LEN).rev().try_for_each(|place| {
            let digit = (self.id.0 >> (5 * place)) as usize & 31;
            fmt::Write::write_char(f, DIGITS[digit] as char)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the ULID text, and the same bits as a UUID.
    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const UUID: &str = "01563e3a-b5d3-d676-4c61-efb99302bd5b";

    #[test]
    fn all_spellings_are_the_same_id() {
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
            // As long as a UUID, but a prefix of ten.
            &format!("very-long-{ULID}"),
        ] {
            assert_eq!(text.parse(), Ok(id), "{text}");
        }
        assert_eq!(Id::parse_prefixed(&format!("conv-{ULID}"), "conv-"), Ok(id));
    }

    #[test]
    fn the_ends_of_the_range_are_spelled() {
        assert_eq!(Id(0).ulid().to_string(), "00000000000000000000000000");
        assert_eq!(Id(u128::MAX).ulid().to_string(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!("8ZZZZZZZZZZZZZZZZZZZZZZZZZ".parse::<Id>(), Err(IdError::Overflow));
    }

    #[test]
    fn other_texts_are_refused() {
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
