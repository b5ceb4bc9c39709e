//! Event ids: ULIDs made of an event's time and place, so that they sort as the history does, can be found again
//! after a restart, and cannot be mistaken for those of another history.

use crate::Id;

/// The low bits of an id's last 64 that hold a place; a few of those above number what was said at that place.
const PLACE_BITS: u32 = 48;
/// How many signs at one place can be told apart.
const SIGNS: u16 = 0x7fff;

/// The id of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// When it happened, in Unix milliseconds.
    pub at: i64,
    /// Which history it is of; see [`history_tag`].
    pub history: u16,
    /// Its place there.
    pub seq: i64,
}

impl EventId {
    /// The id as a ULID: 48 bits of time, 16 bits of history, 16 that only signs have, 48 bits of place.
    #[must_use]
    pub fn ulid(self) -> String {
        self.spelled(0)
    }

    /// The id of something that is no event of the history and was said when this one was the last: another name, and the
    /// same place for whoever goes on from it.
    #[must_use]
    pub fn sign(self, number: u16) -> String {
        self.spelled(u64::from(number % SIGNS + 1))
    }

    fn spelled(self, sign: u64) -> String {
        let at = self.at.max(0).unsigned_abs() & ((1 << 48) - 1);
        let seq = self.seq.max(0).unsigned_abs() & ((1 << PLACE_BITS) - 1) | sign << PLACE_BITS;
        Id(u128::from(at) << 80 | u128::from(self.history) << 64 | u128::from(seq)).ulid().to_string()
    }

    /// Reads an id, of an event or of a sign; nothing if it is none that an office could have made.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let Id(bits) = Id::parse_prefixed(text, "").ok()?;
        let at = i64::try_from(bits >> 80).ok()?;
        let history = u16::try_from(bits >> 64 & 0xffff).ok()?;
        let low = i64::try_from(bits & u128::from(u64::MAX)).ok()?;
        let seq = low & ((1 << PLACE_BITS) - 1);
        Some(Self { at, history, seq })
    }
}

/// Sixteen bits by which the ids of one history differ from those of another (FNV-1a, folded).
#[must_use]
pub fn history_tag(name: &str) -> u16 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let folded = (hash >> 16) ^ (hash & 0xffff);
    u16::try_from(folded).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_says_what_it_was_made_of(at in 0_i64..1 << 48, history: u16, seq in 0_i64..1 << 48) {
            let id = EventId { at, history, seq };
            prop_assert_eq!(EventId::parse(&id.ulid()), Some(id));
            prop_assert_eq!(id.ulid().len(), 26);
        }

        #[test]
        fn a_sign_has_a_name_of_its_own_and_the_place_of_its_event(seq in 0_i64..1 << 48, n: u16, m: u16) {
            let id = EventId { at: 1, history: 7, seq };
            prop_assert_eq!(EventId::parse(&id.sign(n)), Some(id));
            prop_assert_ne!(id.sign(n), id.ulid());
            prop_assert_eq!(id.sign(n) == id.sign(m), n % SIGNS == m % SIGNS);
        }

        #[test]
        fn ids_sort_as_the_history_does(at in 0_i64..1 << 40, later in 0_i64..1000, seq in 0_i64..1 << 40) {
            let one = EventId { at, history: 7, seq };
            let next = EventId { at: at + later, history: 7, seq: seq + 1 };
            prop_assert!(one.ulid() < next.ulid());
        }

        #[test]
        fn no_text_breaks_the_parser(text in ".{0,40}") {
            let _ = EventId::parse(&text);
        }
    }
}
